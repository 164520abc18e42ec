"""Files that earlier versions of this package wrote are converted and compute the same.

The networks of these versions are written here once more, from Chainer's links.
"""

import numpy
import pytest
from network_helpers import assert_equal_outputs, make_trained, outputs, randomize, some_planes

from pydlshogi.compat import chainer
from pydlshogi.network.fold import fold_for_play
from pydlshogi.network.layouts import recognize
from pydlshogi.network.model_file import (
    MARK,
    ModelFileError,
    load_model,
    load_network,
    save_model,
)
from pydlshogi.network.registry import NETWORKS, form_of, make_network, name_of

F = chainer.functions
L = chainer.links


class Normalized(chainer.Chain):
    def __init__(self, inputs):
        super().__init__()
        with self.init_scope():
            self.conv = L.Convolution2D(inputs, 192, 3, pad=1, nobias=True)
            self.bn = L.BatchNormalization(192)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)))


class Block(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.first = Normalized(192)
            self.conv = L.Convolution2D(192, 192, 3, pad=1, nobias=True)
            self.bn = L.BatchNormalization(192)

    def forward(self, x):
        return F.relu(x + self.bn(self.conv(self.first(x))))


class Hands(chainer.Chain):
    """First layer: 28 piece planes through 3×3 filters, 76 hand planes through 1×1 filters."""

    pieces_of = [*range(14), *range(52, 66)]
    hands_of = [*range(14, 52), *range(66, 104)]

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.pieces = L.Convolution2D(28, 192, 3, pad=1, nobias=True)
            self.hands = L.Convolution2D(76, 192, 1, nobias=True)
            self.bn = L.BatchNormalization(192)

    def forward(self, x):
        return F.relu(self.bn(self.pieces(x[:, self.pieces_of]) + self.hands(x[:, self.hands_of])))


class Earlier(chainer.Chain):
    def __init__(self, layers, value=False):
        super().__init__()
        self.depth = len(layers)
        with self.init_scope():
            for n, layer in enumerate(layers, 1):
                setattr(self, f"l{n}", layer)
            self.l13 = L.Convolution2D(192, 27, 1, nobias=True)
            self.l13_bias = L.Bias(shape=(2187,))
            if value:
                self.l13_v = L.Convolution2D(192, 27, 1)
                self.l14_v = L.Linear(2187, 256)
                self.l15_v = L.Linear(256, 1)

    def forward(self, x):
        for n in range(1, self.depth + 1):
            x = self[f"l{n}"](x)
        logits = self.l13_bias(F.reshape(self.l13(x), (-1, 2187)))
        if not hasattr(self, "l13_v"):
            return logits
        h = F.relu(self.l14_v(F.relu(self.l13_v(x))))
        return logits, self.l15_v(h)


def make_earlier(name):
    numpy.random.seed(8)
    if name == "policy_bn":
        network = Earlier([Normalized(104), *(Normalized(192) for _ in range(11))])
    elif name == "policy_hand1x1_bn":
        network = Earlier([Hands(), *(Normalized(192) for _ in range(11))])
    else:
        network = Earlier([Normalized(104), *(Block() for _ in range(5))], value=True)
    return randomize(network)


def save_earlier(path, network, name):
    arrays = chainer.serializers.npz.serialize(network)
    numpy.savez(path, **arrays, **({MARK: numpy.array(name)} if name else {}))


@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize("name", ["policy_bn", "policy_hand1x1_bn", "policy_value_resnet"])
def test_an_earlier_file_computes_the_same(tmp_path, name, marked):
    earlier, planes = make_earlier(name), some_planes()
    save_earlier(tmp_path / "model.npz", earlier, name if marked else None)
    network = load_network(tmp_path / "model.npz")
    assert name_of(network) == name
    expected = outputs(earlier, planes)
    assert_equal_outputs(outputs(network, planes), expected)
    assert_equal_outputs(outputs(fold_for_play(network), planes), expected)
    save_model(tmp_path / "today", network)
    assert_equal_outputs(outputs(load_network(tmp_path / "today"), planes), expected)


def test_an_earlier_policy_bn_file_is_an_initial_model_too(tmp_path):
    earlier, planes, network = make_earlier("policy_bn"), some_planes(), make_network("policy_bn")
    save_earlier(tmp_path / "model.npz", earlier, "policy_bn")
    load_model(tmp_path / "model.npz", network)
    assert_equal_outputs(outputs(network, planes), outputs(earlier, planes))
    # Training computes the same as well: a batch's normalization does not see the biases.
    found, expected = network(planes).array, earlier(planes).array
    numpy.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3 * expected.std())


def test_the_earlier_resnet_has_five_blocks_more_than_the_first_layer(tmp_path):
    save_earlier(tmp_path / "model.npz", make_earlier("policy_value_resnet"), "policy_value_resnet")
    network = load_network(tmp_path / "model.npz")
    assert (network.blocks, network.channels) == (6, 192)
    with pytest.raises(ModelFileError, match="not of the network policy_value_resnet.*b5/"):
        load_model(tmp_path / "model.npz", make_network("policy_value_resnet"))


@pytest.mark.parametrize("name", ["policy_value", "policy_value_small", "policy_hand1x1"])
def test_an_earlier_mark_on_todays_arrays_is_accepted(tmp_path, name):
    network, planes = make_trained(name), some_planes()
    save_earlier(tmp_path / "model.npz", network, name)
    loaded = load_network(tmp_path / "model.npz")
    assert name_of(loaded) == name
    for found, expected in zip(outputs(loaded, planes), outputs(network, planes)):
        numpy.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ["policy_bn", "policy_value_resnet"])
@pytest.mark.parametrize("key", ["l1/conv/W", "l1/bn/gamma", "l1/bn/avg_var", "l13/W"])
def test_a_damaged_earlier_file_is_refused_in_a_sentence(tmp_path, name, key):
    arrays = chainer.serializers.npz.serialize(make_earlier(name))
    for broken in (None, numpy.zeros(()), numpy.array("x"), numpy.zeros(7, numpy.float32)):
        content = {k: v for k, v in arrays.items() if k != key} | {MARK: numpy.array(name)}
        if broken is not None:
            content[key] = broken
        numpy.savez(tmp_path / "model.npz", **content)
        with pytest.raises(ModelFileError, match="is not of the network"):
            load_network(tmp_path / "model.npz")


def test_every_network_is_recognized_by_its_names():
    for name in NETWORKS:
        assert recognize(chainer.serializers.npz.serialize(make_network(name))) == form_of(name)
    for arrays in ({}, {"l1/W": 0}, {"l13/W": 0, "t": 0}):
        assert recognize(arrays) is None
