"""Moves as players write them."""

import random

import pytest
import shogi
import shogi.KIF

from pydlshogi.drawing.notation import PIECES, line_text, marked_move_text, move_text, square_text


def board_after(*moves):
    board = shogi.Board()
    for move in moves:
        board.push_usi(move)
    return board


@pytest.mark.parametrize(
    "played, move, text",
    [
        ((), "7g7f", "７六歩(77)"),
        (("7g7f", "3c3d"), "8h2b+", "２二角成(88)"),
        (("7g7f", "3c3d", "8h2b+"), "3a2b", "同　銀(31)"),
        (("7g7f", "3c3d", "8h2b+", "3a2b"), "B*5e", "５五角打"),
        (("7g7f", "3c3d", "8h2b", "4a3b"), "2b1c+", "１三角成(22)"),
    ],
)
def test_moves_are_written_as_in_kif(played, move, text):
    assert move_text(board_after(*played), shogi.Move.from_usi(move)) == text


def test_a_promoted_minor_piece_has_its_long_name_in_a_move():
    board = shogi.Board("4k4/9/9/9/4+S4/9/9/9/4K4 b - 1")
    assert move_text(board, shogi.Move.from_usi("5e5d")) == "５四成銀(55)"


def test_the_squares_are_those_of_python_shogis_names():
    for square, name in enumerate(shogi.SQUARE_NAMES):
        file, rank = square_text(square)
        assert "１２３４５６７８９".index(file) + 1 == int(name[0])
        assert "一二三四五六七八九".index(rank) == ord(name[1]) - ord("a")


def test_moves_of_random_games_are_those_of_python_shogis_exporter():
    choice = random.Random(1).choice
    board = shogi.Board()
    compared = 0
    for _ in range(120):
        moves = list(board.legal_moves)
        if not moves:
            break
        move = choice(moves)
        text = move_text(board, move)
        if "同" not in text:  # the exporter always names the square
            expected = shogi.KIF.Exporter.kif_move_from(move.usi(), board)
            names = (("王", "玉"), ("竜", "龍"), ("成香", "杏"), ("成桂", "圭"), ("成銀", "全"))
            for one, other in names:
                expected, text = expected.replace(one, other), text.replace(one, other)
            assert text == expected
            compared += 1
        board.push(move)
    assert compared > 50


def test_a_line_leaves_the_board_as_it_was():
    board = board_after("7g7f")
    before = board.sfen()
    line = [shogi.Move.from_usi(move) for move in ("3c3d", "8h2b+", "3a2b")]
    assert line_text(board, line) == "△３四歩(33) ▲２二角成(88) △同　銀(31)"
    assert board.sfen() == before


def test_each_piece_type_has_one_character():
    assert len(PIECES) == len(shogi.PIECE_TYPES) + 1
    assert marked_move_text(shogi.Board(), shogi.Move.from_usi("2g2f")) == "▲２六歩(27)"
