"""Convolution by cuDNN, also on the stand-ins for CuPy and for the frontend of cuDNN."""

import logging
import sys

import numpy as np
import pytest
from network_helpers import make_trained

from pydlshogi.commands.train_policy import main
from pydlshogi.compat import chainer
from pydlshogi.layers.convolution import convolution_2d, using_convolution
from pydlshogi.layers.gpu import convolve, cudnn, im2col
from pydlshogi.layers.gpu.products import narrow, set_precision

#: Largest relative error (L2) of each precision.
ERRORS = {"float32": 3e-6, "tf32": 1e-3, "float16": 1e-3, "bfloat16": 8e-3}

F = chainer.functions

CPU = chainer.get_device("@numpy")


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """No choice and no graph of another test."""
    monkeypatch.setattr(convolve, "BY_NAME", {n: convolve.Convolution(n) for n in convolve.BY_NAME})
    clear()
    yield
    clear()
    set_precision("auto")


def clear():
    for cached in (cudnn._graph, cudnn._constant):
        cached.cache_clear()
    cudnn._handles.clear()


@pytest.fixture
def gpu(device):
    if device.xp is np:
        pytest.skip("a test of the GPU")
    return device


@pytest.fixture
def stand_in(gpu, monkeypatch):
    """The frontend's stand-in; skips on a GPU."""
    if not hasattr(gpu.xp, "IS_STAND_IN"):
        pytest.skip("a test of the stand-in")
    import cudnn_stand_in

    monkeypatch.setitem(sys.modules, "cudnn", cudnn_stand_in)
    monkeypatch.setattr(cudnn_stand_in, "graphs", [])
    return cudnn_stand_in


@pytest.fixture
def with_cudnn(gpu, monkeypatch, request):
    """A GPU with cuDNN: the stand-in's, or a real one."""
    if hasattr(gpu.xp, "IS_STAND_IN"):
        request.getfixturevalue("stand_in")
    try:
        cudnn.require(gpu, "cudnn")
    except cudnn.CudnnError as error:
        pytest.skip(str(error))
    return gpu


def random_arrays(*shapes):
    random = np.random.RandomState(0)
    return [random.standard_normal(shape).astype(np.float32) for shape in shapes]


def error(found, expected):
    return np.linalg.norm(found.get() - expected) / np.linalg.norm(expected)


def results(device, name, arrays, gy, relu):
    """Computes a convolution and its gradients by a method."""
    variables = [chainer.Variable(device.send(array)) for array in arrays]
    with using_convolution(name):
        y = convolution_2d(*variables, relu=relu)
    y.grad = device.send(gy)
    y.backward()
    return [y.array, *(variable.grad for variable in variables)]


def modules(name="cudnn"):
    """Returns what computed each task."""
    return {key[0]: module for key, module in convolve.BY_NAME[name]._modules.items()}


@pytest.mark.parametrize("precision", ERRORS)
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize(
    ("n", "inputs", "outputs", "ksize", "bias"),
    [(3, 8, 16, 3, True), (2, 104, 8, 3, False), (1, 16, 24, 1, True), (5, 8, 8, 1, False)],
)
def test_cudnn_computes_the_convolution_of_the_cpu(
    with_cudnn, precision, n, inputs, outputs, ksize, bias, relu
):
    *arrays, gy = random_arrays(
        (n, inputs, 9, 9),
        (outputs, inputs, ksize, ksize),
        *([(outputs,)] if bias else []),
        (n, outputs, 9, 9),
    )
    gy *= np.float32(1e-6)  # in float16, these would be rounded without their factor
    # So that rounding changes no sign, the numbers under the ReLU are those of some squares only.
    expected = results(CPU, "winograd", arrays, gy, relu)
    if relu:
        gy *= np.abs(expected[0]) > 0.5
        expected = results(CPU, "winograd", arrays, gy, relu)
    set_precision(precision)
    found = results(with_cudnn, "cudnn", arrays, gy, relu)
    # A real cuDNN may have nothing without matrix units.
    may_lack = precision == "float32" and not hasattr(with_cudnn.xp, "IS_STAND_IN")
    assert may_lack or set(modules().values()) == {cudnn}
    assert len(modules()) == 3
    for one, other in zip(found, expected):
        assert one.dtype == np.float32 and one.shape == other.shape
        assert error(one, other) < ERRORS[precision]


def test_the_precisions_differ(with_cudnn, stand_in):
    *arrays, gy = random_arrays((2, 8, 9, 9), (8, 8, 3, 3), (2, 8, 9, 9))
    expected = results(CPU, "winograd", arrays, gy, False)
    rough = {}
    for precision in ERRORS:
        set_precision(precision)
        found = results(with_cudnn, "cudnn", arrays, gy, False)
        rough[precision] = [error(one, other) for one, other in zip(found, expected)]
    for exact, tf32, half, brain in zip(*rough.values()):
        assert exact < 1e-6 < 1e-5 < tf32 < brain / 4
        assert 1e-5 < half < brain / 4
    # The matrix units would round float32, and no graph may sum in a random order.
    names = [{note.name for note in graph.notes} for graph in stand_in.graphs]
    assert all("NONDETERMINISTIC" in found for found in names)
    assert ["TENSOR_CORE" in found for found in names] == [True] * 3 + [False] * 9


