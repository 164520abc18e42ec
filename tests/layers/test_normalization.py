"""Batch normalization compared with its definition and with Chainer's."""

import sys
import types
import warnings

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from pydlshogi.compat import chainer
from pydlshogi.layers.batch_normalization import BatchNormalization
from pydlshogi.layers.convolution import using_convolution
from pydlshogi.layers.cpu import normalize as normalization
from pydlshogi.layers.cpu import threads
from pydlshogi.layers.gpu import normalize as on_gpu

F = chainer.functions
L = chainer.links
CPU = chainer.get_device("@numpy")
to_cpu = chainer.backends.cuda.to_cpu

ORDERS = [(0, 1, 2, 3), (2, 3, 0, 1), (0, 2, 3, 1), (3, 1, 2, 0)]


@pytest.fixture(autouse=True)
def machines_threads():
    yield
    threads.set_threads(None)


def random_layer(seed, n, channels, shape=(9, 9)):
    """Makes x, γ, β and the gradient of y."""
    random = np.random.RandomState(seed)
    x = random.standard_normal((n, channels, *shape)) + random.standard_normal((channels, 1, 1))
    gamma, beta = random.uniform(0.5, 2, channels), random.standard_normal(channels)
    gy = random.standard_normal(x.shape)
    return [array.astype(np.float32) for array in (x, gamma, beta, gy)]


def in_memory_as(x, order):
    """Copies an array to another memory order of its axes; the shape stays."""
    return np.ascontiguousarray(x.transpose(order)).transpose(np.argsort(order))


def make(link_class, gamma, beta, **options):
    link = link_class(len(gamma), **options)
    link.gamma.array[...], link.beta.array[...] = gamma, beta
    return link


def run(link, x, gy, relu, device):
    """Trains a link by one step; returns output, gradients and running statistics."""
    link.to_device(device)
    v = chainer.Variable(device.send(x))
    y = link(v)
    if relu:
        y = F.relu(y)
    y.grad = device.send(gy)
    link.cleargrads()
    y.backward()
    found = [y.array, v.grad, link.gamma.grad, link.beta.grad, link.avg_mean, link.avg_var]
    return [to_cpu(array) for array in found]


def definition(x, gamma, beta, gy, eps, positive):
    """Computes output and gradients in float64; positive: where ReLU's output is above 0."""
    x, gamma, beta, gy = (
        array.astype(float).reshape(-1, 1, 1) if array.ndim == 1 else array.astype(float)
        for array in (x, gamma, beta, gy)
    )
    axes = {"axis": (0, 2, 3), "keepdims": True}
    deviation = np.sqrt(x.var(**axes) + eps)
    h = (x - x.mean(**axes)) / deviation
    g = gy if positive is None else gy * positive
    y = gamma * h + beta
    gx = gamma / deviation * (g - g.mean(**axes) - h * (g * h).mean(**axes))
    output = y if positive is None else np.maximum(y, 0)
    return [output, gx, (g * h).sum(axis=(0, 2, 3)), g.sum(axis=(0, 2, 3))]


@hypothesis.settings(max_examples=25)
@hypothesis.given(
    n=st.integers(1, 40),
    channels=st.integers(1, 40),
    shape=st.sampled_from([(9, 9), (9, 9), (1, 1), (3, 5)]),
    relu=st.booleans(),
    order=st.sampled_from(ORDERS),
    number=st.integers(1, 4),
)
def test_outputs_and_gradients_are_those_of_the_definition(
    device, n, channels, shape, relu, order, number
):
    hypothesis.assume(n * shape[0] * shape[1] > 1)  # the variance of one number is 0
    threads.set_threads(number)
    x, gamma, beta, gy = random_layer(n, n, channels, shape)
    link = make(BatchNormalization, gamma, beta, relu=relu)
    found = run(link, in_memory_as(x, order), in_memory_as(gy, order), False, device)
    positive = found[0] > 0 if relu else None
    expected = definition(x, gamma, beta, gy, link.eps, positive)
    for array, exact in zip(found, expected):
        assert (array.shape, array.dtype) == (exact.shape, np.float32)
        # Two squares of nearly the same value have a variance near 0.
        np.testing.assert_allclose(array, exact, rtol=1e-3, atol=1e-4 * (1 + abs(exact).max()))


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("n", [1, 8, 33])
def test_the_link_is_a_drop_in(device, tmp_path, n, relu):
    x, gamma, beta, gy = random_layer(3, n, 24)
    ours = make(BatchNormalization, gamma, beta, relu=relu)
    chainers = make(L.BatchNormalization, gamma, beta)
    for _ in range(2):  # the second step starts from the first one's statistics
        found, expected = run(ours, x, gy, False, device), run(chainers, x, gy, relu, CPU)
        for array, other in zip(found, expected):
            np.testing.assert_allclose(array, other, rtol=1e-4, atol=1e-4)
    chainer.serializers.save_npz(tmp_path / "link.npz", ours)
    chainer.serializers.load_npz(tmp_path / "link.npz", chainers)
    with chainer.using_config("train", False):
        expected = chainers(x).array
        expected = np.maximum(expected, 0) if relu else expected
        for enable_backprop in (True, False):
            with chainer.using_config("enable_backprop", enable_backprop):
                y = to_cpu(ours(device.send(x)).array)
            np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)


def test_a_large_mean_costs_no_more_than_the_last_bits(device):
    x, gamma, beta, gy = random_layer(4, 20, 8)
    x += 1000
    link = make(BatchNormalization, gamma, beta)
    found = run(link, x, gy, False, device)
    exact = definition(x, gamma, beta, gy, link.eps, None)
    for array, right in zip(found, exact):
        # The mean itself is rounded to 3e-5, and sums of thousands multiply that.
        assert abs(array - right).max() <= 2e-4 * abs(right).max()
    np.testing.assert_allclose(found[5], 0.9 + 0.1 * x.var((0, 2, 3), float, ddof=1), rtol=1e-3)


