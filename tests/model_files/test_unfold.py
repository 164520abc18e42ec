"""Batch normalization put back into a network that was stored without it."""

import numpy
import pytest
from network_helpers import assert_equal_outputs, make_trained, outputs, some_planes

from pydlshogi.compat import chainer
from pydlshogi.model_files.fold import FoldError, fold
from pydlshogi.model_files.transfer import unfold
from pydlshogi.network.registry import UNFOLDABLE, make_network, name_of

SIZES = {"channels": 16}
PLANES = some_planes(70)

#: Networks that can be folded again.
REVERSIBLE = [name for name in UNFOLDABLE if "history" not in name]


def unfolded(name):
    """A network of that name, folded and unfolded again, and the one that it was made from."""
    source = make_trained(name, **SIZES)
    keep_value = source.value_kind is not None
    return source, unfold(fold(source, keep_value=keep_value), name, PLANES)


@pytest.mark.parametrize("name", REVERSIBLE)
def test_unfolding_reverses_folding(name):
    source, network = unfolded(name)
    assert name_of(network) == name
    other = some_planes(20, seed=9)
    assert_equal_outputs(outputs(network, other), outputs(source, other))


@pytest.mark.parametrize("name", REVERSIBLE)
def test_training_begins_with_the_same_outputs(name):
    source, network = unfolded(name)
    with chainer.using_config("train", True), chainer.no_backprop_mode():
        found = network(PLANES)
    found = [v.array for v in (found if isinstance(found, tuple) else (found,))]
    for one, other in zip(found, outputs(source, PLANES)):
        numpy.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3 * other.std())


@pytest.mark.parametrize("name", REVERSIBLE)
def test_every_filter_has_norm_1(name):
    _, network = unfolded(name)
    squares = (network.l1.pieces.W.array**2).sum((1, 2, 3)) + (network.l1.hands.W.array**2).sum(
        (1, 2, 3)
    )
    for found in (squares, (network.l7.conv.W.array**2).sum((1, 2, 3))):
        numpy.testing.assert_allclose(found, 1, rtol=1e-5)


def test_filters_of_hand_planes_are_exact_where_they_lie_on_the_board():
    source = make_trained("policy_value", **SIZES)
    network = unfold(source, "policy_value_hand1x1_bn", PLANES)
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        found, expected = network.l1(PLANES).array, source.l1(PLANES).array
    numpy.testing.assert_allclose(
        found[:, :, 1:-1, 1:-1], expected[:, :, 1:-1, 1:-1], rtol=1e-3, atol=1e-3
    )
    assert abs(found - expected).max() > 1e-2


def test_a_head_that_the_source_lacks_is_random():
    source = make_trained("policy", **SIZES)
    first, second = (unfold(source, "policy_value_hand1x1_bn", PLANES) for _ in range(2))
    assert not numpy.array_equal(first.l15_v.W.array, second.l15_v.W.array)
    numpy.testing.assert_array_equal(first.l13.W.array, source.l13.W.array)


def test_the_source_is_not_changed():
    source = make_trained("policy_value", **SIZES)
    before = {key: array.copy() for key, array in chainer.serializers.npz.serialize(source).items()}
    unfold(source, "policy_value_hand1x1_bn", PLANES)
    for key, array in chainer.serializers.npz.serialize(source).items():
        numpy.testing.assert_array_equal(array, before[key])


def test_a_dead_filter_stays_dead():
    source = make_trained("policy", **SIZES)
    source.l3.W.array[5], source.l3.b.array[5] = 0, -1
    network = unfold(source, "policy_hand1x1_bn", PLANES)
    assert all(numpy.isfinite(p.array).all() for p in network.params())
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        h = network.l3(network.l2(network.l1(PLANES))).array
    assert (h[:, 5] == 0).all()


def test_a_residual_network_is_refused():
    with pytest.raises(FoldError):
        unfold(make_network("policy_value_resnet"), "policy_value_hand1x1_bn", PLANES)


def test_a_network_with_a_history_first_ignores_it():
    source = make_trained("policy_value", **SIZES)
    without = unfold(source, "policy_value_hand1x1_bn", PLANES)
    network = unfold(source, "policy_value_history_bn", PLANES)
    history = numpy.random.RandomState(4).randint(0, 2, (len(PLANES), 2, 9, 9))
    planes = numpy.concatenate([PLANES, history.astype(numpy.float32)], axis=1)
    assert_equal_outputs(outputs(network, planes), outputs(without, PLANES))
    assert (network.l1.recent.W.array == 0).all()
