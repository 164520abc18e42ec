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
from pydlshogi.match.play import PlayedGame
from pydlshogi.match.record import format_record, write_match_page
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
from pydlshogi.uct.search import compile_search
from pydlshogi.uct.move import to_usi

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


def generate(
    model: Model,
    folder: GameFolder,
    settings: SelfPlaySettings,
    *,
    games: int,
    seed: int,
    batch: int,
    is_enough: Callable[[], bool] = lambda: False,
) -> None:
    """Plays until the folder has so many games, or they are all claimed by other processes.

    Args:
        model: The model. A new file at its path is used as soon as it is seen.
        folder: The folder, open.
        settings: The parameters.
        games: Number of games that the folder is to have.
        seed: The seed. With the number of a game, it determines its start and its noise.
        batch: Number of games in flight.
        is_enough: Asked after each batch; says whether to end, without the games in flight.

    Raises:
        UserError: the network or the folder cannot be used.
        OSError: a file cannot be written.
    """
    compile_search()
    network = model.evaluator
    pool = Pool([model.evaluate], batch, [network.plane_num])
    searches: list[RootSearch] = []  # those of ended games
    begun: dict[int, float] = {}
    numbers: list[int] = []
    has_more, next_look = True, time.monotonic() + _LOOK
    done, start, evaluations, targets = len(folder.rows()), time.perf_counter(), 0, 0
    with bar(total=games, initial=min(done, games), unit="game") as progress:
        while not is_enough():
            while has_more and len(pool.games) < batch:
                if not numbers:
                    numbers = folder.claim(max(1, batch // 4), games)
                    has_more = bool(numbers)
                    if not has_more:
                        break
                number = numbers.pop(0)
                search = searches.pop() if searches else RootSearch(settings, network.plane_num)
                pool.games.append(_new_game(number, search, settings, seed))
                begun[number] = time.perf_counter()
            if not pool.games:
                break
            ended, evaluated = pool.step()
            evaluations += evaluated
            for game in ended:
                _store(game, folder, model.name, time.perf_counter() - begun.pop(game.number))
                searches.append(game.searches[0])
                targets += sum(bool(move.candidates) for move in game.moves)
                progress.update()
            seconds = time.perf_counter() - start
            progress.set_postfix_str(
                f"{targets / seconds:.1f} positions/s, {evaluations / seconds:.0f} evaluations/s",
                refresh=False,
            )
            if time.monotonic() > next_look:
                next_look = time.monotonic() + _LOOK
                new = model.successor()
                if new:
                    if new.evaluator.plane_num != network.plane_num:
                        raise UserError(
                            f"the new model {new.name} takes another input than {model.name}. "
                            "Start the games with it anew."
                        )
                    model = new
                    pool.replace(model.evaluate)
                    for search in searches:
                        search.forget()


def random_of(seed: int, number: int) -> numpy.random.Generator:
    """Makes the random generator of a game."""
    return numpy.random.default_rng([seed, number])


def _new_game(
    number: int, search: RootSearch, settings: SelfPlaySettings, seed: int
) -> LiveGame:
    rng = random_of(seed, number)
    return LiveGame(number, draw_start(settings, rng), (search, search), settings, rng)


def _store(game: LiveGame, folder: GameFolder, model: str, seconds: float) -> None:
    """Appends a game to the folder, and writes its record if its turn has come."""
    if game.number % RECORD_EVERY == 0:
        write_record(game, folder.path / "records", (model, model))
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
        seconds=round(seconds, 1),
    )
    folder.add(model, game.encode(), row)


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
    return (
        f"\nWrong resignations: {wrong} of {len(played_on)} games that played on ({share}).\n"
    )

