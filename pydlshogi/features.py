"""Positions to input planes, moves to output labels.

The only module that knows the layout of a plane or of a label. Everything is seen
from the side to move (see :mod:`pydlshogi.common`).

Planes, (104, 9, 9): 52 for the side to move, then 52 for the opponent, each

======  ==========================================================================
14      a plane a piece type, in python-shogi's order: pawn, lance, knight, silver,
        gold, bishop, rook, king, promoted pawn, lance, knight, silver, horse,
        dragon; 1 where such a piece stands
38      the hand: pawn 18, lance 4, knight 4, silver 4, gold 4, bishop 2, rook 2;
        plane n of a kind is 1 everywhere where more than n of it are in hand
======  ==========================================================================

Networks that ask for them get 8 more planes behind these: which of eight ranges the move
number is in, as one plane of 1 and seven of 0.

Labels, 0..2186: ``81 · direction + to_square``, directions 0..19 for moves on the
board, 20..26 for drops of pawn, lance, knight, silver, gold, bishop, rook. Two legal
moves of one position never share a label: a square sees, in each direction, only the
first piece on the line, and a knight's jumps have directions of their own.

Source: 「将棋AIで学ぶディープラーニング」, chapter 7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy
import shogi

from pydlshogi.common import (
    DOWN,
    DOWN_LEFT,
    DOWN_RIGHT,
    LEFT,
    MOVE_DIRECTION,
    MOVE_DIRECTION_LABEL_NUM,
    MOVE_DIRECTION_PROMOTED,
    RIGHT,
    SQUARE_NUM,
    SQUARES_R180,
    UP,
    UP2_LEFT,
    UP2_RIGHT,
    UP_LEFT,
    UP_RIGHT,
)
from pydlshogi.positions import DRAW, HAND_NUM, LOSS, POSITION, UNKNOWN, WIN, raw_bytes

#: Piece types on the board, python-shogi's 1 (pawn) … 14 (dragon).
PIECE_TYPE_NUM = len(shogi.PIECE_TYPES)
#: How many of a kind can be in one hand, for python-shogi's 1 (pawn) … 7 (rook).
HAND_MAX = (18, 4, 4, 4, 4, 2, 2)
HAND_PLANE_NUM = sum(HAND_MAX)
SIDE_PLANE_NUM = PIECE_TYPE_NUM + HAND_PLANE_NUM
PLANE_NUM = 2 * SIDE_PLANE_NUM
LABEL_NUM = MOVE_DIRECTION_LABEL_NUM * SQUARE_NUM
assert (PLANE_NUM, LABEL_NUM) == (104, 2187)

# First plane of each kind's hand, counted from the side's first plane.
_HAND_START = tuple(PIECE_TYPE_NUM + sum(HAND_MAX[:kind]) for kind in range(len(HAND_MAX)))

# Which kind a hand plane is of, and its number among those of the kind.
_HAND_PLANE_KIND = numpy.repeat(numpy.arange(HAND_NUM), HAND_MAX)
_HAND_PLANE_NUMBER = numpy.concatenate([numpy.arange(most) for most in HAND_MAX]).astype("u1")

# The step of a move, as signs of (dx, dy), to its direction.
_DIRECTION_OF_SIGNS = {
    (0, -1): UP,
    (-1, -1): UP_LEFT,
    (1, -1): UP_RIGHT,
    (-1, 0): LEFT,
    (1, 0): RIGHT,
    (0, 1): DOWN,
    (-1, 1): DOWN_LEFT,
    (1, 1): DOWN_RIGHT,
}


def _planes_of_sides(first: int, last: int) -> numpy.ndarray:
    """Numbers the planes first … last − 1 of both sides."""
    side = numpy.arange(first, last)
    return numpy.concatenate([side, SIDE_PLANE_NUM + side])


#: Which planes tell square from square, and which are the same everywhere.
PIECE_PLANES = _planes_of_sides(0, PIECE_TYPE_NUM)
HAND_PLANES = _planes_of_sides(PIECE_TYPE_NUM, SIDE_PLANE_NUM)

#: First move number of each range; moves count from 1.
PLY_RANGES = (1, 21, 41, 61, 81, 101, 121, 151)
PLY_PLANE_NUM = len(PLY_RANGES)
PLY_PLANES = numpy.arange(PLANE_NUM, PLANE_NUM + PLY_PLANE_NUM)

#: What a result means as a number: the part of the game won by the side to move.
WIN_OF_RESULT = {LOSS: 0.0, WIN: 1.0, DRAW: 0.5, UNKNOWN: float("nan")}

# Where the two bytes of the move number stand in a record, the low one first.
_PLY_OFFSET = POSITION.fields["ply"][1]  # type: ignore[index]

_BITBOARD_BYTES = (SQUARE_NUM + 7) // 8


def make_input_features(
    piece_bb: Sequence[int],
    occupied: Sequence[int],
    pieces_in_hand: Sequence[Mapping[int, int]],
) -> numpy.ndarray:
    """Makes the planes from bitboards already turned to the side to move.

    Args:
        piece_bb: Bitboards by piece type, index 0 unused (python-shogi's
            ``Board.piece_bb``), of both sides together.
        occupied: Bitboards of the side to move and of the opponent.
        pieces_in_hand: Number in hand by piece type, of the side to move and of
            the opponent; a kind that is missing counts 0.

    Returns:
        (104, 9, 9) float32 of 0 and 1.
    """
    planes = numpy.zeros((2, SIDE_PLANE_NUM, SQUARE_NUM), dtype=numpy.float32)
    bitboards = b"".join(
        (piece_bb[piece_type] & side).to_bytes(_BITBOARD_BYTES, "little")
        for side in (occupied[0], occupied[1])
        for piece_type in range(1, PIECE_TYPE_NUM + 1)
    )
    bits = numpy.unpackbits(
        numpy.frombuffer(bitboards, dtype=numpy.uint8).reshape(2, PIECE_TYPE_NUM, -1),
        axis=2,
        count=SQUARE_NUM,
        bitorder="little",
    )
    planes[:, :PIECE_TYPE_NUM] = bits
    for side, hand in enumerate(pieces_in_hand):
        for piece_type, count in hand.items():
            if count:
                start = _HAND_START[piece_type - 1]
                planes[side, start : start + min(count, HAND_MAX[piece_type - 1])] = 1
    return planes.reshape(PLANE_NUM, 9, 9)


def make_input_features_from_board(board: shogi.Board, *, ply: bool = False) -> numpy.ndarray:
    """Makes the planes of a python-shogi board, seen from its side to move.

    Args:
        board: Any position; it is not changed.
        ply: Whether planes of the board's ``move_number`` follow.

    Returns:
        (104, 9, 9) float32 of 0 and 1; with ``ply`` (112, 9, 9).
    """
    us, them = (
        (shogi.BLACK, shogi.WHITE) if board.turn == shogi.BLACK else (shogi.WHITE, shogi.BLACK)
    )
    planes = make_input_features(
        board.piece_bb,
        (board.occupied[us], board.occupied[them]),
        (board.pieces_in_hand[us], board.pieces_in_hand[them]),
    )
    # Turning the board reverses its 81 squares; hand planes are the same everywhere.
    planes = planes if us == shogi.BLACK else planes[:, ::-1, ::-1]
    if not ply:
        return planes
    number = numpy.array([board.move_number])
    return numpy.concatenate([planes, make_ply_planes(number)[0]])


def make_ply_planes(ply: Any) -> Any:
    """Makes the planes of move numbers.

    Args:
        ply: (n,) numbers of the moves to be played, from 1; numpy or cupy.

    Returns:
        (n, 8, 9, 9) float32: plane k is 1 everywhere where the number is in range k.
    """
    xp = _array_module(ply)
    # Numbers below 1, which a GUI may send, belong to the first range.
    started = ply[:, None] >= xp.asarray(PLY_RANGES[1:])
    number = started.sum(axis=1)
    inside = number[:, None] == xp.arange(PLY_PLANE_NUM)
    planes = xp.empty((len(ply), PLY_PLANE_NUM, 9, 9), dtype=numpy.float32)
    planes[...] = inside[:, :, None, None]
    return planes


def make_input_planes(records: Any, out: Any = None, *, ply: bool = False) -> Any:
    """Makes the planes of a batch of packed positions, on the device they are on.

    The same source serves numpy and cupy: on a GPU the 100 bytes of a position are all
    that crosses the bus.

    Args:
        records: A ``POSITION`` array, (n,), or its raw bytes, (n, 100) uint8 in numpy
            or cupy.
        out: Where to write, of the shape and dtype returned, in contiguous memory on the
            same device; None for a new array.
        ply: Whether planes of the move number follow.

    Returns:
        (n, 104, 9, 9) float32 of 0 and 1, ``out`` if it was given; with ``ply``
        (n, 112, 9, 9).
    """
    if isinstance(records, numpy.ndarray) and records.dtype != numpy.uint8:
        records = raw_bytes(records)
    xp = _array_module(records)
    count = len(records)
    if out is None:
        plane_num = PLANE_NUM + (PLY_PLANE_NUM if ply else 0)
        out = xp.empty((count, plane_num, 9, 9), dtype=numpy.float32)
    # Where ply planes follow, splitting the axis of the planes keeps this a view.
    planes = out[:, :PLANE_NUM].reshape(count, 2, SIDE_PLANE_NUM, SQUARE_NUM)
    board = records[:, None, None, :SQUARE_NUM]
    codes = xp.arange(1, 2 * PIECE_TYPE_NUM + 1, dtype=numpy.uint8)
    planes[:, :, :PIECE_TYPE_NUM] = board == codes.reshape(1, 2, PIECE_TYPE_NUM, 1)
    hands = records[:, SQUARE_NUM : SQUARE_NUM + 2 * HAND_NUM].reshape(count, 2, HAND_NUM)
    held = hands[:, :, xp.asarray(_HAND_PLANE_KIND)] > xp.asarray(_HAND_PLANE_NUMBER)
    planes[:, :, PIECE_TYPE_NUM:] = held[..., None]
    if ply:
        low, high = records[:, _PLY_OFFSET], records[:, _PLY_OFFSET + 1]
        out[:, PLANE_NUM:] = make_ply_planes(low + high.astype(numpy.uint16) * 256)
    return out


def _array_module(array: Any) -> Any:
    """Gives numpy or cupy, without loading Chainer or CuPy for a numpy array."""
    if isinstance(array, numpy.ndarray):
        return numpy
    import cupy

    return cupy


def _mirrored_labels() -> numpy.ndarray:
    """Gives each label's number after left and right changed places: (2187,) uint16."""
    pairs = ((UP_LEFT, UP_RIGHT), (LEFT, RIGHT), (DOWN_LEFT, DOWN_RIGHT), (UP2_LEFT, UP2_RIGHT))
    direction = numpy.arange(MOVE_DIRECTION_LABEL_NUM)
    for left, right in pairs:
        direction[[left, right]] = right, left
        left, right = MOVE_DIRECTION_PROMOTED[left], MOVE_DIRECTION_PROMOTED[right]
        direction[[left, right]] = right, left
    to_square = numpy.arange(SQUARE_NUM).reshape(9, 9)[:, ::-1].ravel()
    return (SQUARE_NUM * direction[:, None] + to_square).ravel().astype(numpy.uint16)


