"""The packed position and its cache file."""

import kifu_reference
import numpy
import pytest
import shogi
from hypothesis import given
from hypothesis import strategies as st
from kifu_lists import random_positions

from pydlshogi.positions import (
    PLACEMENT_SIZE,
    POSITION,
    count_common,
    opponents_view,
    placement_of,
)

codes = st.lists(st.integers(0, 28), min_size=81, max_size=81)
hands = st.lists(st.integers(0, 18), min_size=14, max_size=14)
placements = st.builds(lambda board, hand: bytes(board + hand), codes, hands)


@given(placements)
def test_the_opponents_view_is_an_involution(placement):
    assert opponents_view(opponents_view(placement)) == placement


@pytest.mark.parametrize("seed", range(5))
def test_a_board_packs_as_its_side_to_move_sees_it(seed):
    board = shogi.Board()
    for move in kifu_reference.random_moves(shogi.STARTING_SFEN, 60, seed):
        assert placement_of(board) == kifu_reference.placement(board)
        board.push_usi(move)


def test_a_position_is_small():
    assert POSITION.itemsize == 104
    assert POSITION.fields["result"][1] == PLACEMENT_SIZE


@given(st.integers(0, 80), st.integers(1, 28))
def test_common_positions_agree_in_board_and_hands(square, change):
    test = random_positions(5)
    train = numpy.concatenate([test[[1, 3, 3]], random_positions(4, seed=1)])
    train["result"] = 9
    train["label"] = 8
    train["ply"] = 7
    assert count_common(train, test) == 3
    train["board"][0, square] ^= change
    assert count_common(train, test) == 2
    assert count_common(train[:0], test) == count_common(train, test[:0]) == 0


def test_one_changed_byte_anywhere_is_another_position():
    one = random_positions(1)
    raw = numpy.tile(one.view(numpy.uint8), (PLACEMENT_SIZE * 255, 1))
    rows = numpy.arange(len(raw))
    raw[rows, rows // 255] ^= (rows % 255 + 1).astype(numpy.uint8)
    changed = raw.view(POSITION).reshape(-1)
    assert count_common(changed, one) == 0
    assert count_common(changed[::2], changed[1::2]) == 0
