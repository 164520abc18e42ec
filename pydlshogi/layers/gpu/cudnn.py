"""Convolution on a GPU by NVIDIA's library cuDNN, through the package nvidia-cudnn-frontend.

cuDNN computes a graph of operations: a convolution or one of its gradients, with bias and ReLU
behind it. A graph is built once for each task, shape and precision. All arrays are stored in the
order (batch, row, column, channel), filters as (out, row, column, in).

In ``float16`` and ``bfloat16``, the inputs of a graph have 16 bits, and its result is float32. A
gradient is multiplied by a factor in the graph, and a bias, which may be 0, is added to a result.
The factor reverses that of float16. Without either, cuDNN has no graph with a float32 result.
"""

from __future__ import annotations

import functools
import threading
from typing import Any

import numpy

from pydlshogi.errors import UserError
from pydlshogi.layers.gpu.kernels import contiguous, to_boards, to_rows
from pydlshogi.layers.gpu.products import get_precision, gradient_scale, narrow

#: The inputs' type in cuDNN for each precision.
_TYPES = {"float32": "FLOAT", "tf32": "FLOAT", "float16": "HALF", "bfloat16": "BFLOAT16"}

#: What no graph may do: sum in another order each time, and round more than the precision says.
_AVOIDED = ("NONDETERMINISTIC", "DOWN_CONVERT_INPUTS", "REDUCED_PRECISION_REDUCTION")

#: Boundary in bytes on which cuDNN expects arrays to begin.
_ALIGNMENT = 16

#: cuDNN's handles by thread and number of the GPU: threads cannot share one.
_handles: dict[tuple[int, int], Any] = {}


class CudnnError(UserError):
    """cuDNN cannot compute here, or not this shape."""


def require(device: Any, convolution: str) -> None:
    """Raises CudnnError unless cuDNN computes on a ``chainer.backend.Device``.

    The precision ``bfloat16`` needs that.
    """
    try:
        if device.xp is numpy:
            raise CudnnError("the device is the CPU")
        if convolution not in ("auto", "cudnn"):
            raise CudnnError(f"the convolution is {convolution}")
        device.use()
        _handle()
    except CudnnError as reason:
        raise CudnnError(
            f"the precision bfloat16 needs cuDNN on a GPU, but {reason}. Choose another precision."
        ) from None


def current_gpu() -> int:
    """Returns the number of the current GPU."""
    import cupy

    return int(cupy.cuda.Device().id)


def forward(x: Any, W: Any, b: Any, relu: bool) -> Any:
    """Computes :meth:`pydlshogi.layers.gpu.convolve.Convolution.forward`."""
    if b is None and get_precision().endswith("16"):
        b = _constant(0.0, len(W), current_gpu())
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
    return scale, (_constant(1 / scale, 1, current_gpu()),)


@functools.cache
def _constant(value: float, count: int, gpu: int) -> Any:
    import cupy

    return cupy.full(count, value, numpy.float32)


_Shape = tuple[int, ...]


def _compute(task: str, x: _Shape, W: _Shape, inputs: tuple[Any, ...], relu: bool = False) -> Any:
    """Computes one of the functions above on the current stream of CuPy.

    ``x`` and ``W`` are the shapes of boards and filters. ``inputs`` are the arrays in the order of
    memory, with a bias or a factor as the third one.
    """
    import cupy

    precision, gpu = get_precision(), current_gpu()
    graph, (n, channels, *size) = _graph(task, x, W, len(inputs) > 2, relu, precision, gpu)
    result = cupy.empty((n * size[0] * size[1], channels), numpy.float32)
    workspace = cupy.empty(max(1, graph.get_workspace_size()), numpy.uint8)
    aligned = [array if array.data.ptr % _ALIGNMENT == 0 else array.copy() for array in inputs]
    addresses = {number: array.data.ptr for number, array in enumerate((result, *aligned), 1)}
    graph.execute(addresses, workspace.data.ptr, _handle())
    return to_boards(result, *size)


def _handle() -> Any:
    """Returns the handle of this thread and the current GPU, on the current stream of CuPy."""
    import cupy

    key = threading.get_ident(), current_gpu()
    try:
        import cudnn

        if key not in _handles:
            _handles[key] = cudnn.create_handle()
        cudnn.set_stream(_handles[key], cupy.cuda.get_current_stream().ptr)
    except ImportError:
        reason = "the package nvidia-cudnn-frontend is not installed (see docs/gpu.md)"
        raise CudnnError(reason) from None
    except Exception as error:  # a library that is missing or too old fails in many ways
        raise CudnnError(f"cuDNN cannot be used: {_in_words(error)}") from None
    return _handles[key]


@functools.cache
def _graph(
    task: str, x: _Shape, W: _Shape, has_third: bool, relu: bool, precision: str, gpu: int
) -> tuple[Any, list[int]]:
    """Builds the graph of a task; returns it and the shape of its result."""
    handle = _handle()
    y = (x[0], W[0], *x[2:])
    orders = {"forward": (y, x, W), "data_gradient": (x, y, W), "filter_gradient": (W, x, y)}
    third = [(1, W[0] if task == "forward" else 1, 1, 1)] if has_third else []
    shapes = [list(shape) for shape in (*orders[task], *third)]
    pads = [W[2] // 2, W[3] // 2]
    try:
        return _build(handle, task, shapes, pads, relu, precision), shapes[0]
    except Exception as error:  # of a shape or GPU that cuDNN does not support; no RuntimeError
        raise CudnnError(f"{task} {x} {W}: {_in_words(error)}") from None


def _build(
    handle: Any, task: str, shapes: list[list[int]], pads: list[int], relu: bool, precision: str
) -> Any:
    import cudnn

    kinds = cudnn.data_type
    kind = getattr(kinds, _TYPES[precision])
    graph = cudnn.pygraph(
        io_data_type=kind,
        intermediate_data_type=kinds.FLOAT,
        compute_data_type=kinds.FLOAT,
        handle=handle,
    )
    # The result has the number 1, and the inputs follow.
    inputs = [
        graph.tensor(dim=shape, stride=_strides(shape), data_type=kind).set_uid(number)
        for number, (shape, kind) in enumerate(zip(shapes[1:], (kind, kind, kinds.FLOAT)), 2)
    ]
    first, second, *third = inputs
    options = {"padding": pads, "stride": [1, 1], "dilation": [1, 1]}
    if task == "forward":
        result = graph.conv_fprop(image=first, weight=second, **options)
    elif task == "data_gradient":
        result = graph.conv_dgrad(loss=first, filter=second, **options)
    else:
        result = graph.conv_wgrad(image=first, loss=second, **options)
    result.set_dim(shapes[0]).set_stride(_strides(shapes[0]))
    if third and task == "forward":
        result = graph.bias(input=result, bias=third[0])
    elif third:
        result = graph.mul(a=result, b=third[0])
    if relu:
        result = graph.relu(input=result)
    result.set_output(True).set_data_type(kinds.FLOAT).set_uid(1)
    graph.validate()
    graph.build_operation_graph()
    graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
    avoided = (*_AVOIDED, "TENSOR_CORE") if precision == "float32" else _AVOIDED
    graph.deselect_numeric_notes([getattr(cudnn.numerical_note, name) for name in avoided])
    graph.check_support()
    graph.build_plans()
    return graph


def _strides(shape: list[int]) -> list[int]:
    """Computes the strides of an array in the order (batch, row, column, channel)."""
    _, channels, height, width = shape
    return [channels * height * width, 1, channels * width, channels]


def _in_words(error: Exception) -> str:
    return " ".join(str(error).split("\n")[:2]).strip()[:200] or type(error).__name__
