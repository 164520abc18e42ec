"""CSA's names of squares and pieces, and the ``P`` statements that set a start position."""

from __future__ import annotations

import re
from collections.abc import Iterator

import shogi

from pydlshogi.common import SQUARE_NUM
from pydlshogi.positions import EVEN_GAME, HAND_NUM, PIECE_NUM, PROMOTED, opponents_view
from pydlshogi.text import shown

#: CSA's names of the pieces, in the order of the codes 1..14.
PIECE_NAMES = ("FU", "KY", "KE", "GI", "KI", "KA", "HI", "OU", "TO", "NY", "NK", "NG", "UM", "RY")
PIECE_CODES = {name: code for code, name in enumerate(PIECE_NAMES, 1)}
_KING = PIECE_CODES["OU"]

#: CSA's names of the squares: "91" is square 0, "19" square 80.
SQUARE_NAMES = tuple(f"{9 - x}{y + 1}" for y in range(9) for x in range(9))
SQUARES = {name: square for square, name in enumerate(SQUARE_NAMES)}
#: The origin of a drop, and the square of a piece in hand.
NO_SQUARE = "00"

#: A square of a row: "*", or a side and a piece. Any number of blanks may surround it, because
#: editors, mail and HTML remove some of the blanks of " *  * ".
_SQUARE = re.compile(r"\*|[^ *]{3}")

_PLAIN = {promoted: plain for plain, promoted in PROMOTED.items()}

# Number of pieces in a shogi set, by the code of the unpromoted piece.
_PIECES_IN_SET = {1: 18, 2: 4, 3: 4, 4: 4, 5: 4, 6: 2, 7: 2, 8: 2}
_TOO_MANY = "the start position has more pieces than a shogi set"


class StartPosition:
    """Collects the ``P`` statements of a record.

    A start position begins with ``PI`` and removed pieces, with the nine rows ``P1`` … ``P9``,
    or with neither. ``P+`` and ``P-`` then add pieces on the board and in hand. The last one
    may give all remaining pieces to one side (``00AL``).
    """

    def __init__(self) -> None:
        self._board = [0] * SQUARE_NUM
        self._hands = [0] * (2 * HAND_NUM)
        self._initial = False
        self._rows: set[int] = set()
        self._placed = False
        self._all_to: int | None = None

    def is_even(self) -> bool:
        """Tests whether it is the even game, which is also the default."""
        return not self._given() or self._packed() == EVEN_GAME

    def placement(self, turn: int) -> bytes:
        """Packs the start position, seen from the side ``turn``.

        Raises:
            ValueError: it is incomplete, or needs more than one shogi set.
        """
        if not self._given():
            if turn == shogi.WHITE:
                raise ValueError("White moves first, but there is no start position")
            return EVEN_GAME
        if self._rows and len(self._rows) < 9:
            missing = next(row for row in range(1, 10) if row not in self._rows)
            raise ValueError(f"the start position lacks its row P{missing}")
        require_one_set(self._packed())
        if self._all_to is not None:
            counts = _count_pieces(self._packed())
            for code in range(1, HAND_NUM + 1):
                self._hands[HAND_NUM * self._all_to + code - 1] += (
                    _PIECES_IN_SET[code] - counts[code]
                )
        packed = self._packed()
        return packed if turn == shogi.BLACK else opponents_view(packed)

    def add(self, statement: str) -> None:
        """Adds one statement.

        Raises:
            ValueError: it is not valid, or contradicts an earlier one.
        """
        kind, rest = statement[1:2], statement[2:]
        if kind == "I":
            if self._given():
                raise ValueError("PI after another start position")
            self._initial = True
            self._board = list(EVEN_GAME[:SQUARE_NUM])
            for square, code in _squares_and_pieces(rest):
                if square is None or code != _type_of(self._board[square]):
                    raise ValueError(f"{statement} removes a piece that is not there")
                self._board[square] = 0
        elif kind and kind in "123456789":
            self._add_row(int(kind), rest)
        elif kind and kind in "+-":
            self._placed = True
            for square, code in _squares_and_pieces(rest):
                self._place("+-".index(kind), square, code)
        else:
            raise ValueError(f"unknown statement {shown(statement)}")

    def _add_row(self, row: int, cells: str) -> None:
        if self._initial or row in self._rows:
            raise ValueError(f"row P{row} is given twice")
        self._rows.add(row)
        squares = _SQUARE.findall(cells)
        if len(squares) != 9 or _SQUARE.sub("", cells).strip():
            raise ValueError(f"row P{row} does not have nine squares")
        for x, cell in enumerate(squares):
            if cell == "*":
                continue
            if cell[0] not in "+-" or cell[1:] not in PIECE_CODES:
                raise ValueError(f"row P{row} has the unknown square {shown(cell)}")
            self._place("+-".index(cell[0]), 9 * (row - 1) + x, PIECE_CODES[cell[1:]])

    def _place(self, side: int, square: int | None, code: int) -> None:
        if self._all_to is not None:
            raise ValueError("a piece is placed after 00AL, which gave all of them")
        if code == _ALL:
            self._all_to = side
        elif square is None:
            if code > HAND_NUM:
                raise ValueError(f"{PIECE_NAMES[code - 1]} cannot be in hand")
            place = HAND_NUM * side + code - 1
            if self._hands[place] == _PIECES_IN_SET[code]:
                raise ValueError(_TOO_MANY)
            self._hands[place] += 1
        elif self._board[square]:
            raise ValueError(f"two pieces are placed on {SQUARE_NAMES[square]}")
        else:
            self._board[square] = code + PIECE_NUM * side

    def _given(self) -> bool:
        return self._initial or bool(self._rows) or self._placed

    def _packed(self) -> bytes:
        return bytes(self._board + self._hands)


