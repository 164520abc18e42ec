"""Calibration of a value head: the groups, their table and their picture."""

import numpy
import pytest

from pydlshogi.positions import DRAW, LOSS, NO_EVALUATION, POSITION, UNKNOWN, WIN
from pydlshogi.table import markdown, tsv
from pydlshogi.training.calibration import (
    BINS,
    as_table,
    calibrate,
    draw,
)

SCALE = 300.0


def make_games(results, evaluations=None):
    positions = numpy.zeros(len(results), POSITION)
    positions["result"] = results
    positions["evaluation"] = NO_EVALUATION if evaluations is None else evaluations
    return positions


def random_games(count, seed=0):
    """Predictions, and games that are won as often as predicted."""
    random = numpy.random.RandomState(seed)
    wins = random.rand(count)
    return wins, make_games(numpy.where(random.rand(count) < wins, WIN, LOSS))


def test_predictions_that_come_true_have_no_error():
    wins, games = random_games(200_000)
    *groups, whole = calibrate(wins, games, SCALE)
    assert len(groups) == BINS
    assert max(row.error for row in groups) < 0.02
    assert whole.error < 0.01


def test_predictions_that_are_too_sure_have_the_error_of_their_groups():
    wins = numpy.repeat([0.01, 0.99], 100)
    games = make_games(numpy.tile([LOSS, LOSS, WIN, WIN], 50))
    low, high, whole = calibrate(wins, games, SCALE)
    assert (low.low, low.high, high.low, high.high) == (0.0, 0.05, 0.95, 1.0)
    assert (low.positions, low.won, high.won) == (100, 0.5, 0.5)
    assert low.error == pytest.approx(0.49)
    # The groups' errors do not cancel each other, although their means do.
    assert whole.predicted == pytest.approx(whole.won)
    assert whole.error == pytest.approx(0.49)


def test_the_groups_divide_the_positions_in_any_order():
    wins, games = random_games(1000, seed=1)
    *groups, whole = bins = calibrate(wins, games, SCALE)
    assert sum(row.positions for row in groups) == whole.positions == 1000
    for quantity in ("predicted", "won"):
        weighted = sum(getattr(row, quantity) * row.positions for row in groups) / 1000
        assert weighted == pytest.approx(getattr(whole, quantity))
    assert all(row.low <= row.predicted <= row.high for row in groups)
    order = numpy.random.RandomState(2).permutation(1000)
    again = calibrate(wins[order], games[order], SCALE)
    assert markdown(*as_table(again)) == markdown(*as_table(bins))


def test_certain_predictions_belong_to_the_outer_groups():
    low, high, _ = calibrate(numpy.array([0.0, 1.0]), make_games([LOSS, WIN]), SCALE)
    assert (low.low, high.high, low.error, high.error) == (0.0, 1.0, 0.0, 0.0)


def test_draws_count_one_half_and_unknown_results_not_at_all():
    games = make_games([WIN, DRAW, UNKNOWN, LOSS])
    row, _ = calibrate(numpy.full(4, 0.52), games, SCALE)
    assert (row.positions, row.won) == (3, 0.5)
    assert calibrate(numpy.full(2, 0.5), make_games([UNKNOWN, UNKNOWN]), SCALE) == []


def test_evaluations_are_compared_where_there_are_some():
    wins = numpy.array([0.51, 0.52, 0.91])
    games = make_games([WIN, LOSS, WIN], [300, NO_EVALUATION, NO_EVALUATION])
    middle, high, whole = bins = calibrate(wins, games, SCALE)
    assert middle.evaluated == whole.evaluated == pytest.approx(1 / (1 + numpy.exp(-1)))
    assert numpy.isnan(high.evaluated)
    head, _, first, *_ = markdown(*as_table(bins)).splitlines()
    assert head == "| winning probability | positions | predicted | won | error | evaluation |"
    assert first == "| 0.50-0.55 | 2 | 0.5150 | 0.5000 | 0.0150 | 0.7311 |"
    without = calibrate(wins, make_games([WIN, LOSS, WIN]), SCALE)
    assert "evaluation" not in tsv(*as_table(without))


def test_the_picture_shows_the_groups():
    figure = pytest.importorskip("matplotlib.figure").Figure()
    wins, games = random_games(500)
    games["evaluation"][::2] = 100
    bins = calibrate(wins, games, SCALE)
    draw(figure, bins)
    above, below = figure.axes
    diagonal, won, evaluated = above.lines
    numpy.testing.assert_array_equal(diagonal.get_xydata(), [[0, 0], [1, 1]])
    assert won.get_ydata().tolist() == [row.won for row in bins[:-1]]
    assert evaluated.get_ydata().tolist() == [row.evaluated for row in bins[:-1]]
    assert [bar.get_height() for bar in below.patches] == [row.positions for row in bins[:-1]]
    assert "500 positions" in above.get_title()
