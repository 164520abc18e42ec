"""Convolution of 9×9 boards on a GPU: the neighbours of each square, then one matrix product.

Arrays have Chainer's shape (batch, channels, 9, 9). :mod:`pydlshogi.layers.gpu.kernels` describes
their order in memory.

A 3×3 convolution collects the nine neighbours of each square, itself included, in one row of a
matrix (im2col), with zeros beyond the edge of the board. Each of the three computations is then
one product of large matrices, for which cuBLAS uses the whole GPU:

    y  = neighbours(x) · W            (81·batch, 9·in)  (9·in, out)
    gx = neighbours(gy) · W, turned   (81·batch, 9·out) (9·out, in)
    gW = neighbours(x)ᵀ · gy          (9·in, 81·batch)  (81·batch, out)

A 1×1 convolution needs no neighbours. :mod:`pydlshogi.layers.gpu.products` describes the
precisions. In ``float16``, gradients are multiplied by a constant first. Otherwise most of them
would be too small for the range of this format.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.layers.gpu.kernels import HALF, Kernel, contiguous, to_boards, to_rows
from pydlshogi.layers.gpu.products import get_precision, product

#: Factor of the gradients of one position while they are float16. The format keeps its precision
#: from 6e-5 to 65504, so for gradients from 1e-6 to 1000. Larger ones are cut off.
_GRADIENT_SCALE = 64

#: The neighbours of each square. A thread copies one channel (or four, as a float4) of the nine
#: neighbours of a square, and stores the products with ``scale``.
_NEIGHBOURS = """
    const int channel = i % channels;
    const int row = i / channels;
    const int square = row % 81;
    const int y = square / 9;
    const int x = square % 9;
    {out}* to = neighbours + row * (long long)(9 * channels) + channel;
    for (int tap = 0; tap < 9; tap++) {{
        const int dy = tap / 3 - 1;
        const int dx = tap % 3 - 1;
        {kind} value = {{}};
        if (0 <= y + dy && y + dy < 9 && 0 <= x + dx && x + dx < 9) {{
            value = boards[(row + 9 * dy + dx) * (long long)channels + channel];
        }}
        to[tap * channels] = {stored};
    }}
