"""What holds of every network, and what each relative of the book's is to compute."""

import re

import numpy as np
import pytest

from pydlshogi.compat import chainer
from pydlshogi.features import (
    HAND_PLANES,
    LABEL_NUM,
    PIECE_PLANES,
    PLANE_NUM,
    PLY_PLANE_NUM,
    make_input_planes,
)
from pydlshogi.network.cpu.linear import Linear
from pydlshogi.network.layers import NormalizedConvolution, ResidualBlock
from pydlshogi.network.policy import PolicyNetwork
from pydlshogi.network.policy_hand1x1 import PolicyHand1x1Network, PolicyHand1x1UnpoolNetwork
from pydlshogi.network.registry import NETWORKS, UnknownNetwork, make_network, name_of
from pydlshogi.positions import POSITION

F = chainer.functions
L = chainer.links
CPU = chainer.get_device("@numpy")
to_cpu = chainer.backends.cuda.to_cpu

PARAMETERS = {
    "policy": 3_838_923,
    "policy_bn": 3_838_923 + 12 * 192,  # gamma and beta in place of a bias
    "policy_hand1x1": 3_838_923 - 8 * 76 * 192,
    "policy_hand1x1_unpool": 3_838_923 - 8 * 76 * 192,
    "policy_hand1x1_bn": 3_838_923 - 8 * 76 * 192 + 12 * 192,
    "policy_hand1x1_ply": 3_838_923 - 8 * 76 * 192 + 8 * 192,
    "policy_value": 3_838_923 + (192 + 1) * 27 + (2187 + 1) * 256 + 257,
    "policy_value_resnet": (
        104 * 9 * 192 + 10 * 192 * 9 * 192 + 11 * 2 * 192  # trunk
        + 192 * 27 + 2187 + (192 + 1) * 27 + (2187 + 1) * 256 + 257  # heads
    ),
    "policy_value_small": (
        (104 * 9 + 1) * 32 + (32 * 9 + 1) * 64 + (64 * 9 + 1) * 128  # trunk
        + (128 + 1) * 8 + (648 + 1) * 256 + (256 + 1) * 2187  # policy
        + (128 + 1) * 4 + (324 + 1) * 128 + (128 + 1) * 64 + 65  # value
    ),
}  # fmt: skip


def make_positions(count, seed=0):
    """Records with random pieces, hands, results and move numbers."""
    random = np.random.RandomState(seed)
    positions = np.zeros(count, POSITION)
    occupied = random.rand(count, 81) < 0.4
    positions["board"] = np.where(occupied, random.randint(1, 29, (count, 81)), 0)
    positions["hands"] = random.randint(0, 3, (count, 14))
    positions["label"] = random.randint(0, LABEL_NUM, count)
    positions["result"] = random.randint(0, 4, count)
    positions["ply"] = random.randint(1, 200, count)
    return positions


def make(name, seed=1, convolution="auto", device=None):
    np.random.seed(seed)
    network = make_network(name, convolution)
    return network if device is None else network.to_device(device)


def planes_for(network, positions):
    """The planes that a network takes, where it is."""
    return network.device.send(make_input_planes(positions, ply=network.ply))


def evaluate(network, positions):
    """Logits and, of a network with a value head, values, as in play."""
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        outputs = network(planes_for(network, positions))
    return [to_cpu(v.array) for v in (outputs if isinstance(outputs, tuple) else (outputs,))]


def loss_of(network, positions):
    """A loss that depends on every parameter."""
    outputs = network(planes_for(network, positions))
    logits, *values = outputs if isinstance(outputs, tuple) else (outputs,)
    labels = network.device.send(positions["label"].astype(np.int32))
    loss = F.softmax_cross_entropy(logits, labels)
    for value in values:
        wins = network.device.send(np.linspace(0, 1, len(positions), dtype=np.float32))
        loss += F.mean(network.value_kind.losses(value, wins))
    return loss


@pytest.mark.parametrize("name", NETWORKS)
def test_names_shapes_and_sizes(name):
    network = make(name)
    assert name_of(network) == name
    assert network.count_params() == PARAMETERS[name]
    logits, *values = evaluate(network, make_positions(3))
    assert (logits.shape, logits.dtype) == ((3, LABEL_NUM), np.float32)
    assert len(values) == (network.value_kind is not None) == name.startswith("policy_value")
    for value in values:
        assert (value.shape, value.dtype) == ((3,), np.float32)
        probabilities = network.value_kind.win_probabilities(value)
        assert ((probabilities > 0) & (probabilities < 1)).all()


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(UnknownNetwork, match=re.escape(", ".join(NETWORKS))):
        make_network("policy_value_huge")
    assert name_of(L.Linear(2, 2)) is None


