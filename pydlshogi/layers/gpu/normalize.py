"""Batch normalization of boards on a GPU, with an optional ReLU.

The formulas are those of :mod:`pydlshogi.layers.cpu.normalize`. Forward and backward read
the batch twice: for the sums, then for the results. The rows of the batch, one for each square of
each board, are divided among at most ``_CHUNKS`` sums for each channel, which are then added in a
fixed order. So equal batches give equal results.

Each sum is that of the differences from the first of its rows. The sums are combined by the
formula of Chan, Golub and LeVeque. So the variance is exact enough even for a large mean.
"""

from __future__ import annotations

from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.layers.gpu.kernels import Kernel, to_boards, to_rows

#: Largest number of sums for each channel.
_CHUNKS = 256

_take_moments = Kernel(
    "take_moments",
    "const float* x, float* sums, const int channels, const int rows, const int chunk",
    """
    const int channel = i % channels;
    const int first = i / channels * chunk;
    const int last = first + chunk < rows ? first + chunk : rows;
    const float origin = x[first * (long long)channels + channel];
    float sum = 0;
    float square = 0;
    #pragma unroll 8
    for (int row = first; row < last; row++) {
        const float difference = x[row * (long long)channels + channel] - origin;
        sum += difference;
        square += difference * difference;
    }
    sums[i] = sum;
    sums[size + i] = square;
    """,
)

_merge_moments = Kernel(
    "merge_moments",
    "const float* x, const float* sums, float* mean, float* inverse, "
    "float* running_mean, float* running_variance, const int chunks, const int chunk, "
    "const int rows, const float eps, const float decay",
    """
    float shift = 0;  // of the mean from the first row
    float square = 0;
    #pragma unroll 8
    for (int number = 0; number < chunks; number++) {
        const int before = number * chunk;
        const float count = before + chunk < rows ? chunk : rows - before;
        const float difference = sums[number * size + i] / count;
        const float origin = x[before * (long long)size + i] - x[i];
        const float step = origin + difference - shift;
        shift += step * (count / (before + count));
        square += sums[(chunks + number) * size + i] - difference * difference * count;
        square += step * step * (before * (count / (before + count)));
    }
    // Rounding can make the sum negative; nan must stay.
    const float variance = square < 0 ? 0 : square / rows;
    const float unbiased = variance * (rows / (rows > 1 ? rows - 1.0f : 1.0f));
    mean[i] = x[i] + shift;
    inverse[i] = 1 / sqrtf(variance + eps);
    running_mean[i] = decay * running_mean[i] + (1 - decay) * mean[i];
    running_variance[i] = decay * running_variance[i] + (1 - decay) * unbiased;
    """,
)

_normalize = Kernel(
    "normalize",
    "const float* x, const float* mean, const float* inverse, const float* gamma, "
    "const float* beta, float* y, const int channels, const int relu",
    """
    const int channel = i % channels;
    const float value =
        (x[i] - mean[channel]) * (gamma[channel] * inverse[channel]) + beta[channel];
    y[i] = relu && value < 0 ? 0 : value;  // nan stays
    """,
)

# The gradient of ReLU needs the sign of the output. It is computed again, by the same operations
# as in normalize: reading the output would take longer.
_MASK = """
    const float h = (x[at] - mean[channel]) * inverse[channel];
    const float value =
        (x[at] - mean[channel]) * (gamma[channel] * inverse[channel]) + beta[channel];
    const float g = relu && !(value > 0) ? 0 : gy[at];
"""

_take_gradients = Kernel(
    "take_gradients",
    "const float* x, const float* gy, const float* mean, const float* inverse, "
    "const float* gamma, const float* beta, float* sums, const int channels, const int rows, "
    "const int chunk, const int relu",
    f"""
    const int channel = i % channels;
    const int first = i / channels * chunk;
    const int last = first + chunk < rows ? first + chunk : rows;
    float g_sum = 0;
    float gh_sum = 0;
    #pragma unroll 8
    for (int row = first; row < last; row++) {{
        const long long at = row * (long long)channels + channel;
        {_MASK}
        g_sum += g;
        gh_sum += g * h;
    }}
    sums[i] = g_sum;
    sums[size + i] = gh_sum;
    """,
)