"""

#: Numbers that a thread copies, and dtype of the result: types of the source and of the result in
#: C++, and what is stored.
_FORMS = {
    (1, "float32"): ("float", "float", "value * scale"),
    (4, "float32"): (
        "float4",
        "float4",
        "{value.x * scale, value.y * scale, value.z * scale, value.w * scale}",
    ),
    (1, "float16"): ("float", "unsigned short", "half_of(value * scale)"),
    (4, "float16"): (
        "float4",
        "ushort4",
        "{half_of(value.x * scale), half_of(value.y * scale), half_of(value.z * scale), "
        "half_of(value.w * scale)}",
    ),
}

_neighbours = {
    (width, dtype): Kernel(
        f"neighbours_{width}_{dtype}",
        f"const {kind}* boards, {out}* neighbours, const int channels, const float scale",
        _NEIGHBOURS.format(kind=kind, out=out, stored=stored),
        HALF if dtype == "float16" else "",
    )
    for (width, dtype), (kind, out, stored) in _FORMS.items()
}

_to_half = Kernel(
    "to_half",
    "const float* x, unsigned short* y, const float scale",
    "    y[i] = half_of(x[i] * scale);\n",
    HALF,
)

_add_bias = Kernel(
    "add_bias",
    "float* y, const float* bias, const int channels, const int relu",
    """
    const float value = y[i] + bias[i % channels];
    y[i] = relu && value < 0 ? 0 : value;
    """,
)

_relu = Kernel("relu", "float* y", "    y[i] = y[i] < 0 ? 0 : y[i];\n")

_relu_gradient = Kernel(
    "relu_gradient",
    "const float* y, const float* gy, float* g",
    "    g[i] = y[i] > 0 ? gy[i] : 0;\n",
)


def forward(x: Any, W: Any, b: Any, relu: bool) -> Any:
    """Convolves boards with 3×3 or 1×1 filters; the padding of the former is a square of zeros.

    Args:
        x: (n, channels in, 9, 9) float32 of the GPU; with 1×1 filters of any size.
        W: (channels out, channels in, 3, 3) or (channels out, channels in, 1, 1) float32.
        b: (channels out,) float32, or None.
        relu: Whether to apply ReLU to the result.
    """
    y = _convolve(x, W)
    if b is not None:
        _add_bias(y.size, y, contiguous(b), len(W), int(relu))
    elif relu:
        _relu(y.size, y)
    return to_boards(y, *x.shape[2:])


def backward(x: Any, W: Any, y: Any, gy: Any, indexes: Collection[int]) -> tuple[Any, Any, Any]:
    """Computes the gradients of :func:`forward`.

    Args:
        x: As in :func:`forward`.
        W: As in :func:`forward`.
        y: The result of :func:`forward` with ``relu``; None without.
        gy: Gradient of the result, of the same shape.
        indexes: The gradients to compute: 0 of x, 1 of W, 2 of b.

    Returns:
        The gradients of x, W and b, in float32; None for one that is not computed.
    """
    xp = chainer.backend.get_array_module(x)
    n, inputs, height, width = x.shape
    outputs, _, *size = W.shape
    g = to_rows(gy)
    if y is not None:
        masked = xp.empty_like(g)
        _relu_gradient(g.size, to_rows(y), g, masked)
        g = masked
    # The gradients of the mean loss become smaller with the batch.
    scale = float(_GRADIENT_SCALE * n)
    gx = gW = gb = None
    if 0 in indexes:
        boards = to_boards(g, height, width)
        turned = W[:, :, ::-1, ::-1].transpose(1, 0, 2, 3)
        gx = to_boards(_convolve(boards, turned, scale), height, width)
    if 1 in indexes:
        gW = _filter_gradient(x, W, g, scale).reshape(*size, inputs, outputs)
        gW = contiguous(gW.transpose(3, 2, 0, 1))
    if 2 in indexes:
        gb = product(xp.ones((1, len(g)), numpy.float32), g)[0]
    return gx, gW, gb


def _convolve(boards: Any, W: Any, scale: float = 1.0) -> Any:
    """Convolves boards (n, in, 9, 9) with filters (out, in, rows, columns) into (81·n, out).

    ``scale`` is a factor of the boards while they are float16.
    """
    filters = contiguous(W.transpose(2, 3, 1, 0)).reshape(-1, len(W))
    if W.shape[2:] == (1, 1):
        return product(to_rows(boards), filters)
    if get_precision() != "float16":
        return product(neighbours(boards), filters)
    found = neighbours(boards, numpy.float16, scale)
    return product(found, _half(filters), 1 / scale)


def _filter_gradient(x: Any, W: Any, g: Any, scale: float) -> Any:
    """Computes the gradient of filters (out, in, rows, columns), as (rows·columns·in, out)."""
    if W.shape[2:] == (1, 1):
        return product(to_rows(x).T, g)
    if get_precision() != "float16":
        return product(neighbours(x).T, g)
    return product(neighbours(x, numpy.float16).T, _half(g, scale), 1 / scale)


def neighbours(boards: Any, dtype: Any = numpy.float32, scale: float = 1.0) -> Any:
    """Collects the nine neighbours of each square, row by row; zeros beyond the edge.

    Turns (n, channels, 9, 9) float32 into (81·n, 9·channels) of ``dtype``, times ``scale``.
    """
    xp = chainer.backend.get_array_module(boards)
    rows = to_rows(boards)
    channels = rows.shape[1]
    found = xp.empty((len(rows), 9 * channels), dtype)
    width = 4 if channels % 4 == 0 else 1
    kernel = _neighbours[width, numpy.dtype(dtype).name]
    kernel(rows.size // width, rows, found, channels // width, scale)
    return found


def _half(x: Any, scale: float = 1.0) -> Any:
    """Converts the product of a contiguous array and a number to float16."""
    xp = chainer.backend.get_array_module(x)
    y = xp.empty(x.shape, numpy.float16)
    _to_half(x.size, x, y, scale)
    return y
