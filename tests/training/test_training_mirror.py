"""Left and right exchanged: positions and labels together."""

import random

import numpy
import pytest
import shogi

from pydlshogi.features import (
    LABEL_NUM,
    MIRRORED_LABELS,
    make_input_features_from_board,
    make_output_label,
)
from pydlshogi.features import make_input_planes as planes_of
from pydlshogi.positions import POSITION, placement_of
from pydlshogi.training.batches import mirror, mirror_targets


def mirrored_square(square):
    return square // 9 * 9 + 8 - square % 9


def mirrored_board(board):
    """Builds a python-shogi board piece by piece, left and right exchanged."""
    other = shogi.Board()
    other.clear()
    for square in shogi.SQUARES:
        piece = board.piece_at(square)
        if piece:
            other.set_piece_at(mirrored_square(square), piece)
    for color in shogi.COLORS:
        for piece_type, count in board.pieces_in_hand[color].items():
            if count:
                other.add_piece_into_hand(piece_type, color, count)
    other.turn = board.turn
    return other


def mirrored_move(move):
    square = mirrored_square(move.to_square)
    if move.drop_piece_type:
        return shogi.Move(None, square, drop_piece_type=move.drop_piece_type)
    return shogi.Move(mirrored_square(move.from_square), square, move.promotion)


def packed(board, move):
    position = numpy.zeros(1, POSITION)
    placement = numpy.frombuffer(placement_of(board), numpy.uint8)
    position["board"], position["hands"] = placement[:81], placement[81:]
    position["label"] = make_output_label(move, board.turn)
    return position


@pytest.fixture(scope="module")
def games():
    """Positions of random games: (board, legal moves, some of them)."""
    generator = random.Random(7)
    found = []
    for _ in range(4):
        board = shogi.Board()
        while len(board.move_stack) < 150:
            legal = sorted(board.legal_moves, key=str)
            if not legal:
                break
            if board.move_number % 5 == 0:
                chosen = generator.sample(legal, min(5, len(legal)))
                found.append((shogi.Board(board.sfen()), legal, chosen))
            board.push(generator.choice(legal))
    return found


def test_labels_change_places_in_pairs():
    numpy.testing.assert_array_equal(MIRRORED_LABELS[MIRRORED_LABELS], numpy.arange(LABEL_NUM))
    # What stays is what goes straight up or down, or is dropped, on the middle file.
    assert (numpy.arange(LABEL_NUM) == MIRRORED_LABELS).sum() == (2 + 2 + 7) * 9


def test_the_mirror_image_of_a_mirror_image_is_the_original():
    generator = numpy.random.RandomState(1)
    values = generator.randint(0, 256, (50, POSITION.itemsize))
    positions = values.astype(numpy.uint8).view(POSITION).reshape(-1)
    positions["label"] %= LABEL_NUM
    positions["recent"] %= 82
    before = positions.copy()
    once = mirror(positions)
    assert (positions == before).all()
    assert mirror(once).tobytes() == before.tobytes()
    changed = {name for name in POSITION.names if (once[name] != positions[name]).any()}
    assert changed == {"board", "label", "recent"}


@pytest.mark.long
def test_positions_and_moves_are_those_of_python_shogis_mirrored_board(games):
    kinds = set()
    for board, legal, chosen in games:
        other = mirrored_board(board)
        assert {str(mirrored_move(move)) for move in legal} == set(map(str, other.legal_moves))
        for move in chosen:
            kinds.add((bool(move.drop_piece_type), move.promotion, board.turn))
            found = mirror(packed(board, move))
            assert found.tobytes() == packed(other, mirrored_move(move)).tobytes()
    assert len(kinds) == 6  # moves, promotions and drops of both sides


def test_planes_are_reversed_along_the_files(games):
    board, _, (move, *_) = games[-1]
    position = packed(board, move)
    position["recent"] = [[11, 0]]
    expected = planes_of(position, plane_num=106)[..., ::-1]
    numpy.testing.assert_array_equal(planes_of(mirror(position), plane_num=106), expected)
    board_planes = make_input_features_from_board(mirrored_board(board))
    numpy.testing.assert_array_equal(planes_of(mirror(position))[0], board_planes)


def test_probabilities_and_labels_agree():
    labels = numpy.array([0, 5, 2186], numpy.int32)
    probabilities = numpy.eye(LABEL_NUM, dtype=numpy.float32)[labels]
    mirrored = mirror_targets(labels)
    assert mirrored.dtype == numpy.int32
    numpy.testing.assert_array_equal(mirror_targets(probabilities).argmax(axis=1), mirrored)
