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

_PLUS, _SLASH, _ZERO, _NINE, _SPACE, _FEED = b"+/09 \n"

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
    """The network's inputs of positions; ``turns`` are the sides to move.

    Args:
        size: Largest number of positions.
        plane_num: Number of planes: 104, or 106 with the history.
    """

    def __init__(self, size: int, plane_num: int) -> None:
        self._planes = numpy.empty((size, plane_num, 9, 9), numpy.float32)
        self.turns: list[int] = []
        self._sfens: list[str] = []
        self._recent: list[list[int]] = []

    def add(self, game: Game) -> None:
        """Adds the position of a game."""
        self.turns.append(game.board.turn)
        self._sfens.append(game.board.sfen())
        if self._planes.shape[1] > PLANE_NUM:
            self._recent.append(game.recent_squares())

    def planes(self) -> numpy.ndarray:
        """Returns the planes of all positions, (n, plane_num, 9, 9) float32."""
        planes = self._planes[: len(self._sfens)]
        write_planes(self._sfens, self.turns, planes)
        for row, squares in zip(planes, self._recent):
            row[PLANE_NUM:] = _history_planes(*squares)
        return planes

    def clear(self) -> None:
        """Removes all positions."""
        self.turns.clear()
        self._sfens.clear()
        self._recent.clear()


@functools.lru_cache(maxsize=4000)
def _history_planes(*squares: int) -> numpy.ndarray:
    """Makes the planes of destinations, (2, 9, 9) float32; a search meets the same ones often."""
    return make_history_planes(squares)


def write_planes(sfens: Sequence[str], turns: Sequence[int], out: numpy.ndarray) -> None:
    """Writes the network's inputs of positions, without the history.

    Args:
        sfens: The positions.
        turns: Their sides to move.
        out: (n, 104 or more, 9, 9) float32, contiguous. Planes from 104 on become 0.
    """
    out.fill(0)
    text = "\n".join(["", *sfens]).encode()
    _write(argument(out.reshape(-1)), out, text, bytes(turns), _TABLE)


@compiled
def _write(cells: Any, planes: Any, text: Any, turns: Any, table: Any) -> None:
    """Writes the ones: ``cells`` are those of ``planes``, and a line feed precedes each SFEN."""
    row, letters, step = -1, 0, 1
    square = promoted = number = word = 0
    for letter in text:
        if letter == _FEED:
            row, word, number = row + 1, 0, 0
            square = row * planes.shape[1] * SQUARE_NUM
            letters, step = (3 * _CODES, -1) if turns[row] else (0, 1)
        elif letter > _NINE:
            if word == 0:  # the pieces
                cells[table[letters + promoted + letter] + square] = 1
                square += step
                promoted = 0
            elif word == 2:  # the hands
                first = table[letters + 2 * _CODES + letter]
                planes[row, first : first + max(1, number)] = 1
                number = 0
        elif letter > _SLASH:
            if word:
                number = 10 * number + letter - _ZERO
            else:
                square += step * (letter - _ZERO)
        elif letter == _PLUS:
            promoted = _CODES
        elif letter == _SPACE:
            word += 1
