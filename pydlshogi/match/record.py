"""Game records of a match as CSA files, and their pages."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import shogi

from pydlshogi.analysis.pictures import page_of_record
from pydlshogi.analysis.record import checked_game
from pydlshogi.drawing.page import write_page
from pydlshogi.kifu.csa import parse_game
from pydlshogi.kifu.csa_board import position_lines
from pydlshogi.kifu.parsed_game import RecordError
from pydlshogi.match.referee import FAULT_MARKS, Verdict
from pydlshogi.player.strategy import PONANZA_CONSTANT
from pydlshogi.text import one_line


@dataclasses.dataclass(frozen=True)
class PlayedGame:
    """A finished game: the moves in CSA notation, with the signs of the sides.

    If an answer that is no move ended the game, its time is the last element of ``seconds``. Each
    evaluation is that of the position before, by its mover, in centipawns for Black; None if the
    engine sent none.
    """

    moves: list[str]
    seconds: list[float]
    evaluations: list[int | None]
    verdict: Verdict


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Result of a game: the winner (None for a draw), and its number of moves with the opening.

    ``by_fault``: whether the loser made an illegal move, died or did not answer.
    """

    winner: int | None
    by_fault: bool
    plies: int

    def points(self, colour: int) -> float:
        """Returns the points of a side: 1, 0.5 or 0."""
        return 0.5 if self.winner is None else float(self.winner == colour)


def format_record(
    names: Sequence[str],
    event: str,
    notes: Iterable[str],
    game: PlayedGame,
    start: str | None = None,
) -> bytes:
    """Formats a game as CSA V2.2 in UTF-8, with ``notes`` as comments in its head.

    ``start`` is the SFEN of the start position; None for that of the even game.

    The evaluations are comments such as floodgate's: ``'** 120`` after the move, for Black.
    Times are rounded down to whole seconds.
    """
    lines = ["V2.2", f"N+{names[shogi.BLACK]}", f"N-{names[shogi.WHITE]}", f"$EVENT:{event}"]
    lines.append(time.strftime("$END_TIME:%Y/%m/%d %H:%M:%S"))
    lines += [f"'{one_line(note)}" for note in notes]
    lines += ["PI", "+"] if start is None else position_lines(shogi.Board(start))
    for move, seconds, evaluation in zip(game.moves, game.seconds, game.evaluations):
        lines += [move, f"T{int(seconds)}"]
        if evaluation is not None:
            lines.append(f"'** {evaluation}")
    lines += [game.verdict.end_mark, f"T{int([*game.seconds, 0.0][len(game.moves)])}"]
    lines.append(f"'{one_line(game.verdict.reason)}")
    return "".join(f"{line}\n" for line in lines).encode("utf-8")


def read_first_moves(path: Path, number: int) -> list[str]:
    """Reads the first moves of a recorded game in USI notation; RecordError: it is no record."""
    game = parse_game(path.read_bytes())
    first = checked_game(dataclasses.replace(game, moves=game.moves[:number]))
    return [move.usi() for move in first.moves]


def read_outcome(path: Path) -> Outcome:
    """Reads the result of a recorded game; RecordError: it is no record of a finished game."""
    game = parse_game(path.read_bytes())
    if game.end_mark is None:
        raise RecordError(0, "the game has no end")
    return Outcome(game.winner, game.end_mark in FAULT_MARKS, len(game.moves))


def write_match_page(path: Path, record: bytes, game: PlayedGame, notes: Sequence[str]) -> None:
    """Writes the page of a game with at least one move; ``record`` is its CSA file."""
    wins = [None if value is None else _probability(value) for value in game.evaluations]
    page = page_of_record(checked_game(parse_game(record)), game.seconds, wins, notes, "en")
    write_page(page, path)


def _probability(evaluation: int) -> float:
    """Converts centipawns into the probability of winning, on the scale of our engines."""
    return 1 / (1 + math.exp(-evaluation / PONANZA_CONSTANT))
