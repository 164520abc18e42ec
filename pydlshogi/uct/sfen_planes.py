"""Writes the network's input from a position in SFEN notation."""

from __future__ import annotations

from typing import Any

import numpy
import shogi

from pydlshogi.common import SQUARE_NUM
from pydlshogi.features import HAND_MAX, PIECE_TYPE_NUM, SIDE_PLANE_NUM
from pydlshogi.uct.compiler import compiled

_PLUS, _SLASH, _ZERO, _NINE = b"+/09"


def _planes_of_letters() -> numpy.ndarray:
    """Makes the table of planes.

    Returns:
        (2, 3, 128) int64: for the side to move and the code of a letter the plane of that piece,
        the plane of the promoted piece, and the first plane of such pieces in hand.
    """
    planes = numpy.zeros((2, 3, 128), numpy.int64)
    for kind in range(shogi.PAWN, shogi.KING + 1):
        promoted = shogi.PIECE_PROMOTED[kind] or kind
        in_hand = PIECE_TYPE_NUM + sum(HAND_MAX[: kind - 1])
        symbol = shogi.PIECE_SYMBOLS[kind]
        for color, letter in ((shogi.BLACK, symbol.upper()), (shogi.WHITE, symbol)):
            for turn in shogi.COLORS:
                first = SIDE_PLANE_NUM * (color ^ turn)
                planes[turn, :, ord(letter)] = first + numpy.array(
                    [kind - 1, promoted - 1, in_hand]
                )
    return planes


_PLANES = _planes_of_letters()


def write_planes(sfen: str, out: numpy.ndarray) -> None:
    """Writes the network's input of a position into (104, 9, 9) float32, contiguous."""
    pieces, side, hands, *_ = sfen.encode().split()
    turn = shogi.WHITE if side == b"w" else shogi.BLACK
    _write(out.reshape(-1), pieces, hands, turn, _PLANES[turn])


@compiled
def _write(out: Any, pieces: Any, hands: Any, turn: int, planes: Any) -> None:
    """Writes the planes.

    Args:
        out: (104 · 81,) float32.
        pieces: The first word of the SFEN, as bytes.
        hands: The third word.
        turn: The side to move.
        planes: The table of planes for that side.
    """
    out[:] = 0
    square = promoted = 0
    for letter in pieces:
        if letter == _PLUS:
            promoted = 1
        elif letter > _NINE:
            from_here = SQUARE_NUM - 1 - square if turn else square
            out[SQUARE_NUM * planes[promoted, letter] + from_here] = 1
            square += 1
            promoted = 0
        elif letter > _SLASH:
            square += letter - _ZERO
    number = 0
    for letter in hands:
        if letter > _NINE:
            first = SQUARE_NUM * planes[2, letter]
            out[first : first + SQUARE_NUM * max(1, number)] = 1
            number = 0
        elif letter > _SLASH:
            number = 10 * number + letter - _ZERO
