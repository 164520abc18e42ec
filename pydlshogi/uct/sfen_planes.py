"""Writes the network's input from a position in SFEN notation."""

from __future__ import annotations

from typing import Any

import numpy
import shogi

from pydlshogi.common import SQUARE_NUM
from pydlshogi.features import HAND_MAX, PIECE_TYPE_NUM, SIDE_PLANE_NUM
from pydlshogi.uct.compiler import argument, compiled

_PLUS, _SLASH, _ZERO, _NINE, _SPACE = b"+/09 "

#: Number of codes of letters.
_CODES = 128


def _table_of_letters() -> numpy.ndarray:
    """Makes the table of letters.

    Returns:
        (2, 384) int64. For the side to move, and the code of a letter: the cell of that piece on
        9a. From ``_CODES`` on: that of the promoted piece. From 2 · ``_CODES`` on: the first plane
        of such pieces in hand.
    """
    table = numpy.zeros((2, 3, _CODES), numpy.int64)
    for kind in range(shogi.PAWN, shogi.KING + 1):
        promoted = shogi.PIECE_PROMOTED[kind] or kind
        in_hand = PIECE_TYPE_NUM + sum(HAND_MAX[: kind - 1])
        symbol = shogi.PIECE_SYMBOLS[kind]
        for color, letter in ((shogi.BLACK, symbol.upper()), (shogi.WHITE, symbol)):
            for turn in shogi.COLORS:
                planes = numpy.array([kind - 1, promoted - 1, in_hand])
                table[turn, :, ord(letter)] = SIDE_PLANE_NUM * (color ^ turn) + planes
    table[:, :2] *= SQUARE_NUM
    table[shogi.WHITE, :2] += SQUARE_NUM - 1  # White sees the board from the other side
    return table.reshape(2, -1)


_TABLES = [argument(table) for table in _table_of_letters()]


def write_planes(sfen: str, turn: int, out: numpy.ndarray) -> None:
    """Writes the network's input of a position into (104, 9, 9) float32, contiguous.

    Args:
        sfen: The position.
        turn: The side to move.
        out: Receives the input.
    """
    step = -1 if turn else 1
    out.fill(0)
    _write(argument(out.reshape(-1)), out, sfen.encode(), _TABLES[turn], step)


@compiled
def _write(cells: Any, planes: Any, sfen: Any, table: Any, step: int) -> None:
    """Writes the ones.

    Args:
        cells: (104 · 81,) float32.
        planes: (104, 9, 9), the same array.
        sfen: The SFEN, as bytes: the pieces, the side to move, the hands, the number of the move.
        table: The table of letters for the side to move.
        step: From a square to the next one of the SFEN: 1, or −1 for White.
    """
    square = promoted = number = word = 0
    for letter in sfen:
        if letter > _NINE:
            if word == 0:  # the pieces
                cells[table[promoted + letter] + square] = 1
                square += step
                promoted = 0
            elif word == 2:  # the hands
                first = table[2 * _CODES + letter]
                planes[first : first + max(1, number)] = 1
                number = 0
        elif letter > _SLASH:
            digit = letter - _ZERO
            if word:
                number = 10 * number + digit
            else:
                square += step * digit
        elif letter == _PLUS:
            promoted = _CODES
        elif letter == _SPACE:
            word += 1
            number = 0
