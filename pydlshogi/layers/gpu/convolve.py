"""Convolution of boards on a GPU, by cuDNN or by our own kernels.

Arrays have Chainer's shape (batch, channels, height, width). :mod:`pydlshogi.layers.gpu.kernels`
describes their order in memory. :mod:`pydlshogi.layers.gpu.im2col` and
:mod:`pydlshogi.layers.gpu.cudnn` have the same three functions, ``forward``, ``data_gradient`` and
``filter_gradient``. This module chooses between them for each function and shape.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Collection
from typing import Any, Callable

import numpy

from pydlshogi.compat import chainer
from pydlshogi.layers.gpu import cudnn, im2col
from pydlshogi.layers.gpu.kernels import Kernel, to_boards, to_rows
from pydlshogi.layers.gpu.products import get_precision, product

logger = logging.getLogger(__name__)

#: Runs of each module that "auto" times, how often it does so, and the largest difference of their
#: results that it takes for rounding, relative to the largest number.
_RUNS, _ROUNDS, _TOLERANCE = 5, 3, 0.01

_relu_gradient = Kernel(
    "relu_gradient",
    "const float* y, const float* gy, float* g",
    "    g[i] = y[i] > 0 ? gy[i] : 0;\n",
)


class Convolution:
    """A convolution and its gradients.

    Args:
        name: "winograd": our own kernels, and tf32 for bfloat16. "cudnn": cuDNN; ours what it
            cannot compute. "auto": the faster of them in training, and ours in play, because cuDNN
            prepares each new batch size for a while; but cuDNN for bfloat16.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._modules: dict[tuple[Any, ...], Any] = {}
        self._has_warned = False

    def forward(self, x: Any, W: Any, b: Any, relu: bool) -> Any:
        """Convolves boards with 3×3 or 1×1 filters; the padding of the former is a square of zeros.

        Args:
            x: (n, channels in, 9, 9) float32 of the GPU; with 1×1 filters of any size.
            W: (channels out, channels in, 3, 3) or (channels out, channels in, 1, 1) float32.
            b: (channels out,) float32, or None.
            relu: Whether to apply ReLU to the result.
        """
        return self._compute("forward", x, W, b, relu)

    def backward(
        self, x: Any, W: Any, y: Any, gy: Any, indexes: Collection[int]
    ) -> tuple[Any, Any, Any]:
        """Computes the gradients of :meth:`forward`.

        Args:
            x, W: As in :meth:`forward`.
            y: The result of :meth:`forward` with ``relu``; None without.
            gy: Gradient of the result, of the same shape.
            indexes: The gradients to compute: 0 of x, 1 of W, 2 of b.

        Returns:
            The gradients of x, W and b, in float32; None for one that is not computed.
        """
        xp = chainer.backend.get_array_module(x)
        rows = to_rows(gy)
        if y is not None:
            masked = xp.empty_like(rows)
            _relu_gradient(rows.size, to_rows(y), rows, masked)
            rows = masked
        g = to_boards(rows, *gy.shape[2:])
        gx = gW = gb = None
        if 0 in indexes:
            gx = self._compute("data_gradient", g, W)
        if 1 in indexes:
            gW = self._compute("filter_gradient", x, g, W.shape)
        if 2 in indexes:
            gb = product(xp.ones((1, len(rows)), numpy.float32), rows)[0]
        return gx, gW, gb

    def _compute(self, task: str, *arguments: Any) -> Any:
        return getattr(self._module(task, arguments), task)(*arguments)

    def _module(self, task: str, arguments: tuple[Any, ...]) -> Any:
        """Returns the module that computes a task for arrays of these shapes."""
        precision = get_precision()
        measures = self._name == "auto" and precision != "bfloat16"
        if self._name == "winograd" or measures and not chainer.config.train:
            return im2col
        shapes = (getattr(argument, "shape", argument) for argument in arguments)
        key = (task, precision, cudnn.current_gpu(), *shapes)
        if key not in self._modules:
            self._modules[key] = self._choose(task, arguments, measures)
        return self._modules[key]

    def _choose(self, task: str, arguments: tuple[Any, ...], measures: bool) -> Any:
        ours, theirs = (
            functools.partial(getattr(module, task), *arguments) for module in (im2col, cudnn)
        )
        try:
            found = theirs()
        except Exception as error:  # the frontend of cuDNN raises many kinds
            return self._ours(str(error), logging.DEBUG if measures else logging.WARNING)
        if not measures:
            return cudnn
        expected = ours()
        if not abs(found - expected).max() <= _TOLERANCE * abs(expected).max():
            return self._ours(f"its results of {task} are wrong", logging.WARNING)
        times = [(_seconds(theirs), _seconds(ours)) for _ in range(_ROUNDS)]
        fastest_theirs, fastest_ours = map(min, zip(*times))
        return cudnn if fastest_theirs < fastest_ours else im2col

    def shares(self) -> tuple[int, int]:
        """Returns the number of tasks and shapes that cuDNN computes, and of all so far."""
        return [*self._modules.values()].count(cudnn), len(self._modules)

    def _ours(self, reason: str, level: int) -> Any:
        """Says once why our kernels compute, and returns their module."""
        level = logging.DEBUG if self._has_warned else level
        logger.log(level, "our own kernels compute some convolutions, not cuDNN: %s", reason)
        self._has_warned = self._has_warned or level == logging.WARNING
        return im2col


def _seconds(run: Callable[[], Any]) -> float:
    """Times some runs of compiled kernels; the GPU is idle before and after them."""
    import cupy

    stream = cupy.cuda.get_current_stream()
    stream.synchronize()
    start = time.perf_counter()
    for _ in range(_RUNS):
        run()
    stream.synchronize()
    return time.perf_counter() - start


#: The convolutions by name.
BY_NAME = {name: Convolution(name) for name in ("auto", "winograd", "cudnn")}
