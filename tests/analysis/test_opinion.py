"""Opinions of networks and searches, and games analyzed with them."""

import gc
import random
import weakref

import numpy
import pytest
import shogi
from analysis_helpers import GAME, MATE, game_of, small_network

from pydlshogi import rules
from pydlshogi.analysis.analyzed import analyze
from pydlshogi.analysis.opinion import Candidate, Opinion
from pydlshogi.analysis.record import AnalysisError, read_record
from pydlshogi.analysis.searcher import Searcher
from pydlshogi.uct.search import Search


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    return small_network(tmp_path_factory.mktemp("model"))


def random_boards(count):
    choice = random.Random(3).choice
    board = shogi.Board()
    for _ in range(count):
        yield shogi.Board(board.sfen())
        board.push(choice(list(board.legal_moves)))


def test_the_candidates_are_the_legal_moves_sorted_by_probability(network):
    for board in random_boards(30):
        (opinion,) = network.opinions([board])
        probabilities = [row.probability for row in opinion.candidates]
        assert {row.move for row in opinion.candidates} == set(rules.legal_moves(board))
        assert probabilities == sorted(probabilities, reverse=True)
        assert sum(probabilities) == pytest.approx(1)
        assert sum(opinion.heat().values()) == pytest.approx(1)
        for place, row in enumerate(opinion.candidates, 1):
            assert opinion.rank(row.move) == place
            assert opinion.probability(row.move) == row.probability


def test_many_positions_give_the_opinions_of_each_alone(network):
    boards = list(random_boards(70))  # more than a batch
    together = network.opinions(boards)
    for board, opinion in zip(boards, together):
        (alone,) = network.opinions([board])
        assert [row.move for row in alone.candidates] == [row.move for row in opinion.candidates]
        assert alone.win == pytest.approx(opinion.win, abs=1e-5)


def test_a_position_seen_from_the_other_side_gives_the_same_opinion(network):
    for board in random_boards(20):
        rows, turn, hands, number = board.sfen().split()
        turned = shogi.Board(
            f"{rows[::-1].swapcase()} {'bw'[turn == 'b']} {hands.swapcase()} {number}"
            if "+" not in rows
            else board.sfen()
        )
        if "+" in rows:
            continue
        one, other = network.opinions([board, turned])
        assert one.win == pytest.approx(other.win, abs=1e-5)
        assert [row.probability for row in one.candidates] == pytest.approx(
            [row.probability for row in other.candidates], abs=1e-5
        )
        assert one.candidates[0].move.to_square == 80 - other.candidates[0].move.to_square


@pytest.mark.parametrize("name, has_moves, has_win", [("policy", 1, 0), ("value", 0, 1)])
def test_a_network_with_one_head_gives_what_it_knows(name, has_moves, has_win, tmp_path):
    (opinion,) = small_network(tmp_path, name).opinions([shogi.Board()])
    assert bool(opinion.candidates) == has_moves
    assert (opinion.win is not None) == has_win
    assert opinion.rank(shogi.Move.from_usi("7g7f")) is None or has_moves


def test_a_mated_side_has_lost(network):
    board = shogi.Board(MATE)
    board.push_usi("G*5b")
    (opinion,) = network.opinions([board])
    assert opinion == Opinion([], 0.0)


def test_a_side_that_can_declare_has_won(network):
    record = game_of(sfen="4K4/GGGGSSSSR/+R8/9/9/9/9/9/4k4 b 2B 1")
    for opinions in (network.opinions(record.boards()), Searcher(network, 5).opinions(record)):
        (opinion,) = opinions
        assert opinion.win == 1.0
        assert opinion.candidates


QUIET = ["2h3h", "8b7b", "3h2h", "7b8b"]
#: Black's rook checks from two files again and again, which loses.
CHECKING = "5k3/9/9/9/9/9/9/9/K3R4 b - 1"
CHECKS = ["5i4i", "4a5a", "4i5i", "5a4a"]


@pytest.mark.parametrize(
    ("sfen", "moves", "win"),
    [
        (None, QUIET * 3, 0.5),
        (CHECKING, CHECKS * 3, 0.0),
        (CHECKING, [*CHECKS * 3, "5i4i"], 1.0),
    ],
)
def test_the_rules_value_a_game_that_ends_with_a_repetition(sfen, moves, win):
    opinions = [Opinion([Candidate(shogi.Move.from_usi(move), 1.0)], 0.7) for move in moves]
    opinions.append(Opinion([Candidate(shogi.Move.from_usi("9i9h"), 1.0)], 0.7))
    game = analyze(game_of(*moves, sfen=sfen), opinions)
    assert game.opinions == [*opinions[:-1], Opinion([], win)]
    assert game.moves[-1].after == pytest.approx(1 - win)
    shorter = analyze(game_of(*moves[:11], sfen=sfen), opinions[:12])
    assert shorter.opinions == opinions[:12]


def test_numbers_that_are_not_finite_are_refused(tmp_path):
    network = small_network(tmp_path, "policy")
    evaluate = network.evaluator.evaluate
    network.evaluator.evaluate = lambda planes: evaluate(planes)._replace(
        logits=numpy.full((1, 2187), numpy.nan)
    )
    with pytest.raises(AnalysisError, match="training diverged. Choose another model"):
        network.opinions([shogi.Board()])


def test_values_before_and_after_a_move_are_those_of_its_side(network):
    record = read_record(GAME)
    opinions = network.opinions(record.boards())
    game = analyze(record, opinions)
    wins = game.black_wins()
    assert len(wins) == len(opinions) == len(game.moves) + 1
    for move, before, after in zip(game.moves, wins, wins[1:]):
        pair = (before, after) if move.color == shogi.BLACK else (1 - before, 1 - after)
        assert (move.before, move.after) == pytest.approx(pair)
        assert move.loss == pytest.approx(max(0, move.before - move.after))


