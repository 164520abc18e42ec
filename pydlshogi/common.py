"""Squares, directions and their rotation by 180 degrees.

Squares have python-shogi's numbers: 0..80, row by row from 9a, the top left corner seen by
Black. ``y, x = divmod(square, 9)``; x counts files from 9 to 1, y counts ranks from a (一) to
i (九).

====================  ======  =====  ==========  ==========  =============
square as            index   (y, x)  USI         CSA         turned by 180°
====================  ======  =====  ==========  ==========  =============
top left                   0  (0, 0)  9a          91          80
top right                  8  (0, 8)  1a          11          72
middle                    40  (4, 4)  5e          55          40
bottom left               72  (8, 0)  9i          99           8
bottom right              80  (8, 8)  1i          19           0
====================  ======  =====  ==========  ==========  =============

Every position is seen from the side to move. For White, the board is rotated by 180 degrees
(square s becomes 80 − s) and the colours are swapped. "Forward" is therefore always towards y = 0.

Source of names and numbers: the book 「将棋AIで学ぶディープラーニング」, chapter 7.
"""

from __future__ import annotations

SQUARE_NUM = 81

# Directions of a move, seen from the mover: UP is towards y 0, LEFT towards x 0.
# UP2_LEFT and UP2_RIGHT are moves of the knight.
UP = 0
UP_LEFT = 1
UP_RIGHT = 2
LEFT = 3
RIGHT = 4
DOWN = 5
DOWN_LEFT = 6
DOWN_RIGHT = 7
UP2_LEFT = 8
UP2_RIGHT = 9
UP_PROMOTE = 10
UP_LEFT_PROMOTE = 11
UP_RIGHT_PROMOTE = 12
LEFT_PROMOTE = 13
RIGHT_PROMOTE = 14
DOWN_PROMOTE = 15
DOWN_LEFT_PROMOTE = 16
DOWN_RIGHT_PROMOTE = 17
UP2_LEFT_PROMOTE = 18
UP2_RIGHT_PROMOTE = 19

#: The 20 directions of a move on the board: the plain ones, then the promoting ones.
MOVE_DIRECTION = list(range(UP, UP2_RIGHT_PROMOTE + 1))

#: ``MOVE_DIRECTION_PROMOTED[direction]`` is the promoting form of a plain direction.
MOVE_DIRECTION_PROMOTED = MOVE_DIRECTION[10:]

#: Number of piece types that can be dropped. Each has a "direction" of its own.
DROP_NUM = 7

#: Number of directions and drops; the number of labels is 81 times as large.
MOVE_DIRECTION_LABEL_NUM = len(MOVE_DIRECTION) + DROP_NUM

#: ``SQUARES_R180[square]`` is the square after a rotation by 180 degrees.
SQUARES_R180 = [SQUARE_NUM - 1 - square for square in range(SQUARE_NUM)]


def bb_rotate_180(bb: int) -> int:
    """Rotates a bitboard of 81 bits by 180 degrees: bit s becomes bit 80 − s."""
    return int(f"{bb:081b}"[::-1], 2)
