"""The search of self-play: its visits, its target, and what ends it."""

import math

import numpy
import pytest
import shogi
from uct_helpers import FakeNetwork

from pydlshogi.features import make_input_features_from_board, make_output_label
from pydlshogi.selfplay.search import RootSearch
from pydlshogi.selfplay.settings import SelfPlaySettings
from pydlshogi.uct.boards import make_search_board
from pydlshogi.uct.game import Game
from pydlshogi.uct.inputs import Inputs
from pydlshogi.uct.move import from_usi, to_usi

MIDDLE = "ln1gkg1nl/1r1s3b1/p1pppsppp/1p4P2/9/2P1P4/PPBP1P2P/2GSR1S2/LN2KG1NL b p 23"
MATE_IN_ONE = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"


def search(sfen, settings, network, *, seed=None, is_full=True):
    """Searches a position; returns the search."""
    found = RootSearch(settings, 104)
    rng = None if seed is None else numpy.random.default_rng(seed)
    found.begin(Game(make_search_board(sfen)), rng, is_full)
    evaluate_leaves(found, network)
    return found


def evaluate_leaves(found, network):
    """Continues a search to its end; returns the number of evaluations."""
    inputs, evaluations = Inputs(1, 104), 0
    while found.next_leaf(inputs):
        evaluations += 1
        logits, wins = network(inputs.planes())
        found.complete(logits.astype(numpy.float32), numpy.array(wins, float))
        inputs.clear()
    return evaluations


def reference(sfen, network, visits, values, settings):
    """Recomputes the policy target in plain Python, from a root's visits and values by move."""
    board = shogi.Board(sfen)
    logits, wins = network(make_input_features_from_board(board)[None])
    moves = [move.usi() for move in board.legal_moves]
    logit = {
        usi: float(logits[0][make_output_label(shogi.Move.from_usi(usi), board.turn)])
        for usi in moves
    }
    whole = sum(math.exp(value) for value in logit.values())
    prior = {usi: math.exp(value) / whole for usi, value in logit.items()}
    tried = [usi for usi in moves if visits.get(usi)]
    total = sum(visits.values())
    mean = sum(prior[usi] * values[usi] for usi in tried) / sum(prior[usi] for usi in tried)
    mixed = (float(wins[0]) + total * mean) / (1 + total)
    scale = (settings.c_visit + max(visits.values())) * settings.c_scale
    powers = {
        usi: prior[usi] * math.exp(scale * (values[usi] if usi in tried else mixed) - scale)
        for usi in moves
    }
    return {usi: power / sum(powers.values()) for usi, power in powers.items()}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_target_is_that_of_an_independent_script(seed):
    settings, network = SelfPlaySettings(mate_plies=1), FakeNetwork(seed)
    found = search(MIDDLE, settings, network, seed=seed)
    choice, root = found.choose(), found.tree.root
    pairs = dict(zip(map(to_usi, root.moves), root.children))
    visits = {usi: child.visits for usi, child in pairs.items()}
    values = {usi: 1 - child.value() for usi, child in pairs.items()}
    wanted = reference(MIDDLE, network, visits, values, settings)
    got = {to_usi(move): count for move, count in zip(choice.moves.tolist(), choice.counts)}
    assert got.keys() == wanted.keys()
    assert max(abs(got[usi] / 10_000 - wanted[usi]) for usi in got) < 2e-4
    assert choice.value == pytest.approx(values[to_usi(choice.move)])


def test_sequential_halving_visits_the_better_half_more_often():
    found = search(MIDDLE, SelfPlaySettings(), FakeNetwork(), seed=1)
    visits = sorted(child.visits for child in found.tree.root.children)
    assert visits == [1] * 8 + [2] * 4 + [4] * 4


def test_the_moves_tried_have_the_highest_logits_with_noise():
    network, settings = FakeNetwork(), SelfPlaySettings()
    root = search(MIDDLE, settings, network, seed=5).tree.root
    board = shogi.Board(MIDDLE)
    logits = network(make_input_features_from_board(board)[None])[0][0]
    moves = sorted(from_usi(move.usi()) for move in board.legal_moves)
    noise = numpy.random.default_rng(5).gumbel(size=len(moves))
    labels = [make_output_label(shogi.Move.from_usi(to_usi(move)), board.turn) for move in moves]
    best = numpy.argsort(-(logits[labels] + noise))[:16]
    assert {moves[row] for row in best} == set(root.moves[: len(root.children)])


def test_a_search_without_noise_repeats():
    chosen = {search(MIDDLE, SelfPlaySettings(), FakeNetwork()).choose().move for _ in range(2)}
    assert len(chosen) == 1


def test_a_cheap_search_gives_no_target():
    found = search(MIDDLE, SelfPlaySettings(), FakeNetwork(), seed=1, is_full=False)
    assert len(found.choose().moves) == 0
    assert sum(child.visits for child in found.tree.root.children) == 8


def test_a_mate_is_played_without_the_network():
    found = search(MATE_IN_ONE, SelfPlaySettings(), None, seed=1)
    choice = found.choose()
    assert (to_usi(choice.move), choice.value) == ("G*5b", 1.0)
    assert choice.moves.tolist() == [choice.move]


def test_known_evaluations_are_not_asked_for_again():
    settings, network = SelfPlaySettings(), FakeNetwork()
    found = search(MIDDLE, settings, network, seed=1)
    game = Game(make_search_board(MIDDLE))
    game.push(found.choose().move)
    found.begin(game, None, True)
    assert found.tree.root.visits == 0
    evaluations = evaluate_leaves(found, network)
    visits = found.tree.root.visits
    assert visits == 33 and evaluations < visits
