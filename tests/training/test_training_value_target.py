"""The target of the value head."""

import math

import numpy
import pytest
from training_helpers import SmallValueNetwork

from pydlshogi.positions import DRAW, LOSS, NO_EVALUATION, POSITION, UNKNOWN, WIN
from pydlshogi.training.datasets import warn_of_missing_targets
from pydlshogi.training.recipe import Recipe
from pydlshogi.training.targets import ValueTarget


def records(results, evaluations):
    positions = numpy.zeros(len(results), POSITION)
    positions["result"], positions["evaluation"] = results, evaluations
    return positions


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def test_by_default_the_target_is_the_result():
    target = ValueTarget()(records([WIN, LOSS, DRAW, UNKNOWN], [-500, 500, 30_000, 0]))
    assert target.dtype == numpy.float32
    numpy.testing.assert_array_equal(target, [1, 0, 0.5, numpy.nan])


def test_the_target_is_the_weighted_mean_of_result_and_evaluation():
    target = ValueTarget(0.25, 400)(records([WIN, LOSS, DRAW], [200, -600, 0]))
    expected = [0.25 + 0.75 * sigmoid(0.5), 0.75 * sigmoid(-1.5), 0.5]
    numpy.testing.assert_allclose(target, expected, rtol=1e-6)


def test_the_opponent_has_the_complement():
    own = ValueTarget(0.3, 326)(records([WIN, LOSS, DRAW], [120, -77, 3000]))
    others = ValueTarget(0.3, 326)(records([LOSS, WIN, DRAW], [-120, 77, -3000]))
    numpy.testing.assert_allclose(own + others, 1, rtol=1e-6)


def test_without_an_evaluation_the_result_is_the_target():
    target = ValueTarget(0.0, 326)(records([WIN, UNKNOWN], [NO_EVALUATION] * 2))
    numpy.testing.assert_array_equal(target, [1, numpy.nan])


def test_without_a_result_the_evaluation_is_the_target():
    target = ValueTarget(0.5, 326)(records([UNKNOWN], [326]))
    assert target[0] == pytest.approx(sigmoid(1))


@pytest.mark.parametrize(
    ("evaluations", "value_lambda", "warning"),
    [
        ([NO_EVALUATION, NO_EVALUATION], 0.5, "no training position has an evaluation"),
        ([0, 0], 0.5, "every training position has the evaluation 0 or none"),
        ([0, NO_EVALUATION], 0.0, "every training position has the evaluation 0 or none"),
        ([0, 1], 0.5, None),
        ([NO_EVALUATION, -1], 0.5, None),
        ([0, 0], 1.0, None),
    ],
)
def test_training_without_evaluations_warns_if_they_count(
    caplog, evaluations, value_lambda, warning
):
    positions = records([WIN, LOSS], evaluations)
    recipe = Recipe(value_lambda=value_lambda)
    warn_of_missing_targets(SmallValueNetwork(), recipe, positions)
    assert [line[: len(warning or "")] for line in caplog.messages] == [warning] * bool(warning)


@pytest.mark.parametrize("value_lambda", [0.0, 0.4, 1.0])
def test_the_largest_evaluations_stay_probabilities(value_lambda):
    target = ValueTarget(value_lambda, 1.0)(records([LOSS, WIN], [-30_000, 30_000]))
    numpy.testing.assert_array_equal(target, [0, 1])
