"""Convolution on a GPU by NVIDIA's library cuDNN, through the package nvidia-cudnn-frontend.

cuDNN computes a graph of operations: a convolution or one of its gradients, with bias and ReLU
behind it. A graph is built once for each task, shape and precision. All arrays are stored in the
order (batch, row, column, channel), filters as (out, row, column, in).

In ``float16`` and ``bfloat16``, the inputs of a graph have 16 bits, and its result is float32. A
gradient is multiplied by a factor in the graph. It reverses the factor of float16, and without it
cuDNN would have no graph with a float32 result.
"""

from __future__ import annotations

import functools
import threading
from typing import Any, NamedTuple

import numpy

from pydlshogi.errors import UserError
from pydlshogi.layers.gpu.kernels import contiguous, to_boards, to_rows
from pydlshogi.layers.gpu.products import get_precision, gradient_scale, narrow

#: The inputs' type in cuDNN for each precision.
_TYPES = {"float32": "FLOAT", "tf32": "FLOAT", "float16": "HALF", "bfloat16": "BFLOAT16"}

#: What no graph may do: sum in another order each time, and round more than the precision says.
_AVOIDED = ("NONDETERMINISTIC", "DOWN_CONVERT_INPUTS", "REDUCED_PRECISION_REDUCTION")

#: Number of a graph's first array, the result. The inputs follow.
_RESULT = 1

#: Boundary in bytes on which cuDNN expects arrays to begin.
_ALIGNMENT = 16

#: cuDNN's handles by thread and number of the GPU: threads cannot share one.
_handles: dict[tuple[int, int], Any] = {}


class _Task(NamedTuple):
    """What a graph computes.

    Attributes:
        name: Name of a function of this module.
        x: Shape of the boards, (n, in, height, width).
        W: Shape of the filters, (out, in, rows, columns).
        has_third: Whether there is a bias, or the factor of a gradient.
        relu: Whether to apply ReLU to the result.
        precision: One of ``_TYPES``.
        gpu: Number of the GPU.
    """

    name: str
    x: tuple[int, ...]
    W: tuple[int, ...]
    has_third: bool
    relu: bool
    precision: str
    gpu: int


class CudnnError(UserError):
    """cuDNN cannot compute here, or not this shape."""


def require(device: Any, convolution: str) -> None:
    """Checks that cuDNN computes on a ``chainer.backend.Device``, as ``bfloat16`` needs it.

    Raises:
        CudnnError: it does not.
    """
    if device.xp is numpy:
        reason = "the device is the CPU"
    elif convolution not in ("auto", "cudnn"):
        reason = f"--convolution {convolution} does not use it"
    else:
        device.use()
        reason = missing()
    if reason:
        raise CudnnError(
            f"--precision bfloat16 needs cuDNN on a GPU, but {reason}. Choose another precision."
        )


def missing() -> str:
    """Says why cuDNN cannot compute on the current GPU; empty if it can."""
    return _missing(current_gpu())


@functools.cache
def _missing(gpu: int) -> str:
    try:
        _handle()
    except ImportError:
        return "the package nvidia-cudnn-frontend is not installed (see docs/gpu.md)"
    except Exception as error:  # a library that is missing or too old fails in many ways
        return f"cuDNN cannot be used: {_first_line(error)}"
    return ""


def current_gpu() -> int:
    """Returns the number of the current GPU."""
    import cupy

    return int(cupy.cuda.Device().id)


def forward(x: Any, W: Any, b: Any, relu: bool) -> Any:
    """Computes :meth:`pydlshogi.layers.gpu.convolve.Convolution.forward`."""
    bias = () if b is None else (contiguous(b),)
    return _compute("forward", x.shape, W.shape, (_operand(x), _operand(W), *bias), relu)


def data_gradient(g: Any, W: Any) -> Any:
    """Computes the gradient of x, (n, in, height, width), from that of the result."""
    shape = (len(g), W.shape[1], *g.shape[2:])
    scale, factor = _scale(len(g))
    return _compute("data_gradient", shape, W.shape, (_operand(g, scale), _operand(W), *factor))


def filter_gradient(x: Any, g: Any, shape: tuple[int, ...]) -> Any:
    """Computes the gradient of filters of a shape (out, in, rows, columns)."""
    scale, factor = _scale(len(g))
    inputs = (_operand(x), _operand(g, scale), *factor)
    return contiguous(_compute("filter_gradient", x.shape, shape, inputs))


def _operand(array: Any, scale: float = 1.0) -> Any:
    """Stores boards or filters as the inputs of a graph."""
    rows, precision = to_rows(array), get_precision()
    return narrow(rows, precision, scale) if precision.endswith("16") else rows


