"""Converts positions to input planes and moves to output labels.

Only this module knows the layout of planes and labels. Everything is seen from the
side to move (:mod:`pydlshogi.common`).

Planes, (104, 9, 9): 52 for the side to move, then 52 for the opponent. Each side has

======  ==========================================================================
planes  meaning
======  ==========================================================================
14      one plane for each piece type in python-shogi's order (pawn, lance, knight,
        silver, gold, bishop, rook, king, promoted pawn, promoted lance, promoted
        knight, promoted silver, horse, dragon): 1 where such a piece stands
38      pieces in hand: pawn 18, lance 4, knight 4, silver 4, gold 4, bishop 2,
        rook 2. Plane n of a piece type is filled with 1 if more than n are in hand.
======  ==========================================================================

Networks with a history have two planes more, 104 and 105. They mark the destination of the
opponent's last move, and of the last move of the side to move. A plane is 0 if its move is unknown.

Labels, 0..2186: ``81 · direction + to_square``. Directions 0..19 are moves on the board,
20..26 are drops of pawn, lance, knight, silver, gold, bishop and rook. Two legal moves of one
position never have the same label: only the nearest piece in a direction can reach a
square, and the knight has its own directions.

Source: 「将棋AIで学ぶディープラーニング」, chapter 7.
"""

from __future__ import annotations

import itertools
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
from pydlshogi.positions import DRAW, HAND_NUM, LOSS, POSITION, RECENT_NUM, UNKNOWN, WIN, raw_bytes

#: Number of piece types on the board, python-shogi's 1 (pawn) … 14 (dragon).
PIECE_TYPE_NUM = len(shogi.PIECE_TYPES)
#: Hand planes of each piece type, python-shogi's 1 (pawn) … 7 (rook).
HAND_MAX = (18, 4, 4, 4, 4, 2, 2)
HAND_PLANE_NUM = sum(HAND_MAX)
SIDE_PLANE_NUM = PIECE_TYPE_NUM + HAND_PLANE_NUM
PLANE_NUM = 2 * SIDE_PLANE_NUM
#: Number of planes with the history.
HISTORY_PLANE_NUM = PLANE_NUM + RECENT_NUM
LABEL_NUM = MOVE_DIRECTION_LABEL_NUM * SQUARE_NUM
assert (PLANE_NUM, LABEL_NUM) == (104, 2187)

# First hand plane of each piece type, relative to the first plane of the side.
_HAND_START = tuple(PIECE_TYPE_NUM + sum(HAND_MAX[:kind]) for kind in range(len(HAND_MAX)))

# Piece type of each hand plane (pawn 0), and its number n among the planes of that type.
_HAND_PLANE_KIND = numpy.repeat(numpy.arange(HAND_NUM), HAND_MAX)
_HAND_PLANE_NUMBER = numpy.concatenate([numpy.arange(most) for most in HAND_MAX]).astype("u1")

# Direction of a move, given the signs of (dx, dy).
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


#: ``MIRRORED_SQUARES[square]`` is the square with left and right exchanged, (81,) int64.
MIRRORED_SQUARES = numpy.arange(SQUARE_NUM).reshape(9, 9)[:, ::-1].ravel()


def _mirrored_labels() -> numpy.ndarray:
    pairs = ((UP_LEFT, UP_RIGHT), (LEFT, RIGHT), (DOWN_LEFT, DOWN_RIGHT), (UP2_LEFT, UP2_RIGHT))
    directions = numpy.arange(MOVE_DIRECTION_LABEL_NUM)
    for left, right in pairs:
        directions[[left, right]] = right, left
        left, right = MOVE_DIRECTION_PROMOTED[left], MOVE_DIRECTION_PROMOTED[right]
        directions[[left, right]] = right, left
    return (SQUARE_NUM * directions[:, None] + MIRRORED_SQUARES).ravel()


