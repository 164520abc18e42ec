"""A game record after parsing: players, start position, moves and result.

Every text format (:mod:`pydlshogi.kifu.formats`) is parsed to a :class:`Game`.
:mod:`pydlshogi.kifu.replay` then plays the moves on the board.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

import shogi

from pydlshogi.errors import UserError
from pydlshogi.positions import DRAW, EVEN_GAME, LOSS, NO_EVALUATION, UNKNOWN, WIN

#: CSA's end marks, and the result of each for the side to move.
END_MARKS = {
    "%TORYO": LOSS,
    "%TIME_UP": LOSS,
    "%TSUMI": LOSS,
    "%ILLEGAL_MOVE": LOSS,
    "%KACHI": WIN,
    "%SENNICHITE": DRAW,
    "%JISHOGI": DRAW,
    "%HIKIWAKE": DRAW,
    "%MAX_MOVES": DRAW,
    "%CHUDAN": UNKNOWN,
    "%MATTA": UNKNOWN,
    "%FUZUMI": UNKNOWN,
    "%ERROR": UNKNOWN,
}
#: End marks that name a side themselves, and the result of each for Black.
END_MARKS_FOR_BLACK = {"%+ILLEGAL_ACTION": LOSS, "%-ILLEGAL_ACTION": WIN}
#: End marks of games that a foul decided.
FOULS = ("%ILLEGAL_MOVE", *END_MARKS_FOR_BLACK)
# Some programs write their own marks, such as %OUTE_SENNICHITE. The moves are still valid.
_OWN_END_MARK = re.compile("%[A-Z_]+")

#: The same result for the other side.
OTHER_RESULT = {LOSS: WIN, WIN: LOSS, DRAW: DRAW, UNKNOWN: UNKNOWN}


class RecordError(UserError):
    """A record that cannot be parsed.

    Attributes:
        line: Line number in the record, from 1; 0 if no single line is wrong.
        reason: What is wrong, without the line number.
    """

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}" if line else reason)
        self.line = line
        self.reason = reason


class NoMovesError(RecordError):
    """A record without moves, for example a mating problem.

    Attributes:
        game: Its start position and names; None if it gives no position.
    """

    def __init__(self, reason: str, game: Game | None) -> None:
        super().__init__(0, reason)
        self.game = game


class Move(NamedTuple):
    """A move, seen from the side that makes it.

    Attributes:
        origin: The square it leaves, 0..80. A drop has 81..87: the index of the mover's
            own pawn … rook in a placement (:mod:`pydlshogi.positions`).
        target: The square it goes to, 0..80.
        piece: Code of the piece after the move, 1..14.
        claimed: Code of the piece before the move if the record names it, else 0.
        line: Line number in the record, from 1.
        evaluation: The mover's own evaluation before the move, in centipawns, positive if the
            mover is better; ``NO_EVALUATION`` if unknown.
    """

    origin: int
    target: int
    piece: int
    claimed: int
    line: int
    evaluation: int = NO_EVALUATION


@dataclass
class Game:
    """A parsed record. Its moves have not been checked on a board.

    Attributes:
        names: Names of Black and White, empty if not given.
        ratings: Floodgate ratings of Black and White, None if not given.
        start: Placement before the first move, seen from the side that makes it.
        turn: The side that makes the first move, ``shogi.BLACK`` or ``shogi.WHITE``.
        moves: The moves of both sides in turn.
        end_mark: The end mark as written, such as ``%TORYO``; None if there is none.
        result: ``WIN``, ``LOSS``, ``DRAW`` or ``UNKNOWN`` for Black. It comes from the end
            mark. Without an end mark, or after a refused ``%KACHI``, the summary decides.
        summary: The result for Black by floodgate's summary line or KIF's closing line, None if
            there is none.
    """

    names: list[str] = field(default_factory=lambda: ["", ""])
    ratings: list[float | None] = field(default_factory=lambda: [None, None])
    start: bytes = EVEN_GAME
    turn: int = shogi.BLACK
    moves: list[Move] = field(default_factory=list)
    end_mark: str | None = None
    result: int = UNKNOWN
    summary: int | None = None

    @property
    def winner(self) -> int | None:
        """``shogi.BLACK``, ``shogi.WHITE``, or None if neither side won."""
        return {WIN: shogi.BLACK, LOSS: shogi.WHITE}.get(self.result)

    @property
    def to_move(self) -> int:
        """The side to move after the last move, ``shogi.BLACK`` or ``shogi.WHITE``."""
        return self.turn ^ (len(self.moves) & 1)


def end_result(mark: str, black_to_move: bool) -> int | None:
    """Returns the result of a game for Black, given its end mark such as ``%TORYO``.

    A well-formed mark that the CSA standard does not define gives ``UNKNOWN``; None if ``mark`` is
    not an end mark.
    """
    if mark in END_MARKS_FOR_BLACK:
        return END_MARKS_FOR_BLACK[mark]
    if mark in END_MARKS:
        return END_MARKS[mark] if black_to_move else OTHER_RESULT[END_MARKS[mark]]
    return UNKNOWN if _OWN_END_MARK.fullmatch(mark) else None
