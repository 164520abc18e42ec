"""How the pieces move, as lookup tables: which moves are possible, and their labels.

A move is *possible* if the mover has the piece on the square it leaves, or in hand; if the
target has no piece of the mover; if the piece moves that way and no piece is in between; if
a promotion is allowed; if the piece can move again later; and if it is not a second pawn on a
file. Whether the king is left in check, and whether a dropped pawn mates, is not tested here
but in :mod:`pydlshogi.kifu.legality`. The tables are built on first use. Everything is seen
from the mover.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import NamedTuple

import numpy

from pydlshogi.common import (
    DOWN,
    DOWN_LEFT,
    DOWN_RIGHT,
    LEFT,
    MOVE_DIRECTION,
    RIGHT,
    SQUARE_NUM,
    UP,
    UP2_LEFT,
    UP2_RIGHT,
    UP_LEFT,
    UP_RIGHT,
)
from pydlshogi.features import move_direction
from pydlshogi.kifu.csa_board import PIECE_NAMES
from pydlshogi.positions import (
    HAND_NUM,
    PIECE_NUM,
    PLY_MAX,
    POSITION,
    PROMOTED,
    opponents_view,
)

#: Number of origins of a move: the squares, then the piece types in the mover's hand.
ORIGIN_NUM = SQUARE_NUM + HAND_NUM

# Geometry of a move. 0..9: a step in one of the ten directions. From _FAR: a longer move in one
# of the first eight. Then: a drop, and what no piece can do.
_FAR = 10
_DROP = 18
_NOWHERE = 19
_GEOMETRY_NUM = 20
# Relation between the piece before and after a move.
_SAME, _PROMOTES = 1, 2
# Difference between the label of a promoting move and of the same plain move.
_PROMOTION_LABELS = SQUARE_NUM * (len(MOVE_DIRECTION) // 2)

_PAWN, _LANCE, _KNIGHT, _SILVER, _GOLD, _BISHOP, _ROOK, _KING = range(1, 9)
_ORTHOGONAL = (UP, LEFT, RIGHT, DOWN)
_DIAGONAL = (UP_LEFT, UP_RIGHT, DOWN_LEFT, DOWN_RIGHT)
_GOLD_STEPS = (*_ORTHOGONAL, UP_LEFT, UP_RIGHT)
# Directions in which each piece moves one step, and in which it slides.
_STEPS = {
    _PAWN: (UP,),
    _KNIGHT: (UP2_LEFT, UP2_RIGHT),
    _SILVER: (UP, *_DIAGONAL),
    _GOLD: _GOLD_STEPS,
    _KING: _ORTHOGONAL + _DIAGONAL,
    **{PROMOTED[piece]: _GOLD_STEPS for piece in (_PAWN, _LANCE, _KNIGHT, _SILVER)},
    PROMOTED[_BISHOP]: _ORTHOGONAL,
    PROMOTED[_ROOK]: _DIAGONAL,
}
_SLIDES = {
    _LANCE: (UP,),
    _BISHOP: _DIAGONAL,
    _ROOK: _ORTHOGONAL,
    PROMOTED[_BISHOP]: _DIAGONAL,
    PROMOTED[_ROOK]: _ORTHOGONAL,
}


@dataclass
class Moves:
    """Moves as columns, one row a move, seen from the side that makes it.

    Attributes:
        origin, target, piece, claimed: As in :class:`pydlshogi.kifu.parsed_game.Move`, (moves,)
            uint8.
    """

    origin: numpy.ndarray
    target: numpy.ndarray
    piece: numpy.ndarray
    claimed: numpy.ndarray


def check_moves(moves: Moves, positions: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Returns whether each move is possible in its position, and its label."""
    table = tables()
    rows = positions.view(numpy.uint8)
    row_at = numpy.arange(len(positions)) * POSITION.itemsize
    origin, target, piece = moves.origin, moves.target, moves.piece
    at_origin = rows[row_at + origin]
    at_target = rows[row_at + target]
    drop = origin >= SQUARE_NUM
    before = numpy.where(drop, origin - (SQUARE_NUM - 1), at_origin).astype(numpy.intp)
    path = origin.astype(numpy.intp) * SQUARE_NUM + target
    geometry = table.geometry[path]
    change = table.change[before * (PIECE_NUM + 1) + piece]
    possible = table.able[before * _GEOMETRY_NUM + geometry]
    possible &= at_origin != 0
    possible &= (moves.claimed == 0) | (moves.claimed == before)
    possible &= (change == _SAME) | ((change == _PROMOTES) & table.zone[path])
    possible &= ~table.stuck[piece.astype(numpy.intp) * SQUARE_NUM + target]
    possible &= table.target_free[at_target] > drop
    far = numpy.flatnonzero((geometry >= _FAR) & (geometry < _DROP))
    path_far = path[far]
    step, distance = table.step[path_far], table.distance[path_far]
    between_at = row_at[far] + origin[far]
    for passed in range(1, 8):
        longer = distance > passed
        far, step, distance = far[longer], step[longer], distance[longer]
        between_at = between_at[longer] + step
        possible[far] &= rows[between_at] == 0
    possible[_second_pawns(moves, positions)] = False
    label = table.label[path] + numpy.uint16(_PROMOTION_LABELS) * (change == _PROMOTES)
    return possible, label


