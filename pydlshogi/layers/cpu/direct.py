"""3×3 convolution of at most three boards: one matrix product with unchanged weights.

Winograd's algorithm transforms the weights first, which costs as much for one board as for
many. Here nothing is precomputed from the weights, so weights may change at any time.

Each row of the board begins with one zero. This zero is the padding to the left of the row and
to the right of the row before. So the board is one list of squares. Each of the nine shifts of
the filter reads this list from another start.
"""

from __future__ import annotations

from typing import Any

import numpy

from pydlshogi.layers.cpu.threads import Workspace, blas_threads, get_threads

#: Largest number of boards for which this is faster than Winograd's algorithm.
MOST = 3

#: Length of a side of the board, of a side of the filter, and of a row with its zero.
_SIDE, _TAPS, _ROW = 9, 3, 10

#: Squares in a list: 90 of nine rows, rounded up to a multiple of 16 for a faster product.
_LIST = 96

_workspace = Workspace()


def forward(x: Any, W: Any, b: Any, relu: bool) -> Any:
    """Convolves boards as :func:`pydlshogi.layers.cpu.winograd.forward`; W is contiguous."""
    n, inputs, outputs = x.shape[0], x.shape[1], W.shape[0]
    padded = _workspace("padded", (inputs, n, _LIST + 2 * _ROW + 2))
    padded[:, :, :_ROW] = 0
    padded[:, :, _ROW + _SIDE * _ROW :] = 0
    board = padded[:, :, _ROW : _ROW + _SIDE * _ROW].reshape(inputs, n, _SIDE, _ROW)
    board[..., 0] = 0
    board[..., 1:] = x.transpose(1, 0, 2, 3)
    channel, position, square = padded.strides
    shifted = numpy.ndarray(
        (inputs, _TAPS, _TAPS, n, _LIST),
        padded.dtype,
        padded,
        strides=(channel, _ROW * square, square, position, square),
    )
    columns = _workspace("columns", shifted.shape)
    numpy.copyto(columns, shifted)
    y = numpy.empty((outputs, n * _LIST), numpy.float32)
    # BLAS divides this product among its threads. Starting threads of ours takes as long
    # as the whole layer.
    with blas_threads(get_threads()):
        numpy.matmul(W.reshape(outputs, -1), columns.reshape(-1, n * _LIST), out=y)
    if b is not None:
        y += b[:, None]
    if relu:
        numpy.maximum(y, numpy.zeros(y.shape[1], numpy.float32), out=y)
    rows = y.reshape(outputs, n, _LIST)[:, :, : _SIDE * _ROW].reshape(outputs, n, _SIDE, _ROW)
    return rows[..., :_SIDE].transpose(1, 0, 2, 3)
