"""Invariants of the coordinates."""

import shogi
from hypothesis import given
from hypothesis import strategies as st

from pydlshogi import common

bitboards = st.integers(0, (1 << 81) - 1)


@given(bitboards)
def test_rotation_is_an_involution(bb):
    assert common.bb_rotate_180(common.bb_rotate_180(bb)) == bb


@given(bitboards, bitboards)
def test_rotation_keeps_unions(a, b):
    rotate = common.bb_rotate_180
    assert rotate(a | b) == rotate(a) | rotate(b)


def test_rotation_of_a_square_agrees_with_the_table():
    for square, turned in enumerate(common.SQUARES_R180):
        assert common.bb_rotate_180(1 << square) == 1 << turned
        assert common.SQUARES_R180[turned] == square


def test_squares_of_the_docstring():
    for index, name in [(0, "9a"), (8, "1a"), (40, "5e"), (72, "9i"), (80, "1i")]:
        assert shogi.SQUARE_NAMES[index] == name


def test_directions_are_numbered_in_order():
    assert list(range(20)) == common.MOVE_DIRECTION
    assert list(range(10, 20)) == common.MOVE_DIRECTION_PROMOTED
    assert common.MOVE_DIRECTION_LABEL_NUM == 27
    names = ["UP", "UP_LEFT", "UP_RIGHT", "LEFT", "RIGHT", "DOWN", "DOWN_LEFT", "DOWN_RIGHT"]
    names += ["UP2_LEFT", "UP2_RIGHT"]
    assert [getattr(common, name) for name in names] == list(range(10))
    assert [getattr(common, f"{name}_PROMOTE") for name in names] == list(range(10, 20))
