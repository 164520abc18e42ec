"""The kernels, products and precisions of a GPU, also on the stand-in for CuPy."""

import ctypes
import itertools

import cuda_on_cpu
import numpy as np
import pytest

from pydlshogi.compat import chainer
from pydlshogi.layers.convolution import convolution_2d
from pydlshogi.layers.gpu import im2col as convolution
from pydlshogi.layers.gpu import products
from pydlshogi.layers.gpu.convolve import Convolution
from pydlshogi.layers.gpu.kernels import Kernel
from pydlshogi.layers.gpu.products import get_precision, product, set_precision
from pydlshogi.layers.gpu.recording import VARIABLE, Memory, Recording
from pydlshogi.layers.linear import Linear

#: Largest relative error (L2) of a product with factors of 11 bits, and of one with 24 bits.
ROUGH, EXACT = 1e-3, 3e-6


@pytest.fixture(autouse=True)
def auto():
    yield
    set_precision("auto")


@pytest.fixture
def gpu(device):
    if device.xp is np:
        pytest.skip("a test of the GPU")
    return device


def error(found, expected):
    return np.linalg.norm(found.get() - expected) / np.linalg.norm(expected)


def random_arrays(*shapes):
    random = np.random.RandomState(0)
    return [random.standard_normal(shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize(
    ("choice", "variable", "train", "expected"),
    [
        ("auto", None, True, "tf32"),
        ("auto", None, False, "float32"),
        ("auto", "1", False, "tf32"),
        ("auto", "0", True, "float32"),
        ("float32", "1", True, "float32"),
        ("float16", "0", False, "float16"),
    ],
)
def test_the_precision_follows_the_choice_the_variable_and_the_mode(
    monkeypatch, choice, variable, train, expected
):
    monkeypatch.delenv("CUPY_TF32")
    if variable:
        monkeypatch.setenv("CUPY_TF32", variable)
    set_precision(choice)
    with chainer.using_config("train", train):
        assert get_precision() == expected


def test_an_unknown_precision_is_refused_and_nothing_changes():
    set_precision("tf32")
    with pytest.raises(ValueError, match="'int8' is unknown; choose from auto, float32, tf32"):
        set_precision("int8")
    assert get_precision() == "tf32"


@pytest.mark.parametrize("turns", [*itertools.product([False, True], repeat=2)])
@pytest.mark.parametrize("shape", [(5, 7, 3), (1, 20, 4), (6, 1, 1), (81, 64, 192)])
@pytest.mark.parametrize("dtype", ["f", "e"])
def test_a_product_is_that_of_numpy(gpu, shape, turns, dtype):
    rows, inner, columns = shape
    factors = [
        (array.T if turn else array).astype(dtype)
        for array, turn in zip(
            random_arrays(
                (inner, rows) if turns[0] else (rows, inner),
                (columns, inner) if turns[1] else (inner, columns),
            ),
            turns,
        )
    ]
    on_gpu = [
        gpu.send(np.ascontiguousarray(array.T)).T if turn else gpu.send(array)
        for array, turn in zip(factors, turns)
    ]
    expected = 0.5 * (factors[0].astype(float) @ factors[1].astype(float))
    found = product(*on_gpu, 0.5)
    assert (found.shape, found.dtype) == ((rows, columns), np.float32)
    assert error(found, expected) < EXACT


class Cublas:
    """The library, called as from C."""

    def __init__(self, status=0):
        self.streams = []

        def cublasSetStream_v2(handle, stream):
            self.streams.append(stream)
            return 0

        def cublasGemmEx(*arguments):
            assert len(arguments) == len(cublasGemmEx.argtypes)
            cuda_on_cpu.gemm(*arguments)
            return status

        self.cublasSetStream_v2, self.cublasGemmEx = cublasSetStream_v2, cublasGemmEx


@pytest.fixture
def recorded(gpu, monkeypatch):
    """Records a function with a cuBLAS, and returns its result, or raises its error."""
    if not hasattr(gpu.xp, "IS_STAND_IN"):
        pytest.skip("a test of the stand-in")

    def record(function, library):
        load = ctypes.CDLL
        monkeypatch.setattr(
            ctypes, "CDLL", lambda name: library if "cublas" in name else load(name)
        )
        results = []
        recording = Recording(lambda: results.append(function()), Memory())
        recording()
        recording()  # the stand-in records nothing, but runs the function as CuPy would
        return results, recording._memory.stream

    products._cublas.cache_clear()
    yield record
    products._cublas.cache_clear()


@pytest.mark.parametrize("shapes", [((5, 7), (7, 3)), ((1, 4), (4, 1))])
def test_a_recorded_product_is_one_of_cublas_itself(gpu, recorded, shapes):
    factors = random_arrays(*shapes)
    library = Cublas()
    results, stream = recorded(lambda: product(*map(gpu.send, factors)), library)
    assert library.streams == [stream.ptr]
    for found in results[:2]:
        assert error(found, factors[0].astype(float) @ factors[1].astype(float)) < EXACT


def test_a_product_that_cublas_refuses_is_not_recorded(gpu, recorded, caplog):
    results, _ = recorded(lambda: product(*map(gpu.send, random_arrays((2, 3), (3, 2)))), Cublas(7))
    assert len(results) == 2 and "cuBLAS ended with status 7" in caplog.text


def test_a_recorded_layer_of_vectors_multiplies_by_our_product(gpu, recorded, monkeypatch):
    monkeypatch.setenv(VARIABLE, "1")
    set_precision("float32")
    (x,) = random_arrays((5, 6))
    layer = Linear(6, 4, relu=True)
    expected = layer(x).array
    layer.to_device(gpu)
    library = Cublas()
    results, _ = recorded(lambda: layer(gpu.send(x)).array, library)
    assert library.streams
    for found in results:
        assert error(found, expected) < EXACT


def test_a_factor_that_is_no_whole_matrix_is_refused(gpu):
    with pytest.raises(ValueError, match="a factor must be contiguous"):
        product(gpu.send(np.ones((4, 4), "f"))[:, ::2], gpu.send(np.ones((2, 3), "f")))


@pytest.mark.parametrize("channels", [1, 2, 4, 28])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_the_neighbours_of_each_square(gpu, channels, dtype):
    (x,) = random_arrays((3, channels, 9, 9))
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    found = convolution.neighbours(gpu.send(x), dtype, 0.5).get()
    found = found.reshape(3, 9, 9, 3, 3, channels)
    for row, column, dy, dx in itertools.product(range(9), range(9), range(3), range(3)):
        expected = (0.5 * padded[:, :, row + dy, column + dx]).astype(dtype)
        np.testing.assert_array_equal(found[:, row, column, dy, dx], expected)


def gradients(device, arrays, gy, relu):
    """Computes the output and the gradients of a convolution."""
    variables = [chainer.Variable(device.send(array)) for array in arrays]
    y = convolution_2d(*variables, relu=relu)
    y.grad = device.send(gy)
    y.backward()
    return [y.array, *(variable.grad for variable in variables)]


@pytest.mark.parametrize("precision", ["tf32", "float16"])
@pytest.mark.parametrize(("inputs", "ksize"), [(28, 3), (6, 3), (12, 1)])
def test_other_precisions_are_rounded_and_not_wrong(gpu, precision, inputs, ksize):
    *arrays, gy = random_arrays((5, inputs, 9, 9), (8, inputs, ksize, ksize), 8, (5, 8, 9, 9))
    # Without the factor of the gradients, float16 would round these by more than a percent.
    gy *= np.float32(1e-6)
    set_precision("float32")
    # Without ReLU: rounding changes the sign of numbers near 0.
    expected = [array.get() for array in gradients(gpu, arrays, gy, False)]
    set_precision(precision)
    rounded = gradients(gpu, arrays, gy, False)
    for found, exact in zip(rounded, expected):
        assert found.dtype == np.float32
        assert error(found, exact) < ROUGH
    # A GPU may compute such small products in float32.
    if gpu.xp.cuda.runtime.getDeviceProperties(0)["name"] == b"stand-in":
        for found, exact in zip(rounded[:3], expected):  # the gradient of b is a sum
            assert error(found, exact) > 1e-5


def test_a_number_beyond_float16_is_cut_off_and_nan_stays(gpu):
    x = np.zeros((1, 4, 9, 9), np.float32)
    x[0, :, 0, 0] = 1e9, -1e9, np.nan, 1
    found = convolution.neighbours(gpu.send(x), np.float16).get()[0, 16:20]
    np.testing.assert_array_equal(found, [65504, -65504, np.nan, 1])


def test_only_the_gradients_that_are_used_are_computed(gpu):
    x, W, gy = map(gpu.send, random_arrays((2, 4, 9, 9), (3, 4, 3, 3), (2, 3, 9, 9)))
    for indexes in ((0,), (1, 2), (0, 1)):
        found = Convolution("winograd").backward(x, W, None, gy, indexes)
        assert [n for n, array in enumerate(found) if array is not None] == list(indexes)


def test_a_kernel_takes_only_contiguous_float_arrays_and_sizes_of_an_int(gpu):
    double = Kernel("twice", "float* x", "    x[i] *= 2;\n")
    x = gpu.send(np.arange(6, dtype=np.float32).reshape(2, 3))
    double(5, x)
    np.testing.assert_array_equal(x.get(), [[0, 2, 4], [6, 8, 5]])
    for array in (x.T, gpu.send(np.ones(6))):
        with pytest.raises(ValueError, match="kernel twice: an array must be float"):
            double(6, array)
    for size, kind in ((0, ValueError), (2**31 - 255, MemoryError)):
        with pytest.raises(kind, match=f"kernel twice: {size} threads"):
            double(size, x)
