"""The stand-in for CuPy is strict, and the tests marked ``gpu`` pass on it.

The tests of the GPU run in a process of their own: Chainer must be imported after the
stand-in. They contain whole trainings, forward and backward passes of every network with both
convolutions, the evaluator and the conversion of positions. A slip between host and device
fails here. What they do not show: the kernels of CuPy, CUDA, speed and rounding of a real GPU.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import cuda_on_cpu
import cupy_stand_in as cupy
import numpy
import pytest

ROOT = Path(__file__).resolve().parents[1]

#: Tests that take a few seconds together.
FEW = (
    "tests/test_features.py",
    "tests/commands/test_evaluate_model.py",
    "tests/training/test_training_batches.py",
    "tests/inference/test_evaluator.py",
    "tests/layers/test_gpu_products.py",
    "tests/model_files/test_fold.py",
)
ALL = (
    *("tests/layers", "tests/network", "tests/model_files", "tests/inference"),
    *("tests/player", "tests/training", *FEW[:2]),
)


@pytest.fixture
def array():
    return cupy.array(numpy.arange(6, dtype=numpy.float32).reshape(2, 3))


@pytest.mark.parametrize(
    "convert", [numpy.asarray, numpy.array, numpy.sum, numpy.stack, numpy.concatenate, numpy.exp]
)
def test_nothing_becomes_a_numpy_array_by_accident(array, convert):
    with pytest.raises(TypeError):
        convert(array)


HOST = numpy.ones((2, 3), numpy.float32)


@pytest.mark.parametrize(
    "mix",
    [
        lambda x: x + HOST,
        lambda x: HOST + x,
        lambda x: x > HOST,
        lambda x: x @ HOST.T,
        lambda x: x.__setitem__(slice(None), HOST),
        lambda x: x.__iadd__(HOST),
        lambda x: x.dot(HOST.T),
        lambda x: cupy._function("maximum")(x, HOST),
        lambda x: cupy._function("where")(x > 1, x, HOST),
        lambda x: cupy._function("exp")(HOST),
        lambda x: cupy._function("concatenate")([x, HOST]),
        lambda x: HOST.__setitem__(slice(None), x),
        lambda x: x.__setitem__(0, [1, 2, 3]),
        lambda x: range(x.astype("i")[0, 1]),
        lambda x: [1, 2][x.astype("i")[0, 1]],
    ],
)
def test_numpy_arrays_do_not_mix_with_those_of_the_gpu(array, mix):
    with pytest.raises(TypeError):
        mix(array)


def test_a_gpu_has_no_objects_and_no_records():
    for host in (numpy.array([None]), numpy.array(["a"]), numpy.zeros(1, [("a", "i4")])):
        with pytest.raises(ValueError, match="no dtype"):
            cupy.array(host)


def test_what_cupy_allows_gives_the_numbers_of_numpy(array):
    host = array.get()
    assert type(host) is numpy.ndarray
    for made, expected in (
        (array * 2 + numpy.float32(1), host * 2 + 1),
        (numpy.float32(3) * array, 3 * host),
        (array[:, numpy.array([2, 0])], host[:, [2, 0]]),
        (array.T @ array, host.T @ host),
        (array.sum(axis=0), host.sum(axis=0)),
        (array.sum(), host.sum()),
    ):
        assert isinstance(made, cupy.ndarray) and not isinstance(made, numpy.ndarray)
        numpy.testing.assert_array_equal(made.get(), expected)


def test_a_kernel_that_is_not_known_is_named():
    with pytest.raises(NotImplementedError, match="kernel mine"):
        cupy.ElementwiseKernel("T x", "T y", "y = x", "mine")(cupy.array([1]))


def test_a_kernel_refuses_dtypes_that_are_not_the_declared_ones(array):
    update = cupy.ElementwiseKernel("T grad, T lr", "T param", "param -= lr * grad", "sgd")
    assert update(array, 0.5, cupy.array(HOST)).get()[1, 2] == -1.5
    with pytest.raises(TypeError, match="float64 where T is float32"):
        update(array, 0.5, cupy.array(HOST.astype(numpy.float64)))
    labels = cupy.ElementwiseKernel("int32 t", "T y", "y = t", "sgd")
    with pytest.raises(TypeError, match="int64 where int32 is int32"):
        labels(cupy.array(numpy.arange(2)), array)


with_compiler = pytest.mark.skipif(
    not cuda_on_cpu.COMPILER, reason="compiling the kernels needs g++ or clang++"
)


def run_gpu_tests(*paths):
    """Runs the tests marked gpu on the stand-in; returns the number that passed."""
    folders = [str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")]
    command = [sys.executable, "-m", "pytest", "-p", "cupy_stand_in", "-p", "no:cacheprovider"]
    result = subprocess.run(
        [*command, "-q", "--tb=short", "-m", "gpu and not slow", *paths],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr
    summary = result.stdout.splitlines()[-1]
    assert "skipped" not in summary
    return int(re.search(r"(\d+) passed", summary)[1])


@with_compiler
def test_the_tests_of_cudnn_pass_on_its_stand_in():
    assert run_gpu_tests("tests/layers/test_gpu_cudnn.py") > 40


@pytest.mark.long
@with_compiler
def test_some_tests_of_the_gpu_pass_on_the_stand_in():
    assert run_gpu_tests(*FEW) > 15


@pytest.mark.slow
@with_compiler
def test_all_tests_of_the_gpu_pass_on_the_stand_in():
    assert run_gpu_tests(*ALL) > 150
