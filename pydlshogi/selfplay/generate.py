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
from pydlshogi.kifu.sources import SELF_PLAY_RECORDS
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
    Pool,
)
from pydlshogi.selfplay.search import RootSearch
from pydlshogi.selfplay.settings import SelfPlaySettings
from pydlshogi.selfplay.starts import draw_start
from pydlshogi.uct.move import to_usi
from pydlshogi.uct.search import compile_search

#: The first of so many games, by their numbers, is also written as a record with a page.
RECORD_EVERY = 100

#: Stands for a number of games without end.
ENDLESS = 10**9

#: Seconds between two looks at the model file.
_LOOK = 10.0

#: Names of winners and of those who resign.
_SIDES = {0: "black", 1: "white", None: "draw"}

_MARKS = {MATED: "%TORYO", RESIGNED: "%TORYO", DECLARED: "%KACHI", REPEATED: "%SENNICHITE",
          TOO_LONG: "%JISHOGI"}  # fmt: skip


class Model:
    """A model file in use: its ``evaluator``, and its ``name`` with a hash of its content.

    Raises:
        UserError: the file cannot be used, or its network lacks a head.
    """

    def __init__(self, path: str | os.PathLike[str], device: Any, backend: str) -> None:
        self._path = Path(path)
        self._stamp = file_stamp(self._path)
        self.evaluator = Evaluator(path, device, backend)
        if not (self.evaluator.has_value and self.evaluator.has_policy):
            lacking = "policy" if self.evaluator.has_value else "value"
            raise UserError(
                f"model file {path} has no {lacking} head, which self-play needs. Choose a model "
                "of train_policy_value or train_policy_value_resnet."
            )
        name = re.sub(r"[^A-Za-z0-9_-]+", "_", self._path.name)
        self.name = f"{name}-{zlib.crc32(self._path.read_bytes()):08x}"

    def successor(self) -> Model | None:
        """Returns the model of the same path if the file has been replaced; else None."""
        if file_stamp(self._path) in (self._stamp, None):
            return None
        # The fastest backend is chosen once.
        return Model(self._path, self.evaluator.device, self.evaluator.backend)


class Generator:
    """Plays games into an open folder. Between two calls of :meth:`run`, those in flight stay.

    A new file at the path of the model is used as soon as it is seen. ``batch`` games are in
    flight. ``seed`` and the number of a game determine its start and its noise.
    """

    def __init__(
        self, model: Model, folder: GameFolder, settings: SelfPlaySettings, seed: int, batch: int
    ) -> None:
        compile_search()
        self.model, self._folder, self._settings, self._seed = model, folder, settings, seed
        self._pool = Pool([model.evaluator], batch)
        self._idle: list[RootSearch] = []
        self._numbers: list[int] = []

    def run(self, games: int, is_enough: Callable[[], bool] = lambda: False) -> None:
        """Plays until the folder has so many games, or other processes play the missing ones.

        ``is_enough`` is asked after each game; it ends the call with games in flight.

        Raises:
            UserError: the network or the folder cannot be used.
            OSError: a file cannot be written.
        """
        done, start = len(self._folder.rows()), time.perf_counter()
        evaluations, targets, next_look = 0, 0, start
        total = games if games < ENDLESS else None
        with bar(total=total, initial=min(done, games), unit="game") as progress:
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
                    targets += game.targets
                seconds = time.perf_counter() - start
                rates = f"{targets / seconds:.1f} positions/s, {evaluations / seconds:.0f} evals/s"
                progress.set_postfix_str(rates, refresh=False)
                progress.update(len(ended))

    def look_for_model(self) -> None:
        """Goes on with the new model if the file has been replaced."""
        new = self.model.successor()
        if not new:
            return
        if new.evaluator.plane_num != self.model.evaluator.plane_num:
            raise UserError(
                f"the new model {new.name} takes another input than {self.model.name}. Start the "
                "program again with it."
            )
        self.model = new
        self._pool.replace(new.evaluator)
        self._idle.clear()  # they know evaluations of the old network

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
            rng = random_of(self._seed, number)
            start = draw_start(self._settings, rng)
            self._pool.games.append(LiveGame(number, start, (search, search), self._settings, rng))

    def _store(self, game: LiveGame) -> None:
        """Appends a game to the folder, and writes its record if its turn has come."""
        self._idle.append(game.searches[0])
        if game.number % RECORD_EVERY == 1 and game.moves:
            write_record(game, self._folder.path / SELF_PLAY_RECORDS, self.model.name)
        row = Row(
            end_byte=0,
            game=game.number,
            start=game.start.kind,
            plies=len(game.moves),
            winner=_SIDES[game.winner],
            end=game.end,
            targets=game.targets,
            evaluations=game.evaluations,
            resigned="-" if game.resigned is None else _SIDES[game.resigned],
            seconds=round(time.perf_counter() - game.began, 1),
        )
        self._folder.add(self.model.name, game.encode(), row)


def random_of(seed: int, number: int) -> numpy.random.Generator:
    """Makes the random generator of a game."""
    return numpy.random.default_rng([seed, number])


def write_record(game: LiveGame, records: Path, model: str) -> None:
    """Writes a game with a move as a CSA file and a page: ``000101.csa`` and ``000101.html``."""
    sfen = game.start.sfen
    referee, first = Referee(len(game.moves) + 1, sfen), shogi.Board(sfen).turn
    evaluations: list[int | None] = []
    for ply, (move, win, _) in enumerate(game.moves):
        referee.hear(to_usi(move))
        for_black = win if win is None or (first + ply) % 2 == 0 else 1 - win
        evaluations.append(None if for_black is None else score(for_black))
    mark = _MARKS.get(game.end) or ("%+" if game.winner else "%-") + "ILLEGAL_ACTION"
    verdict = Verdict(game.winner, mark, game.end)
    played = PlayedGame(referee.csa_moves, [0.0] * len(game.moves), evaluations, verdict)
    notes = [f"start: {game.start.kind}, {len(game.start.moves)} moves"]
    start = sfen if first else None
    record = format_record((model, model), f"game {game.number}", notes, played, start)
    records.mkdir(parents=True, exist_ok=True)
    path = records / f"{game.number:06}.csa"
    notes.append(f"{game.end}; {_SIDES[game.winner]}")
    write_match_page(path.with_suffix(".html"), record, played, notes)
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