def _second_pawns(moves: Moves, positions: numpy.ndarray) -> numpy.ndarray:
    """Finds the moves that drop a pawn on a file with a pawn of the same side."""
    drops = numpy.flatnonzero(moves.origin == SQUARE_NUM + _PAWN - 1)
    files = (positions["board"][drops].reshape(-1, 9, 9) == _PAWN).any(axis=1)
    return drops[files[numpy.arange(len(drops)), moves.target[drops] % 9]]


def explain_fault(moves: Moves, positions: numpy.ndarray, row: int) -> str:
    """Returns the reason why a move is not possible."""
    table = tables()
    origin, target = int(moves.origin[row]), int(moves.target[row])
    piece, claimed = int(moves.piece[row]), int(moves.claimed[row])
    board, hands = positions["board"][row], positions["hands"][row]
    if origin >= SQUARE_NUM:
        before = origin - SQUARE_NUM + 1
        if not hands[origin - SQUARE_NUM]:
            return "no such piece is in the mover's hand"
        if board[target]:
            return "a piece is dropped onto another"
        if before == _PAWN and (board[target % 9 :: 9] == _PAWN).any():
            return "it drops a second pawn on a file"
    else:
        before = int(board[origin])
        if not 1 <= before <= PIECE_NUM:
            return "the mover has no piece on the square it leaves"
        if claimed not in (0, before):
            return f"the piece there is {PIECE_NAMES[before - 1]}, not {PIECE_NAMES[claimed - 1]}"
        if board[target] and not table.target_free[board[target]]:
            king = board[target] == _KING + PIECE_NUM
            return "it captures the king" if king else "an own piece is on the square it goes to"
        if piece not in (before, PROMOTED.get(before)):
            return f"the piece there is {PIECE_NAMES[before - 1]}"
        geometry = int(table.geometry[origin * SQUARE_NUM + target])
        if not table.able[before * _GEOMETRY_NUM + geometry]:
            return "the piece does not move that way"
        if piece != before and not table.zone[origin * SQUARE_NUM + target]:
            return "it promotes outside the promotion zone"
    if table.stuck[piece * SQUARE_NUM + target]:
        return "the piece could never move again"
    if positions["ply"][row] == 0:
        return f"the game has more than {PLY_MAX} moves"
    return "a piece stands in between"


def origins(placement: bytes, piece: int, target: int) -> list[int]:
    """Finds the mover's pieces of a kind (1..14) that can go to a square, in rising order."""
    table = tables()
    if not table.target_free[placement[target]]:
        return []
    found = []
    origin = placement.find(piece, 0, SQUARE_NUM)
    while origin >= 0:
        path = origin * SQUARE_NUM + target
        if table.able[piece * _GEOMETRY_NUM + int(table.geometry[path])]:
            step = int(table.step[path])
            between = range(origin + step, target, step)
            if not any(placement[square] for square in between):
                found.append(origin)
        origin = placement.find(piece, origin + 1, SQUARE_NUM)
    return found


def placement_after(placement: bytes, origin: int, target: int, piece: int) -> bytes:
    """Makes a possible move, and returns board and hands as the opponent sees them."""
    after = bytearray(placement)
    captured = after[target]
    after[origin] = after[origin] - 1 if origin >= SQUARE_NUM else 0
    after[target] = piece
    if captured:
        after[tables().hand_place[captured]] += 1
    return opponents_view(bytes(after))


class Tables(NamedTuple):
    """The rules as lookup tables. A path is ``origin · 81 + target``.

    Attributes:
        geometry: Geometry of the move, by path.
        step, distance: For moves on a line, the difference of square numbers for one step, and
            the number of steps, by path.
        zone: Whether a piece may promote, by path.
        label: Label of the plain move, by path.
        able: Whether a piece can move so, by ``piece · _GEOMETRY_NUM + geometry``.
        change: Relation of the two pieces, by ``before · (PIECE_NUM + 1) + after``.
        stuck: Whether the piece could never move again, by ``piece · 81 + target``.
        target_free: By the code on the target: 2 empty, 1 a piece that can be captured,
            0 another piece.
        other_side: Code of a square seen from the other side.
        origin_turned: Index of an origin, seen from the other side.
        hand_place: Index in the capturer's placement where a captured piece is counted.
    """

    geometry: numpy.ndarray
    step: numpy.ndarray
    distance: numpy.ndarray
    zone: numpy.ndarray
    label: numpy.ndarray
    able: numpy.ndarray
    change: numpy.ndarray
    stuck: numpy.ndarray
    target_free: numpy.ndarray
    other_side: numpy.ndarray
    origin_turned: numpy.ndarray
    hand_place: numpy.ndarray


