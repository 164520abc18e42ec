import concurrent.futures
import copy
import importlib
import sys
import threading
import types

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from pydlshogi.compat import chainer
from pydlshogi.layers.convolution import (
    CONVOLUTIONS,
    Convolution2D,
    convolution_2d,
    get_convolution,
    set_convolution,
    using_convolution,
)
from pydlshogi.layers.cpu import direct, pointwise, threads, winograd

F = chainer.functions
L = chainer.links

#: Relative error (L2) that a layer may have in float32.
LAYER_ERROR = 3e-6

SIZES = st.one_of(st.integers(1, 8), st.integers(1, 300))
CHANNELS = st.one_of(st.integers(1, 8), st.integers(1, 200))

CPU = chainer.get_device("@numpy")
to_cpu = chainer.backends.cuda.to_cpu


@pytest.fixture(autouse=True)
def machines_threads():
    yield
    threads.set_threads(None)


@pytest.fixture
def gradient_check(monkeypatch):
    """Chainer's module; its import needs a package that setuptools no longer has."""
    monkeypatch.setitem(sys.modules, "pkg_resources", types.ModuleType("pkg_resources"))
    return importlib.import_module("chainer.gradient_check")


def relative_error(found, expected):
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)


def random_layer(seed, n, inputs, outputs, ksize=3, bias=True):
    """Makes the arrays x, W, b, gy of a layer."""
    random = np.random.RandomState(seed)
    x = random.standard_normal((n, inputs, 9, 9)).astype(np.float32)
    W = random.standard_normal((outputs, inputs, ksize, ksize)).astype(np.float32)
    b = random.standard_normal(outputs).astype(np.float32) if bias else None
    gy = random.standard_normal((n, outputs, 9, 9)).astype(np.float32)
    return x, W, b, gy


def in_memory_as(x, order):
    """Copies an array to another memory order of its axes; the shape stays."""
    return np.ascontiguousarray(x.transpose(order)).transpose(np.argsort(order))


def output_and_gradients(x, W, b, gy, relu, convolution="winograd", device=CPU):
    """Computes on a device; returns arrays on the CPU."""
    arrays = [device.send(array) for array in (x, W, b) if array is not None]
    variables = [chainer.Variable(array) for array in arrays]
    with using_convolution(convolution):
        y = convolution_2d(*variables, relu=relu)
    y.grad = device.send(gy)
    y.backward()
    found = [y.array, *(variable.grad for variable in variables)]
    assert all(isinstance(array, device.xp.ndarray) for array in found)
    return [to_cpu(array) for array in found]


