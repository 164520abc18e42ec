"""What the tests of networks share."""

import numpy

from pydlshogi.compat import chainer
from pydlshogi.features import HAND_PLANES, PLANE_NUM
from pydlshogi.network.registry import make_network


def randomize(network, seed=1):
    """Gives a network numbers as different from its initial ones as training does."""
    random = numpy.random.RandomState(seed)
    for link in sorted_links(network):
        if isinstance(link, chainer.links.BatchNormalization):
            link.gamma.array[...] = random.uniform(-0.5, 2, link.gamma.shape)
            link.beta.array[...] = random.normal(0, 0.3, link.beta.shape)
            link.avg_mean[...] = random.normal(0, 0.3, link.avg_mean.shape)
            link.avg_var[...] = random.uniform(0.2, 1, link.avg_var.shape)
    for path, parameter in sorted(network.namedparams()):
        if path.endswith("/W"):  # without this, a deep network's output hardly varies
            parameter.array *= 1.4
        elif path.endswith("/b"):
            parameter.array[...] = random.normal(0, 0.3, parameter.shape)
    return network


def make_deep(name, blocks=90):
    """Makes a residual network of many narrow blocks whose outputs do not grow with the depth."""
    numpy.random.seed(1)
    network = make_network(name, channels=2, blocks=blocks)
    for n in range(1, blocks):
        network[f"b{n}"].bn2.gamma.array *= 0.1
    return network


def sorted_links(network):
    return [link for _, link in sorted(network.namedlinks(), key=lambda item: item[0])]


def narrow(name, channels=8):
    """Returns the sizes of a network that is as narrow as it can be, or of so many channels."""
    return {} if name == "policy_value_small" else {"channels": channels}


def make_trained(name, seed=1, **sizes):
    """Makes a network of a name with random numbers in all of its arrays."""
    numpy.random.seed(seed)
    return randomize(make_network(name, **sizes), seed)


def some_planes(count=3, seed=2, plane_num=PLANE_NUM):
    """Makes random planes with constant hand planes: (count, plane_num, 9, 9) float32."""
    planes = numpy.random.RandomState(seed).randint(0, 2, (count, plane_num, 9, 9))
    planes[:, HAND_PLANES] = planes[:, HAND_PLANES, :1, :1]
    return planes.astype(numpy.float32)


def outputs(network, planes):
    """Computes the outputs of a network as in play: a list of arrays."""
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        found = network(planes)
    return [v.array for v in (found if isinstance(found, tuple) else (found,))]


def assert_equal_outputs(found, expected):
    """Asserts that outputs are equal to 1e-4 of their spread, and that they do vary."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        assert one.shape == other.shape
        assert other.std(axis=0).mean() > 1e-2 * abs(other).mean()
        numpy.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4 * other.std())