def test_an_outlier_in_the_first_row_does_not_hide_the_variance(device):
    x, gamma, beta, gy = random_layer(10, 200, 3)
    x *= 0.01
    x[0, :, 0, 0] = 1000
    found = run(make(BatchNormalization, gamma, beta), x, gy, False, device)
    np.testing.assert_allclose(found[5], 0.9 + 0.1 * x.var((0, 2, 3), float, ddof=1), rtol=1e-3)


@pytest.mark.parametrize("relu", [False, True])
def test_nan_stays(device, relu):
    # Otherwise a training that diverges would look sound.
    x, gamma, beta, gy = random_layer(11, 2, 5)
    x[1, 3, 4, 4] = np.nan
    link = make(BatchNormalization, gamma, beta, relu=relu)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        y, *_, mean, variance = run(link, x, gy, False, device)
    for array in (y[:, 3], mean[3], variance[3]):
        assert np.isnan(array).all()
    others = [0, 1, 2, 4]
    assert np.isfinite(y[:, others]).all() and np.isfinite(variance[others]).all()
    link.avg_mean.fill(0)
    link.avg_var.fill(1)
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        y = to_cpu(link(device.send(x)).array)
    assert np.argwhere(np.isnan(y)).tolist() == [[1, 3, 4, 4]]


def test_results_do_not_depend_on_the_number_of_threads():
    x, gamma, beta, gy = random_layer(5, 50, 16)
    results = []
    for number in (1, 2, 3, 7):
        threads.set_threads(number)
        link = make(BatchNormalization, gamma, beta, relu=True)
        results.append(run(link, x, gy, False, CPU))
    for others in results[1:]:
        for array, other in zip(results[0], others):
            np.testing.assert_array_equal(array, other)


@pytest.mark.parametrize("relu", [False, True])
def test_gradients_have_gradients(monkeypatch, device, relu):
    # chainer.gradient_check needs a package that setuptools no longer has.
    monkeypatch.setitem(sys.modules, "pkg_resources", types.ModuleType("pkg_resources"))
    from chainer import gradient_check

    x, gamma, beta, gy = random_layer(6, 4, 3)
    if relu:
        beta += 100  # far from 0, where ReLU is not differentiable
    ggx, ggamma, ggbeta, _ = random_layer(7, 4, 3)

    def function(x, gamma, beta):
        running = device.send(np.zeros((2, 3), np.float32))
        node = (
            normalization.Normalization(2e-5, relu)
            if device.xp is np
            else on_gpu.Normalization(2e-5, relu, tuple(running), 0.9)
        )
        y = node.apply((x, gamma, beta))[0]
        return y * y

    x, gamma, beta, gy, ggx, ggamma, ggbeta = map(
        device.send, (x, gamma, beta, gy, ggx, ggamma, ggbeta)
    )
    gradient_check.check_double_backward(
        function, (x, gamma, beta), gy, (ggx, ggamma, ggbeta), eps=1e-2, atol=0.5, rtol=0.1
    )


@pytest.mark.parametrize("convolution, ours", [("auto", 1), ("winograd", 1), ("chainer", 0)])
def test_the_chosen_method_computes(monkeypatch, convolution, ours):
    calls = []
    original = normalization.Normalization.forward
    monkeypatch.setattr(
        normalization.Normalization,
        "forward",
        lambda self, inputs: calls.append(1) or original(self, inputs),
    )
    x, gamma, beta, _ = random_layer(8, 3, 5)
    link = make(BatchNormalization, gamma, beta)
    with using_convolution(convolution):
        link(x)
        assert len(calls) == ours
        with chainer.using_config("train", False):
            link(x)
    assert len(calls) == ours


def test_what_is_computed_again_moves_no_statistics(device):
    x, gamma, beta, _ = random_layer(9, 3, 5)
    statistics = []
    for forgotten in (False, True):
        link = make(BatchNormalization, gamma, beta, relu=True)
        link.to_device(device)
        v = chainer.Variable(device.send(x))
        y = F.forget(link, v) if forgotten else link(v)
        F.sum(y).backward()
        statistics.append(to_cpu(link.avg_mean))
    np.testing.assert_array_equal(*statistics)


@pytest.mark.parametrize("dtype, n", [(np.float16, 3), (np.float64, 3), (np.float32, 0)])
def test_other_dtypes_and_empty_batches_are_chainers(dtype, n):
    x, gamma, beta, _ = random_layer(10, 3, 5)
    ours, chainers = make(BatchNormalization, gamma, beta), make(L.BatchNormalization, gamma, beta)
    found = []
    for link in (ours, chainers):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found.append(link(x[:n].astype(dtype)).array)
            except Exception as error:
                found.append(np.array(str(type(error))))
    np.testing.assert_array_equal(*found)


def test_statistics_can_be_taken_of_a_whole_set_as_by_chainers():
    x, gamma, beta, _ = random_layer(11, 6, 5)
    link = make(BatchNormalization, gamma, beta)
    link.start_finetuning()
    for half in (x[:3], x[3:]):
        link(half, finetune=True)
    np.testing.assert_allclose(link.avg_mean, x.mean(axis=(0, 2, 3)), rtol=1e-4, atol=1e-5)


def test_chainer_reports_wrong_shapes():
    link = BatchNormalization(5)
    with pytest.raises(chainer.utils.type_check.InvalidType):
        link(np.zeros((2, 4, 9, 9), np.float32))