_compute_gradient = Kernel(
    "compute_gradient",
    "const float* x, const float* gy, const float* mean, const float* inverse, "
    "const float* gamma, const float* beta, const float* g_beta, const float* g_gamma, "
    "float* gx, const int channels, const int rows, const int relu",
    f"""
    const int channel = i % channels;
    const int at = i;
    {_MASK}
    gx[i] = gamma[channel] * inverse[channel] *
        (g - (g_beta[channel] + h * g_gamma[channel]) / rows);
    """,
)


class Normalization(chainer.FunctionNode):
    """Normalization by the statistics of the batch, with ReLU, as one node of the graph.

    ``eps`` is added to the variance. The forward pass updates ``running``, the running mean and
    variance, (channels,) float32; their old values have the weight ``decay``.
    """

    def __init__(self, eps: float, relu: bool, running: tuple[Any, Any], decay: float) -> None:
        self.eps = eps
        self.relu = relu
        self._running = running
        self._decay = decay
        self._mean: Any = None
        self._inverse: Any = None

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any]:
        """Computes the output from the arrays x, gamma and beta."""
        x, gamma, beta = inputs
        self.retain_inputs((0, 1, 2))
        xp = chainer.backend.get_array_module(x)
        rows = to_rows(x)
        channels = rows.shape[1]
        chunk, chunks = _divide(len(rows))
        sums = xp.empty((2, chunks, channels), numpy.float32)
        _take_moments(chunks * channels, rows, sums, channels, len(rows), chunk)
        self._mean, self._inverse = xp.empty((2, channels), numpy.float32)
        _merge_moments(
            channels,
            *(rows, sums, self._mean, self._inverse, *self._running),
            *(chunks, chunk, len(rows), float(self.eps), float(self._decay)),
        )
        return (_apply(rows, x.shape, self._mean, self._inverse, gamma, beta, self.relu),)

    def backward(self, indexes: tuple[int, ...], grad_outputs: tuple[Any]) -> tuple[Any, ...]:
        """Computes the gradients of the inputs with the numbers ``indexes``."""
        inputs = self.get_retained_inputs()
        if chainer.config.enable_backprop:
            y = chainer.functions.batch_normalization(*inputs, eps=self.eps)
            y = chainer.functions.relu(y) if self.relu else y
            variables = chainer.grad([y], inputs, grad_outputs, enable_double_backprop=True)
            return tuple(variables[index] for index in indexes)
        x, gamma, beta = (v.array for v in inputs)
        xp = chainer.backend.get_array_module(x)
        rows, g_rows = to_rows(x), to_rows(grad_outputs[0].array)
        channels = rows.shape[1]
        chunk, chunks = _divide(len(rows))
        known = rows, g_rows, self._mean, self._inverse, gamma, beta
        sums = xp.empty((2, chunks, channels), numpy.float32)
        _take_gradients(chunks * channels, *known, sums, channels, len(rows), chunk, int(self.relu))
        g_beta, g_gamma = sums.sum(axis=1)
        gx = xp.empty_like(rows)
        _compute_gradient(
            rows.size, *known, g_beta, g_gamma, gx, channels, len(rows), int(self.relu)
        )
        gradients = to_boards(gx, *x.shape[2:]), g_gamma, g_beta
        return tuple(chainer.as_variable(gradients[index]) for index in indexes)


def normalize(x: Any, link: Any, relu: bool) -> Any:
    """Normalizes boards (n, channels, height, width) of the GPU by a link's running statistics."""
    xp = chainer.backend.get_array_module(x)
    inverse = 1 / xp.sqrt(link.avg_var + numpy.float32(link.eps))
    return _apply(
        to_rows(x), x.shape, link.avg_mean, inverse, link.gamma.array, link.beta.array, relu
    )


def _apply(
    rows: Any, shape: tuple[int, ...], mean: Any, inverse: Any, gamma: Any, beta: Any, relu: bool
) -> Any:
    xp = chainer.backend.get_array_module(rows)
    y = xp.empty_like(rows)
    _normalize(rows.size, rows, mean, inverse, gamma, beta, y, rows.shape[1], int(relu))
    return to_boards(y, *shape[2:])


def _divide(rows: int) -> tuple[int, int]:
    """Returns the number of rows in a chunk, and the number of chunks."""
    chunk = -(-rows // _CHUNKS)
    return chunk, -(-rows // chunk)
