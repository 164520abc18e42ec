"""The hash of the network's input tells apart what the network sees, and nothing else."""

import numpy
import pytest
from uct_helpers import BOARDS

from pydlshogi.features import HISTORY_PLANE_NUM, PLANE_NUM
from pydlshogi.uct.cshogi_board import CshogiBoard
from pydlshogi.uct.game import Game
from pydlshogi.uct.inputs import Inputs
from pydlshogi.uct.move import from_usi

LAST = ["9g9f", "9c9d"]
ONE = ["7g7f", "3c3d", "2g2f", "8c8d"]
OTHER = ["2g2f", "8c8d", "7g7f", "3c3d"]


def played(moves, board):
    return Game(board(), list(map(from_usi, moves)))


def planes(game, plane_num):
    inputs = Inputs(1, plane_num)
    inputs.add(game)
    return inputs.planes()[0]


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("plane_num", [PLANE_NUM, HISTORY_PLANE_NUM])
@pytest.mark.parametrize("end, has_same_history", [(LAST, True), ([], False)])
def test_positions_have_the_same_key_where_the_network_sees_the_same(
    board, plane_num, end, has_same_history
):
    one, other = played(ONE + end, board), played(OTHER + end, board)
    expected = has_same_history or plane_num == PLANE_NUM
    assert numpy.array_equal(planes(one, plane_num), planes(other, plane_num)) == expected
    assert (one.input_key(plane_num) == other.input_key(plane_num)) == expected


def test_several_moves_are_taken_back_like_one_after_another():
    game, stepwise = played(ONE, CshogiBoard), played(ONE, CshogiBoard)
    for _ in range(3):
        stepwise.pop()
    game.pop(3)
    assert game.ply == stepwise.ply == 1
    assert game.recent_squares() == stepwise.recent_squares() != []
    assert game.input_key(HISTORY_PLANE_NUM) == stepwise.input_key(HISTORY_PLANE_NUM)
    game.pop(0)
    assert game.ply == 1


def test_a_start_position_has_no_history():
    empty = planes(played([], CshogiBoard), HISTORY_PLANE_NUM)[PLANE_NUM:]
    first = planes(played(ONE[:1], CshogiBoard), HISTORY_PLANE_NUM)[PLANE_NUM:]
    assert [empty.sum(), first[0].sum(), first[1].sum()] == [0, 1, 0]
