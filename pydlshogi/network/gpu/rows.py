"""Boards of a GPU as the rows of a matrix, one for each square of each board.

The kernels and products take boards in the memory order (board, row, column, channel). An array in
another order is copied.
"""

from __future__ import annotations

from typing import Any

from pydlshogi.compat import chainer

#: Axes from (board, channel, row, column) to the order in memory, and back.
_IN_MEMORY, _AS_CHAINER = (0, 2, 3, 1), (0, 3, 1, 2)


def to_rows(boards: Any) -> Any:
    """Returns boards (n, channels, height, width) as a contiguous (n·height·width, channels)."""
    return contiguous(boards.transpose(_IN_MEMORY)).reshape(-1, boards.shape[1])


def to_boards(rows: Any, height: int, width: int) -> Any:
    """Reverses :func:`to_rows`, without a copy: (n, channels, height, width)."""
    return rows.reshape(-1, height, width, rows.shape[1]).transpose(_AS_CHAINER)


def contiguous(array: Any) -> Any:
    """Returns an array in C order; the array itself if it is in that order."""
    return chainer.backend.get_array_module(array).ascontiguousarray(array)
