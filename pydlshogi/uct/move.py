"""Moves as numbers of 15 bits, the form in which boards and tree hold them.

======  ============================================================
bits    content
======  ============================================================
0–6     the square moved to
7–13    the square moved from; for a drop 80 + the kind (pawn 1, lance
        2, knight 3, silver 4, bishop 5, rook 6, gold 7)
14      1 where the piece promotes
======  ============================================================

Squares are 9 · (file − 1) + rank, counted from 1a (0) to 9i (80). These are the low 15
bits of cshogi's moves, so its board needs no conversion.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence

import numpy
import shogi

from pydlshogi.common import MOVE_DIRECTION, MOVE_DIRECTION_PROMOTED, SQUARE_NUM
from pydlshogi.features import move_direction

#: Number of values that a move can have.
MOVE_NUM = 1 << 15

_PROMOTION = 1 << 14
_SQUARE_BITS = 7
_SQUARE_MASK = (1 << _SQUARE_BITS) - 1
#: Kinds in the order of the numbers of drops.
_DROPS = "PLNSBRG"
_FILES = "123456789"
_RANKS = "abcdefghi"
_NAMES = [file + rank for file in _FILES for rank in _RANKS]
_SQUARES = {name: square for square, name in enumerate(_NAMES)}


def from_usi(text: str) -> int:
    """Converts a move of USI, such as ``7g7f``, ``8h2b+`` or ``P*5e``.

    Raises:
        KeyError: the text names no square or no kind.
    """
    to = _SQUARES[text[2:4]]
    if text[1] == "*":
        return to | SQUARE_NUM + _DROPS.index(text[0]) << _SQUARE_BITS
    return to | _SQUARES[text[:2]] << _SQUARE_BITS | _PROMOTION * text.endswith("+")


def not_promoting(moves: Sequence[int]) -> list[int]:
    """Lists those of some moves that do not promote, though the same move may."""
    return [move for move in moves if not move & _PROMOTION and move | _PROMOTION in moves]


def to_usi(move: int) -> str:
    """Converts a move to the notation of USI."""
    to, origin = _NAMES[move & _SQUARE_MASK], move >> _SQUARE_BITS & _SQUARE_MASK
    if origin >= SQUARE_NUM:
        return f"{_DROPS[origin - SQUARE_NUM]}*{to}"
    return _NAMES[origin] + to + ("+" if move & _PROMOTION else "")


def destination(move: int) -> int:
    """Returns the square that a move goes to."""
    return move & _SQUARE_MASK


def network_square(move: int, turn: int) -> int:
    """Returns the square that a move goes to, with the number that the network uses.

    Args:
        move: The move of either side.
        turn: The side from which the board is seen.
    """
    file, rank = divmod(destination(move), 9)
    square = 9 * rank + 8 - file
    return square if turn == shogi.BLACK else SQUARE_NUM - 1 - square


@functools.cache
def label_table() -> numpy.ndarray:
    """Makes the table of labels: ``label_table()[color, move]`` is the move's label.

    Returns:
        (2, 32768) uint16; 0 where no piece can make the move.
    """
    labels = numpy.zeros((2, MOVE_NUM), numpy.uint16)
    squares = [network_square(square, shogi.BLACK) for square in range(SQUARE_NUM)]
    for origin, to in itertools.product(range(SQUARE_NUM + len(_DROPS)), range(SQUARE_NUM)):
        move, turned = to | origin << _SQUARE_BITS, SQUARE_NUM - 1 - to
        if origin < SQUARE_NUM:
            try:
                direction = move_direction(squares[origin], squares[to])
            except ValueError:  # no piece moves between these squares
                continue
            directions = [direction, MOVE_DIRECTION_PROMOTED[direction]]
            turned |= SQUARE_NUM - 1 - origin << _SQUARE_BITS
        else:
            kind = shogi.PIECE_SYMBOLS.index(_DROPS[origin - SQUARE_NUM].lower())
            directions = [len(MOVE_DIRECTION) + kind - 1]
            turned |= origin << _SQUARE_BITS
        for promotion, direction in zip((0, _PROMOTION), directions):
            label = SQUARE_NUM * direction + squares[to]
            labels[shogi.BLACK, move | promotion] = label
            labels[shogi.WHITE, turned | promotion] = label  # seen from the other side
    return labels
