"""Repetitions inside the tree and of the game."""

import pytest
import shogi
from uct_helpers import BOARDS, FakeNetwork, make_search, shape

from pydlshogi import rules
from pydlshogi.uct.core import DRAW, LOSS, WIN, find
from pydlshogi.uct.cshogi_board import CshogiBoard
from pydlshogi.uct.game import Game, Repetition
from pydlshogi.uct.judge import judge
from pydlshogi.uct.move import from_usi
from pydlshogi.uct.settings import Settings

SHUFFLE = ["2h3h", "8b7b", "3h2h", "7b8b"]
#: White's king runs from the checks of Black's rook, and back.
CHECKS = "4k4/9/9/9/9/9/9/9/R3K4 b - 1"
CHASE = ["9i9a", "5a5b", "9a9b", "5b5a"]


def played(moves, sfen=None, board=CshogiBoard):
    return Game(board(sfen), list(map(from_usi, moves)))


@pytest.mark.parametrize("board", BOARDS)
def test_a_position_counts_from_the_occurrence_that_is_asked_for(board):
    for times in range(5):
        game = played(SHUFFLE * times, board=board)
        for occurrences in (2, 3, 4):
            found = game.repetition(occurrences)
            assert (found is not None) == (times + 1 >= occurrences)
            if found:
                assert found == Repetition(DRAW, is_final=times >= 3)


@pytest.mark.parametrize("board", BOARDS)
def test_perpetual_check_loses(board):
    game = played(CHASE, CHECKS, board)
    assert game.repetition(2) is None  # the rook came from another square
    # White, to move in check for the second time, wins; Black to move loses.
    game.push(from_usi("9b9a"))
    assert game.repetition(2) == Repetition(WIN, is_final=False)
    game.push(from_usi("5a5b"))
    assert game.repetition(2) == Repetition(LOSS, is_final=False)
    for move in ["9a9b", "5b5a", "9b9a", "5a5b"] * 2:
        game.push(from_usi(move))
    assert game.repetition(4) == Repetition(LOSS, is_final=True)


def test_a_quiet_move_in_between_makes_it_a_draw():
    game = played(["9i9a", "5a5b", "9a9c", "5b5a", "9c9a"], CHECKS)
    assert game.repetition(2) == Repetition(DRAW, is_final=False)


def test_a_game_drawn_by_its_length_has_no_repetition_to_foresee():
    moves = [*CHASE, "9b9a"]
    assert judge(played(moves, CHECKS), Settings(occurrences=2), False).outcome == WIN
    for plies in (5, 6):
        verdict = judge(played(moves, CHECKS), Settings(occurrences=2, draw_ply=plies), False)
        assert verdict.outcome == (DRAW if plies == 5 else WIN)
    final = [*CHASE, *["9b9a", "5a5b", "9a9b", "5b5a"] * 2, "9b9a"]
    settings = Settings(occurrences=2, draw_ply=len(final))
    assert judge(played(final, CHECKS), settings, False).outcome == WIN


def test_if_both_sides_only_give_check_all_judges_say_that_it_is_a_draw(monkeypatch):
    game = played(SHUFFLE * 3)
    monkeypatch.setattr(game.board, "in_check", lambda: True)
    assert game.repetition(4) == Repetition(DRAW, is_final=True)
    board = shogi.Board()
    for move in SHUFFLE * 3:
        board.push_usi(move)
    monkeypatch.setattr(shogi.Board, "is_check", lambda board: True)
    assert rules.repetition(board) == rules.Repetition.DRAW


def test_judging_leaves_board_and_game_as_they_were():
    game = played(SHUFFLE * 3)
    key, ply = game.board.key(), game.ply
    game.repetition(2)
    assert (game.board.key(), game.ply) == (key, ply)
    for _ in range(12):
        game.pop()
    assert game.board.key() == CshogiBoard().key()


def search_after(moves, visits, sfen=None, **settings):
    search = make_search(FakeNetwork(2), **{"batch_size": 1, **settings})
    search.begin(played(moves, sfen))
    while search.root.visits < visits and not search.root.proof:
        search.step(visits)
    return search


def child(search, move):
    return search.root.child_after(from_usi(move))


def visit_all_moves(moves, sfen=None, **settings):
    """Searches with so much exploration that every move is visited."""
    return search_after(moves, 600, sfen, c_init_root=500, temperature=10, **settings)


@pytest.mark.long
def test_in_a_game_the_second_occurrence_is_worth_a_draw_and_proves_nothing():
    node = child(visit_all_moves(SHUFFLE[:3]), "7b8b")
    assert not node.is_expanded
    assert node.value() == 0.5
    assert node.proof is None


def test_in_an_analysis_only_the_fourth_occurrence_counts():
    settings = {"occurrences": 4, "draw_black": 0.75}
    third = child(visit_all_moves(SHUFFLE + SHUFFLE[:3], **settings), "7b8b")
    assert third.children
    fourth = child(visit_all_moves(SHUFFLE * 2 + SHUFFLE[:3], **settings), "7b8b")
    assert not fourth.is_expanded
    assert fourth.proof == (DRAW, 0)
    assert fourth.value() == 0.75  # Black is to move there


def test_perpetual_check_in_the_tree_is_worth_a_loss():
    # The game has seen the position after 9a9b; Black checks there again.
    moves = [*CHASE, "9b9a", "5a5b"]
    node = child(visit_all_moves(moves, CHECKS, mate_plies=0, root_mate=False), "9a9b")
    assert node.value() == 1.0  # for White


def test_the_root_is_searched_though_it_is_a_repetition():
    search = search_after(SHUFFLE * 3, 100)
    assert search.root.visits == 100
    assert search.root.proof is None


def test_a_root_that_was_judged_as_a_repetition_is_searched_like_a_new_one():
    settings = {"batch_size": 1, "c_init_root": 500, "temperature": 10}
    search = make_search(FakeNetwork(2), **settings)
    for moves, visits in ((SHUFFLE[:3], 600), (SHUFFLE, 200)):
        search.tree.move_to("start", list(map(from_usi, moves)))
        search.begin(played(moves))
        judged = search.root.visits  # as a repetition, by the search before
        while search.root.visits < visits:
            search.step(visits)
    assert search.root.is_expanded
    assert shape(search.root) == shape(search_after(SHUFFLE, 200, **settings).root), judged


def test_a_forecast_is_not_kept_for_other_ways_to_the_position():
    search = visit_all_moves(SHUFFLE[:3])
    forecast = child(search, "7b8b")
    assert forecast.visits > 1
    assert not forecast.is_expanded
    assert not any(node.proof for node in (forecast, search.root))
    key = played(SHUFFLE).input_key(search.plane_num)
    assert not find(search.tree.arrays[0], search.tree.table, key)
    assert find(search.tree.arrays[0], search.tree.table, played(SHUFFLE[:3]).input_key(104))
