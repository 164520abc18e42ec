"""Convolution for 9×9 boards: Chainer's link, computed faster.

:class:`Convolution2D` is ``chainer.links.Convolution2D`` with the same parameters,
initialization and npz. In float32, 3×3 filters on 9×9 boards are computed by Winograd's
minimal filtering (:mod:`pydlshogi.network.cpu.winograd`) and 1×1 filters as plain products
(:mod:`pydlshogi.network.cpu.pointwise`); all else is left to Chainer. A few boards alone, as
in play, go another way (:mod:`pydlshogi.network.cpu.direct`).

Arrays keep Chainer's shape (batch, channels, 9, 9), but those made here lie in memory as
(row, column, batch, channel). Chainer's own functions take them as they are and mostly
keep that order, so that batch normalization, residual sums and other functions can stand
between two of these links.
"""

from __future__ import annotations

from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.network.cpu import direct, pointwise, winograd
from pydlshogi.network.cpu.threads import get_threads, set_threads

__all__ = ["CONVOLUTIONS", "Convolution2D", "convolution_2d", "get_threads", "set_threads"]

F = chainer.functions
L = chainer.links

#: Ways to compute: "winograd" ours wherever it can, "chainer" Chainer's own everywhere,
#: "auto" ours on a CPU and Chainer's own on a GPU.
CONVOLUTIONS = ("auto", "winograd", "chainer")


def check_convolution(convolution: str) -> str:
    """Returns a way to compute, checked.

    Args:
        convolution: One of :data:`CONVOLUTIONS`.

    Raises:
        ValueError: it is not.
    """
    if convolution not in CONVOLUTIONS:
        raise ValueError(
            f"convolution {convolution!r} is not known; choose from {', '.join(CONVOLUTIONS)}"
        )
    return convolution


def convolution_2d(
    x: Any, W: Any, b: Any = None, *, relu: bool = False, convolution: str = "auto"
) -> Any:
    """Filters boards, padded so that they keep their size.

    Args:
        x: (batch, channels in, height, width), in any order in memory; Variable or array.
        W: (channels out, channels in, 3, 3) or (channels out, channels in, 1, 1).
        b: (channels out,), or None.
        relu: Whether ReLU follows; fused it costs next to nothing.
        convolution: One of :data:`CONVOLUTIONS`.

    Returns:
        chainer.Variable (batch, channels out, height, width). What is not computed here
        (other dtypes than float32, 3×3 filters on other than 9×9 boards, other filters)
        comes from ``chainer.functions.convolution_2d``, and so do the errors.

    Raises:
        ValueError: ``convolution`` is not known.
    """
    inputs = [chainer.as_variable(v) for v in (x, W, b) if v is not None]
    method = _method(check_convolution(convolution), *(v.array for v in inputs))
    if method is not None:
        return _Convolution(method, relu).apply(inputs)[0]
    pad = (W.shape[2] // 2, W.shape[3] // 2)
    y = F.convolution_2d(x, W, b, pad=pad)
    return F.relu(y) if relu else y


def _method(convolution: str, x: Any, W: Any, *b: Any) -> Any:
    """Chooses the module that computes; None where Chainer's own is wanted or needed."""
    xp = chainer.backend.get_array_module(x)
    if (
        convolution == "chainer"
        or not all(isinstance(array, xp.ndarray) for array in (x, W, *b))
        or not all(array.dtype == numpy.float32 for array in (x, W, *b))
        or not (x.ndim == W.ndim == 4 and x.shape[1] == W.shape[1] and x.size and W.size)
        or not all(array.shape == W.shape[:1] for array in b)
    ):
        return None
    if W.shape[2:] == (1, 1) and xp is numpy:
        return pointwise
    nine_by_nine = x.shape[2:] == (winograd.SIDE, winograd.SIDE)
    if W.shape[2:] == (3, 3) and nine_by_nine and (xp is numpy or convolution == "winograd"):
        return winograd
    return None


class _Convolution(chainer.FunctionNode):
    """Convolution, bias and ReLU as one step of Chainer's graph.

    Args:
        method: The module that computes.
        relu: Whether ReLU follows.
    """

    def __init__(self, method: Any, relu: bool) -> None:
        self.method = method
        self.relu = relu

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any]:
        """Computes the output from the arrays x, W and, where there is one, b."""
        x, W, *b = inputs
        self.retain_inputs((0, 1))
        if self.relu:
            self.retain_outputs((0,))
        few = isinstance(x, numpy.ndarray) and len(x) <= direct.MOST
        method = direct if self.method is winograd and few else self.method
        return (method.forward(x, W, b[0] if b else None, self.relu),)

    def backward(self, indexes: tuple[int, ...], grad_outputs: tuple[Any]) -> tuple[Any, ...]:
        """Computes the gradients of the inputs numbered in ``indexes``."""
        x, W = self.get_retained_inputs()
        (gy,) = grad_outputs
        y = self.get_retained_outputs()[0].array if self.relu else None
        if chainer.config.enable_backprop:
            return _differentiable_gradients(x, W, y, gy, indexes)
        gradients = self.method.backward(x.array, W.array, y, gy.array, 0 in indexes)
        return tuple(chainer.as_variable(gradients[index]) for index in indexes)


def _differentiable_gradients(
    x: Any, W: Any, y: Any, gy: Any, indexes: tuple[int, ...]
) -> tuple[Any, ...]:
    """Computes gradients by functions of Chainer's, so that they have gradients themselves.

    Args:
        x, W, gy: Variables.
        y: Array of the output where ReLU follows, else None.
        indexes: Which of x, W and b to give the gradients of.
    """
    if y is not None:
        gy = gy * (y > 0).astype(gy.dtype)
    pad = W.shape[2] // 2
    gradients = []
    for index in indexes:
        if index == 0:
            gradients.append(F.deconvolution_2d(gy, W, pad=pad))
        elif index == 1:
            # The gradient of W is itself a filtering, of x with gy, summed over the batch.
            gW = F.convolution_2d(F.swapaxes(x, 0, 1), F.swapaxes(gy, 0, 1), pad=pad)
            gradients.append(F.swapaxes(gW, 0, 1))
        else:
            gradients.append(F.sum(gy, axis=(0, 2, 3)))
    return tuple(gradients)


class Convolution2D(L.Convolution2D):
    """``chainer.links.Convolution2D`` that computes faster on 9×9 boards.

    Args:
        *args: As ``chainer.links.Convolution2D`` takes them.
        relu: Whether ReLU follows.
        convolution: One of :data:`CONVOLUTIONS`.
        **kwargs: As ``chainer.links.Convolution2D`` takes them.

    Raises:
        ValueError: ``convolution`` is not known.
    """

    def __init__(
        self, *args: Any, relu: bool = False, convolution: str = "auto", **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.relu = relu
        self.convolution = check_convolution(convolution)

    def forward(self, x: Any) -> Any:
        """Filters x.

        Args:
            x: (batch, channels in, height, width), Variable or array.

        Returns:
            chainer.Variable (batch, channels out, height out, width out).
        """
        if self.W.array is None:
            self._initialize_params(x.shape[1])
        height, width = self.W.shape[2:]
        same_size = (
            (self.stride, self.dilate, self.groups) == ((1, 1), (1, 1), 1)
            and height % 2 == width % 2 == 1
            and self.pad == (height // 2, width // 2)
        )
        if same_size and not self.cudnn_fast:
            return convolution_2d(x, self.W, self.b, relu=self.relu, convolution=self.convolution)
        y = super().forward(x)
        return F.relu(y) if self.relu else y
