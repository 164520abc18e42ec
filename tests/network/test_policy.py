from pathlib import Path

import numpy as np
import pytest

from pydlshogi.compat import chainer
from pydlshogi.features import LABEL_NUM, PLANE_NUM
from pydlshogi.layers.convolution import using_convolution
from pydlshogi.model_files.model_file import load_model, save_model
from pydlshogi.network.policy import PolicyNetwork, ch

F = chainer.functions
L = chainer.links
CPU = chainer.get_device("@numpy")
to_cpu = chainer.backends.cuda.to_cpu

DATA = Path(__file__).parents[1] / "data"


class PlainPolicyNetwork(chainer.Chain):
    """The network of SPEC.md, made of Chainer's links only."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l1 = L.Convolution2D(104, 192, ksize=3, pad=1)
            for n in range(2, 13):
                setattr(self, f"l{n}", L.Convolution2D(192, 192, ksize=3, pad=1))
            self.l13 = L.Convolution2D(192, 27, ksize=1, nobias=True)
            self.l13_bias = L.Bias(shape=(9 * 9 * 27,))

    def forward(self, x):
        for n in range(1, 13):
            x = F.relu(self[f"l{n}"](x))
        return self.l13_bias(F.reshape(self.l13(x), (len(x), 9 * 9 * 27)))


def golden_weights(network):
    """Fills a network with the weights of the golden logits."""
    random = np.random.RandomState(20180824)
    for _, parameter in sorted(network.namedparams()):
        shape = parameter.shape
        fan = np.prod(shape[1:])
        scale = np.sqrt(2 / fan) if len(shape) > 1 else 0.01
        parameter.array[...] = (random.standard_normal(shape) * scale).astype(np.float32)
    return network


def golden_planes():
    with np.load(DATA / "features.npz") as data:
        bits = np.unpackbits(data["planes"][:16], axis=1)[:, : PLANE_NUM * 81]
        return bits.reshape(16, PLANE_NUM, 9, 9).astype(np.float32), data["logits16"]


def logits(network, x):
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        return to_cpu(network(network.device.send(x)).array)


@pytest.mark.parametrize("convolution", ["auto", "winograd", "chainer"])
def test_golden_logits(device, convolution):
    planes, expected = golden_planes()
    network = golden_weights(PolicyNetwork()).to_device(device)
    with using_convolution(convolution):
        together = logits(network, planes)
        # Another method computes a single position, as in play.
        single = np.concatenate([logits(network, planes[n : n + 1]) for n in range(4)])
    np.testing.assert_allclose(together, expected, atol=1e-4)
    np.testing.assert_allclose(single, expected[:4], atol=1e-4)


def test_parameters_are_the_books():
    network = PolicyNetwork()
    shapes = {path: parameter.shape for path, parameter in network.namedparams()}
    plain = {path: parameter.shape for path, parameter in PlainPolicyNetwork().namedparams()}
    assert shapes == plain
    assert len(shapes) == 26
    assert sum(np.prod(shape) for shape in shapes.values()) == 3_838_923


def test_initial_weights_are_those_of_chainers_link():
    for seed in (0, 1):
        np.random.seed(seed)
        ours = PolicyNetwork()
        np.random.seed(seed)
        plain = PlainPolicyNetwork()
        for path, parameter in ours.namedparams():
            np.testing.assert_array_equal(parameter.array, dict(plain.namedparams())[path].array)


@pytest.mark.parametrize(
    ("saved_from", "loaded_into"),
    [(PolicyNetwork, PlainPolicyNetwork), (PlainPolicyNetwork, PolicyNetwork)],
)
def test_model_files_go_both_ways(tmp_path, saved_from, loaded_into):
    planes, expected = golden_planes()
    path = tmp_path / "model"
    save_model(path, golden_weights(saved_from()))
    network = loaded_into()
    load_model(path, network)
    np.testing.assert_allclose(logits(network, planes), expected, atol=1e-4)


def test_shape_of_the_logits():
    network = PolicyNetwork()
    for batch in (1, 3):
        x = np.zeros((batch, PLANE_NUM, 9, 9), np.float32)
        y = network(x)
        assert y.shape == (batch, LABEL_NUM)
        assert y.dtype == np.float32


@pytest.mark.long
@pytest.mark.parametrize("convolution", ["auto", "winograd"])
def test_gradients_equal_the_plain_networks(device, convolution):
    planes, labels = golden_planes()[0], np.arange(16, dtype=np.int32) * 100
    gradients = []
    for network, place in ((PolicyNetwork(), device), (PlainPolicyNetwork(), CPU)):
        golden_weights(network).to_device(place)
        network.cleargrads()
        with using_convolution(convolution):
            F.softmax_cross_entropy(network(place.send(planes)), place.send(labels)).backward()
        gradients.append({path: to_cpu(p.grad) for path, p in network.namedparams()})
    for path, expected in gradients[1].items():
        error = np.linalg.norm(gradients[0][path] - expected) / np.linalg.norm(expected)
        # By rounding, a value near 0 may pass ReLU in only one of the two.
        assert error < 1e-2, path


def test_hidden_layers_have_192_filters():
    assert ch == 192
    assert PolicyNetwork().l7.W.shape == (ch, ch, 3, 3)
