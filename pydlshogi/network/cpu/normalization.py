"""Batch normalization of boards, and the ReLU after it, in the threads of the convolutions.

In training each channel's values in a batch, x_1 … x_m, m being boards times squares, are
brought to mean 0 and variance 1, and then to what is learned:

    h = (x − mean) / √(variance + ε)        y = γ h + β

With g the gradient of y, 0 where ReLU lets nothing through, the gradients are

    gβ = Σ g        gγ = Σ g h        gx = γ / √(variance + ε) · (g − gβ / m − h gγ / m)

So each direction is two passes over the batch: sums, then results. Both go chunk by chunk,
a chunk small enough to stay in the processor's cache through all that is done to it;
Chainer's own way in numpy goes over the whole batch for every operation, on one thread.

A chunk's variance is taken around its own mean and the chunks are put together afterwards
(Chan, Golub, LeVeque), which loses nothing where the mean is large. Chunks do not depend
on the number of threads, and so the results do not.

Sources: S. Ioffe, C. Szegedy, Batch Normalization, arXiv:1502.03167 (2015); T. F. Chan,
G. H. Golub, R. J. LeVeque, Updating Formulae and a Pairwise Algorithm for Computing
Sample Variances, COMPSTAT 1982.
"""

from __future__ import annotations

from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.network.cpu.convolution import check_convolution
from pydlshogi.network.cpu.threads import Workspace, get_threads, in_threads, shares

F = chainer.functions
L = chainer.links

#: Squares in a chunk, as many as 8 boards have: few calls of numpy, each of which takes
#: Python's lock again, and with 192 channels an array of half a megabyte.
_CHUNK = 8 * 81

_workspace = Workspace()


class BatchNormalization(L.BatchNormalization):
    """``chainer.links.BatchNormalization`` of channels, trained faster on a CPU.

    Parameters, running statistics and npz are Chainer's. On a GPU, and outside of training
    (``chainer.config.train`` is False), Chainer's own computes.

    Args:
        size: Number of channels.
        relu: Whether ReLU follows.
        convolution: One of :data:`pydlshogi.network.cpu.convolution.CONVOLUTIONS`; ``chainer``
            leaves this to Chainer too.

    Raises:
        ValueError: ``convolution`` is not known.
    """

    def __init__(self, size: int, *, relu: bool = False, convolution: str = "auto") -> None:
        super().__init__(size)
        self._size = size
        self.relu = relu
        self.convolution = check_convolution(convolution)

    def forward(self, x: Any, **kwargs: Any) -> Any:
        """Normalizes, and in training moves the running statistics.

        Args:
            x: (batch, channels, height, width), in any order in memory, fastest as
                :class:`pydlshogi.network.cpu.convolution.Convolution2D` makes it.
            **kwargs: As ``chainer.links.BatchNormalization`` takes them; with any of them
                it computes.

        Returns:
            chainer.Variable of the same shape.
        """
        x = chainer.as_variable(x)
        if kwargs or not self._is_ours(x.array):
            y = super().forward(x, **kwargs)
            return F.relu(y) if self.relu else y
        function = _Normalization(self.eps, self.relu)
        (y,) = function.apply((x, self.gamma, self.beta))
        if chainer.config.in_recomputing:  # they have moved before
            return y
        m = x.size // self._size
        for running, found in (
            (self.avg_mean, function.mean),
            (self.avg_var, function.variance * (m / max(m - 1, 1))),
        ):
            running *= self.decay
            running += (1 - self.decay) * found
        return y

    def _is_ours(self, x: Any) -> bool:
        return (
            bool(chainer.config.train)
            and self.convolution != "chainer"
            and isinstance(x, numpy.ndarray)
            and (x.dtype, x.ndim) == (numpy.float32, 4)
            and x.shape[1] == self._size
            and x.size > 0
        )