def test_boards_and_filters_in_any_memory_order(with_cudnn):
    x, W, gy = random_arrays((3, 9, 9, 8), (3, 3, 8, 16), (9, 9, 3, 16))
    arrays = [x.transpose(0, 3, 1, 2), W.transpose(3, 2, 0, 1)]
    gy = gy.transpose(2, 3, 0, 1)
    set_precision("float32")
    expected = results(CPU, "winograd", arrays, gy, False)
    for views in (arrays, [np.ascontiguousarray(array) for array in arrays]):
        for one, other in zip(results(with_cudnn, "cudnn", views, gy, False), expected):
            assert error(one, other) < 3e-6


def test_an_array_that_begins_anywhere_is_copied(with_cudnn):
    x, W = random_arrays((3, 3, 9, 9), (8, 3, 3, 3))
    boards = with_cudnn.xp.empty((3, 9, 9, 3), np.float32)
    boards[...] = with_cudnn.send(np.ascontiguousarray(x.transpose(0, 2, 3, 1)))
    part = boards[1:].transpose(0, 3, 1, 2)
    assert part.data.ptr % 16
    set_precision("float32")
    expected = convolution_2d(x[1:], W).array
    assert error(cudnn.forward(part, with_cudnn.send(W), None, False), expected) < 3e-6


def test_a_graph_is_built_once_for_each_shape_and_precision(with_cudnn, stand_in):
    x, W, gy = random_arrays((2, 8, 9, 9), (8, 8, 3, 3), (2, 8, 9, 9))
    set_precision("tf32")
    for _ in range(3):
        results(with_cudnn, "cudnn", [x, W], gy, False)
    assert len(stand_in.graphs) == 3
    results(with_cudnn, "cudnn", [x[:1], W], gy[:1], False)
    assert len(stand_in.graphs) == 6
    set_precision("float16")
    results(with_cudnn, "cudnn", [x, W], gy, False)
    assert len(stand_in.graphs) == 9


def test_cudnn_computes_on_the_current_stream(with_cudnn):
    x, W = random_arrays((2, 8, 9, 9), (8, 8, 3, 3))
    set_precision("float32")
    expected = convolution_2d(x, W).array
    on_gpu = [with_cudnn.send(array) for array in (x, W)]
    for stream in (with_cudnn.xp.cuda.Stream(non_blocking=True) for _ in range(2)):
        with stream:
            found = cudnn.forward(*on_gpu, None, False)
            stream.synchronize()
        assert error(found, expected) < 3e-6


