"""Planes and labels: golden vectors, invariants, and packed positions against boards."""

import json
import math
from pathlib import Path

import kifu_reference
import numpy
import pytest
import shogi
from hypothesis import given
from hypothesis import strategies as st

from pydlshogi import common, features
from pydlshogi.compat import chainer
from pydlshogi.positions import DRAW, LOSS, POSITION, UNKNOWN, WIN

DATA = Path(__file__).parent / "data"
GOLDEN = json.loads((DATA / "labels.json").read_text())
SFENS = [position["sfen"] for position in GOLDEN]


@pytest.fixture(scope="module")
def golden_planes():
    with numpy.load(DATA / "features.npz") as golden:
        bits = numpy.unpackbits(golden["planes"], axis=1)
    return bits[:, : features.PLANE_NUM * 81].reshape(-1, features.PLANE_NUM, 9, 9)


def packed(sfens):
    """Packs positions without a move."""
    positions = numpy.zeros(len(sfens), dtype=POSITION)
    for row, sfen in zip(positions, sfens):
        placement = kifu_reference.placement(shogi.Board(sfen))
        row["board"] = list(placement[:81])
        row["hands"] = list(placement[81:])
    return positions


def test_golden_planes_of_boards(golden_planes):
    for sfen, expected in zip(SFENS, golden_planes):
        planes = features.make_input_features_from_board(shogi.Board(sfen))
        assert planes.dtype == numpy.float32
        assert numpy.array_equal(planes, expected)


def test_golden_planes_of_packed_positions(golden_planes):
    planes = features.make_input_planes(packed(SFENS))
    assert planes.dtype == numpy.float32
    assert numpy.array_equal(planes, golden_planes)


def test_golden_planes_of_packed_bytes(device, golden_planes):
    # A GPU receives bytes, because cupy has no structured arrays.
    raw = packed(SFENS).view(numpy.uint8).reshape(len(SFENS), -1)
    planes = features.make_input_planes(device.send(raw))
    assert isinstance(planes, device.xp.ndarray)
    assert planes.dtype == numpy.float32
    assert numpy.array_equal(chainer.backends.cuda.to_cpu(planes), golden_planes)


def test_golden_labels():
    for position in GOLDEN:
        board = shogi.Board(position["sfen"])
        labels = {
            usi: features.make_output_label(shogi.Move.from_usi(usi), board.turn)
            for usi in position["labels"]
        }
        assert labels == position["labels"]
        assert len(set(labels.values())) == len(labels)


@pytest.mark.parametrize("plane_num", [0, 103, 105, 107, "106"])
def test_other_numbers_of_planes_are_refused(plane_num):
    with pytest.raises(ValueError, match=f"plane_num is {plane_num!r}; only 104, and 106"):
        features.make_input_planes(packed(SFENS[:1]), plane_num=plane_num)
    with pytest.raises(ValueError, match="plane_num is"):
        features.make_input_features_from_board(shogi.Board(), plane_num)


@pytest.mark.parametrize("sfen", SFENS[::40])
def test_a_move_and_its_mirror_image_share_a_label(sfen):
    board = shogi.Board(sfen)
    for move in board.pseudo_legal_moves:
        turned = shogi.Move(
            None if move.from_square is None else common.SQUARES_R180[move.from_square],
            common.SQUARES_R180[move.to_square],
            promotion=move.promotion,
            drop_piece_type=move.drop_piece_type,
        )
        label = features.make_output_label(move, board.turn)
        assert label == features.make_output_label(turned, 1 - board.turn)
        assert 0 <= label < features.LABEL_NUM


def test_no_piece_moves_like_that():
    for from_square, to_square in ((0, 0), (40, 33), (40, 59), (0, 11)):
        with pytest.raises(ValueError, match="no piece moves"):
            features.move_direction(from_square, to_square)


def test_planes_are_written_where_asked():
    positions = packed(SFENS[:7])
    out = numpy.full((7, features.PLANE_NUM, 9, 9), 5, dtype=numpy.float32)
    assert features.make_input_planes(positions, out) is out
    assert numpy.array_equal(out, features.make_input_planes(positions))


def test_raw_bytes_and_strided_records_give_the_same_planes():
    positions = packed(SFENS[:8])
    expected = features.make_input_planes(positions)
    raw = positions.view(numpy.uint8).reshape(8, POSITION.itemsize)
    assert numpy.array_equal(features.make_input_planes(raw), expected)
    assert numpy.array_equal(features.make_input_planes(positions[::2]), expected[::2])
    assert numpy.array_equal(features.make_input_planes(positions[::-1]), expected[::-1])


def test_no_positions_give_no_planes():
    planes = features.make_input_planes(numpy.zeros(0, dtype=POSITION))
    assert planes.shape == (0, features.PLANE_NUM, 9, 9)


@given(st.lists(st.integers(0, 18), min_size=14, max_size=14))
def test_any_hand(counts):
    position = numpy.zeros(1, dtype=POSITION)
    position["hands"] = counts
    hands = [{kind + 1: counts[7 * side + kind] for kind in range(7)} for side in (0, 1)]
    expected = features.make_input_features([0] * 15, (0, 0), hands)
    assert numpy.array_equal(features.make_input_planes(position)[0], expected)


@given(st.lists(st.integers(0, 28), min_size=81, max_size=81))
def test_each_square_has_its_one_piece(board):
    position = numpy.zeros(1, dtype=POSITION)
    position["board"] = board
    planes = features.make_input_planes(position)[0].reshape(2, -1, 81)[:, :14]
    for square, code in enumerate(board):
        expected = numpy.zeros(28)
        if code:
            expected[code - 1] = 1
        assert numpy.array_equal(planes[:, :, square].ravel(), expected)


@pytest.mark.parametrize(("result", "win"), [(WIN, 1.0), (LOSS, 0.0), (DRAW, 0.5)])
def test_features_of_a_record(result, win):
    position = packed(SFENS[:1])
    position["label"] = 123
    position["result"] = result
    planes, label, won = features.make_features(position[0])
    assert numpy.array_equal(planes, features.make_input_planes(position)[0])
    assert (label, won) == (123, win)


def test_an_unknown_result_is_no_number():
    position = packed(SFENS[:1])
    position["result"] = UNKNOWN
    assert math.isnan(features.make_features(position[0])[2])


def test_features_of_the_books_tuple():
    board = shogi.Board()
    planes, label, win = features.make_features(
        (board.piece_bb, board.occupied, board.pieces_in_hand, 7, 1)
    )
    assert numpy.array_equal(planes, features.make_input_features_from_board(board))
    assert (label, win) == (7, 1)
