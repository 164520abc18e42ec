"""The last two moves, from the records to the network's input in training and in play."""

import kifu_reference
import numpy
import pytest
import shogi

from pydlshogi.compat import chainer
from pydlshogi.features import (
    HISTORY_PLANE_NUM,
    PLANE_NUM,
    make_history_planes,
    make_input_features_from_board,
    make_input_planes,
)
from pydlshogi.inference.evaluator import Evaluator
from pydlshogi.kifu.fixed import HCPE, decode_records, encode_records
from pydlshogi.model_files.model_file import save_model
from pydlshogi.network.registry import make_network
from pydlshogi.positions import WIN
from pydlshogi.uct.boards import make_search_board
from pydlshogi.uct.game import Game
from pydlshogi.uct.inputs import Inputs
from pydlshogi.uct.move import from_usi

NETWORKS = ("policy_value_history_bn", "policy_value_history_resnet")
MOVES = kifu_reference.random_moves(shogi.STARTING_SFEN, 80, 3)


def boards():
    """The board before each move of a game; always the same board."""
    board = shogi.Board()
    for move in MOVES:
        yield board
        board.push_usi(move)


def planes_of_boards():
    return numpy.stack(
        [make_input_features_from_board(board, HISTORY_PLANE_NUM) for board in boards()]
    )


def test_the_planes_show_where_the_last_two_moves_went():
    board = shogi.Board()
    for move in ("7g7f", "3c3d", "8h2b+"):
        board.push_usi(move)
    planes = make_input_features_from_board(board, HISTORY_PLANE_NUM)
    # White is to move and sees 2b, where Black has just captured, at its own 8h.
    theirs, ours = planes[PLANE_NUM:]
    assert numpy.argwhere(theirs).tolist() == [[7, 1]]
    assert numpy.argwhere(ours).tolist() == [[5, 2]]  # 3d is White's 7f


def test_the_first_two_positions_of_a_game_have_less_history():
    totals = planes_of_boards()[:, PLANE_NUM:].sum(axis=(2, 3))
    assert totals[:3].tolist() == [[0, 0], [1, 0], [1, 1]]
    assert (totals[2:] == 1).all()


def test_packed_positions_have_the_planes_of_the_boards(device):
    positions = kifu_reference.play(shogi.Board(), MOVES, WIN)
    raw = device.send(positions.view(numpy.uint8).reshape(len(positions), -1))
    planes = make_input_planes(raw, plane_num=HISTORY_PLANE_NUM)
    numpy.testing.assert_array_equal(chainer.backends.cuda.to_cpu(planes), planes_of_boards())
    without = chainer.backends.cuda.to_cpu(make_input_planes(raw))
    numpy.testing.assert_array_equal(without, planes_of_boards()[:, :PLANE_NUM])


def test_a_position_of_a_single_record_has_no_history():
    positions = kifu_reference.play(shogi.Board(), MOVES, WIN)
    turns = numpy.arange(len(positions)).astype(numpy.uint8) % 2
    content, *_ = encode_records(positions, turns, HCPE)
    decoded = decode_records(content.tobytes(), HCPE).positions
    assert len(decoded) == len(positions)
    assert not decoded["recent"].any()


@pytest.mark.parametrize("board", [None, "python-shogi"])
def test_the_search_writes_the_planes_of_the_boards(board):
    from pydlshogi.uct.python_shogi_board import PythonShogiBoard

    game = Game(make_search_board() if board is None else PythonShogiBoard())
    for move, expected in zip(MOVES, planes_of_boards()):
        inputs = Inputs(1, HISTORY_PLANE_NUM)
        inputs.add(game)
        numpy.testing.assert_array_equal(inputs.planes(), [expected])
        game.push(from_usi(move))
        game.push(int(game.board.moves()[0]))
        game.pop()


@pytest.mark.parametrize("name", NETWORKS)
def test_the_evaluator_gives_the_network_what_training_gives_it(tmp_path, name):
    numpy.random.seed(1)
    save_model(tmp_path / "model", make_network(name, channels=8))
    evaluator = Evaluator(tmp_path / "model", chainer.get_device("@numpy"))
    planes = numpy.stack([evaluator.planes(board) for board in boards()])
    numpy.testing.assert_array_equal(planes, planes_of_boards())
    seen = evaluator.evaluate(planes)
    planes[:, PLANE_NUM:] = make_history_planes([None, None])
    assert not numpy.allclose(seen.logits, evaluator.evaluate(planes).logits)