def warnings(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_without_the_frontend_our_kernels_compute_and_one_sentence_says_so(
    gpu, monkeypatch, caplog
):
    monkeypatch.setitem(sys.modules, "cudnn", None)
    *arrays, gy = random_arrays((2, 8, 9, 9), (8, 8, 3, 3), (2, 8, 9, 9))
    expected = results(gpu, "winograd", arrays, gy, True)
    for name in ("auto", "cudnn"):
        for one, other in zip(results(gpu, name, arrays, gy, True), expected):
            np.testing.assert_array_equal(one.get(), other.get())
    (warning,) = warnings(caplog)
    assert warning == (
        "our own kernels compute some convolutions, not cuDNN: "
        "the package nvidia-cudnn-frontend is not installed (see docs/gpu.md)"
    )


@pytest.mark.parametrize("name", ["create_handle", "set_stream"])
def test_a_library_that_cannot_be_used_is_named_in_one_line(gpu, stand_in, monkeypatch, name):
    def fail(*args):
        raise RuntimeError("cudnnHandle Create failed\nmore")

    monkeypatch.setattr(stand_in, name, fail)
    with pytest.raises(
        cudnn.CudnnError, match="cuDNN cannot be used: cudnnHandle Create failed"
    ) as e:
        cudnn.require(gpu, "auto")
    assert "\n" not in str(e.value)


def test_our_kernels_compute_what_cudnn_cannot(with_cudnn, stand_in, caplog):
    *arrays, gy = random_arrays((2, 8, 9, 9), (27, 8, 1, 1), (2, 27, 9, 9))
    expected = results(CPU, "winograd", arrays, gy, False)
    set_precision("bfloat16")
    for _ in range(2):
        found = results(with_cudnn, "cudnn", arrays, gy, False)
    assert modules() == {
        "forward": cudnn,
        "data_gradient": im2col,
        "filter_gradient": im2col,
    }
    assert all(error(one, other) < 8e-3 for one, other in zip(found, expected))
    (warning,) = warnings(caplog)
    assert warning.endswith(
        "data_gradient (2, 8, 9, 9) (27, 8, 1, 1): No valid engine configs odd channels"
    )


@pytest.mark.parametrize("faster", [cudnn, im2col])
def test_auto_measures_each_shape_once_in_training(with_cudnn, monkeypatch, caplog, faster):
    measured = []

    def seconds(run):
        measured.append(run.func.__module__)
        return 1 if run.func.__module__ == faster.__name__ else 2

    monkeypatch.setattr(convolve, "_seconds", seconds)
    *arrays, gy = random_arrays((2, 8, 9, 9), (8, 8, 3, 3), (2, 8, 9, 9))
    for _ in range(2):
        results(with_cudnn, "auto", arrays, gy, False)
    assert set(modules("auto").values()) == {faster}
    assert len(measured) == 6 * convolve._ROUNDS and not warnings(caplog)


def test_auto_does_not_take_wrong_results(with_cudnn, monkeypatch, caplog):
    def turned(g, W):
        return right(g, W[:, :, ::-1])

    right = cudnn.data_gradient
    monkeypatch.setattr(cudnn, "data_gradient", turned)
    monkeypatch.setattr(convolve, "_seconds", lambda run: run.func.__module__ == im2col.__name__)
    *arrays, gy = random_arrays((2, 8, 9, 9), (8, 8, 3, 3), (2, 8, 9, 9))
    results(with_cudnn, "auto", arrays, gy, False)
    chosen = {"forward": cudnn, "data_gradient": im2col, "filter_gradient": cudnn}
    assert modules("auto") == chosen
    (warning,) = warnings(caplog)
    assert warning.endswith("not cuDNN: its results of data_gradient are wrong")


def test_auto_times_real_runs(with_cudnn):
    *arrays, gy = random_arrays((2, 8, 9, 9), (8, 8, 3, 3), (2, 8, 9, 9))
    results(with_cudnn, "auto", arrays, gy, False)
    assert len(modules("auto")) == 3


def test_auto_prepares_no_graph_in_play(with_cudnn, stand_in):
    x, W = map(with_cudnn.send, random_arrays((2, 8, 9, 9), (8, 8, 3, 3)))
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        convolution_2d(x, W)
    assert not stand_in.graphs
    set_precision("bfloat16")
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        convolution_2d(x, W)
    assert len(stand_in.graphs) == 1


def test_a_bfloat16_is_rounded_to_the_nearest(gpu):
    (x,) = random_arrays(5000)
    x[:9] = np.inf, -np.inf, np.nan, 0, 3.4e38, 1 + 2**-8, 1 + 3 * 2**-8, 1e-40, -1 - 2**-8
    bits = narrow(gpu.send(x), "bfloat16").get()
    found = (bits.astype(np.uint32) << 16).view(np.float32)
    assert np.isnan(found[2])
    np.testing.assert_array_equal(found[[0, 1, 3, 4]], [np.inf, -np.inf, 0, np.inf])
    # Halfway between two numbers, the even one.
    np.testing.assert_array_equal(found[[5, 6, 8]], [1, 1 + 2**-6, -1])
    spacing = 2.0 ** (np.floor(np.log2(abs(x[9:]))) - 7)
    assert (abs(found[9:] - x[9:]) <= spacing / 2).all()


def test_a_network_learns_in_every_precision(with_cudnn):
    planes = np.random.RandomState(0).rand(2, 106, 9, 9).astype(np.float32)

    def losses(convolution, precision):
        set_precision(precision)
        network = make_trained("policy_value_history_bn", channels=8)
        network.to_device(with_cudnn)
        optimizer = chainer.optimizers.SGD(lr=1e-4).setup(network)
        x = with_cudnn.send(planes[:, : network.plane_num])
        found = []
        for _ in range(3):
            with using_convolution(convolution):
                logits, value = network(x)
                loss = F.mean(logits * logits) + F.mean(value * value)
                network.cleargrads()
                loss.backward()
            optimizer.update()
            found.append(float(loss.array))
        return found

    expected = losses("winograd", "float32")
    assert expected[-1] < expected[0]
    for precision, tolerance in ERRORS.items():
        assert losses("cudnn", precision) == pytest.approx(expected, rel=20 * tolerance)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--gpu", "-1"], "the device is the CPU"),
        (["--gpu", "-1", "--convolution", "winograd"], "the device is the CPU"),
    ],
)
def test_bfloat16_on_a_cpu_is_refused_in_one_sentence(tmp_path, capsys, words, reason):
    lists = [str(tmp_path / name) for name in ("train.txt", "test.txt")]
    for name in lists:
        open(name, "w").close()
    outputs = ["--model", str(tmp_path / "model"), "--state", str(tmp_path / "state")]
    assert main([*lists, *words, *outputs, "--precision", "bfloat16"]) == 1
    error = capsys.readouterr().err
    assert f"the precision bfloat16 needs cuDNN on a GPU, but {reason}. Choose another" in error
    assert error.count("\n") == 1


def test_bfloat16_needs_cudnn_and_a_method_that_uses_it(gpu, monkeypatch):
    monkeypatch.setitem(sys.modules, "cudnn", None)
    for convolution, reason in (
        ("auto", "the package nvidia-cudnn-frontend is not installed"),
        ("winograd", "the convolution is winograd"),
        ("chainer", "the convolution is chainer"),
    ):
        with pytest.raises(cudnn.CudnnError, match=f"on a GPU, but {reason}"):
            cudnn.require(gpu, convolution)