def _scale(n: int) -> tuple[float, tuple[Any, ...]]:
    """Returns the factor of the gradients of n positions, and the inputs that reverse it."""
    precision = get_precision()
    if not precision.endswith("16"):
        return 1.0, ()
    scale = gradient_scale(n) if precision == "float16" else 1.0
    return scale, (_factor(1 / scale, current_gpu()),)


@functools.cache
def _factor(value: float, gpu: int) -> Any:
    import cupy

    return cupy.full(1, value, numpy.float32)


def _compute(
    name: str,
    x: tuple[int, ...],
    W: tuple[int, ...],
    inputs: tuple[Any, ...],
    relu: bool = False,
) -> Any:
    """Computes a graph on the current stream of CuPy; the arguments are those of :class:`_Task`.

    Raises:
        CudnnError: cuDNN has no such graph.
    """
    import cupy

    task = _Task(name, x, W, len(inputs) > 2, relu, get_precision(), current_gpu())
    graph = _graph(task)
    shape = _shapes(task)[0]
    result = cupy.empty((shape[0] * shape[2] * shape[3], shape[1]), numpy.float32)
    workspace = cupy.empty(max(1, graph.get_workspace_size()), numpy.uint8)
    aligned = [array if array.data.ptr % _ALIGNMENT == 0 else array.copy() for array in inputs]
    addresses = {number: array.data.ptr for number, array in enumerate((result, *aligned), _RESULT)}
    graph.execute(addresses, workspace.data.ptr, _handle())
    return to_boards(result, *shape[2:])


def _handle() -> Any:
    """Returns the handle of this thread and the current GPU, on the current stream of CuPy."""
    import cudnn
    import cupy

    key = threading.get_ident(), current_gpu()
    if key not in _handles:
        _handles[key] = cudnn.create_handle()
    cudnn.set_stream(_handles[key], cupy.cuda.get_current_stream().ptr)
    return _handles[key]


@functools.cache
def _graph(task: _Task) -> Any:
    """Builds the graph of a task.

    Raises:
        CudnnError: cuDNN has no such graph.
    """
    import cudnn

    try:
        return _build(cudnn, task)
    except Exception as error:  # of a shape or GPU that cuDNN does not support; no RuntimeError
        raise CudnnError(f"{task.name} {task.x} {task.W}: {_first_line(error)}") from None


def _build(cudnn: Any, task: _Task) -> Any:
    kinds, notes = cudnn.data_type, cudnn.numerical_note
    kind = getattr(kinds, _TYPES[task.precision])
    graph = cudnn.pygraph(
        io_data_type=kind,
        intermediate_data_type=kinds.FLOAT,
        compute_data_type=kinds.FLOAT,
        handle=_handle(),
    )
    shape, *shapes = _shapes(task)
    inputs = [
        graph.tensor(dim=dim, stride=_strides(dim), data_type=kind)
        for dim, kind in zip(shapes, (kind, kind, kinds.FLOAT))
    ]
    for number, tensor in enumerate(inputs, _RESULT + 1):
        tensor.set_uid(number)
    first, second, *third = inputs
    pad = [task.W[2] // 2, task.W[3] // 2]
    options = {"padding": pad, "stride": [1, 1], "dilation": [1, 1]}
    if task.name == "forward":
        result = graph.conv_fprop(image=first, weight=second, **options)
    elif task.name == "data_gradient":
        result = graph.conv_dgrad(loss=first, filter=second, **options)
    else:
        result = graph.conv_wgrad(image=first, loss=second, **options)
    result.set_dim(shape).set_stride(_strides(shape))
    if third and task.name == "forward":
        result = graph.bias(input=result, bias=third[0])
    elif third:
        result = graph.mul(a=result, b=third[0])
    if task.relu:
        result = graph.relu(input=result)
    result.set_output(True).set_data_type(kinds.FLOAT).set_uid(_RESULT)
    graph.validate()
    graph.build_operation_graph()
    graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
    avoided = (*_AVOIDED, "TENSOR_CORE") if task.precision == "float32" else _AVOIDED
    graph.deselect_numeric_notes([getattr(notes, name) for name in avoided])
    graph.check_support()
    graph.build_plans()
    return graph


def _shapes(task: _Task) -> list[list[int]]:
    """Lists the shapes of a graph's result and inputs, as (batch, channels, height, width)."""
    x, W = list(task.x), list(task.W)
    y = [x[0], W[0], *x[2:]]
    orders = {"forward": (y, x, W), "data_gradient": (x, y, W), "filter_gradient": (W, x, y)}
    third = [1, W[0] if task.name == "forward" else 1, 1, 1]
    return [*orders[task.name], third] if task.has_third else [*orders[task.name]]


def _strides(shape: list[int]) -> list[int]:
    """Computes the strides of an array in the order (batch, row, column, channel)."""
    _, channels, height, width = shape
    return [channels * height * width, 1, channels * width, channels]


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:200] or type(error).__name__