@functools.lru_cache(maxsize=1)
def tables() -> Tables:
    """Builds the tables."""
    geometry = numpy.full((ORIGIN_NUM, SQUARE_NUM), _NOWHERE, dtype=numpy.uint8)
    step = numpy.zeros((ORIGIN_NUM, SQUARE_NUM), dtype=numpy.intp)
    distance = numpy.zeros((ORIGIN_NUM, SQUARE_NUM), dtype=numpy.intp)
    zone = numpy.zeros((ORIGIN_NUM, SQUARE_NUM), dtype=bool)
    label = numpy.zeros((ORIGIN_NUM, SQUARE_NUM), dtype=numpy.uint16)
    for origin in range(SQUARE_NUM):
        y, x = divmod(origin, 9)
        for target in range(SQUARE_NUM):
            try:
                direction = move_direction(origin, target)
            except ValueError:
                continue
            target_y, target_x = divmod(target, 9)
            far = max(abs(target_y - y), abs(target_x - x))
            if direction in (UP2_LEFT, UP2_RIGHT):
                far = 1
            geometry[origin, target] = direction if far == 1 else _FAR + direction
            distance[origin, target] = far
            step[origin, target] = (target - origin) // far
            zone[origin, target] = min(y, target_y) < 3
            label[origin, target] = SQUARE_NUM * direction + target
    for hand in range(HAND_NUM):
        geometry[SQUARE_NUM + hand] = _DROP
        label[SQUARE_NUM + hand] = SQUARE_NUM * (len(MOVE_DIRECTION) + hand) + numpy.arange(
            SQUARE_NUM
        )

    codes = 2 * PIECE_NUM + 1
    able = numpy.zeros((codes, _GEOMETRY_NUM), dtype=bool)
    for piece, steps in _STEPS.items():
        able[piece, list(steps)] = True
    for piece, slides in _SLIDES.items():
        able[piece, list(slides)] = True
        able[piece, [_FAR + direction for direction in slides]] = True
    able[1 : HAND_NUM + 1, _DROP] = True

    change = numpy.zeros((codes, PIECE_NUM + 1), dtype=numpy.uint8)
    for piece in range(1, PIECE_NUM + 1):
        change[piece, piece] = _SAME
    for plain, promoted in PROMOTED.items():
        change[plain, promoted] = _PROMOTES

    stuck = numpy.zeros((PIECE_NUM + 1, 9, 9), dtype=bool)
    stuck[[_PAWN, _LANCE], 0] = True
    stuck[_KNIGHT, :2] = True

    target_free = numpy.zeros(codes, dtype=numpy.uint8)
    target_free[0] = 2
    target_free[PIECE_NUM + 1 :] = 1
    target_free[PIECE_NUM + _KING] = 0

    # Pieces that cannot be captured have an index too. Their game is left out later. Until then
    # it must not write outside its own row.
    hand_place = numpy.full(codes, SQUARE_NUM, dtype=numpy.intp)
    for piece in range(1, HAND_NUM + 1):
        hand_place[PIECE_NUM + piece] = SQUARE_NUM + piece - 1
    for plain, promoted in PROMOTED.items():
        hand_place[PIECE_NUM + promoted] = SQUARE_NUM + plain - 1

    other_side = numpy.arange(codes, dtype=numpy.uint8)
    other_side[1 : PIECE_NUM + 1] += PIECE_NUM
    other_side[PIECE_NUM + 1 :] -= PIECE_NUM
    origin_turned = numpy.concatenate(
        [numpy.arange(SQUARE_NUM)[::-1], SQUARE_NUM + HAND_NUM + numpy.arange(HAND_NUM)]
    )
    return Tables(
        geometry=geometry.reshape(-1),
        step=step.reshape(-1),
        distance=distance.reshape(-1),
        zone=zone.reshape(-1),
        label=label.reshape(-1),
        able=able.reshape(-1),
        change=change.reshape(-1),
        stuck=stuck.reshape(-1),
        target_free=target_free,
        other_side=other_side,
        origin_turned=origin_turned,
        hand_place=hand_place,
    )
