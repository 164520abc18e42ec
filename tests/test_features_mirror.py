"""Left and right exchanged: positions and labels together."""

import random

import numpy
import shogi

from pydlshogi.features import LABEL_NUM, MIRRORED_LABELS, make_output_label, mirror
from pydlshogi.positions import POSITION, placement_of


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


def record(board, move):
    position = numpy.zeros(1, POSITION)
    packed = numpy.frombuffer(placement_of(board), numpy.uint8)
    position["board"], position["hands"] = packed[:81], packed[81:]
    position["label"] = make_output_label(move, board.turn)
    position["result"], position["ply"] = 1, board.move_number
    return position


def test_labels_change_places_in_pairs():
    assert MIRRORED_LABELS.shape == (LABEL_NUM,)
    assert (MIRRORED_LABELS[MIRRORED_LABELS] == numpy.arange(LABEL_NUM)).all()
    # What stays is what goes straight up or down, or is dropped, on the middle file.
    assert (numpy.arange(LABEL_NUM) == MIRRORED_LABELS).sum() == (2 + 2 + 7) * 9


def test_mirrored_twice_a_position_is_itself():
    values = numpy.random.RandomState(1).randint(0, 256, (50, POSITION.itemsize))
    positions = values.astype(numpy.uint8).view(POSITION).reshape(-1)
    positions["label"] %= LABEL_NUM
    before = positions.copy()
    once = mirror(positions)
    assert (positions == before).all()
    assert (mirror(once) == positions).all()
    for name in ("hands", "result", "ply"):
        assert (once[name] == positions[name]).all()


def test_positions_and_moves_are_those_of_python_shogis_mirrored_board():
    generator = random.Random(7)
    moves = set()
    for _ in range(4):
        board = shogi.Board()
        while len(board.move_stack) < 150:
            legal = sorted(board.legal_moves, key=str)
            if not legal:
                break
            if board.move_number % 5 == 0:
                other = mirrored_board(board)
                assert {str(mirrored_move(move)) for move in legal} == set(
                    map(str, other.legal_moves)
                )
                for move in generator.sample(legal, min(5, len(legal))):
                    moves.add((bool(move.drop_piece_type), move.promotion, board.turn))
                    found = mirror(record(board, move))
                    expected = record(other, mirrored_move(move))
                    expected["ply"] = found["ply"]
                    assert found.tobytes() == expected.tobytes()
            board.push(generator.choice(legal))
    assert len(moves) == 6  # moves, promotions and drops of both sides
