"""Initialization near the identity."""

import numpy as np
import pytest

from pydlshogi.compat import chainer
from pydlshogi.layers.dirac import add_identity
from pydlshogi.network.registry import NETWORKS, make_network

RESIDUAL = (
    "policy_value_resnet",
    "policy_value_hand1x1_resnet",
    "policy_value_history_resnet",
)

#: Number of layers with as many planes out as in, outside of residual blocks; or of the blocks.
CHANGED = {name: 11 for name in NETWORKS} | dict.fromkeys(RESIDUAL, 4) | {"policy_value_small": 0}


def first(name):
    np.random.seed(1)
    return make_network(name)


def arrays(network):
    return {path: parameter.array for path, parameter in network.namedparams()}


@pytest.mark.long
@pytest.mark.parametrize("name", NETWORKS)
def test_layers_that_keep_the_number_of_planes_are_changed_and_no_others(name):
    before, network = arrays(first(name)), first(name)
    changed = add_identity(network)
    after = arrays(network)
    different = {path for path in before if not np.array_equal(before[path], after[path])}
    assert len(different) == changed == CHANGED[name]
    shape = (192,) if name in RESIDUAL else (192, 192, 3, 3)
    assert all(before[path].shape == shape for path in different)
    assert all(after[path].dtype == np.float32 for path in different)


def test_a_layer_of_zeros_passes_its_input_on():
    network = first("policy")
    x = np.random.rand(2, 192, 9, 9).astype("f")
    network.l5.W.array[...] = network.l5.b.array[...] = 0
    add_identity(network)
    np.testing.assert_allclose(network.l5(x).array, x * np.sqrt(10 / 11), rtol=1e-6)


def test_a_layer_gives_as_much_as_without_the_identity():
    network = first("policy")
    plain = network.l5.W.array.copy()
    add_identity(network)
    x = np.random.RandomState(2).randn(20, 192, 9, 9).astype("f")
    x[:, :, [0, -1]] = x[:, :, :, [0, -1]] = 0  # at the edge a filter sees less
    inner = (slice(None), slice(None), slice(2, -2), slice(2, -2))
    filtered, summed = (
        chainer.functions.convolution_2d(x, W, pad=1).array[inner]
        for W in (plain, network.l5.W.array)
    )
    assert filtered.var() == pytest.approx(x[inner].var(), rel=0.05)
    assert summed.var() == pytest.approx(x[inner].var(), rel=0.05)


@pytest.mark.long
@pytest.mark.parametrize("name", ["policy", "policy_bn"])
def test_more_of_the_input_reaches_the_last_hidden_layer(name):
    """Measured by the correlation of the first hidden layer's output with the last one's."""

    def correlation(network):
        with chainer.no_backprop_mode():
            h = network.l1(x)
            h = network.norm1(h) if name == "policy_bn" else h
            outputs = h.array, network.trunk(x).array
        deviations = [(y - y.mean(axis=0)) / (y.std(axis=0) + 1e-12) for y in outputs]
        return np.mean(deviations[0] * deviations[1])

    x = (np.random.RandomState(3).rand(16, 104, 9, 9) < 0.1).astype("f")
    plain, network = first(name), first(name)
    add_identity(network)
    assert correlation(network) > 0.4 > 4 * abs(correlation(plain))


@pytest.mark.parametrize("name", RESIDUAL)
def test_residual_blocks_start_as_the_identity_and_still_learn(name):
    network = first(name)
    add_identity(network)
    x = np.random.RandomState(4).rand(5, 192, 9, 9).astype("f")  # not negative, as after ReLU
    with chainer.using_config("train", True):
        y = network.b2(x)
        np.testing.assert_array_equal(y.array, x)
        network.cleargrads()
        chainer.functions.sum(y * np.random.RandomState(5).randn(*x.shape).astype("f")).backward()
    assert np.abs(network.b2.bn2.gamma.grad).min() > 0
