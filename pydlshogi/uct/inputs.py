"""The network's inputs of the leaves of a batch, written from SFEN all at once."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy
import shogi

from pydlshogi.common import SQUARE_NUM
from pydlshogi.features import (
    HAND_MAX,
    PIECE_TYPE_NUM,
    PLANE_NUM,
    SIDE_PLANE_NUM,
    make_history_planes,
)
from pydlshogi.uct.compiler import argument, compiled
from pydlshogi.uct.game import Game

_PLUS, _SLASH, _ZERO, _NINE, _SPACE, _WHITE, _END = b"+/09 w\n"

#: Number of codes of letters.
_CODES = 128


def _table_of_letters() -> numpy.ndarray:
    """Makes the table of letters.

    Returns:
        (768,) int64. For Black to move, and the code of a letter: the cell of that piece on 9a.
        From ``_CODES`` on: that of the promoted piece. From 2 · ``_CODES`` on: the first plane of
        such pieces in hand. From 3 · ``_CODES`` on: the same for White to move.
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
    return table.reshape(-1)


_TABLE = argument(_table_of_letters())


class Inputs:
    """The network's inputs of positions.

    Args:
        size: Largest number of positions.
        plane_num: Number of planes: 104, or 106 with the history.
    """

    def __init__(self, size: int, plane_num: int) -> None:
        self._planes = numpy.empty((size, plane_num, 9, 9), numpy.float32)
        self._sfens: list[str] = []
        self._recent: list[list[int]] = []

    def add(self, game: Game) -> None:
        """Adds the position of a game."""
        self._sfens.append(game.board.sfen())
        if self._planes.shape[1] > PLANE_NUM:
            self._recent.append(game.recent_squares())

    def planes(self) -> numpy.ndarray:
        """Returns the planes of all positions, (n, plane_num, 9, 9) float32."""
        planes = self._planes[: len(self._sfens)]
        write_planes(self._sfens, planes)
        for row, squares in zip(planes, self._recent):
            row[PLANE_NUM:] = _history_planes(*squares)
        return planes

    def clear(self) -> None:
        """Removes all positions."""
        self._sfens.clear()
        self._recent.clear()


@functools.lru_cache(maxsize=4000)
def _history_planes(*squares: int) -> numpy.ndarray:
    """Makes the planes of destinations, (2, 9, 9) float32; a search meets the same ones often."""
    return make_history_planes(squares)


def write_planes(sfens: Sequence[str], out: numpy.ndarray) -> None:
    """Writes the network's inputs of positions, without the history.

    Args:
        sfens: The positions.
        out: (n, 104 or more, 9, 9) float32, contiguous. Planes from 104 on become 0.
    """
    text = "\n".join(sfens).encode()
    _write(argument(out.reshape(-1)), out, text, _TABLE)


@compiled
def _write(cells: Any, planes: Any, text: Any, table: Any) -> None:
    """Writes the planes.

    Args:
        cells: (n · planes · 81,) float32.
        planes: (n, planes, 9, 9), the same array.
        text: The SFENs, as bytes, with line feeds between: the pieces, the side to move, the
            hands, the number of the move.
        table: The table of letters.
    """
    planes[...] = 0
    row = start = 0
    while start < len(text):
        end = start
        while text[end] != _SPACE:
            end += 1
        letters, step = 0, 1
        if text[end + 1] == _WHITE:
            letters, step = 3 * _CODES, -1
        square, promoted = row * planes.shape[1] * SQUARE_NUM, 0
        for place in range(start, end):
            letter = text[place]
            if letter > _NINE:
                cells[table[letters + promoted + letter] + square] = 1
                square += step
                promoted = 0
            elif letter == _PLUS:
                promoted = _CODES
            elif letter > _SLASH:
                square += step * (letter - _ZERO)
        place, number = end + 3, 0
        while text[place] != _SPACE:
            letter = text[place]
            if letter > _NINE:
                first = table[letters + 2 * _CODES + letter]
                planes[row, first : first + max(1, number)] = 1
                number = 0
            elif letter > _SLASH:
                number = 10 * number + letter - _ZERO
            place += 1
        while place < len(text) and text[place] != _END:
            place += 1
        row, start = row + 1, place + 1