def position_lines(board: shogi.Board) -> list[str]:
    """Writes a position in CSA: the board by rows, the hands, the side to move."""
    lines = []
    for row in range(9):
        cells = (board.piece_at(9 * row + column) for column in range(9))
        text = "".join("+-"[c.color] + PIECE_NAMES[c.piece_type - 1] if c else " * " for c in cells)
        lines.append(f"P{row + 1}{text}")
    for color, sign in enumerate("+-"):
        held = board.pieces_in_hand[color]
        pieces = "".join(f"00{PIECE_NAMES[kind - 1]}" * held[kind] for kind in sorted(held))
        lines += [f"P{sign}{pieces}"] if pieces else []
    return [*lines, "+-"[board.turn]]


# Code of AL, all remaining pieces.
_ALL = 0


def _squares_and_pieces(text: str) -> Iterator[tuple[int | None, int]]:
    """Parses ``55KA00FU…``; yields squares, None for the hand, and codes of pieces."""
    for start in range(0, len(text), 4):
        square, name = text[start : start + 2], text[start + 2 : start + 4]
        if square == NO_SQUARE and name == "AL":
            yield None, _ALL
        elif name in PIECE_CODES and (square in SQUARES or square == NO_SQUARE):
            yield SQUARES.get(square), PIECE_CODES[name]
        else:
            raise ValueError(f"unknown piece {shown(square + name)} in the start position")


def _type_of(code: int) -> int:
    """Returns the code of a piece without its side."""
    return code - PIECE_NUM if code > PIECE_NUM else code


def require_one_set(placement: bytes) -> None:
    """Checks that a placement needs only one shogi set, or else raises ``ValueError``."""
    if max(placement[:SQUARE_NUM].count(king) for king in (_KING, _KING + PIECE_NUM)) > 1:
        raise ValueError("the start position has two kings of one side")
    counts = _count_pieces(placement)
    if any(counts[code] > number for code, number in _PIECES_IN_SET.items()):
        raise ValueError(_TOO_MANY)


def _count_pieces(placement: bytes) -> dict[int, int]:
    """Counts the pieces on the board and in hand, by their unpromoted code."""
    counts = dict.fromkeys(_PIECES_IN_SET, 0)
    for code in placement[:SQUARE_NUM]:
        if code:
            counts[_PLAIN.get(_type_of(code), _type_of(code))] += 1
    for place, count in enumerate(placement[SQUARE_NUM:]):
        counts[place % HAND_NUM + 1] += count
    return counts