#: ``MIRRORED_LABELS[label]`` is the same move after left and right changed places.
MIRRORED_LABELS = _mirrored_labels()


def mirror(positions: numpy.ndarray) -> numpy.ndarray:
    """Exchanges left and right: the rules of shogi are the same then, the openings are not.

    Args:
        positions: (n,) array of ``POSITION``; it is not changed.

    Returns:
        (n,) array of ``POSITION``: pieces and moves in mirror image, the rest as it was.
    """
    mirrored = positions.copy()
    mirrored["board"] = positions["board"].reshape(-1, 9, 9)[:, :, ::-1].reshape(-1, SQUARE_NUM)
    mirrored["label"] = MIRRORED_LABELS[positions["label"]]
    return mirrored


def make_output_label(move: shogi.Move, color: int) -> int:
    """Numbers a move as the network's output does.

    Args:
        move: A move that some piece could make, or a drop.
        color: The side that moves, ``shogi.BLACK`` or ``shogi.WHITE``.

    Returns:
        The label, 0..2186.

    Raises:
        ValueError: no piece moves from that square to that one.
    """
    to_square = move.to_square
    if move.drop_piece_type:
        direction = len(MOVE_DIRECTION) + move.drop_piece_type - 1
        if color == shogi.WHITE:
            to_square = SQUARES_R180[to_square]
        return SQUARE_NUM * direction + to_square
    from_square = move.from_square
    if color == shogi.WHITE:
        from_square, to_square = SQUARES_R180[from_square], SQUARES_R180[to_square]
    direction = move_direction(from_square, to_square)
    if move.promotion:
        direction = MOVE_DIRECTION_PROMOTED[direction]
    return SQUARE_NUM * direction + to_square


