"""Moves packed into 16 bits, as Apery and YaneuraOu write them.

====================  =============================  =============================
bits                  Apery (HCPE, HCPE3)            YaneuraOu (PSV)
====================  =============================  =============================
0–6                   target square                  target square
7–13                  origin square; 80 + piece      origin square; piece for a
                      for a drop                     drop
14                    promotion                      drop
15                    always 0                       promotion
====================  =============================  =============================

Squares are ``(file - 1) · 9 + rank - 1``. Pieces of drops are numbered pawn 1, lance,
knight, silver, bishop, rook, gold 7.

Sources of the facts: cshogi's ``move.hpp`` and YaneuraOu's ``types.h``.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy
import shogi

from pydlshogi.common import MOVE_DIRECTION_LABEL_NUM, SQUARE_NUM
from pydlshogi.features import move_direction
from pydlshogi.kifu.hcp import file_squares, our_squares
from pydlshogi.kifu.movement import Moves
from pydlshogi.positions import HAND_NUM, PIECE_NUM, PROMOTED

_PLAIN_DIRECTIONS = 10
_DROPS = 2 * _PLAIN_DIRECTIONS

# Kinds of pieces in hand (0 pawn … 6 rook) in the order of both formats, and the inverse.
_KINDS = (0, 1, 2, 3, 5, 6, 4)
_NUMBERS = numpy.argsort(_KINDS)
assert MOVE_DIRECTION_LABEL_NUM == _DROPS + HAND_NUM


class Layout(NamedTuple):
    """Where a format keeps what a move is.

    Attributes:
        promotion: Bit of promotions.
        drop: Bit of drops; None where the origin tells them.
        drop_origin: What is added to the number of a dropped piece.
        unused: Bits that are always 0.
    """

    promotion: int
    drop: int | None
    drop_origin: int
    unused: int


#: Moves in HCPE and HCPE3 files.
APERY = Layout(promotion=1 << 14, drop=None, drop_origin=80, unused=1 << 15)
#: Moves in PSV files.
YANEURAOU = Layout(promotion=1 << 15, drop=1 << 14, drop_origin=0, unused=0)

#: The piece that Apery's origins above 80 drop.
DROP_PIECES = {APERY.drop_origin + number + 1: kind + 1 for number, kind in enumerate(_KINDS)}


def unpack_moves(
    moves: numpy.ndarray, placements: numpy.ndarray, turns: numpy.ndarray, layout: Layout
) -> tuple[Moves, numpy.ndarray]:
    """Unpacks moves (n,) uint16.

    Args:
        moves, layout: The moves and their format.
        placements, turns: The boards on which they are made, (n, PLACEMENT_SIZE) uint8, and the
            sides to move, (n,).

    Returns:
        The moves, not checked on the board; and whether the 16 bits follow the format, (n,)
        bool. Where they do not, or a piece that cannot promote promotes, ``piece`` is 0,
        which ``check_moves`` never accepts.
    """
    moves = moves.astype(numpy.intp)
    target, origin = moves & 127, moves >> 7 & 127
    drop = origin > layout.drop_origin if layout.drop is None else moves & layout.drop != 0
    promotion = moves & layout.promotion != 0
    number = origin - layout.drop_origin - 1
    good = numpy.where(drop, (number >= 0) & (number < HAND_NUM), origin < SQUARE_NUM)
    good &= (target < SQUARE_NUM) & (moves & layout.unused == 0) & ~(drop & promotion)
    squares = our_squares()
    target = squares[turns, numpy.where(good, target, 0)]
    square = squares[turns, numpy.where(good & ~drop, origin, 0)]
    kind = numpy.array(_KINDS)[numpy.where(good & drop, number, 0)]
    before = numpy.where(drop, kind + 1, placements[numpy.arange(len(moves)), square])
    after = _pieces_after().take(before + 256 * promotion)
    unpacked = Moves(
        origin=numpy.where(drop, SQUARE_NUM + kind, square).astype(numpy.uint8),
        target=target.astype(numpy.uint8),
        piece=numpy.where(good, after, 0).astype(numpy.uint8),
        claimed=numpy.zeros(len(moves), numpy.uint8),
    )
    return unpacked, good


@functools.lru_cache(maxsize=1)
def _pieces_after() -> numpy.ndarray:
    """Returns the piece after a move, by ``256 · promotion + piece before``; 0 for none."""
    after = numpy.zeros(512, numpy.intp)
    own = numpy.arange(1, PIECE_NUM + 1)
    after[own] = own
    for plain, promoted in PROMOTED.items():
        after[256 + plain] = promoted
    return after


def pack_moves(
    labels: numpy.ndarray, placements: numpy.ndarray, turns: numpy.ndarray, layout: Layout
) -> numpy.ndarray:
    """Packs possible moves, given by their labels (n,) (:mod:`pydlshogi.features`): (n,) uint16.

    The other arguments are those of :func:`unpack_moves`.
    """
    direction, target = numpy.divmod(labels.astype(numpy.intp), SQUARE_NUM)
    turns = turns.astype(numpy.intp)
    drop = direction >= _DROPS
    promotion = ~drop & (direction >= _PLAIN_DIRECTIONS)
    origin = _origins(direction % _PLAIN_DIRECTIONS, target, placements)
    number = _NUMBERS[numpy.where(drop, direction - _DROPS, 0)] + 1
    squares = file_squares().astype(numpy.intp)
    moves = squares[turns, target]
    moves |= numpy.where(drop, number + layout.drop_origin, squares[turns, origin]) << 7
    moves |= promotion * layout.promotion
    if layout.drop is not None:
        moves |= drop * layout.drop
    return moves.astype(numpy.uint16)


def _origins(
    direction: numpy.ndarray, target: numpy.ndarray, placements: numpy.ndarray
) -> numpy.ndarray:
    """Finds the first piece behind each target: (n,) squares, 0 where there is none."""
    origin = numpy.full(len(target), -1)
    each = numpy.arange(len(target))
    for squares in _squares_behind():
        square = squares[direction, target]
        found = (origin < 0) & (square >= 0)
        found &= placements[each, square] != 0
        origin[found] = square[found]
    return numpy.maximum(origin, 0)


@functools.lru_cache(maxsize=1)
def _squares_behind() -> numpy.ndarray:
    """Returns the squares a move can come from, nearest first, -1 for none.

    They are (8, 10, 81): by distance less one, plain direction and target.
    """
    behind = numpy.full((8, _PLAIN_DIRECTIONS, SQUARE_NUM), -1)
    for origin in shogi.SQUARES:
        for target in shogi.SQUARES:
            try:
                direction = move_direction(origin, target)
            except ValueError:
                continue
            dy, dx = target // 9 - origin // 9, target % 9 - origin % 9
            distance = 1 if abs(dx * dy) == 2 else max(abs(dx), abs(dy))
            behind[distance - 1, direction, target] = origin
    return behind
