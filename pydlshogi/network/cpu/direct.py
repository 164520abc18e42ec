"""3×3 filters for a board or two: one matrix product, with the weights as they are.

Winograd's way transforms the weights first, and these are as many for one board as for
many. Here nothing depends on the weights but the product itself, so a network that was
just loaded or changed in place needs no care.

Each row of the board is followed by one square of zeros, the padding to its right and to
the left of the next row at once. In such a list of squares the board shifted by one of
the nine steps of the filter is the same list from another start.
"""

from __future__ import annotations

from typing import Any

import numpy

from pydlshogi.network.cpu.threads import Workspace, blas_threads, get_threads

#: Boards up to which this is the faster way.
MOST = 3

#: Squares along a side of the board and of the filter, and in a row with its zero.
_SIDE, _TAPS, _ROW = 9, 3, 10

#: Squares in a list: the 90 of nine rows, and some to spare for a multiple of 16, which
#: makes the product faster.
_LIST = 96

_workspace = Workspace()


def forward(x: Any, W: Any, b: Any, relu: bool) -> Any:
    """Filters boards with 3×3 filters, the board padded by one square of zeros.

    Args:
        x: (n, channels in, 9, 9) float32 in numpy, in any order in memory.
        W: (channels out, channels in, 3, 3) float32, contiguous.
        b: (channels out,) float32, or None.
        relu: Whether to put 0 for what is negative in the result.

    Returns:
        (n, channels out, 9, 9) float32.
    """
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
    # Here a product is large for one board, and waking a thread of ours as long as a layer.
    with blas_threads(get_threads()):
        numpy.matmul(W.reshape(outputs, -1), columns.reshape(-1, n * _LIST), out=y)
    if b is not None:
        y += b[:, None]
    if relu:
        numpy.maximum(y, numpy.zeros(y.shape[1], numpy.float32), out=y)
    rows = y.reshape(outputs, n, _LIST)[:, :, : _SIDE * _ROW].reshape(outputs, n, _SIDE, _ROW)
    return rows[..., :_SIDE].transpose(1, 0, 2, 3)