class _Normalization(chainer.FunctionNode):
    """Normalization by the batch's own statistics, and ReLU, as one step of Chainer's graph.

    Args:
        eps: ε of the module's docstring.
        relu: Whether ReLU follows.

    Attributes:
        mean: (channels,) float32, after the forward pass.
        variance: (channels,) float32, likewise; the mean square, not the unbiased one.
    """

    def __init__(self, eps: float, relu: bool) -> None:
        self.eps = eps
        self.relu = relu
        self.mean: Any = None
        self.variance: Any = None

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
            mean = (sizes * means).sum(axis=0) / len(rows)
            square = squares.sum(axis=0, dtype=float) + (sizes * (means - mean) ** 2).sum(axis=0)
            self.mean = mean.astype(numpy.float32)
            self.variance = (square / len(rows)).astype(numpy.float32)
            factors["scale"] = gamma * self._inverse_deviation()

        def normalize(number: int, chunk: slice) -> None:
            # One step more than x · scale + shift, which is far off where the mean is large.
            out = numpy.subtract(rows[chunk], self.mean, out=y[chunk])
            out *= factors["scale"]
            out += beta
            if self.relu:
                numpy.maximum(out, zero, out=out)

        _in_two_passes(chunks, take_moments, put_together, normalize)
        return (_boards(y, x.shape),)

    def backward(self, indexes: tuple[int, ...], grad_outputs: tuple[Any]) -> tuple[Any, ...]:
        """Computes the gradients of the inputs numbered in ``indexes``."""
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
            found["beta"] = g_sums.sum(axis=0, dtype=float).astype(numpy.float32)
            found["gamma"] = inverse * gh_sums.sum(axis=0, dtype=float).astype(numpy.float32)
            found["scale"] = gamma * inverse
            found["slope"] = found["scale"] * inverse * found["gamma"] / len(rows)
            found["shift"] = found["scale"] * found["beta"] / len(rows)

        def compute(number: int, chunk: slice) -> None:
            g = g_rows[chunk] if y_rows is None else gx[chunk]
            term = numpy.subtract(rows[chunk], self.mean, out=_workspace("work", g.shape))
            term *= found["slope"]
            term += found["shift"]
            out = numpy.multiply(g, found["scale"], out=gx[chunk])
            out -= term

        _in_two_passes(chunks, take_sums, put_together, compute)
        gradients = _boards(gx, x.shape), found["gamma"], found["beta"]
        return tuple(chainer.as_variable(gradients[index]) for index in indexes)

    def _inverse_deviation(self) -> Any:
        return (1 / numpy.sqrt(self.variance + self.eps)).astype(numpy.float32)


def _rows(x: Any) -> Any:
    """Views boards (n, channels, height, width) as (height·width·n, channels); may copy."""
    return x.transpose(2, 3, 0, 1).reshape(-1, x.shape[1])


def _boards(rows: Any, shape: tuple[int, ...]) -> Any:
    """Views what :func:`_rows` gave as boards again."""
    n, channels, height, width = shape
    return rows.reshape(height, width, n, channels).transpose(2, 3, 0, 1)


def _sum(rows: Any) -> Any:
    """Adds up rows; as a product, several times faster than numpy's sum."""
    return numpy.ones(len(rows), numpy.float32) @ rows


def _chunks(m: int) -> list[slice]:
    """Divides m rows."""
    return [slice(*share) for share in shares(m, -(-m // _CHUNK))]


def _in_two_passes(chunks: list[slice], first: Any, between: Any, second: Any) -> None:
    """Goes over the chunks twice in threads.

    Args:
        chunks: Those of the rows.
        first, second: What to do with a chunk, given its number and the chunk.
        between: What one thread does when the first pass is over.
    """
    threads = max(1, min(get_threads(), len(chunks)))
    mine = [range(*share) for share in shares(len(chunks), threads)]

    def go_first(thread: int) -> None:
        for number in mine[thread]:
            first(number, chunks[number])

    def go_between(thread: int) -> None:
        if thread == 0:
            between()

    def go_second(thread: int) -> None:
        for number in mine[thread]:
            second(number, chunks[number])

    in_threads(threads, go_first, go_between, go_second)