def test_the_summary_counts_the_models_choices():
    best, second = map(shogi.Move.from_usi, ("7g7f", "2g2f"))
    record = game_of("7g7f", "3c3d", "2g2f")
    reply = shogi.Move.from_usi("3c3d")
    candidates = [Candidate(best, 0.6), Candidate(second, 0.3)]
    opinions = [
        Opinion(candidates, 0.5),
        Opinion([Candidate(reply, 0.9)], 0.6),
        Opinion(candidates, 0.5),
        Opinion([], None),
    ]
    game = analyze(record, opinions)
    assert [(move.rank, move.probability) for move in game.moves] == [(1, 0.6), (1, 0.9), (2, 0.3)]
    black, white = game.summary(shogi.BLACK), game.summary(shogi.WHITE)
    assert (black.moves, black.first, white.moves, white.first) == (2, 1, 1, 1)
    assert black.loss == pytest.approx(0.1)  # 50 % before, 40 % after; the last value is unknown
    assert white.loss == pytest.approx(0.1)
    assert game.black_wins() == [0.5, pytest.approx(0.4), 0.5, None]


def test_the_first_choice_is_no_mistake_and_another_move_is():
    first, other = map(shogi.Move.from_usi, ("7g7f", "2g2f"))
    opinions = [Opinion([Candidate(first, 0.6), Candidate(other, 0.3)], 0.9), Opinion([], 0.4)]
    marks = [analyze(game_of(move), opinions).moves[0].mark for move in ("7g7f", "2g2f")]
    assert marks == ["", "bad"]


def test_a_search_without_time_for_a_move_is_the_opinion_of_the_network(network):
    (alone,) = network.opinions([shogi.Board()])
    found = Searcher(network, nodes=1).opinion(game_of())
    assert [row.probability for row in found.candidates] == [
        row.probability for row in alone.candidates
    ]


def test_a_search_finds_a_mate_that_the_network_does_not_see(network):
    (before, after) = Searcher(network, 5).opinions(game_of("G*5b", sfen=MATE))
    assert before.win == 1.0
    board = shogi.Board(MATE)
    board.push(before.candidates[0].move)
    assert board.is_checkmate()
    assert before.line == [before.candidates[0].move]
    assert after.win == 0.0


def test_a_search_gives_shares_of_visits_values_and_lines(network):
    record = game_of("7g7f", "3c3d")
    plain = network.opinions(record.boards())
    found = list(Searcher(network, nodes=60).opinions(record))
    assert len(found) == len(plain) == 3
    for board, one, searched in zip(record.boards(), plain, found):
        rows = searched.candidates
        assert {row.move for row in rows} == {row.move for row in one.candidates}
        assert sum(row.probability for row in rows) == pytest.approx(1)
        assert rows[0].probability == max(row.probability for row in rows)
        assert searched.nodes >= 60
        assert sum(row.visits for row in rows) in (searched.nodes, searched.nodes - 1)
        assert searched.win == rows[0].value
        assert searched.line[0] == rows[0].move
        for row in rows:
            assert (row.value is None) == (row.visits == 0)
            copy = shogi.Board(board.sfen())
            for move in row.line:
                assert move in copy.legal_moves
                copy.push(move)


def test_a_move_that_wins_has_the_thickest_arrow(network):
    opinion = Searcher(network, nodes=200).opinion(game_of(sfen=MATE))
    best, *others = opinion.candidates
    assert (best.probability, best.value) == (1, 1)
    assert not any(row.probability for row in others)


def test_a_search_of_one_position_knows_the_moves_before_it(network):
    moves = [*QUIET, *QUIET, *QUIET[:3]]
    opinion = Searcher(network, nodes=200).opinion(game_of(*moves))
    repeats = next(row for row in opinion.candidates if row.move.usi() == QUIET[3])
    assert repeats.value in (0.5, None)


def test_a_search_has_the_batches_of_the_engine(network, monkeypatch):
    sizes = []
    evaluate = network.evaluator.evaluate

    def counting(planes):
        sizes.append(len(planes))
        return evaluate(planes)

    monkeypatch.setattr(network.evaluator, "evaluate", counting)
    monkeypatch.setattr("pydlshogi.player.batch_sizes.get_threads", lambda: 1)
    (opinion,) = Searcher(network, 1).opinions(game_of())
    assert opinion.nodes > 40  # enough for batches of more than four
    assert max(sizes) == 4


@pytest.mark.parametrize("name", ["policy", "value"])
def test_a_search_needs_both_heads(name, tmp_path):
    with pytest.raises(AnalysisError, match="cannot search: that needs a policy and a value"):
        Searcher(small_network(tmp_path, name), 1)


def test_a_search_goes_on_after_an_interrupt_at_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr("pydlshogi.analysis.searcher.default_batches", lambda *arguments: 2)
    searcher = Searcher(small_network(tmp_path, "policy_value"), nodes=40)

    def interrupt(search):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Search, "finish", interrupt)
        with pytest.raises(KeyboardInterrupt):
            searcher.opinion(game_of())
    pending = [searcher._search.root]
    while pending:
        node = pending.pop()
        assert node.pending == 0
        pending += node.children
    assert searcher.opinion(game_of()).nodes == 40


def test_nothing_outlives_a_searcher(tmp_path):
    searcher = Searcher(small_network(tmp_path, "policy_value"), nodes=4)
    searcher.opinion(game_of())
    search = weakref.ref(searcher._search)
    gc.disable()
    try:
        del searcher
        assert search() is None
    finally:
        gc.enable()
