"""Plays the games of a folder: the generator of self-play."""

from __future__ import annotations

import os
import re
import time
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Callable

import numpy
import shogi

from pydlshogi import table
from pydlshogi.bar import bar
from pydlshogi.errors import UserError
from pydlshogi.files import file_stamp, write_beside
from pydlshogi.inference.evaluator import Evaluator
from pydlshogi.match.record import PlayedGame, format_record, write_match_page
from pydlshogi.match.referee import Referee, Verdict
from pydlshogi.player.strategy import score
from pydlshogi.selfplay.folder import GameFolder, Row
from pydlshogi.selfplay.game import (
    DECLARED,
    ENDS,
    MATED,
    REPEATED,
    RESIGNED,
    TOO_LONG,
    LiveGame,
)
from pydlshogi.selfplay.pool import Pool
from pydlshogi.selfplay.search import RootSearch
from pydlshogi.selfplay.settings import SelfPlaySettings
from pydlshogi.selfplay.starts import draw_start
from pydlshogi.uct.move import to_usi
from pydlshogi.uct.search import compile_search

#: Every game with a number that this divides is also written as a record with a page.
RECORD_EVERY = 100

#: Seconds between two looks at the model file.
_LOOK = 10.0

#: Names of winners and of those who resign.
_SIDES = {0: "black", 1: "white", None: "draw"}

_MARKS = {MATED: "%TORYO", RESIGNED: "%TORYO", DECLARED: "%KACHI", REPEATED: "%SENNICHITE",
          TOO_LONG: "%JISHOGI"}  # fmt: skip


class Model:
    """A model file in use.

    Args:
        path: The file.
        device: The ``chainer.backend.Device``.
        backend: What computes it on a CPU.

    Attributes:
        name: Its name, with a hash of its content.
        evaluator: The network.

    Raises:
        UserError: the file cannot be used, or its network lacks a head.
    """

    def __init__(self, path: str | os.PathLike[str], device: Any, backend: str) -> None:
        self._path, self._device, self._backend = Path(path), device, backend
        self._stamp = file_stamp(self._path)
        self.evaluator = Evaluator(path, device, backend)
        # The fastest backend is chosen once.
        self._backend = self.evaluator.backend
        if not (self.evaluator.has_value and self.evaluator.has_policy):
            lacking = "policy" if self.evaluator.has_value else "value"
            raise UserError(
                f"model file {path} has no {lacking} head, which self-play needs. Choose a model "
                "of train_policy_value or train_policy_value_resnet."
            )
        name = re.sub(r"[^A-Za-z0-9_-]+", "_", self._path.name)
        self.name = f"{name}-{zlib.crc32(self._path.read_bytes()):08x}"

    def evaluate(self, planes: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray | None]:
        """Evaluates planes, as :data:`pydlshogi.uct.evaluation.Evaluate`."""
        logits, wins = self.evaluator.evaluate(planes)
        assert logits is not None
        return logits, wins

    def successor(self) -> Model | None:
        """Returns the model of the same path if the file has been replaced; else None."""
        if file_stamp(self._path) in (self._stamp, None):
            return None
        return Model(self._path, self._device, self._backend)