def move_direction(from_square: int, to_square: int) -> int:
    """Finds the direction of a move on the board, both squares seen from the mover.

    Returns:
        0..9, ``UP`` … ``UP2_RIGHT``.

    Raises:
        ValueError: the squares are not on one line nor a knight's jump apart.
    """
    from_y, from_x = divmod(from_square, 9)
    to_y, to_x = divmod(to_square, 9)
    dx, dy = to_x - from_x, to_y - from_y
    if dy == -2 and dx in (-1, 1):
        return UP2_LEFT if dx < 0 else UP2_RIGHT
    if (dx or dy) and (not dx or not dy or abs(dx) == abs(dy)):
        return _DIRECTION_OF_SIGNS[(dx > 0) - (dx < 0), (dy > 0) - (dy < 0)]
    raise ValueError(f"no piece moves from square {from_square} to square {to_square}")


def make_features(position: Any) -> tuple[numpy.ndarray, int, float]:
    """Makes what a training step needs of one position.

    Args:
        position: An item of what ``read_kifu`` returns (a ``POSITION`` record), or the
            book's tuple ``(piece_bb, occupied, pieces_in_hand, move_label, win)``,
            already turned to the side to move.

    Returns:
        The planes, (104, 9, 9) float32; the label of the move played; and the
        result for the side to move: 1 won, 0 lost, 0.5 drawn, nan unknown.
    """
    if isinstance(position, (numpy.void, numpy.ndarray)):
        planes = make_input_planes(numpy.array([position], dtype=POSITION))[0]
        return planes, int(position["label"]), WIN_OF_RESULT[int(position["result"])]
    piece_bb, occupied, pieces_in_hand, move_label, win = position
    return make_input_features(piece_bb, occupied, pieces_in_hand), move_label, win