@pytest.mark.parametrize("name", NETWORKS)
def test_in_play_a_position_does_not_depend_on_the_others(device, name):
    network, positions = make(name, device=device), make_positions(4)
    together = evaluate(network, positions)
    for number in range(4):
        for all_of_them, alone in zip(together, evaluate(network, positions[number : number + 1])):
            np.testing.assert_allclose(alone[0], all_of_them[number], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", NETWORKS)
def test_our_layers_learn_as_chainers_own_do(device, name):
    positions = make_positions(4)
    ours = make(name, convolution="winograd", device=device)
    theirs = make(name, convolution="chainer")
    for network in (ours, theirs):
        network.cleargrads()
        loss_of(network, positions).backward()
    expected = dict(theirs.namedparams())
    for path, parameter in ours.namedparams():
        np.testing.assert_array_equal(to_cpu(parameter.array), to_cpu(expected[path].array))
        gradient = to_cpu(expected[path].grad)
        error = np.linalg.norm(to_cpu(parameter.grad) - gradient)
        # A square whose value is 0 but for rounding may pass ReLU in one and not in the other.
        assert error <= 0.05 * np.linalg.norm(gradient) + 1e-6, path


def test_every_network_learns_a_few_positions(device):
    positions = make_positions(8)
    for name in ("policy_bn", "policy_hand1x1_unpool", "policy_hand1x1_ply", "policy_value_small"):
        network = make(name, device=device)
        optimizer = chainer.optimizers.SGD(lr=0.05).setup(network)
        first = float(loss_of(network, positions).array)
        for _ in range(8):
            optimizer.update(loss_of, network, positions)
        assert float(loss_of(network, positions).array) < first - 0.01, name


# Hand planes through 1×1 filters


def test_both_forms_compute_the_same_function_from_the_same_parameters(device):
    ksize1 = PolicyHand1x1Network()
    unpooled = PolicyHand1x1UnpoolNetwork()
    paths = [path for path, _ in sorted(ksize1.namedparams())]
    assert paths == [path for path, _ in sorted(unpooled.namedparams())]
    assert "/l1/hands/W" in paths
    unpooled.copyparams(ksize1)
    hands = np.random.rand(2, len(HAND_PLANES), 1, 1).astype("f") * np.ones((9, 9), "f")
    stretched, filtered = unpooled.l1.uniform(hands), ksize1.l1.uniform(hands)
    assert stretched.shape == filtered.shape == (2, 192, 9, 9)
    np.testing.assert_allclose(stretched.array, filtered.array, atol=1e-5)
    unpooled.to_device(device)
    positions = make_positions(5)
    (one,), (other,) = evaluate(ksize1, positions), evaluate(unpooled, positions)
    np.testing.assert_allclose(one, other, atol=1e-5)
    gradients = []
    for network in (ksize1, unpooled):
        network.cleargrads()
        loss_of(network, positions).backward()
        gradients.append({path: to_cpu(p.grad) for path, p in network.namedparams()})
    for path in paths:
        error = np.linalg.norm(gradients[0][path] - gradients[1][path])
        assert error < 0.02 * np.linalg.norm(gradients[0][path]), path


@pytest.mark.parametrize("name", ["policy_hand1x1", "policy_hand1x1_unpool", "policy_hand1x1_ply"])
def test_the_first_layer_is_that_of_3x3_filters_that_see_hands_in_their_middle_only(device, name):
    network = make(name)
    inputs = PLANE_NUM + (PLY_PLANE_NUM if network.ply else 0)
    W = np.zeros((192, inputs, 3, 3), np.float32)
    W[:, PIECE_PLANES] = network.l1.pieces.W.array
    others = [plane for plane in range(inputs) if plane not in PIECE_PLANES]
    W[:, others, 1:2, 1:2] = network.l1.hands.W.array
    planes = make_input_planes(make_positions(3), ply=network.ply)
    expected = F.relu(F.convolution_2d(planes, W, network.l1.pieces.b, pad=1))
    network.to_device(device)
    found = network.l1(device.send(planes))
    np.testing.assert_allclose(to_cpu(found.array), expected.array, atol=1e-4)


def test_hand_planes_are_those_that_are_the_same_everywhere():
    planes = make_input_planes(make_positions(50))
    assert sorted([*PIECE_PLANES, *HAND_PLANES]) == list(range(PLANE_NUM))
    uniform = (planes == planes[:, :, :1, :1]).all(axis=(0, 2, 3))
    assert list(np.flatnonzero(uniform)) == list(HAND_PLANES)


def test_the_move_number_reaches_the_network(device):
    network = make("policy_hand1x1_ply", device=device)
    positions = make_positions(1).repeat(3)
    positions["ply"] = [5, 6, 25]
    (logits,) = evaluate(network, positions)
    np.testing.assert_allclose(logits[0], logits[1], atol=1e-5)
    assert abs(logits[0] - logits[2]).max() > 1e-3


# Batch normalization


@pytest.mark.parametrize("name", ["policy_bn", "policy_hand1x1_bn", "policy_value_resnet"])
def test_running_statistics_move_in_training_only(device, name):
    network, positions = make(name, device=device), make_positions(4)
    before = chainer.serializers.npz.serialize(network)
    before = {key: np.copy(value) for key, value in before.items()}
    running = [key for key in before if "/avg_" in key]
    assert len(running) == 2 * (11 if name == "policy_value_resnet" else 12)
    evaluate(network, positions)
    after_play = chainer.serializers.npz.serialize(network)
    for key, value in before.items():
        np.testing.assert_array_equal(value, after_play[key])
    loss_of(network, positions)
    after_training = chainer.serializers.npz.serialize(network)
    for key in running:
        assert (after_training[key] != before[key]).any(), key


def test_a_normalized_convolution_is_its_definition(device):
    np.random.seed(3)
    layer = NormalizedConvolution(7, 5, "auto")
    layer.bn.gamma.array[...] = np.random.rand(5) + 0.5
    layer.bn.beta.array[...] = np.random.randn(5)
    x = np.random.randn(4, 7, 9, 9).astype(np.float32)
    h = F.convolution_2d(x, layer.conv.W, pad=1).array.astype(np.float64)
    mean, variance = h.mean(axis=(0, 2, 3)), h.var(axis=(0, 2, 3))

    def normalized(mean, variance):
        gamma, beta = layer.bn.gamma.array, layer.bn.beta.array
        scale = gamma / np.sqrt(variance + layer.bn.eps)
        y = (h - mean[:, None, None]) * scale[:, None, None] + beta[:, None, None]
        return np.maximum(y, 0)

    expected = normalized(mean, variance)
    layer.to_device(device)
    x = device.send(x)
    np.testing.assert_allclose(to_cpu(layer(x).array), expected, atol=1e-4)
    with chainer.using_config("train", False):
        found = to_cpu(layer(x).array)
    layer.to_device("@numpy")
    running = normalized(layer.bn.avg_mean, layer.bn.avg_var)
    np.testing.assert_allclose(found, running, atol=1e-4)


def test_a_residual_block_adds_to_what_went_in(device):
    np.random.seed(4)
    block = ResidualBlock(6, "auto").to_device(device)
    block.bn.gamma.array[...] = 0  # the second convolution is put to silence
    x = np.random.randn(3, 6, 9, 9).astype(np.float32)
    np.testing.assert_array_equal(to_cpu(block(device.send(x)).array), np.maximum(x, 0))


# Values


def test_a_linear_layer_is_chainers(device):
    np.random.seed(5)
    x = np.random.randn(6, 3, 9, 9).astype(np.float32)
    gy = np.random.randn(6, 4).astype(np.float32)
    for relu in (False, True):
        ours = Linear(243, 4, relu=relu)
        plain = L.Linear(243, 4, initialW=ours.W.array, initial_bias=ours.b.array)
        results = []
        for layer, place in ((ours, device), (plain, CPU)):
            layer.to_device(place)
            variable = chainer.Variable(place.send(x))
            y = layer(variable)
            if relu and layer is plain:
                y = F.relu(y)
            F.sum(y * place.send(gy)).backward()
            found = [y.array, layer.W.grad, layer.b.grad, variable.grad]
            results.append([to_cpu(array) for array in found])
        for one, other in zip(*results):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


def test_the_loss_of_a_win_logit_is_sigmoid_cross_entropy_with_draws_between(device):
    kind = make("policy_value").value_kind
    values = np.array([-30, -1, 0, 2, 100], np.float32)
    sent, ones = device.send(values), device.xp.ones(5, np.float32)
    lost, won, drawn = (
        to_cpu(kind.losses(chainer.Variable(sent), share * ones).array) for share in (0, 1, 0.5)
    )
    for loss, result in ((lost, 0), (won, 1)):
        labels = np.full(5, result, np.int32)
        expected = F.sigmoid_cross_entropy(values, labels, reduce="no").array
        np.testing.assert_allclose(loss, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(drawn, (lost + won) / 2, rtol=1e-5)
    probabilities = 1 / (1 + np.exp(-values))
    np.testing.assert_allclose(to_cpu(kind.win_probabilities(sent)), probabilities, atol=1e-6)


def test_the_loss_of_an_expected_result_is_the_squared_error_of_minus_one_to_one(device):
    kind = make("policy_value_small").value_kind
    values = device.send(np.array([-1, 0, 0.5, 1], np.float32))
    wins = device.send(np.array([0, 0.5, 1, 0], np.float32))
    assert list(kind.losses(values, wins).array) == [0, 0, 0.25, 4]
    assert list(kind.win_probabilities(values)) == [0, 0.5, 0.75, 1]


def test_two_heads_stand_on_the_books_trunk():
    class ValueHead(chainer.Chain):
        def __init__(self):
            super().__init__()
            with self.init_scope():
                self.l13_v = L.Convolution2D(192, 27, ksize=1)
                self.l14_v = L.Linear(9 * 9 * 27, 256)
                self.l15_v = L.Linear(256, 1)

    shapes = {
        path: p.shape for path, p in [*PolicyNetwork().namedparams(), *ValueHead().namedparams()]
    }
    assert {path: p.shape for path, p in make("policy_value").namedparams()} == shapes
