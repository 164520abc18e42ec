"""Convolution for 9×9 boards: Chainer's link, computed faster.

:class:`Convolution2D` is ``chainer.links.Convolution2D`` with the same parameters,
initialization and npz. Where it can (float32, a 9×9 board, 3×3 filters, padding 1) it
computes by Winograd's minimal filtering (:mod:`pydlshogi.network.winograd`), else it
leaves the work to Chainer.

Arrays keep Chainer's shape (batch, channels, 9, 9), but those made here lie in memory as
(row, column, batch, channel). Chainer's own functions take them as they are and mostly
keep that order, so that batch normalization, residual sums and other functions can stand
between two of these links.
"""

from __future__ import annotations

from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.network import winograd
from pydlshogi.network.threads import get_threads, set_threads

__all__ = ["CONVOLUTIONS", "Convolution2D", "convolution_2d", "get_threads", "set_threads"]

F = chainer.functions
L = chainer.links

#: Ways to compute: "winograd" ours wherever it can, "chainer" Chainer's own everywhere,
#: "auto" ours on a CPU and Chainer's own on a GPU.
CONVOLUTIONS = ("auto", "winograd", "chainer")

#: Axes from (batch, channel, row, column) to (row, column, batch, channel), and back.
_AXES = (2, 3, 0, 1)


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
    """Filters boards with 3×3 filters and padding 1.

    Args:
        x: (batch, channels in, 9, 9), in any order in memory; Variable or array.
        W: (channels out, channels in, 3, 3).
        b: (channels out,), or None.
        relu: Whether ReLU follows; fused it costs next to nothing.
        convolution: One of :data:`CONVOLUTIONS`.

    Returns:
        chainer.Variable (batch, channels out, 9, 9). What cannot be computed here (other
        shapes and dtypes than the above in float32, arrays neither numpy's nor cupy's)
        comes from ``chainer.functions.convolution_2d``, and so do its errors.

    Raises:
        ValueError: ``convolution`` is not known.
    """
    inputs = [chainer.as_variable(v) for v in (x, W, b) if v is not None]
    if _computed_here(check_convolution(convolution), *(v.array for v in inputs)):
        return _Convolution(relu).apply(inputs)[0]
    y = F.convolution_2d(inputs[0], inputs[1], *inputs[2:], pad=1)  # type: ignore[misc]
    return F.relu(y) if relu else y


def _computed_here(convolution: str, x: Any, W: Any, *b: Any) -> bool:
    """Tells whether x and W are such that the computation here is right and wanted."""
    xp = chainer.backend.get_array_module(x)
    fast = (numpy,) if convolution == "auto" else (numpy, chainer.backends.cuda.cupy)
    return (
        convolution != "chainer"
        and any(xp is module for module in fast)
        and all(isinstance(array, xp.ndarray) for array in (x, W, *b))
        and all(array.dtype == numpy.float32 for array in (x, W, *b))
        and W.ndim == 4
        and W.shape[2:] == (3, 3)
        and x.ndim == 4
        and x.shape[1:] == (W.shape[1], winograd.SIDE, winograd.SIDE)
        and x.shape[0] > 0
        and all(array.shape == W.shape[:1] for array in b)
    )


class _Convolution(chainer.FunctionNode):
    """Winograd's convolution, bias and ReLU as one step of Chainer's graph."""

    def __init__(self, relu: bool) -> None:
        self.relu = relu

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any]:
        x, W = inputs[:2]
        b = inputs[2] if len(inputs) == 3 else None
        self.retain_inputs((0, 1))
        if self.relu:
            self.retain_outputs((0,))
        return (winograd.forward(x.transpose(_AXES), W, b, self.relu).transpose(_AXES),)

    def backward(self, indexes: tuple[int, ...], grad_outputs: tuple[Any]) -> tuple[Any, ...]:
        x, W = self.get_retained_inputs()
        (gy,) = grad_outputs
        y = self.get_retained_outputs()[0].array if self.relu else None
        if chainer.config.enable_backprop:
            return _differentiable_gradients(x, W, y, gy, indexes)
        gx, gW, gb = winograd.backward(
            x.array.transpose(_AXES),
            W.array,
            None if y is None else y.transpose(_AXES),
            gy.array.transpose(_AXES),
            0 in indexes,
        )
        if gx is not None:
            gx = gx.transpose(_AXES)
        return tuple(chainer.as_variable((gx, gW, gb)[i]) for i in indexes)


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
    gradients = []
    for index in indexes:
        if index == 0:
            gradients.append(F.deconvolution_2d(gy, W, pad=1))
        elif index == 1:
            # The gradient of W is itself a filtering, of x with gy, summed over the batch.
            gW = F.convolution_2d(F.swapaxes(x, 0, 1), F.swapaxes(gy, 0, 1), pad=1)
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
        plain = (self.stride, self.pad, self.dilate, self.groups) == ((1, 1), (1, 1), (1, 1), 1)
        if plain and self.W.array is not None:
            return convolution_2d(x, self.W, self.b, relu=self.relu, convolution=self.convolution)
        y = super().forward(x)
        return F.relu(y) if self.relu else y
