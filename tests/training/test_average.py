"""The weighted mean of two networks."""

import numpy
import pytest
from network_helpers import make_trained

from pydlshogi.compat import chainer
from pydlshogi.features import make_input_planes
from pydlshogi.kifu.reading import read_positions
from pydlshogi.network.network import arrays_of
from pydlshogi.training.average import (
    AverageError,
    average,
    measure_statistics,
    normalizations_of,
)

NAME = "policy_value_history_bn"


@pytest.fixture(scope="module")
def positions(request):
    return read_positions(request.config.rootpath / "kifu" / "kifulist_test.txt")[0]


def copies(network):
    return {key: array.copy() for key, array in arrays_of(network).items()}


def two_networks(name=NAME):
    numpy.random.seed(1)
    network = make_trained(name, channels=8)
    numpy.random.seed(2)
    other = make_trained(name, channels=8)
    for array in arrays_of(other).values():
        if array.dtype.kind == "f":
            array *= 0.5
    return network, other


@pytest.mark.parametrize("weight", [0, 0.3, 1])
def test_each_array_is_the_weighted_mean(weight):
    network, other = two_networks()
    first, second = copies(network), copies(other)
    average(network, other, weight)
    for key, array in arrays_of(network).items():
        expected = weight * first[key] + (1 - weight) * second[key]
        numpy.testing.assert_allclose(array, expected, rtol=1e-6, atol=1e-7)
        numpy.testing.assert_array_equal(arrays_of(other)[key], second[key])


@pytest.mark.parametrize(
    ("name", "channels"), [(NAME, 16), ("policy_value_hand1x1_bn", 8), ("policy", 8)]
)
def test_other_networks_have_no_mean(name, channels):
    network, _ = two_networks()
    before = copies(network)
    with pytest.raises(AverageError, match="have no mean"):
        average(network, make_trained(name, channels=channels), 0.5)
    for key, array in arrays_of(network).items():
        numpy.testing.assert_array_equal(array, before[key])


def test_a_network_without_batch_normalization_has_no_statistics():
    assert not normalizations_of(make_trained("policy_value", channels=8))


def test_the_statistics_are_those_of_all_positions(device, positions):
    positions = positions[:96]
    network, _ = two_networks()
    network.to_device(device)
    links = normalizations_of(network)
    decays = [link.decay for link in links]
    measure_statistics(network, positions, device, batch_size=32)
    assert [link.decay for link in links] == decays
    # The first layer sees the planes themselves, so plain numpy can compute its statistics.
    network.to_device("@numpy")
    planes = make_input_planes(positions, plane_num=network.plane_num)
    bn = network.l1.bn
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        sums = network.l1.filtered(planes).array
    numpy.testing.assert_allclose(bn.avg_mean, sums.mean(axis=(0, 2, 3)), rtol=1e-3, atol=1e-4)
    parts = [sums[start::3] for start in range(3)]
    m = parts[0].size / parts[0].shape[1]
    expected = numpy.mean([part.var(axis=(0, 2, 3)) for part in parts], axis=0) * m / (m - 1)
    numpy.testing.assert_allclose(bn.avg_var, expected, rtol=1e-3)


def test_equal_calls_give_equal_statistics(device, positions):
    found = []
    for _ in range(2):
        network, _ = two_networks()
        network.to_device(device)
        measure_statistics(network, positions[:50], device, batch_size=20)
        network.to_device("@numpy")
        found.append(copies(network))
    for key, array in found[0].items():
        numpy.testing.assert_array_equal(array, found[1][key])
