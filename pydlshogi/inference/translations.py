"""Translations of Chainer's functions for the programs of :mod:`pydlshogi.inference.compiler`.

Each translation takes a function of a trace (:mod:`pydlshogi.model_files.trace`). It returns a
function of the same input arrays that works for any batch.
"""

from __future__ import annotations

from typing import Any, Callable

import numpy

from pydlshogi.model_files.trace import BATCH, any_batch


class UnknownFunction(Exception):
    """The network uses a function that has no translation."""


def translate(function: Any) -> Callable[..., Any]:
    """Translates a function of a trace into one of numpy arrays, whose result may be a view.

    Raises:
        UnknownFunction: there is no translation.
    """
    kind = type(function).__name__
    if kind not in _TABLE or len(function.outputs) != 1:
        raise UnknownFunction
    return _TABLE[kind](function)


def _pointwise(function: Any) -> Callable[..., Any]:
    """Translates a 1×1 convolution."""
    W = function.inputs[1]
    settings = (function.sy, function.sx, function.ph, function.pw, function.groups)
    if W.shape[2:] != (1, 1) or settings != (1, 1, 0, 0, 1):
        raise UnknownFunction

    def convolve(x: Any, W: Any, b: Any = None) -> Any:
        n, inputs, height, width = x.shape
        y = _linear(x.transpose(2, 3, 0, 1).reshape(-1, inputs), W.reshape(len(W), inputs), b)
        return y.reshape(height, width, n, len(W)).transpose(2, 3, 0, 1)

    return convolve


def _linear(x: Any, W: Any, b: Any = None) -> Any:
    y = x @ W.T
    if b is not None:
        y += b
    return y


def _normalization(function: Any) -> Callable[..., Any]:
    """Translates a batch normalization by the running statistics."""
    dimensions = len(function.inputs[0].shape)
    if function.key_axis != (1,):
        raise UnknownFunction
    shape = (-1, *(1,) * (dimensions - 2))

    def normalize(x: Any, gamma: Any, beta: Any, mean: Any, variance: Any) -> Any:
        factor = gamma / numpy.sqrt(variance + numpy.float32(function.eps))
        return x * factor.reshape(shape) + (beta - mean * factor).reshape(shape)

    return normalize


def _reshape(function: Any) -> Callable[..., Any]:
    shape = any_batch(function.outputs[0]().shape)
    return lambda x: x.reshape(shape)


def _broadcast(function: Any) -> Callable[..., Any]:
    shape = function.outputs[0]().shape
    if function.inputs[0].shape[:1] != (BATCH,):
        raise UnknownFunction
    return lambda x: numpy.broadcast_to(x, (len(x), *shape[1:]))


def _unpooling(function: Any) -> Callable[..., Any]:
    if function.inputs[0].shape[2:] != (1, 1):
        raise UnknownFunction
    return _broadcast(function)


def _get_item(function: Any) -> Callable[..., Any]:
    slices = function.slices
    if slices[0] != slice(None):
        raise UnknownFunction
    return lambda x: x[slices]


def _transpose(function: Any) -> Callable[..., Any]:
    return lambda x: x.transpose(function.axes)


def _concat(function: Any) -> Callable[..., Any]:
    axis = function.axis
    return lambda *arrays: numpy.concatenate(arrays, axis=axis)


def _with_number(operation: Callable[..., Any]) -> Callable[[Any], Callable[..., Any]]:
    def with_number(function: Any) -> Callable[..., Any]:
        number = numpy.asarray(function.value, numpy.float32)
        return lambda x: operation(x, number)

    return with_number


def _same(operation: Callable[..., Any]) -> Callable[[Any], Callable[..., Any]]:
    return lambda function: operation


#: The functions by the names of Chainer's classes.
_TABLE: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "Convolution2DFunction": _pointwise,
    "FixedBatchNormalization": _normalization,
    "LinearFunction": _same(_linear),
    "Reshape": _reshape,
    "BroadcastTo": _broadcast,
    "GetItem": _get_item,
    "Unpooling2D": _unpooling,
    "Transpose": _transpose,
    "Concat": _concat,
    "Add": _same(numpy.add),
    "Sub": _same(numpy.subtract),
    "Mul": _same(numpy.multiply),
    "AddConstant": _with_number(numpy.add),
    "MulConstant": _with_number(numpy.multiply),
    "ReLU": _same(lambda x: numpy.maximum(x, numpy.float32(0))),
    "Tanh": _same(numpy.tanh),
}