class Generator:
    """Plays games into a folder. Between two calls of :meth:`run` the games in flight stay.

    Args:
        model: The model. A new file at its path is used as soon as it is seen.
        folder: The folder, open.
        settings: The parameters.
        seed: The seed. With the number of a game, it determines its start and its noise.
        batch: Number of games in flight.
    """

    def __init__(
        self, model: Model, folder: GameFolder, settings: SelfPlaySettings, seed: int, batch: int
    ) -> None:
        compile_search()
        self.model, self._folder, self._settings, self._seed = model, folder, settings, seed
        self._pool = Pool([model.evaluate], batch, [model.evaluator.plane_num])
        self._idle: list[RootSearch] = []
        self._begun: dict[int, float] = {}
        self._numbers: list[int] = []

    def run(self, games: int, is_enough: Callable[[], bool] = lambda: False) -> None:
        """Plays until the folder has so many games, or other processes play the missing ones.

        Args:
            games: Number of the last game to begin.
            is_enough: Asked after each game; whether to end, with games in flight.

        Raises:
            UserError: the network or the folder cannot be used.
            OSError: a file cannot be written.
        """
        done, start = len(self._folder.rows()), time.perf_counter()
        evaluations, targets, next_look = 0, 0, start
        with bar(total=games, initial=min(done, games), unit="game") as progress:
            while not is_enough():
                if time.perf_counter() >= next_look:
                    next_look = time.perf_counter() + _LOOK
                    self.look_for_model()
                self._begin_games(games)
                if not self._pool.games:
                    break
                ended: list[LiveGame] = []
                while not ended and time.perf_counter() < next_look:
                    ended, evaluated = self._pool.step()
                    evaluations += evaluated
                for game in ended:
                    self._store(game)
                    targets += sum(bool(move.candidates) for move in game.moves)
                seconds = time.perf_counter() - start
                rates = f"{targets / seconds:.1f} positions/s, {evaluations / seconds:.0f} evals/s"
                progress.set_postfix_str(rates, refresh=False)
                progress.update(len(ended))

    def look_for_model(self) -> None:
        """Goes on with the new model if the file has been replaced.

        Raises:
            UserError: the new model cannot take the place of the old one.
        """
        new = self.model.successor()
        if not new:
            return
        if new.evaluator.plane_num != self.model.evaluator.plane_num:
            raise UserError(
                f"the new model {new.name} takes another input than {self.model.name}. Start the "
                "program again with it."
            )
        self.model = new
        self._pool.replace(new.evaluate)
        for search in self._idle:
            search.forget()

    def _begin_games(self, games: int) -> None:
        """Begins games until the pool is full, or no number is left."""
        while len(self._pool.games) < self._pool.size:
            if not self._numbers:
                self._numbers = self._folder.claim(max(1, self._pool.size // 4), games)
                if not self._numbers:
                    return
            number = self._numbers.pop(0)
            plane_num = self.model.evaluator.plane_num
            search = self._idle.pop() if self._idle else RootSearch(self._settings, plane_num)
            self._begun[number] = time.perf_counter()
            rng = random_of(self._seed, number)
            start = draw_start(self._settings, rng)
            self._pool.games.append(LiveGame(number, start, (search, search), self._settings, rng))

    def _store(self, game: LiveGame) -> None:
        """Appends a game to the folder, and writes its record if its turn has come."""
        self._idle.append(game.searches[0])
        model = self.model.name
        if game.number % RECORD_EVERY == 0:
            write_record(game, self._folder.path / "records", (model, model))
        row = Row(
            end_byte=0,
            game=game.number,
            start=game.start.kind,
            plies=len(game.moves),
            winner=_SIDES[game.winner],
            end=game.end,
            targets=sum(bool(move.candidates) for move in game.moves),
            evaluations=game.evaluations,
            resigned="-" if game.resigned is None else _SIDES[game.resigned],
            seconds=round(time.perf_counter() - self._begun.pop(game.number), 1),
        )
        self._folder.add(model, game.encode(), row)


def random_of(seed: int, number: int) -> numpy.random.Generator:
    """Makes the random generator of a game."""
    return numpy.random.default_rng([seed, number])


def write_record(game: LiveGame, records: Path, names: Sequence[str]) -> None:
    """Writes a game as a CSA file and a page: ``000100.csa`` and ``000100.html``."""
    if not game.moves:
        return
    referee = Referee(len(game.moves) + 1, game.start.sfen)
    for move in game.moves:
        referee.hear(to_usi(move.move))
    wins = [move.value for move in game.moves]
    first = shogi.Board(game.start.sfen).turn
    evaluations = [
        None if win is None else score(win if (first + ply) % 2 == 0 else 1 - win)
        for ply, win in enumerate(wins)
    ]
    mark = _MARKS.get(game.end) or ("%+" if game.winner else "%-") + "ILLEGAL_ACTION"
    verdict = Verdict(game.winner, mark, game.end)
    seconds = [0.0] * len(game.moves)
    played = PlayedGame(referee.csa_moves, seconds, evaluations, verdict)
    notes = [f"start: {game.start.kind}, {len(game.start.moves)} moves"]
    record = format_record(
        names, f"game {game.number}", notes, played, None if first == 0 else game.start.sfen
    )
    records.mkdir(parents=True, exist_ok=True)
    path = records / f"{game.number:06}.csa"
    notes.append(f"{game.end}; {_SIDES[game.winner]}")
    write_match_page(path.with_suffix(".html"), record, seconds, evaluations, notes)
    with write_beside(path) as file:
        file.write(record)


def summary(rows: Sequence[Row]) -> str:
    """Formats the table of the games: number, length, results and ends, by kind of start."""
    kinds = [*dict.fromkeys(row.start for row in sorted(rows, key=lambda row: row.game))]
    groups = [(kind, [row for row in rows if row.start == kind]) for kind in kinds]
    if len(groups) > 1:
        groups.append(("all", list(rows)))
    titles = ("start", "games", "black", "white", "drawn", "plies", "positions", *ENDS)
    lines = []
    for kind, group in groups:
        winners, ends = Counter(row.winner for row in group), Counter(row.end for row in group)
        lines.append(
            [kind, len(group), winners["black"], winners["white"], winners["draw"],
             round(sum(row.plies for row in group) / len(group)),
             sum(row.targets for row in group), *(ends[end] for end in ENDS)]
        )  # fmt: skip
    return table.markdown(titles, lines) + _resignations(rows)


def _resignations(rows: Sequence[Row]) -> str:
    """Reports how many of those who would have resigned did not lose, in games played on."""
    played_on = [row for row in rows if row.resigned != "-" and row.end != RESIGNED]
    wrong = sum(row.winner in (row.resigned, "draw") for row in played_on)
    share = f"{100 * wrong / len(played_on):.1f} %" if played_on else "unknown"
    return f"\nWrong resignations: {wrong} of {len(played_on)} games that played on ({share}).\n"
