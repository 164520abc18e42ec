"""Elo: the curve, and an interval that is honest for few games and one-sided ones."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pydlshogi.match.elo import elo_difference, score_interval

POINTS = st.sampled_from([0.0, 0.5, 1.0])
PAIRS = st.lists(st.tuples(POINTS, POINTS), max_size=60)


@given(st.floats(0.001, 0.999))
def test_difference_is_the_inverse_of_the_logistic_curve(score):
    assert 1 / (1 + 10 ** (-elo_difference(score) / 400)) == pytest.approx(score)
    assert elo_difference(score) == pytest.approx(-elo_difference(1 - score), abs=1e-9)


def test_known_differences():
    assert elo_difference(0.5) == 0
    assert elo_difference(10 / 11) == pytest.approx(400)
    assert elo_difference(0) == -math.inf
    assert elo_difference(1) == math.inf


@given(PAIRS)
def test_interval_holds_the_score_and_turns_with_the_sides(pairs):
    low, high = score_interval(pairs)
    assert 0 <= low < high <= 1
    if pairs:
        assert low <= sum(map(sum, pairs)) / (2 * len(pairs)) <= high
    turned = score_interval([(1 - a, 1 - b) for a, b in pairs])
    assert turned == (pytest.approx(1 - high), pytest.approx(1 - low))


def test_no_games_say_nothing():
    assert score_interval([]) == (0, 1)


@pytest.mark.parametrize("pairs", [1, 5, 50, 500])
def test_lost_games_give_an_upper_bound_only(pairs):
    low, high = score_interval([(0.0, 0.0)] * pairs)
    assert low == 0
    # Between what 0 of 2n independent games and 0 of n independent pairs exclude at 5 %.
    assert 1 - 0.05 ** (1 / (2 * pairs)) < high < 1 - 0.05 ** (1 / pairs)


def test_more_games_narrow_the_interval():
    widths = []
    for pairs in (5, 20, 80, 320):
        low, high = score_interval([(1.0, 0.0), (1.0, 0.5), (0.0, 0.0), (1.0, 1.0)] * pairs)
        widths.append(high - low)
    assert widths == sorted(widths, reverse=True)
    assert widths[0] == pytest.approx(2 * widths[1], rel=0.2)


def test_one_more_win_raises_both_ends():
    ends = [score_interval([(1.0, 0.0)] * won + [(0.0, 0.0)] * (50 - won)) for won in range(51)]
    assert [high for _, high in ends[:30]] == sorted(high for _, high in ends[:30])
    assert [low for low, _ in ends] == sorted(low for low, _ in ends)


def test_variance_is_that_of_pairs():
    # Each opening decided by the colour: the score of a pair never varies. Each opening
    # decided by the engine: it varies twice as much as that of single games.
    split = score_interval([(1.0, 0.0)] * 50)
    alike = score_interval([(1.0, 1.0), (0.0, 0.0)] * 25)
    apart = score_interval([(1.0,), (0.0,)] * 50)
    width_split, width_alike, width_apart = (high - low for low, high in (split, alike, apart))
    assert width_split < 0.5 * width_apart
    assert width_alike == pytest.approx(math.sqrt(2) * width_apart, rel=0.05)


def test_large_matches_agree_with_the_normal_approximation():
    generator = random.Random(0)
    games = generator.choices([1.0, 0.5, 0.0], [5, 2, 3], k=20000)
    mean = sum(games) / len(games)
    variance = sum((points - mean) ** 2 for points in games) / len(games)
    margin = 1.96 * math.sqrt(variance / len(games))
    low, high = score_interval(list(zip(games[::2], games[1::2])))
    assert low == pytest.approx(mean - margin, abs=0.0005)
    assert high == pytest.approx(mean + margin, abs=0.0005)


@pytest.mark.parametrize("score", [0.03, 0.1, 0.3, 0.5])
@pytest.mark.parametrize("pairs", [5, 50])
def test_coverage(score, pairs):
    """Of many matches of known strength, about 95 % or more have it in their interval."""
    generator = random.Random(f"{score} {pairs}")
    hits = 0
    for _ in range(1000):
        points = [float(generator.random() < score) for _ in range(2 * pairs)]
        low, high = score_interval(list(zip(points[::2], points[1::2])))
        hits += low <= score <= high
    assert hits >= 935
