"""Parser of KI2 records (.ki2), the notation of books and newspapers: ``▲７六歩 △３四歩``.

A move names its target and the piece. Where several pieces of this kind could go there, more words
choose one of them. 右, 左 and 直 mean the piece on the right, on the left, or straight below the
target. 上, 寄 and 引 mean that it moves forward, sideways or back. 打 means a drop where a piece on
the board could go there, too. So the parser plays the game, and finds the piece on the board.

The mark of a move must be that of the side to move, so a lost move is found.

Source: the notation of the Japan Shogi Association; the tests compare with cshogi.
"""

from __future__ import annotations

import re

from pydlshogi.common import SQUARE_NUM
from pydlshogi.kifu.game import Game, Move
from pydlshogi.kifu.kif_text import (
    BLACK_MARKS,
    BLANKS,
    CODES,
    TARGET_AND_PIECE,
    WHITE_MARKS,
    RecordReader,
    lines_of,
)
from pydlshogi.kifu.legality import first_illegal
from pydlshogi.kifu.movement import origins, placement_after
from pydlshogi.positions import HAND_NUM, PROMOTED

_MARKS = BLACK_MARKS + WHITE_MARKS
_GAP = re.compile(rf"[{BLANKS}]*")
_MOVE = re.compile(
    rf"([{_MARKS}])[ 　]*{TARGET_AND_PIECE}([右左直])?([上行寄引])?(打)?(成|不成|生)?"
)
_END = re.compile(rf"[{_MARKS}]?([^{_MARKS}{BLANKS}]+)")
_NUMBERED_MOVE = re.compile(rf"[{BLANKS}]*[0-9]+[{BLANKS}]+[{_MARKS}]?{TARGET_AND_PIECE}")
_FIRST_MOVE = re.compile(rf"[{BLANKS}]*{_MOVE.pattern}")


def is_ki2(text: str) -> bool:
    """Tests whether the first line with moves is one of KI2."""
    for line in lines_of(text):
        if _FIRST_MOVE.match(line):
            return True
        if _NUMBERED_MOVE.match(line):
            return False
    return False


def parse_ki2(text: str) -> Game:
    """Parses a KI2 record.

    Args:
        text: The record.

    Returns:
        The game; ``summary`` is the result of the closing line (``まで…``).

    Raises:
        RecordError: a part of the record is not KI2, no piece or several pieces can make a move,
            or there is no move.
    """
    return _Ki2Reader(text).game


class _Ki2Reader(RecordReader):
    """Reads moves with the marks of the sides, and follows them on the board."""

    def _start(self) -> None:
        if not self._started:
            super()._start()
            #: The board and hands, seen from the side to move.
            self._placement = self.game.start

    def _read_moves(self, line: str) -> bool:
        first = _FIRST_MOVE.match(line)
        if not (first or (self._started and line.lstrip(BLANKS)[:1] in tuple(_MARKS))):
            return False
        self._start()
        place = _end_of_gap(line, 0)
        while place < len(line):
            if line.startswith("まで", place):
                self._read_closing(line[place:])
                break
            if self._ended:
                self._fail("a move after the end of the game")
            match = _MOVE.match(line, place)
            if match:
                self._read_move(*match.groups())
            else:
                match = _END.match(line, place)
                if not match or not self._read_end(match[1]):
                    self._fail("neither a move nor a known end of the game")
            place = _end_of_gap(line, match.end())
        return True

    def _read_move(
        self,
        mark: str,
        file: str | None,
        rank: str | None,
        name: str,
        side: str | None,
        motion: str | None,
        drop: str | None,
        promotion: str | None,
    ) -> None:
        if (mark in WHITE_MARKS) != self._white_to_move():
            self._fail(f"move {len(self.game.moves) + 1} is not by the side to move")
        code = CODES[name]
        target = self._target(file, rank)
        after = code
        if promotion == "成":
            if code not in PROMOTED:
                self._fail("it promotes a piece that cannot promote")
            after = PROMOTED[code]
        may_be_drop = not (side or motion or promotion) and self._can_drop(code, target)
        squares = [] if drop else origins(self._placement, code, target)
        if len(squares) + may_be_drop > 1:
            # Some writers do not count a piece that may not move, because it protects its king.
            legal = [square for square in squares if self._is_legal(square, target, after)]
            squares = legal if legal or may_be_drop else squares
        squares = _of_side(_of_motion(squares, target, motion), target, side)
        if len(squares) > 1:
            self._fail(f"move {len(self.game.moves) + 1} can be made by several pieces")
        if not squares and not may_be_drop:
            self._fail(f"move {len(self.game.moves) + 1} can be made by no piece")
        origin = squares[0] if squares else SQUARE_NUM + code - 1
        self.game.moves.append(Move(origin, target, after, code if squares else 0, self._line))
        self._placement = placement_after(self._placement, origin, target, after)

    def _can_drop(self, code: int, target: int) -> bool:
        in_hand = code <= HAND_NUM and self._placement[SQUARE_NUM + code - 1] > 0
        return in_hand and not self._placement[target]

    def _is_legal(self, origin: int, target: int, after: int) -> bool:
        return first_illegal(self._placement, 0, [(origin, target, after)]) is None


def _of_side(squares: list[int], target: int, side: str | None) -> list[int]:
    """Selects the pieces on one side. The mover sees the leftmost file first in each rank."""
    if side is None or not squares:
        return squares
    if side == "直":  # one step straight forward
        return [square for square in squares if square == target + 9]
    files = [square % 9 for square in squares]
    wanted = min(files) if side == "左" else max(files)
    return [square for square in squares if square % 9 == wanted]


def _of_motion(squares: list[int], target: int, motion: str | None) -> list[int]:
    """Selects the pieces that move forward (上, 行), sideways (寄) or back (引)."""
    if motion is None:
        return squares
    forward = {"上": 1, "行": 1, "寄": 0, "引": -1}[motion]
    rank = target // 9
    return [s for s in squares if (s // 9 > rank) - (s // 9 < rank) == forward]


def _end_of_gap(line: str, start: int) -> int:
    gap = _GAP.match(line, start)
    assert gap is not None
    return gap.end()