#: ``MIRRORED_LABELS[label]`` is the label of the mirrored move, (2187,) int64. The mirror image
#: of a mirror image is the original.
MIRRORED_LABELS = _mirrored_labels()


def _planes_of_sides(first: int, last: int) -> numpy.ndarray:
    """Returns the numbers of planes first … last − 1 of both sides."""
    side = numpy.arange(first, last)
    return numpy.concatenate([side, SIDE_PLANE_NUM + side])


#: Planes with pieces on the board, and planes of pieces in hand (each one constant).
PIECE_PLANES = _planes_of_sides(0, PIECE_TYPE_NUM)
HAND_PLANES = _planes_of_sides(PIECE_TYPE_NUM, SIDE_PLANE_NUM)
#: Planes of the last two moves.
HISTORY_PLANES = numpy.arange(PLANE_NUM, HISTORY_PLANE_NUM)

#: Value of a result for the side to move: 1 won, 0 lost, 0.5 drawn, nan unknown.
WIN_OF_RESULT = {LOSS: 0.0, WIN: 1.0, DRAW: 0.5, UNKNOWN: float("nan")}
#: The same values by the code of the result, (4,) float64.
WINS = numpy.array([WIN_OF_RESULT[code] for code in range(len(WIN_OF_RESULT))])

# First byte of the recent moves in a packed position.
_RECENT_AT = POSITION.fields["recent"][1]  # type: ignore[index]

_BITBOARD_BYTES = (SQUARE_NUM + 7) // 8


