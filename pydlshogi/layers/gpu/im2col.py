"""Our convolution on a GPU: the neighbours of each square, then one matrix product (im2col).

A 3×3 convolution collects the nine neighbours of each square, itself included, in one row of a
matrix, with zeros beyond the edge of the board. Each of the three computations is then one product
of large matrices, for which cuBLAS uses the whole GPU:

    y  = neighbours(x) · W            (81·batch, 9·in)  (9·in, out)
    gx = neighbours(gy) · W, turned   (81·batch, 9·out) (9·out, in)
    gW = neighbours(x)ᵀ · gy          (9·in, 81·batch)  (81·batch, out)

A 1×1 convolution needs no neighbours. :mod:`pydlshogi.layers.gpu.products` describes the
precisions.
"""

from __future__ import annotations

from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.layers.gpu.kernels import HALF, Kernel, contiguous, to_boards, to_rows
from pydlshogi.layers.gpu.products import get_precision, gradient_scale, narrow, product

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

_add_bias = Kernel(
    "add_bias",
    "float* y, const float* bias, const int channels, const int relu",
    """
    const float value = y[i] + bias[i % channels];
    y[i] = relu && value < 0 ? 0 : value;
    """,
)

_relu = Kernel("relu", "float* y", "    y[i] = y[i] < 0 ? 0 : y[i];\n")


def forward(x: Any, W: Any, b: Any, relu: bool) -> Any:
    """Computes :meth:`pydlshogi.layers.gpu.convolve.Convolution.forward`."""
    y = _convolve(x, W)
    if b is not None:
        _add_bias(y.size, y, contiguous(b), len(W), int(relu))
    elif relu:
        _relu(y.size, y)
    return to_boards(y, *x.shape[2:])


def data_gradient(g: Any, W: Any) -> Any:
    """Computes the gradient of x, (n, in, height, width), from that of the result."""
    turned = W[:, :, ::-1, ::-1].transpose(1, 0, 2, 3)
    return to_boards(_convolve(g, turned, gradient_scale(len(g))), *g.shape[2:])


def filter_gradient(x: Any, g: Any, shape: tuple[int, ...]) -> Any:
    """Computes the gradient of filters of a shape (out, in, rows, columns)."""
    outputs, inputs, *size = shape
    rows = to_rows(g)
    if size == [1, 1]:
        gW = product(to_rows(x).T, rows)
    elif get_precision() != "float16":
        gW = product(neighbours(x).T, rows)
    else:
        scale = gradient_scale(len(x))
        gW = product(neighbours(x, numpy.float16).T, narrow(rows, "float16", scale), 1 / scale)
    return contiguous(gW.reshape(*size, inputs, outputs).transpose(3, 2, 0, 1))


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
    return product(found, narrow(filters, "float16"), 1 / scale)


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
