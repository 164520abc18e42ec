"""Writes the network's input from the planes of cshogi."""

from __future__ import annotations

from typing import Any

import cshogi
import numpy

from pydlshogi.common import SQUARE_NUM
from pydlshogi.features import HAND_MAX, PIECE_TYPE_NUM, SIDE_PLANE_NUM
from pydlshogi.uct.compiler import IS_COMPILED, compiled

#: Piece types of cshogi in python-shogi's order: its planes have an order of their own.
_PIECE_TYPES = (
    cshogi.PAWN,
    cshogi.LANCE,
    cshogi.KNIGHT,
    cshogi.SILVER,
    cshogi.GOLD,
    cshogi.BISHOP,
    cshogi.ROOK,
    cshogi.KING,
    cshogi.PROM_PAWN,
    cshogi.PROM_LANCE,
    cshogi.PROM_KNIGHT,
    cshogi.PROM_SILVER,
    cshogi.PROM_BISHOP,
    cshogi.PROM_ROOK,
)


def _cells() -> numpy.ndarray:
    """Returns for each cell of cshogi's planes of pieces its place in the network's input.

    Returns:
        (2268,) int64. cshogi goes file by file from the first, the network rank by rank from the
        ninth file.
    """
    cells = numpy.empty((2, PIECE_TYPE_NUM, 9, 9), numpy.int64)
    for side in (0, 1):
        for kind, piece_type in enumerate(_PIECE_TYPES):
            plane = SIDE_PLANE_NUM * side + kind
            squares = numpy.arange(SQUARE_NUM).reshape(9, 9)[:, ::-1].T
            cells[side, piece_type - 1] = SQUARE_NUM * plane + squares
    return cells.ravel()


_CELLS = _cells()

#: First plane of each kind's hand, those of the side to move before the opponent's.
_HAND_STARTS = numpy.array(
    [
        SIDE_PLANE_NUM * side + PIECE_TYPE_NUM + sum(HAND_MAX[:kind])
        for side in (0, 1)
        for kind in range(len(HAND_MAX))
    ]
)


class PlaneWriter:
    """Writes the planes of positions, one at a time."""

    def __init__(self) -> None:
        self._pieces = numpy.zeros((2 * PIECE_TYPE_NUM, 9, 9), numpy.float32)
        self._flat = self._pieces.ravel()

    def write(self, board: cshogi.Board, out: numpy.ndarray) -> None:
        """Writes the network's input of a position into (104, 9, 9) float32, contiguous."""
        ours, theirs = board.pieces_in_hand
        if board.turn == cshogi.BLACK:
            board.piece_planes(self._pieces)
            hands = bytes(ours + theirs)
        else:
            board.piece_planes_rotate(self._pieces)
            hands = bytes(theirs + ours)
        if IS_COMPILED:
            _scatter(out.reshape(-1), self._flat, _CELLS, hands, _HAND_STARTS)
            return
        out.fill(0)
        out.reshape(-1)[_CELLS[(self._flat != 0).nonzero()]] = 1
        for plane, number in zip(_HAND_STARTS.tolist(), hands):
            if number:
                out[plane : plane + number] = 1
        self._pieces.fill(0)  # cshogi writes only the ones


@compiled
def _scatter(out: Any, pieces: Any, cells: Any, hands: Any, hand_starts: Any) -> None:
    """Writes the planes, and sets the pieces to 0 for the next position.

    Args:
        out: (104 · 81,) float32.
        pieces: (2268,) float32.
        cells: (2268,) places of the pieces in ``out``.
        hands: 14 bytes, the numbers of pieces in hand.
        hand_starts: (14,) first plane of each.
    """
    out[:] = 0
    for cell in range(len(pieces)):
        if pieces[cell]:
            out[cells[cell]] = 1
            pieces[cell] = 0
    for kind in range(len(hands)):
        first = SQUARE_NUM * hand_starts[kind]
        out[first : first + SQUARE_NUM * hands[kind]] = 1
