"""Choosing by logits."""

import collections
import math

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from pydlshogi.player import strategy
from pydlshogi.player.policy_player import boltzmann, greedy

logits_arrays = npst.arrays(
    numpy.float32, st.integers(1, 40), elements=st.floats(-1000, 1000, width=32)
)


@given(logits_arrays)
def test_greedy_takes_the_largest(logits):
    before = logits.copy()
    assert logits[greedy(logits)] == logits.max()
    assert (logits == before).all()


@given(logits_arrays, st.floats(1e-3, 1e3), st.integers(0, 100))
def test_boltzmann_gives_an_index_and_leaves_its_input(logits, temperature, seed):
    before = logits.copy()
    index = boltzmann(logits, temperature, numpy.random.default_rng(seed))
    assert isinstance(index, int)
    assert 0 <= index < len(logits)
    assert (logits == before).all()


@given(logits_arrays, st.floats(1e-3, 1e3), st.floats(-500, 500))
def test_softmax_adds_up_and_does_not_mind_a_shift(logits, temperature, shift):
    probabilities = strategy.softmax(logits, temperature)
    assert math.isclose(probabilities.sum(), 1)
    shifted = strategy.softmax(logits.astype(numpy.float64) + shift, temperature)
    assert numpy.allclose(shifted, probabilities, atol=1e-6)


def test_softmax_at_a_tiny_temperature_is_greedy():
    assert list(strategy.softmax([1.0, 3.0, 2.0], 1e-308)) == [0, 1, 0]


def test_boltzmann_draws_with_the_probabilities_of_the_softmax():
    logits, temperature, draws = [0.0, 0.5, -1.0, 1.0], 0.5, 20000
    rng = numpy.random.default_rng(1)
    counts = collections.Counter(boltzmann(logits, temperature, rng) for _ in range(draws))
    powers = [math.exp(logit / temperature) for logit in logits]
    for index, power in enumerate(powers):
        expected = power / sum(powers)
        spread = math.sqrt(expected * (1 - expected) / draws)
        assert abs(counts[index] / draws - expected) < 5 * spread


def test_boltzmann_is_repeatable_by_numpys_own_seed():
    def draw():
        numpy.random.seed(7)
        return [boltzmann([0.0, 1.0, 2.0], 1.0) for _ in range(20)]

    assert draw() == draw()


@pytest.mark.parametrize("temperature", [0, -1, math.nan])
def test_a_temperature_that_is_none_is_refused(temperature):
    with pytest.raises(ValueError, match="temperature"):
        boltzmann([0.0, 1.0], temperature)


@pytest.mark.parametrize(
    ("probability", "score"),
    [(0.5, 0), (0.0, -9999), (1.0, 9999), (0.75, 659), (0.25, -659), (1 - 1e-12, 9999)],
)
def test_scores(probability, score):
    assert strategy.score(probability) == score


@given(st.floats(0, 1), st.floats(0, 1))
def test_scores_keep_the_order(one, other):
    if one <= other:
        assert strategy.score(one) <= strategy.score(other)
