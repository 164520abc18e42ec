"""Convolution for 9×9 boards: Chainer's link, computed faster.

:class:`Convolution2D` is ``chainer.links.Convolution2D`` with the same parameters,
initialization and npz. It computes float32 arrays by a method of ours:

- on a CPU, 3×3 filters on 9×9 boards: Winograd's algorithm
  (:mod:`pydlshogi.layers.cpu.winograd`); on at most three boards, one matrix product
  (:mod:`pydlshogi.layers.cpu.direct`);
- on a CPU, 1×1 filters: one matrix product a board (:mod:`pydlshogi.layers.cpu.pointwise`);
- on a GPU: cuDNN or our own kernels (:mod:`pydlshogi.layers.gpu.convolve`).

Chainer computes everything else. :func:`set_convolution` chooses the method for the whole
process.

Arrays have Chainer's shape (batch, channels, 9, 9). The arrays made here are stored in the
order (row, column, batch, channel) on a CPU, and (batch, row, column, channel) on a GPU.
Chainer's functions accept these orders and mostly keep them, so they can stand between two of
these links.
"""

from __future__ import annotations

from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.layers.cpu import direct, pointwise, winograd
from pydlshogi.layers.gpu import convolve as on_gpu

__all__ = [
    "CONVOLUTIONS",
    "Convolution2D",
    "convolution_2d",
    "get_convolution",
    "set_convolution",
    "using_convolution",
]

F = chainer.functions
L = chainer.links

#: The methods. "winograd": ours wherever possible. "auto" and "cudnn": the same on a CPU; on a GPU,
#: cuDNN where it is faster in training, and cuDNN wherever possible. "chainer": Chainer's own.
CONVOLUTIONS = ("auto", "winograd", "chainer", "cudnn")

#: Chainer's configuration has a value for the process, and on request another one for a thread.
_config: Any = chainer.global_config
_config.convolution = "auto"

#: Whether new layers draw initial weights. Those of a model file need none, and they take time.
_config.draws_weights = True


def set_convolution(name: str) -> None:
    """Chooses one of :data:`CONVOLUTIONS` for all layers of this process from now on."""
    _config.convolution = _known(name)


def get_convolution() -> str:
    """Returns the method that was chosen for this thread, or for the process; at first "auto"."""
    return str(chainer.config.convolution)


def using_convolution(name: str) -> Any:
    """Makes a context that chooses one of :data:`CONVOLUTIONS` for this thread."""
    return chainer.using_config("convolution", _known(name))


def _known(name: str) -> str:
    if name not in CONVOLUTIONS:
        raise ValueError(f"convolution {name!r} is unknown; choose from {', '.join(CONVOLUTIONS)}")
    return name


def convolution_2d(x: Any, W: Any, b: Any = None, *, relu: bool = False) -> Any:
    """Convolves boards with 3×3 or 1×1 filters; the padding keeps the size of the boards.

    Chainer computes other dtypes than float32, other boards or filters, and raises the errors.

    Args:
        x: (batch, channels in, height, width), in any memory order; Variable or array.
        W: (channels out, channels in, 3, 3) or (channels out, channels in, 1, 1).
        b: (channels out,), or None.
    """
    inputs = [chainer.as_variable(v) for v in (x, W, b) if v is not None]
    method = _method(*(v.array for v in inputs))
    if method is not None:
        return _Convolution(method, relu).apply(inputs)[0]
    pad = (W.shape[2] // 2, W.shape[3] // 2)
    y = F.convolution_2d(x, W, b, pad=pad)
    return F.relu(y) if relu else y


def _method(x: Any, W: Any, *b: Any) -> Any:
    """Returns the object that computes; None where Chainer does."""
    xp, name = chainer.backend.get_array_module(x), get_convolution()
    if (
        name == "chainer"
        or not all(isinstance(array, xp.ndarray) for array in (x, W, *b))
        or not all(array.dtype == numpy.float32 for array in (x, W, *b))
        or not (x.ndim == W.ndim == 4 and x.shape[1] == W.shape[1] and x.size and W.size)
        or not all(array.shape == W.shape[:1] for array in b)
    ):
        return None
    if W.shape[2:] == (1, 1):
        return pointwise if xp is numpy else on_gpu.BY_NAME[name]
    if W.shape[2:] == (3, 3) and x.shape[2:] == (winograd.SIDE, winograd.SIDE):
        return winograd if xp is numpy else on_gpu.BY_NAME[name]
    return None


class _Convolution(chainer.FunctionNode):
    """Convolution, bias and ReLU as one node of Chainer's graph.

    ``method`` computes: it has the functions ``forward`` and ``backward``.
    """

    def __init__(self, method: Any, relu: bool) -> None:
        self.method = method
        self.relu = relu

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any]:
        """Computes the output from the arrays x, W and optionally b."""
        x, W, *b = inputs
        self.retain_inputs((0, 1))
        if self.relu:
            self.retain_outputs((0,))
        few = self.method is winograd and len(x) <= direct.MOST
        method = direct if few else self.method
        return (method.forward(x, W, b[0] if b else None, self.relu),)

    def backward(self, indexes: tuple[int, ...], grad_outputs: tuple[Any]) -> tuple[Any, ...]:
        """Computes the gradients of the inputs with the numbers ``indexes``."""
        x, W = self.get_retained_inputs()
        (gy,) = grad_outputs
        y = self.get_retained_outputs()[0].array if self.relu else None
        if chainer.config.enable_backprop:
            return _differentiable_gradients(x, W, y, gy, indexes)
        gradients = self.method.backward(x.array, W.array, y, gy.array, indexes)
        return tuple(chainer.as_variable(gradients[index]) for index in indexes)


def _differentiable_gradients(
    x: Any, W: Any, y: Any, gy: Any, indexes: tuple[int, ...]
) -> tuple[Any, ...]:
    """Computes the gradients with Chainer's functions, for gradients of higher order.

    ``y`` is the array of the output after ReLU; None without ReLU.
    """
    if y is not None:
        gy = gy * (y > 0).astype(gy.dtype)
    pad = W.shape[2] // 2
    gradients = []
    for index in indexes:
        if index == 0:
            gradients.append(F.deconvolution_2d(gy, W, pad=pad))
        elif index == 1:
            # The gradient of W is a convolution of x with gy, summed over the batch.
            gW = F.convolution_2d(F.swapaxes(x, 0, 1), F.swapaxes(gy, 0, 1), pad=pad)
            gradients.append(F.swapaxes(gW, 0, 1))
        else:
            gradients.append(F.sum(gy, axis=(0, 2, 3)))
    return tuple(gradients)


class Convolution2D(L.Convolution2D):
    """``chainer.links.Convolution2D``, faster on 9×9 boards; ``relu`` applies ReLU after it."""

    def __init__(self, *args: Any, relu: bool = False, **kwargs: Any) -> None:
        if not chainer.config.draws_weights:
            kwargs["initialW"] = 0
        super().__init__(*args, **kwargs)
        self.relu = relu

    def forward(self, x: Any) -> Any:
        """Convolves (batch, channels in, height, width), a Variable or array."""
        if self.W.array is None:
            self._initialize_params(x.shape[1])
        height, width = self.W.shape[2:]
        same_size = (
            (self.stride, self.dilate, self.groups) == ((1, 1), (1, 1), 1)
            and height % 2 == width % 2 == 1
            and self.pad == (height // 2, width // 2)
        )
        if same_size and not self.cudnn_fast:
            return convolution_2d(x, self.W, self.b, relu=self.relu)
        y = super().forward(x)
        return F.relu(y) if self.relu else y
