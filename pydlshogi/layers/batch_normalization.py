"""Batch normalization of boards with an optional ReLU.

:class:`BatchNormalization` is ``chainer.links.BatchNormalization`` with the same parameters,
running statistics and npz. Our code computes the training on a CPU
(:mod:`pydlshogi.layers.cpu.normalize`), and training and evaluation on a GPU
(:mod:`pydlshogi.layers.gpu.normalize`). Chainer computes everything else.
"""

from __future__ import annotations

from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.layers.convolution import get_convolution
from pydlshogi.layers.cpu import normalize as on_cpu
from pydlshogi.layers.gpu import normalize as on_gpu

F = chainer.functions
L = chainer.links


class BatchNormalization(L.BatchNormalization):
    """``chainer.links.BatchNormalization`` of ``size`` channels, computed faster.

    Chainer computes where :func:`pydlshogi.layers.convolution.set_convolution` chose "chainer".
    It also computes outside of training, except on a GPU without backpropagation. In a training
    that several processes share, our code always computes. ``relu`` applies ReLU to the result.
    """

    def __init__(self, size: int, *, relu: bool = False) -> None:
        super().__init__(size)
        self.ranks: Any = None  # the processes that share each training batch
        self._size = size
        self.relu = relu

    def forward(self, x: Any, **kwargs: Any) -> Any:
        """Normalizes x; in training also updates the running statistics.

        Args:
            x: (batch, channels, height, width) in any memory order, or (batch, channels).
            **kwargs: As for ``chainer.links.BatchNormalization``, which then computes.
        """
        x = chainer.as_variable(x)
        shared = self.ranks is not None and bool(chainer.config.train)
        if x.ndim != 4 and shared:
            boards = F.reshape(x, (*x.shape[:2], -1, 1))
            return F.reshape(self.forward(boards, **kwargs), x.shape)
        if not kwargs and (shared or self._is_ours(x.array)):
            if shared or isinstance(x.array, numpy.ndarray):
                return self._by_sums(x)
            return self._on_gpu(x)
        y = super().forward(x, **kwargs)
        return F.relu(y) if self.relu else y

    def _is_ours(self, x: Any) -> bool:
        """Says whether our code normalizes an array."""
        xp, trains = chainer.backend.get_array_module(x), bool(chainer.config.train)
        return (
            get_convolution() != "chainer"
            and isinstance(x, xp.ndarray)
            and (trains or (xp is not numpy and not chainer.config.enable_backprop))
            and (x.dtype, x.ndim) == (numpy.float32, 4)
            and self._highprec_dtype == numpy.float32
            and x.shape[1] == self._size
            and x.size > 0
        )

    def _by_sums(self, x: Any) -> Any:
        """Normalizes on a CPU, or in several processes."""
        fast = isinstance(x.array, numpy.ndarray) and x.dtype == numpy.float32
        kind = on_cpu.Normalization if fast else PlainNormalization
        function = kind(self.eps, self.relu, self.ranks)
        (y,) = function.apply((x, self.gamma, self.beta))
        if chainer.config.in_recomputing:  # the first computation updated the statistics
            return y
        m = function.count
        for running, found in (
            (self.avg_mean, function.mean),
            (self.avg_var, function.variance * (m / max(m - 1, 1))),
        ):
            running *= self.decay
            running += (1 - self.decay) * found
        return y

    def _on_gpu(self, x: Any) -> Any:
        """Normalizes on a GPU."""
        if not chainer.config.train:
            return chainer.as_variable(on_gpu.normalize(x.array, self, self.relu))
        running = self.avg_mean, self.avg_var
        if chainer.config.in_recomputing:  # the first computation updated the statistics
            running = self.avg_mean.copy(), self.avg_var.copy()
        function = on_gpu.Normalization(self.eps, self.relu, running, self.decay)
        return function.apply((x, self.gamma, self.beta))[0]


class PlainNormalization(on_cpu.Normalization):
    """Normalization that several processes share, on a GPU or for other dtypes than float32.

    Arguments and attributes are those of the base class. These are plain operations on arrays.
    """

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any]:
        """As in the base class."""
        x, gamma, beta = inputs
        xp = chainer.backend.get_array_module(x)
        self.retain_inputs((0, 1, 2))
        if self.relu:
            self.retain_outputs((0,))
        mean = x.mean(axis=(0, 2, 3))
        square = xp.square(x - _stretch(mean)).sum(axis=(0, 2, 3))
        moments = (x.size // len(gamma), *(_on_cpu(sums) for sums in (mean, square)))
        self.count, mean, square = on_cpu.merge_ranks(self.ranks, moments)
        self.mean = xp.asarray(mean.astype(x.dtype))
        self.variance = xp.asarray((square / self.count).astype(x.dtype))
        h = (x - _stretch(self.mean)) * _stretch(gamma * self._inverse_deviation())
        h += _stretch(beta)
        return (xp.maximum(h, 0) if self.relu else h,)

    def backward(self, indexes: tuple[int, ...], grad_outputs: tuple[Any]) -> tuple[Any, ...]:
        """As in the base class, without second derivatives."""
        x, gamma, _ = (v.array for v in self.get_retained_inputs())
        xp = chainer.backend.get_array_module(x)
        g = grad_outputs[0].array
        if self.relu:
            g = g * (self.get_retained_outputs()[0].array > 0)
        inverse = self._inverse_deviation()
        h = (x - _stretch(self.mean)) * _stretch(inverse)
        sums = [g.sum(axis=(0, 2, 3)), (g * h).sum(axis=(0, 2, 3))]
        g_beta, g_gamma = sums
        all_sums = self.ranks.gather([_on_cpu(array) for array in sums]).sum(axis=0)
        all_beta, all_gamma = xp.asarray((all_sums / self.count).astype(x.dtype))
        gx = _stretch(gamma * inverse) * (g - _stretch(all_beta) - h * _stretch(all_gamma))
        if self.ranks.idle:
            gx[...] = 0
        gradients = gx, g_gamma, g_beta
        return tuple(chainer.as_variable(gradients[index]) for index in indexes)


def _stretch(values: Any) -> Any:
    """Reshapes (channels,) for products with (n, channels, height, width)."""
    return values[:, None, None]


def _on_cpu(array: Any) -> Any:
    """Copies an array to the CPU, as float64."""
    return chainer.get_device("@numpy").send(array).astype(numpy.float64)
