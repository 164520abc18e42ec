"""Batch normalization of boards on a CPU with an optional ReLU, in the threads of the convolutions.

In training, x_1 … x_m are the values of one channel in a batch (m = boards × squares). They
are normalized to mean 0 and variance 1, then scaled and shifted by learned numbers:

    h = (x − mean) / √(variance + ε)        y = γ h + β

Let g be the gradient of y, set to 0 where ReLU gave 0. Then the other gradients are

    gβ = Σ g        gγ = Σ g h        gx = γ / √(variance + ε) · (g − gβ / m − h gγ / m)

So forward and backward are two passes over the batch each: sums, then results. Both passes
work chunk by chunk, and a chunk fits into the cache of the processor.

Each chunk's variance is computed around the chunk's own mean. The chunks are combined
afterwards (Chan, Golub, LeVeque), which is exact enough even for a large mean. The chunks do
not depend on the number of threads, so the results do not either.

Several processes that share a batch (:mod:`pydlshogi.training.parallel`) exchange the sums
between the two passes. The statistics are then those of the whole batch in all of them.

Sources: S. Ioffe, C. Szegedy, Batch Normalization, arXiv:1502.03167 (2015); T. F. Chan,
G. H. Golub, R. J. LeVeque, Updating Formulae and a Pairwise Algorithm for Computing
Sample Variances, COMPSTAT 1982.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.layers.cpu.threads import Workspace, get_threads, in_threads, shares

F = chainer.functions

#: Squares in a chunk, as many as in 8 boards. Larger chunks mean fewer numpy calls, each of
#: which takes Python's lock. With 192 channels a chunk is half a megabyte.
_CHUNK = 8 * 81

_workspace = Workspace()


class Normalization(chainer.FunctionNode):
    """Normalization by the statistics of the batch, with ReLU, as one node of the graph.

    ``eps`` is ε of the module's docstring, ``ranks`` are the processes that share the batch.
    ``mean`` and ``variance``, (channels,) float32, and ``count`` are known after the forward pass.
    """

    def __init__(self, eps: float, relu: bool, ranks: Any = None) -> None:
        self.eps = eps
        self.relu = relu
        self.ranks = ranks
        self.mean: Any = None
        self.variance: Any = None  # divided by m, not by m − 1
        self.count = 0  # m

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any]:
        """Computes the output from the arrays x, gamma and beta."""
        x, gamma, beta = inputs
        self.retain_inputs((0, 1, 2))
        if self.relu:
            self.retain_outputs((0,))
        rows = _rows(x)
        y = numpy.empty(rows.shape, numpy.float32)
        chunks = _chunks(len(rows))
        means, squares = numpy.empty((2, len(chunks), len(gamma)), numpy.float32)
        zero = numpy.zeros(len(gamma), numpy.float32)
        factors = {}

        def take_moments(number: int, chunk: slice) -> None:
            part = rows[chunk]
            means[number] = _sum(part) / len(part)
            difference = numpy.subtract(part, means[number], out=_workspace("work", part.shape))
            squares[number] = _sum(numpy.multiply(difference, difference, out=difference))

        def put_together() -> None:
            sizes = numpy.array([[chunk.stop - chunk.start] for chunk in chunks], float)
            moments = _merge(sizes, means, squares)
            if self.ranks is not None:
                moments = merge_ranks(self.ranks, moments)
            self.count, mean, square = moments
            self.mean = mean.astype(numpy.float32)
            self.variance = (square / self.count).astype(numpy.float32)
            factors["scale"] = gamma * self._inverse_deviation()

        def normalize(number: int, chunk: slice) -> None:
            # x · scale + shift would be one step less, but inexact where the mean is large.
            out = numpy.subtract(rows[chunk], self.mean, out=y[chunk])
            out *= factors["scale"]
            out += beta
            if self.relu:
                numpy.maximum(out, zero, out=out)

        _in_two_passes(chunks, take_moments, put_together, normalize)
        return (_boards(y, x.shape),)

    def backward(self, indexes: tuple[int, ...], grad_outputs: tuple[Any]) -> tuple[Any, ...]:
        """Computes the gradients of the inputs with the numbers ``indexes``."""
        inputs = self.get_retained_inputs()
        if chainer.config.enable_backprop:
            y = F.batch_normalization(*inputs, eps=self.eps)
            y = F.relu(y) if self.relu else y
            variables = chainer.grad([y], inputs, grad_outputs, enable_double_backprop=True)
            return tuple(variables[index] for index in indexes)
        x, gamma, _ = (v.array for v in inputs)
        rows, g_rows = _rows(x), _rows(grad_outputs[0].array)
        y_rows = _rows(self.get_retained_outputs()[0].array) if self.relu else None
        gx = numpy.empty(rows.shape, numpy.float32)
        chunks = _chunks(len(rows))
        g_sums, gh_sums = numpy.empty((2, len(chunks), len(gamma)), numpy.float32)
        found: dict[str, Any] = {}

        def take_sums(number: int, chunk: slice) -> None:
            g = g_rows[chunk]
            if y_rows is not None:
                g = numpy.multiply(g, y_rows[chunk] > 0, out=gx[chunk])
            g_sums[number] = _sum(g)
            difference = numpy.subtract(rows[chunk], self.mean, out=_workspace("work", g.shape))
            gh_sums[number] = _sum(numpy.multiply(difference, g, out=difference))

        def put_together() -> None:
            inverse = self._inverse_deviation()
            beta = g_sums.sum(axis=0, dtype=float)
            gamma_ = gh_sums.sum(axis=0, dtype=float)
            found["beta"] = beta.astype(numpy.float32)
            found["gamma"] = inverse * gamma_.astype(numpy.float32)
            if self.ranks is not None:
                beta, gamma_ = self.ranks.gather([beta, gamma_]).sum(axis=0)
            all_beta, all_gamma = beta.astype(numpy.float32), inverse * gamma_.astype(numpy.float32)
            found["scale"] = gamma * inverse
            found["slope"] = found["scale"] * inverse * all_gamma / self.count
            found["shift"] = found["scale"] * all_beta / self.count

        def compute(number: int, chunk: slice) -> None:
            g = g_rows[chunk] if y_rows is None else gx[chunk]
            term = numpy.subtract(rows[chunk], self.mean, out=_workspace("work", g.shape))
            term *= found["slope"]
            term += found["shift"]
            out = numpy.multiply(g, found["scale"], out=gx[chunk])
            out -= term

        _in_two_passes(chunks, take_sums, put_together, compute)
        if self.ranks is not None and self.ranks.idle:
            gx[...] = 0
        gradients = _boards(gx, x.shape), found["gamma"], found["beta"]
        return tuple(chainer.as_variable(gradients[index]) for index in indexes)

    def _inverse_deviation(self) -> Any:
        xp = chainer.backend.get_array_module(self.variance)
        return (1 / xp.sqrt(self.variance + self.eps)).astype(self.variance.dtype)


def _merge(
    counts: numpy.ndarray, means: numpy.ndarray, squares: numpy.ndarray
) -> tuple[int, numpy.ndarray, numpy.ndarray]:
    """Merges the moments of k parts of a batch: numbers of rows (k, 1), means, sums of squares.

    The sums (k, channels) are of the squared differences from the mean of the part.
    """
    count = int(counts.sum())
    mean = (counts * means).sum(axis=0) / count
    square = squares.sum(axis=0, dtype=float) + (counts * (means - mean) ** 2).sum(axis=0)
    return count, mean, square


def merge_ranks(ranks: Any, moments: tuple[int, Any, Any]) -> tuple[int, Any, Any]:
    """Merges the moments of all processes. A process without positions counts nothing."""
    count, mean, square = moments
    mine = numpy.stack([numpy.full_like(mean, count), mean, square])
    counts, means, squares = numpy.moveaxis(ranks.gather(0 * mine if ranks.idle else mine), 1, 0)
    return _merge(counts[:, :1], means, squares)


def _rows(x: Any) -> Any:
    """Reshapes (n, channels, height, width) to (height·width·n, channels); may copy."""
    return x.transpose(2, 3, 0, 1).reshape(-1, x.shape[1])


def _boards(rows: Any, shape: tuple[int, ...]) -> Any:
    """Reverses :func:`_rows` for boards of the given shape."""
    n, channels, height, width = shape
    return rows.reshape(height, width, n, channels).transpose(2, 3, 0, 1)


def _sum(rows: Any) -> Any:
    """Sums over the rows; as a product, several times faster than numpy's sum."""
    return numpy.ones(len(rows), numpy.float32) @ rows


def _chunks(m: int) -> list[slice]:
    """Divides m rows into chunks of nearly equal size."""
    return [slice(*share) for share in shares(m, -(-m // _CHUNK))]


def _in_two_passes(chunks: list[slice], first: Any, between: Any, second: Any) -> None:
    """Passes over the chunks twice, in threads; one of them calls ``between`` between the passes.

    ``first`` and ``second`` are functions of a chunk's number and the chunk.
    """
    threads = max(1, min(get_threads(), len(chunks)))
    mine = [range(*share) for share in shares(len(chunks), threads)]

    def go(handle: Any, thread: int) -> None:
        for number in mine[thread]:
            handle(number, chunks[number])

    def go_between(thread: int) -> None:
        if thread == 0:
            between()

    in_threads(threads, functools.partial(go, first), go_between, functools.partial(go, second))
