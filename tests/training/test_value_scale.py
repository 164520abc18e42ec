"""The correction of values by the results of games."""

import numpy as np
import pytest
from network_helpers import make_trained

from pydlshogi.compat import chainer
from pydlshogi.network.network import Network
from pydlshogi.network.value_kind import WinLogit
from pydlshogi.training.calibration import (
    ValueScale,
    ValueScaleError,
    apply_value_scale,
    check_network,
    fit_value_scale,
)


def sigmoid(x):
    return (1 + np.tanh(x / 2)) / 2


@pytest.mark.parametrize("factor", [0.6, 1.0, 1.7])
def test_the_factor_is_found(factor):
    random = np.random.RandomState(0)
    logits = random.normal(0, 2, 200_000)
    wins = (random.uniform(size=len(logits)) < sigmoid(factor * logits)).astype(float)
    wins[::7] = np.nan
    scale = fit_value_scale(sigmoid(logits), wins)
    assert scale.positions == np.count_nonzero(~np.isnan(wins))
    assert scale.factor == pytest.approx(factor, abs=0.02)
    assert scale.after <= scale.before


def test_no_other_correction_is_better():
    random = np.random.RandomState(1)
    logits = random.normal(0, 2, 5_000)
    wins = random.choice([0, 0.5, 1], len(logits), p=[0.4, 0.1, 0.5])
    wins[logits > 1] = 1
    scale = fit_value_scale(sigmoid(logits), wins)

    def loss(factor):
        corrected = factor * logits
        return (np.log1p(np.exp(corrected)) - wins * corrected).mean()

    best = loss(scale.factor)
    assert scale.after == pytest.approx(best, rel=1e-6)
    assert scale.before == pytest.approx(loss(1), rel=1e-6)
    for change in (0.01, -0.01):
        assert loss(scale.factor + change) > best


def test_where_one_side_wins_more_the_logits_still_get_a_factor_alone():
    random = np.random.RandomState(3)
    logits = random.normal(0, 2, 5_000)
    wins = (random.uniform(size=len(logits)) < sigmoid(logits - 1)).astype(float)
    network = make_trained("policy_value", channels=8)
    scale = fit_value_scale(sigmoid(logits), wins)
    assert scale.factor != pytest.approx(1, abs=0.01)
    network.l15_v.b.array[...] = 0.3
    before = {name: getattr(network.l15_v, name).array.copy() for name in ("W", "b")}
    apply_value_scale(network, scale)
    for name, array in before.items():
        scaled = getattr(network.l15_v, name).array
        np.testing.assert_allclose(scaled, array * scale.factor, rtol=1e-6)


def test_predictions_of_0_and_1_are_possible():
    scale = fit_value_scale(np.array([0.0, 1, 1, 0, 0.5, 0]), np.array([0, 1, 0, 1, 1.0, 0]))
    assert np.isfinite(scale).all()


@pytest.mark.parametrize(
    ("predicted", "wins", "reason"),
    [
        ([0.3, 0.7], [np.nan, np.nan], "wins and losses"),
        ([0.3, 0.7], [1, 1], "wins and losses"),
        ([0.9, 0.8, 0.2, 0.1, 0.4], [0, 0, 1, 1, 0], "do not predict"),
        ([0.5, 0.5, 0.5], [0, 1, 1], "do not predict"),
        ([0.9, 0.8, 0.2, 0.1], [0, 0, 1, 1], "do not predict"),
        ([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1], "predict every result"),
    ],
)
def test_results_that_cannot_be_fitted_are_refused(predicted, wins, reason):
    with pytest.raises(ValueScaleError, match=reason):
        fit_value_scale(np.array(predicted), np.array(wins, float))


@pytest.mark.parametrize(
    "name", ["value", "policy_value", "policy_value_history_bn", "policy_value_hand1x1_resnet"]
)
def test_a_network_computes_the_corrected_logits(name):
    network = make_trained(name, channels=8)
    check_network(network)
    planes = np.random.RandomState(2).randint(0, 2, (4, network.plane_num, 9, 9)).astype("f")

    def outputs():
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            found = network(planes)
        found = found if isinstance(found, tuple) else (found,)
        return [variable.array for variable in found]

    *policy, values = outputs()
    apply_value_scale(network, ValueScale(0.5, 100, 0.7, 0.6))
    *others, corrected = outputs()
    np.testing.assert_allclose(corrected, 0.5 * values, rtol=1e-5, atol=1e-6)
    for before, after in zip(policy, others):
        np.testing.assert_array_equal(before, after)


class Own(Network):
    """A network of a user that does not name the link."""

    value_kind = WinLogit


class Misnamed(Own):
    """A network of a user that names a link that it does not have."""

    value_output = "l99"


@pytest.mark.parametrize("network", [Own, Misnamed])
def test_a_network_that_names_no_link_is_refused(network):
    with pytest.raises(ValueScaleError, match=f"the class {network.__name__} does not say"):
        check_network(network())


def test_a_policy_and_a_value_without_a_logit_are_refused():
    with pytest.raises(ValueScaleError, match="no value head"):
        check_network(make_trained("policy", channels=8))
    with pytest.raises(ValueScaleError, match="does not say which link"):
        check_network(make_trained("policy_value_small"))