def make_input_features(
    piece_bb: Sequence[int],
    occupied: Sequence[int],
    pieces_in_hand: Sequence[Mapping[int, int]],
) -> numpy.ndarray:
    """Makes the planes from bitboards that are already turned to the side to move.

    Args:
        piece_bb: Bitboard of each piece type, both sides together, as python-shogi's
            ``Board.piece_bb``. Index 0 is unused.
        occupied: Bitboards of the side to move and of the opponent.
        pieces_in_hand: For each of the two, number in hand by piece type. A missing
            piece type counts 0.

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


def check_plane_num(plane_num: int) -> None:
    """Checks a number of planes.

    Raises:
        ValueError: it is neither ``PLANE_NUM`` nor ``HISTORY_PLANE_NUM``.
    """
    if plane_num not in (PLANE_NUM, HISTORY_PLANE_NUM):
        raise ValueError(
            f"plane_num is {plane_num!r}; only {PLANE_NUM}, and {HISTORY_PLANE_NUM} with the last "
            "two moves, are possible"
        )


def make_input_features_from_board(board: shogi.Board, plane_num: int = PLANE_NUM) -> numpy.ndarray:
    """Makes the planes of a python-shogi board, seen from the side to move.

    Args:
        board: Any position. It is not changed. Its stack of moves may be empty.
        plane_num: Number of planes: ``PLANE_NUM``, or ``HISTORY_PLANE_NUM`` with the history.

    Returns:
        (plane_num, 9, 9) float32 of 0 and 1.

    Raises:
        ValueError: ``plane_num`` is another number.
    """
    check_plane_num(plane_num)
    us, them = board.turn, 1 - board.turn
    planes = make_input_features(
        board.piece_bb,
        (board.occupied[us], board.occupied[them]),
        (board.pieces_in_hand[us], board.pieces_in_hand[them]),
    )
    if plane_num == HISTORY_PLANE_NUM:
        moves = itertools.islice(reversed(board.move_stack), RECENT_NUM)
        squares = [move.to_square if move else None for move in moves]
        planes = numpy.concatenate([planes, make_history_planes(squares)])
    # A rotation by 180 degrees reverses both axes. It does not change hand planes.
    return planes if us == shogi.BLACK else planes[:, ::-1, ::-1]


def make_history_planes(squares: Sequence[int | None]) -> numpy.ndarray:
    """Makes the planes (2, 9, 9) of the last two moves, float32 of 0 and 1.

    Args:
        squares: Destinations of the opponent's last move and of one's own, seen from the side to
            move; None for an unknown one.
    """
    planes = numpy.zeros((RECENT_NUM, SQUARE_NUM), numpy.float32)
    for plane, square in zip(planes, squares):
        if square is not None:
            plane[square] = 1
    return planes.reshape(RECENT_NUM, 9, 9)


def make_input_planes(records: Any, out: Any = None, plane_num: int = PLANE_NUM) -> Any:
    """Makes the planes of packed positions on the device that holds them.

    The same code runs on numpy and cupy. A GPU receives only the packed bytes.

    Args:
        records: ``POSITION`` array (n,), or its raw bytes (n, ``POSITION.itemsize``) uint8
            as a numpy or cupy array.
        out: Array for the result, contiguous and on the same device; None for a new one.
        plane_num: Number of planes: ``PLANE_NUM``, or ``HISTORY_PLANE_NUM`` with the history.

    Returns:
        (n, plane_num, 9, 9) float32 of 0 and 1; ``out`` if it was given.

    Raises:
        ValueError: ``plane_num`` is another number.
    """
    check_plane_num(plane_num)
    if isinstance(records, numpy.ndarray) and records.dtype != numpy.uint8:
        records = raw_bytes(records)
    xp = _array_module(records)
    count = len(records)
    if out is None:
        out = xp.empty((count, plane_num, 9, 9), dtype=numpy.float32)
    flat = out.reshape(count, plane_num, SQUARE_NUM)
    sides = (flat[:, :SIDE_PLANE_NUM], flat[:, SIDE_PLANE_NUM:PLANE_NUM])
    board = records[:, None, :SQUARE_NUM]
    codes = xp.arange(1, 2 * PIECE_TYPE_NUM + 1, dtype=numpy.uint8).reshape(2, 1, -1, 1)
    hands = records[:, SQUARE_NUM : SQUARE_NUM + 2 * HAND_NUM].reshape(count, 2, HAND_NUM)
    held = hands[:, :, xp.asarray(_HAND_PLANE_KIND)] > xp.asarray(_HAND_PLANE_NUMBER)
    for number, side in enumerate(sides):
        side[:, :PIECE_TYPE_NUM] = board == codes[number]
        side[:, PIECE_TYPE_NUM:] = held[:, number, :, None]
    if plane_num == HISTORY_PLANE_NUM:
        recent = records[:, _RECENT_AT : _RECENT_AT + RECENT_NUM, None]
        squares = xp.arange(1, SQUARE_NUM + 1, dtype=numpy.uint8)
        flat[:, PLANE_NUM:] = recent == squares
    return out


def _array_module(array: Any) -> Any:
    """Returns numpy or cupy. A numpy array does not import CuPy."""
    if isinstance(array, numpy.ndarray):
        return numpy
    import cupy

    return cupy


def make_output_label(move: shogi.Move, color: int) -> int:
    """Returns the label of a move.

    Args:
        move: A move that some piece can make, or a drop.
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
    """Returns the direction of a move on the board. Both squares are seen from the mover.

    Returns:
        0..9, ``UP`` … ``UP2_RIGHT``.

    Raises:
        ValueError: the squares are neither on one line nor a knight's jump apart.
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
    """Makes the input and the targets of one position for training.

    Args:
        position: A record of ``read_kifu``, or the book's tuple ``(piece_bb, occupied,
            pieces_in_hand, move_label, win)``, already turned to the side to move.

    Returns:
        Planes (104, 9, 9) float32, label, and result for the side to move: 1, 0, 0.5 or nan.
    """
    if isinstance(position, (numpy.void, numpy.ndarray)):
        planes = make_input_planes(numpy.array([position], dtype=POSITION))[0]
        return planes, int(position["label"]), WIN_OF_RESULT[int(position["result"])]
    piece_bb, occupied, pieces_in_hand, move_label, win = position
    return make_input_features(piece_bb, occupied, pieces_in_hand), move_label, win
