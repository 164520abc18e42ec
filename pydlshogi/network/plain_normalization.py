"""Batch normalization that several processes share, on a GPU or for other dtypes than float32.

These are plain operations on whole arrays. :mod:`pydlshogi.network.cpu.normalization` has the
formulas, and computes float32 on a CPU faster.
"""

from __future__ import annotations

from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.network.cpu.normalization import Normalization, merge_ranks


class PlainNormalization(Normalization):
    """Normalization by the statistics of the whole batch, as one node of the graph.

    Arguments and attributes are those of the base class, on any device and of any float dtype.
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
        self.count, mean, square = merge_ranks(self.ranks, moments)
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

    def _inverse_deviation(self) -> Any:
        xp = chainer.backend.get_array_module(self.variance)
        return (1 / xp.sqrt(self.variance + self.eps)).astype(self.variance.dtype)


def _stretch(values: Any) -> Any:
    """Reshapes (channels,) for products with (n, channels, height, width)."""
    return values[:, None, None]


def _on_cpu(array: Any) -> Any:
    """Copies an array to the CPU, as float64."""
    return chainer.get_device("@numpy").send(array).astype(numpy.float64)
