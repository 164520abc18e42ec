"""Properties of every network, and the computation of each layer."""

import inspect
import re

import numpy as np
import pytest
from network_helpers import narrow

from pydlshogi.compat import chainer
from pydlshogi.features import (
    HAND_PLANES,
    LABEL_NUM,
    PIECE_PLANES,
    PLANE_NUM,
    make_input_planes,
)
from pydlshogi.layers.blocks import NormalizedConvolution, ResidualBlock
from pydlshogi.layers.convolution import using_convolution
from pydlshogi.layers.linear import Linear
from pydlshogi.model_files.model_file import load_network, save_model
from pydlshogi.network.network import split_output
from pydlshogi.network.policy_hand1x1 import PolicyHand1x1Network, PolicyHand1x1UnpoolNetwork
from pydlshogi.network.registry import (
    NETWORKS,
    SIZES,
    UnknownNetwork,
    UnknownSize,
    make_network,
    name_of,
    network_class,
    sizes_of,
)
from pydlshogi.network.value_kind import ExpectedResult, WinLogit
from pydlshogi.positions import POSITION

F = chainer.functions
L = chainer.links
CPU = chainer.get_device("@numpy")
to_cpu = chainer.backends.cuda.to_cpu

PARAMETERS = {
    "policy": 3_838_923,
    "policy_bn": 3_838_923 + 12 * 2 * 192,  # gamma and beta
    "policy_hand1x1": 3_838_923 - 8 * 76 * 192,
    "policy_hand1x1_unpool": 3_838_923 - 8 * 76 * 192,
    "policy_hand1x1_bn": 3_838_923 - 8 * 76 * 192 + 12 * 192,
    "value": 3_838_923 - 192 * 27 - 2187 + (192 + 1) * 27 + (2187 + 1) * 256 + 257,
    "policy_value": 3_838_923 + (192 + 1) * 27 + (2187 + 1) * 256 + 257,
    "policy_value_resnet": (
        (104 * 9 + 1) * 192 + 8 * (192 * 9 + 2) * 192  # trunk
        + 192 * 27 + 2187 + (192 + 3) * 27 + (2187 + 1) * 256 + 257  # heads
    ),
    "policy_value_hand1x1_bn": (
        3_838_923 - 8 * 76 * 192 + 12 * 192  # policy
        + (192 + 1) * 27 + (2187 + 1) * 256 + 257
    ),
    "policy_value_hand1x1_resnet": (
        (28 * 9 + 76 + 2) * 192 + 8 * (192 * 9 + 2) * 192  # trunk
        + 192 * 27 + 2187 + (192 + 3) * 27 + (2187 + 1) * 256 + 257  # heads
    ),
    "policy_value_history_bn": (
        3_838_923 - 8 * 76 * 192 + 12 * 192 + 2 * 9 * 192  # policy
        + (192 + 1) * 27 + (2187 + 1) * 256 + 257
    ),
    "policy_value_history_resnet": (
        (30 * 9 + 76 + 2) * 192 + 8 * (192 * 9 + 2) * 192  # trunk
        + 192 * 27 + 2187 + (192 + 3) * 27 + (2187 + 1) * 256 + 257  # heads
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


def make(name, seed=1, device=None, **sizes):
    np.random.seed(seed)
    network = make_network(name, **sizes)
    return network if device is None else network.to_device(device)


def planes_for(network, positions):
    """The input planes of positions, on the network's device."""
    return network.device.send(make_input_planes(positions, plane_num=network.plane_num))


def evaluate(network, positions):
    """Logits, values or both, as in play."""
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        outputs = split_output(network, network(planes_for(network, positions)))
    return [to_cpu(v.array) for v in outputs if v is not None]


def loss_of(network, positions):
    """A loss that depends on every parameter."""
    logits, values = split_output(network, network(planes_for(network, positions)))
    loss = 0
    if logits is not None:
        labels = network.device.send(positions["label"].astype(np.int32))
        loss += F.softmax_cross_entropy(logits, labels)
    if values is not None:
        wins = network.device.send(np.linspace(0, 1, len(positions), dtype=np.float32))
        loss += F.mean(network.value_kind.losses(values, wins))
    return loss


@pytest.mark.parametrize("name", NETWORKS)
def test_names_shapes_and_sizes(name):
    network = make(name)
    assert name_of(network) == name
    assert network.count_params() == PARAMETERS[name]
    assert network.has_policy == name.startswith("policy")
    assert (network.value_kind is not None) == ("value" in name)
    outputs = evaluate(network, make_positions(3))
    shapes = [(3, LABEL_NUM)] * network.has_policy + [(3, 1)] * ("value" in name)
    assert [output.shape for output in outputs] == shapes
    assert all(output.dtype == np.float32 for output in outputs)
    if "value" in name:
        probabilities = network.value_kind.win_probabilities(outputs[-1])
        assert probabilities.shape == (3,)
        assert ((probabilities > 0) & (probabilities < 1)).all()


@pytest.mark.parametrize("name", NETWORKS)
def test_the_sizes_that_a_user_can_choose_are_those_of_the_class(name):
    parameters = inspect.signature(network_class(name)).parameters
    assert set(sizes_of(name)) == set(parameters)
    assert set(sizes_of(name)) <= set(SIZES)


def test_a_size_that_the_network_does_not_have_is_named():
    with pytest.raises(UnknownSize, match="policy_value_small.*'channels'"):
        make_network("policy_value_small", channels=8)
    with pytest.raises(UnknownSize, match="policy .*'blocks'"):
        make_network("policy", blocks=8)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(UnknownNetwork, match=re.escape(", ".join(NETWORKS))):
        make_network("policy_value_huge")
    assert name_of(L.Linear(2, 2)) is None


@pytest.mark.parametrize("name", NETWORKS)
def test_in_play_a_position_does_not_depend_on_the_others(device, name):
    network, positions = make(name, device=device, **narrow(name, 32)), make_positions(4)
    together = evaluate(network, positions)
    for number in range(4):
        for all_of_them, alone in zip(together, evaluate(network, positions[number : number + 1])):
            np.testing.assert_allclose(alone[0], all_of_them[number], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", NETWORKS)
def test_our_layers_learn_as_chainers_own_do(device, name):
    positions = make_positions(4)
    sizes = narrow(name, 32)
    ours, theirs = make(name, device=device, **sizes), make(name, **sizes)
    for network, method in ((ours, "winograd"), (theirs, "chainer")):
        network.cleargrads()
        with using_convolution(method):
            loss_of(network, positions).backward()
    expected = dict(theirs.namedparams())
    for path, parameter in ours.namedparams():
        np.testing.assert_array_equal(to_cpu(parameter.array), to_cpu(expected[path].array))
        gradient = to_cpu(expected[path].grad)
        error = np.linalg.norm(to_cpu(parameter.grad) - gradient)
        # By rounding, a value near 0 may pass ReLU in only one of the two.
        # Batch normalization subtracts a bias again: the gradient of such a bias is rounding.
        rounding = 1e-5 if np.linalg.norm(gradient) < 1e-5 and path.endswith("/b") else 1e-6
        assert error <= 0.05 * np.linalg.norm(gradient) + rounding, path


@pytest.mark.long
def test_every_network_learns_a_few_positions(device):
    positions = make_positions(8)
    for name in ("policy_bn", "policy_hand1x1_unpool", "policy_value_resnet", "policy_value_small"):
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


@pytest.mark.parametrize("name", ["policy_hand1x1", "policy_hand1x1_unpool"])
def test_the_first_layer_is_that_of_3x3_filters_that_see_hands_in_their_middle_only(device, name):
    network = make(name)
    W = np.zeros((192, PLANE_NUM, 3, 3), np.float32)
    W[:, PIECE_PLANES] = network.l1.pieces.W.array
    others = [plane for plane in range(PLANE_NUM) if plane not in PIECE_PLANES]
    W[:, others, 1:2, 1:2] = network.l1.hands.W.array
    planes = make_input_planes(make_positions(3))
    expected = F.relu(F.convolution_2d(planes, W, network.l1.pieces.b, pad=1))
    network.to_device(device)
    found = network.l1(device.send(planes))
    np.testing.assert_allclose(to_cpu(found.array), expected.array, atol=1e-4)


def test_hand_planes_are_those_that_are_the_same_everywhere():
    planes = make_input_planes(make_positions(50))
    assert sorted([*PIECE_PLANES, *HAND_PLANES]) == list(range(PLANE_NUM))
    uniform = (planes == planes[:, :, :1, :1]).all(axis=(0, 2, 3))
    assert list(np.flatnonzero(uniform)) == list(HAND_PLANES)


# Batch normalization


@pytest.mark.parametrize(
    "name", ["policy_bn", "policy_hand1x1_bn", "policy_value_resnet", "policy_value_hand1x1_bn"]
)
def test_running_statistics_move_in_training_only(device, name):
    network, positions = make(name, device=device), make_positions(4)
    before = chainer.serializers.npz.serialize(network)
    before = {key: np.copy(value) for key, value in before.items()}
    running = [key for key in before if "/avg_" in key]
    assert len(running) == 2 * (9 if name == "policy_value_resnet" else 12)
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
    layer = NormalizedConvolution(7, 5)
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
    block = ResidualBlock(6).to_device(device)
    block.bn2.gamma.array[...] = 0  # so the convolutions add nothing
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


@pytest.mark.parametrize("kind", [WinLogit, ExpectedResult])
def test_losses_and_probabilities_of_a_column_are_those_of_a_row(device, kind):
    row = device.send(np.array([-0.9, 0.1, 0.5], np.float32))
    wins = device.send(np.array([0, 0.5, 1], np.float32))
    column = chainer.Variable(row[:, None])
    assert kind.losses(column, wins).shape == (3,)
    for function in (lambda v: kind.losses(v, wins).array, kind.win_probabilities):
        np.testing.assert_array_equal(to_cpu(function(column)), to_cpu(function(row)))


@pytest.mark.parametrize(
    "name, sizes",
    [
        ("policy_bn", {"channels": 32}),
        ("policy_value_hand1x1_bn", {"channels": 32}),
        ("policy_value_resnet", {"blocks": 3, "channels": 32}),
        ("policy_value_resnet", {"blocks": 1, "channels": 8}),
        ("policy_value_hand1x1_resnet", {"blocks": 11, "channels": 32}),
    ],
)
def test_a_network_of_another_size_computes_and_is_read_back_in_its_size(tmp_path, name, sizes):
    network, positions = make(name, **sizes), make_positions(2)
    save_model(tmp_path / "model", network)
    loaded = load_network(tmp_path / "model")
    assert {size: getattr(loaded, size) for size in sizes} == sizes
    assert loaded.count_params() == network.count_params() < make(name).count_params() / 2
    for one, other in zip(evaluate(network, positions), evaluate(loaded, positions)):
        np.testing.assert_array_equal(one, other)