def exact_output_and_gradients(x, W, b, gy, positive):
    """Computes the same in float64; positive: where the output of ReLU is above 0, or None."""
    x, W, b, gy = (None if array is None else array.astype(np.float64) for array in (x, W, b, gy))
    variables = [chainer.Variable(array) for array in (x, W, b) if array is not None]
    inputs = [*variables, None][:3]
    y = F.convolution_2d(*inputs, pad=W.shape[2] // 2)
    y.grad = gy if positive is None else gy * positive
    y.backward()
    output = y.array if positive is None else np.maximum(y.array, 0)
    return [output, *(variable.grad for variable in variables)]


@hypothesis.settings(max_examples=25)
@hypothesis.given(
    n=SIZES,
    inputs=CHANNELS,
    outputs=CHANNELS,
    ksize=st.sampled_from([3, 3, 1]),
    bias=st.booleans(),
    relu=st.booleans(),
    order=st.sampled_from([(0, 1, 2, 3), (2, 3, 0, 1), (0, 2, 3, 1), (3, 1, 2, 0)]),
    number=st.integers(1, 4),
)
@pytest.mark.long
def test_outputs_and_gradients_are_those_of_float64(
    device, n, inputs, outputs, ksize, bias, relu, order, number
):
    # In float64, Chainer needs much memory and time for many channels of many boards.
    n = max(1, min(n, 3000 // max(inputs, outputs)))
    threads.set_threads(number)
    x, W, b, gy = random_layer(n, n, inputs, outputs, ksize, bias)
    x, gy = in_memory_as(x, order), in_memory_as(gy, order)
    found = output_and_gradients(x, W, b, gy, relu, device=device)
    positive = found[0] > 0 if relu else None
    expected = exact_output_and_gradients(x, W, b, gy, positive)
    # The expected size of a sum of so many random terms; the sum itself may be near 0.
    squares = (None if array is None else array**2 for array in (x, W, b, gy))
    scale = exact_output_and_gradients(*squares, positive)
    # A GPU computes all boards in one chunk, so the sums over boards are longer.
    error = LAYER_ERROR if device.xp is np else 5 * LAYER_ERROR
    for array, exact, square in zip(found, expected, scale):
        assert array.shape == exact.shape
        assert array.dtype == np.float32
        # "<=": where ReLU returns only zeros, all gradients are exactly 0.
        assert np.linalg.norm(array - exact) <= error * np.linalg.norm(np.sqrt(square))


@pytest.mark.parametrize("n", [1, direct.MOST, direct.MOST + 1, 33])
@pytest.mark.parametrize("inputs", [104, 192])
def test_the_networks_own_layers(device, n, inputs):
    x, W, b, gy = random_layer(n, n, inputs, 192)
    found = output_and_gradients(x, W, b, gy, relu=True, device=device)
    expected = exact_output_and_gradients(x, W, b, gy, found[0] > 0)
    assert max(map(relative_error, found, expected)) < LAYER_ERROR


@pytest.mark.parametrize("convolution", CONVOLUTIONS)
@pytest.mark.parametrize("ksize", [3, 1])
def test_every_method_computes_the_same(device, convolution, ksize):
    layer = random_layer(0, 19, 40, 30, ksize)
    found = output_and_gradients(*layer, relu=False, convolution=convolution, device=device)
    expected = exact_output_and_gradients(*layer, None)
    for array, exact in zip(found, expected):
        assert relative_error(array, exact) < LAYER_ERROR


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("ksize", [3, 1])
@pytest.mark.parametrize("n", [2, 5])
def test_gradient_check(device, gradient_check, relu, ksize, n):
    x, W, b, gy = map(device.send, random_layer(1, n, 3, 2, ksize))
    if relu:
        # Far from 0, where ReLU is not differentiable.
        b += 100

    def function(*variables):
        return convolution_2d(*variables, relu=relu)

    with using_convolution("winograd"):
        gradient_check.check_backward(function, (x, W, b), gy, eps=1e-1, atol=2e-2, rtol=2e-2)


@pytest.mark.parametrize("ksize", [3, 1])
def test_gradients_have_gradients(device, gradient_check, ksize):
    x, W, b, gy = map(device.send, random_layer(2, 5, 3, 2, ksize))
    ggx, ggW, ggb, _ = map(device.send, random_layer(3, 5, 3, 2, ksize))

    def function(*variables):
        y = convolution_2d(*variables)
        return y * y

    with using_convolution("winograd"):
        gradient_check.check_double_backward(
            function, (x, W, b), gy, (ggx, ggW, ggb), eps=1e-2, atol=1e-1, rtol=1e-1
        )


def test_gradients_for_gradients_are_the_gradients(device):
    x, W, b, gy = map(device.send, random_layer(2, 5, 3, 2))
    expected = output_and_gradients(x, W, b, gy, relu=True, device=device)[1:]
    variables = [chainer.Variable(array) for array in (x, W, b)]
    y = convolution_2d(*variables, relu=True)
    found = chainer.grad([y], variables, [chainer.Variable(gy)], enable_double_backprop=True)
    for variable, array in zip(found, expected):
        assert relative_error(to_cpu(variable.array), array) < LAYER_ERROR


@pytest.mark.parametrize("number", [1, 2, 3])
def test_results_are_the_same_to_the_last_bit(number):
    threads.set_threads(number)
    x, W, b, gy = random_layer(4, 71, 50, 60)
    first = output_and_gradients(x, W, b, gy, relu=True)
    for _ in range(3):
        for array, again in zip(first, output_and_gradients(x, W, b, gy, relu=True)):
            np.testing.assert_array_equal(array, again)


def test_results_stay_and_inputs_are_left_alone(device):
    layer = random_layer(6, 20, 8, 8)
    saved = copy.deepcopy(layer)
    first = output_and_gradients(*layer, relu=True, device=device)
    kept = copy.deepcopy(first)
    # This call uses the workspaces of the first call again.
    output_and_gradients(*random_layer(7, 20, 8, 8), relu=True, device=device)
    for array, expected in zip([*layer, *first], [*saved, *kept]):
        np.testing.assert_array_equal(array, expected)


def test_boards_do_not_touch_each_other(device):
    x, W, b, _ = map(device.send, random_layer(8, 40, 5, 7))
    expected = to_cpu(convolution_2d(x, W, b).array)
    x[13] = np.nan
    found = to_cpu(convolution_2d(x, W, b).array)
    assert np.isnan(found[13]).all()
    others = np.arange(40) != 13
    np.testing.assert_array_equal(found[others], expected[others])


@pytest.mark.parametrize("n", [1, 9])
def test_a_change_of_the_weights_in_place_is_seen(device, n):
    x = device.send(random_layer(9, n, 6, 7)[0])
    link = Convolution2D(6, 7, ksize=3, pad=1)
    link.to_device(device)
    with using_convolution("winograd"):
        link(x)
        link.W.array[3, 2, 1, 0] += 1
        found = to_cpu(link(x).array)
    expected = F.convolution_2d(to_cpu(x), to_cpu(link.W.array), to_cpu(link.b.array), pad=1)
    np.testing.assert_allclose(found, expected.array, rtol=1e-4, atol=1e-4)


def test_the_gradient_of_the_planes_is_not_computed(monkeypatch):
    wanted = []

    def backward(x, W, y, gy, indexes):
        wanted.append(0 in indexes)
        return original(x, W, y, gy, indexes)

    original = winograd.backward
    monkeypatch.setattr(winograd, "backward", backward)
    x, W, b, gy = random_layer(10, 5, 2, 3)
    W, b = chainer.Variable(W), chainer.Variable(b)
    F.sum(
        convolution_2d(convolution_2d(x, W, b), chainer.Variable(np.ones((1, 3, 3, 3), "f")))
    ).backward()
    assert wanted == [True, False]


@pytest.mark.parametrize("convolution", CONVOLUTIONS)
@pytest.mark.parametrize(("ksize", "module"), [(3, winograd), (1, pointwise)])
def test_the_chosen_method_computes(monkeypatch, convolution, ksize, module):
    calls = []
    original = module.forward
    monkeypatch.setattr(module, "forward", lambda *args: calls.append(1) or original(*args))
    x, W, b, _ = random_layer(11, 9, 2, 3, ksize)
    with using_convolution(convolution):
        convolution_2d(x, W, b)
    assert len(calls) == (convolution != "chainer")


@pytest.mark.parametrize(
    "arguments",
    [
        {"in_channels": 4, "out_channels": 6, "ksize": 3, "pad": 1, "stride": 2},
        {"in_channels": 4, "out_channels": 6, "ksize": 3, "pad": 0},
        {"in_channels": 4, "out_channels": 6, "ksize": 3, "pad": 2, "dilate": 2},
        {"in_channels": 4, "out_channels": 6, "ksize": 3, "pad": 1, "groups": 2},
        {"in_channels": 4, "out_channels": 6, "ksize": 5, "pad": 2},
        {"in_channels": 4, "out_channels": 6, "ksize": (1, 3), "pad": (0, 1)},
        {"in_channels": 4, "out_channels": 6, "ksize": 2},
        {"in_channels": 4, "out_channels": 6, "ksize": 1, "pad": 1},
        {"in_channels": 4, "out_channels": 6, "ksize": 1, "nobias": True},
        {"in_channels": None, "out_channels": 6, "ksize": 3, "pad": 1},
        {"in_channels": 4, "out_channels": 6, "ksize": 3, "pad": 1, "initial_bias": 0.5},
    ],
    ids=str,
)
@pytest.mark.parametrize("shape", [(5, 4, 9, 9), (5, 4, 7, 9), (2, 4, 19, 19)])
def test_the_link_is_a_drop_in(device, arguments, shape):
    x = np.random.RandomState(0).standard_normal(shape).astype(np.float32)
    results = []
    for kind, place in ((L.Convolution2D, CPU), (Convolution2D, device)):
        np.random.seed(3)
        link = kind(**arguments)
        link(x)  # a link without channels gets them here: a GPU would draw other weights
        link.to_device(place)
        link.cleargrads()
        with using_convolution("winograd"):
            y = link(place.send(x))
        F.sum(y * y).backward()
        gradients = {name: to_cpu(parameter.grad) for name, parameter in link.namedparams()}
        results.append((to_cpu(y.array), gradients))
    (expected, expected_gradients), (found, found_gradients) = results
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert found_gradients.keys() == expected_gradients.keys()
    for name, gradient in expected_gradients.items():
        np.testing.assert_allclose(found_gradients[name], gradient, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
@pytest.mark.parametrize("ksize", [3, 1])
def test_other_dtypes_are_chainers(device, dtype, ksize):
    layer = random_layer(12, 5, 4, 3, ksize)
    x, W, b, _ = (device.send(array.astype(dtype)) for array in layer)
    with using_convolution("winograd"):
        found = convolution_2d(x, W, b)
    assert found.dtype == dtype
    # The expected result: Chainer's own on the same device.
    expected = F.convolution_2d(x, W, b, pad=ksize // 2)
    np.testing.assert_array_equal(to_cpu(found.array), to_cpu(expected.array))


def test_mixed_precision_is_chainers(device):
    with chainer.using_config("dtype", chainer.mixed16):
        link = Convolution2D(4, 3, ksize=3, pad=1)
    link.to_device(device)
    assert link(device.xp.zeros((2, 4, 9, 9), np.float16)).dtype == np.float16


def test_an_empty_batch(device):
    link = Convolution2D(4, 3, ksize=3, pad=1, relu=True)
    link.to_device(device)
    assert link(device.xp.zeros((0, 4, 9, 9), np.float32)).shape == (0, 3, 9, 9)


@pytest.mark.parametrize("shape", [(2, 5, 9, 9), (4, 9, 9), (2, 4)])
def test_wrong_shapes_are_refused_as_by_chainer(shape):
    link = Convolution2D(4, 3, ksize=3, pad=1)
    with pytest.raises(chainer.utils.type_check.InvalidType):
        link(np.zeros(shape, np.float32))


def test_an_unknown_method_is_refused_and_nothing_changes():
    for choose in (set_convolution, lambda name: using_convolution(name).__enter__()):
        with pytest.raises(ValueError, match=r"'x'.*auto, winograd, chainer"):
            choose("x")
        assert get_convolution() == "auto"


def test_a_context_restores_the_method_even_after_an_error():
    with pytest.raises(ZeroDivisionError), using_convolution("chainer"):
        with using_convolution("winograd"):
            assert get_convolution() == "winograd"
        assert get_convolution() == "chainer"
        1 / 0  # noqa: B018
    assert get_convolution() == "auto"


def test_a_context_holds_for_its_thread_only():
    found = []
    with using_convolution("chainer"):
        thread = threading.Thread(target=lambda: found.append(get_convolution()))
        thread.start()
        thread.join()
    assert found == ["auto"]


def test_a_network_follows_a_method_that_is_chosen_later(monkeypatch):
    calls = []
    original = winograd.forward
    monkeypatch.setattr(winograd, "forward", lambda *args: calls.append(1) or original(*args))
    link = Convolution2D(2, 3, ksize=3, pad=1)
    x = random_layer(13, 9, 2, 3)[0]
    for name, number in (("chainer", 0), ("winograd", 1), ("chainer", 1), ("auto", 2)):
        with using_convolution(name):
            link(x)
        assert len(calls) == number


class Residual(chainer.Chain):
    """A residual block with Chainer's own batch normalization."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.conv1 = Convolution2D(6, 6, 3, pad=1, nobias=True)
            self.bn1 = L.BatchNormalization(6)
            self.conv2 = Convolution2D(6, 6, 3, pad=1)
            self.bn2 = L.BatchNormalization(6)

    def forward(self, x):
        h = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(h)) + x)


def test_batch_normalization_and_residual_layers(device):
    x, _, _, gy = random_layer(14, 10, 6, 6)
    results = []
    for method, place in (("chainer", CPU), ("winograd", device)):
        np.random.seed(1)
        network = chainer.Sequential(Residual(), Residual())
        network.to_device(place)
        network.cleargrads()
        v = chainer.Variable(place.send(x))
        with using_convolution(method):
            y = network(v)
            y.grad = place.send(gy)
            y.backward()
            with chainer.using_config("train", False):
                evaluated = network(place.send(x)).array
        found = [y.array, v.grad, evaluated, *(p.grad for p in network.params())]
        results.append([to_cpu(array) for array in found])
    for expected, found in zip(*results):
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


def test_copies_and_files_of_the_link(tmp_path):
    link = Convolution2D(4, 3, ksize=3, pad=1, relu=True)
    x, _, _, _ = random_layer(15, 6, 4, 3)
    expected = link(x).array
    np.testing.assert_array_equal(copy.deepcopy(link)(x).array, expected)
    chainer.serializers.save_npz(tmp_path / "link.npz", link)
    plain = L.Convolution2D(4, 3, ksize=3, pad=1)
    chainer.serializers.load_npz(tmp_path / "link.npz", plain)
    np.testing.assert_array_equal(plain.W.array, link.W.array)
    chainer.serializers.save_npz(tmp_path / "plain.npz", plain)
    other = Convolution2D(4, 3, ksize=3, pad=1, relu=True)
    chainer.serializers.load_npz(tmp_path / "plain.npz", other)
    np.testing.assert_array_equal(other(x).array, expected)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_several_threads_may_call_at_once(number):
    threads.set_threads(number)
    layers = [random_layer(seed, 3 + 7 * seed, 10, 12) for seed in range(6)]
    expected = [output_and_gradients(*layer, relu=True) for layer in layers]
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        for _ in range(5):
            tasks = [pool.submit(output_and_gradients, *layer, relu=True) for layer in layers]
            for task, arrays in zip(tasks, expected):
                for found, array in zip(task.result(timeout=60), arrays):
                    np.testing.assert_array_equal(found, array)
