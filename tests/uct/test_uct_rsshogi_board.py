"""The board of rsshogi against that of python-shogi. This test needs no cshogi."""

import random

import pytest

from pydlshogi.uct.python_shogi_board import PythonShogiBoard

RsshogiBoard = pytest.importorskip("pydlshogi.uct.rsshogi_board").RsshogiBoard


def said(board):
    """What a board says of its position."""
    moves, checks = sorted(board.moves().tolist()), sorted(board.checks())
    answers = board.turn, board.in_check(), board.can_declare(), board.mate(1) is None
    return answers, moves, checks, board.sfen()


def test_both_boards_say_the_same_along_random_games():
    rng, seen = random.Random(11), set()
    for _ in range(4):
        fast, slow = RsshogiBoard(), PythonShogiBoard()
        for _ in range(60):
            assert said(fast) == said(slow)
            seen.add(fast.in_check())
            moves = sorted(fast.moves().tolist())
            if not moves:
                break
            move = rng.choice(fast.checks() or moves)
            fast.push(move)
            slow.push(move)
    assert seen == {True, False}
