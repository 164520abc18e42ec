"""The steps of a program: a forward pass in play (:mod:`pydlshogi.network.cpu.program`).

A step is a function of a :class:`Run`, the thread's number, and the number of threads that
share the step. The threads divide the channels of a 3×3 convolution among them. One thread
makes all other calls.

The convolutions use the algorithm and the names of :mod:`pydlshogi.network.cpu.winograd`. The
weights do not change in play, so their transformation is done once. The outputs are computed
in blocks of channels. A block's filters are contiguous, so the processor reads them at full
speed, and OpenBLAS multiplies small blocks without copying them first. A block goes through
all operations up to the tiles of the next layer while it is in the cache.
"""

from __future__ import annotations

from typing import Any, Callable

import numpy

from pydlshogi.network.cpu.threads import Workspace, shares
from pydlshogi.network.cpu.winograd import (
    BIAS,
    FILTER,
    GATHER,
    SIDE,
    SPREAD,
    TILES,
    VALUES,
    by_columns,
)

#: Largest number of channels in a block.
_WIDEST = 96

#: Smallest number of channels in a block: narrower products are slow.
_NARROWEST = 32

#: Temporary arrays of each thread, used within a step.
_workspace = Workspace()


class Run:
    """The arrays of one run of a program.

    Attributes:
        boards: Number of boards, n.
        values: By slot: an array (n, …) of any memory order.
        tiles: By slot: the tiles of a value, (25, 9, n, channels).
    """

    def __init__(self, boards: int) -> None:
        self.boards = boards
        self.values: dict[int, Any] = {}
        self.tiles: dict[int, Any] = {}


Step = Callable[[Run, int, int], None]


class Call:
    """Computes a value by a function of numpy arrays, in the first thread.

    Args:
        function: Function of the arguments, each an array; it returns an array.
        arguments: Constant arrays, and the slots of values.
        target: Slot of the result.

    Attributes:
        target: Slot of the result.
    """

    def __init__(self, function: Callable[..., Any], arguments: list[Any], target: int) -> None:
        self._function = function
        self._arguments = arguments
        self.target = target

    def __call__(self, run: Run, thread: int, threads: int) -> None:
        """Runs the step."""
        if thread:
            return
        arguments = (run.values[a] if isinstance(a, int) else a for a in self._arguments)
        run.values[self.target] = self._function(*arguments)

    def sources(self) -> set[int]:
        """Returns the slots of the values that the function takes."""
        return {a for a in self._arguments if isinstance(a, int)}


class Spread:
    """Computes the tiles of a value that no convolution computes.

    Args:
        slot: Slot of the value and of its tiles.
        channels: Number of its channels.
    """

    def __init__(self, slot: int, channels: int) -> None:
        self._slot = slot
        self._channels = channels

    def __call__(self, run: Run, thread: int, threads: int) -> None:
        """Runs the step."""
        start, stop = shares(self._channels, threads)[thread]
        value = run.values[self._slot].transpose(2, 3, 0, 1)[..., start:stop]
        x = _workspace("x", value.shape)
        numpy.copyto(x, value)
        _to_tiles(x, run.tiles[self._slot][..., start:stop])


class Convolution:
    """A 3×3 convolution, the addition of another value, and ReLU.

    Args:
        filters: As :func:`make_filters` returns them.
        bias: (channels out,) float32, or None.
        source: Slot of the input, whose tiles are read.
        target: Slot of the output.
        added: Slot of a value that is added to the output; None for no addition.
        relu: Whether to apply ReLU at the end.

    Attributes:
        gives_value: Whether to write the output itself.
        gives_tiles: Whether to write the tiles of the output, for another convolution.
    """

    def __init__(
        self,
        filters: list[Any],
        bias: Any,
        source: int,
        target: int,
        added: int | None = None,
        relu: bool = False,
    ) -> None:
        self._filters = filters
        self._bias = bias
        self._source = source
        self._target = target
        self._added = added
        self._zeros = numpy.zeros(_WIDEST, numpy.float32) if relu else None
        self.gives_value = False
        self.gives_tiles = False
        ends = numpy.cumsum([block.shape[2] for block in filters]).tolist()
        self._columns = [slice(a, z) for a, z in zip([0, *ends], ends)]

    def __call__(self, run: Run, thread: int, threads: int) -> None:
        """Runs the step."""
        for block in range(*shares(len(self._filters), threads)[thread]):
            columns = self._columns[block]
            x = self._outputs(run, block)
            if self._added is not None:
                x += run.values[self._added].transpose(2, 3, 0, 1)[..., columns]
            if self._zeros is not None:
                numpy.maximum(x, self._zeros[: x.shape[-1]], out=x)
            if self.gives_value:
                run.values[self._target].transpose(2, 3, 0, 1)[..., columns] = x
            if self.gives_tiles:
                _to_tiles(x, run.tiles[self._target][..., columns])

    def _outputs(self, run: Run, block: int) -> Any:
        """Computes a block of the convolution: (9, 9, n, channels of the block)."""
        filters = self._filters[block]
        width = filters.shape[2]
        tiles = run.tiles[self._source].reshape(VALUES**2, -1, filters.shape[1])
        products = _workspace("products", (*tiles.shape[:2], width))
        numpy.matmul(tiles, filters, out=products)
        if self._bias is not None:
            products[BIAS] += self._bias[self._columns[block]]
        size = run.boards * width
        rows = _workspace("rows", (VALUES * TILES, SIDE * size))
        columns = by_columns(products.reshape(VALUES**2, TILES**2, size))
        numpy.matmul(GATHER, columns, out=rows.reshape(VALUES, TILES, SIDE, size))
        x = _workspace("x", (SIDE, SIDE, run.boards, width))
        numpy.matmul(GATHER, rows, out=x.reshape(SIDE, -1))
        return x


def _to_tiles(x: Any, tiles: Any) -> None:
    """Computes the tiles of some channels.

    Args:
        x: (9, 9, n, channels) float32, contiguous.
        tiles: (25, 9, n, channels), the result: contiguous, or some channels of such an array.
    """
    n, channels = x.shape[2:]
    size = n * channels
    rows = _workspace("rows", (VALUES * TILES, SIDE * size))
    numpy.matmul(SPREAD, x.reshape(SIDE, -1), out=rows)
    if tiles.flags.c_contiguous:
        columns = rows.reshape(VALUES, TILES, SIDE, size)
        numpy.matmul(SPREAD, columns, out=by_columns(tiles.reshape(VALUES**2, TILES**2, size)))
        return
    # The channels of two boards are not adjacent: a product for each board.
    columns = rows.reshape(VALUES, TILES, SIDE, n, channels).transpose(0, 1, 3, 2, 4)
    out = tiles.reshape(VALUES, VALUES * TILES, TILES, n, channels)
    numpy.matmul(SPREAD, columns, out=out.transpose(0, 2, 3, 1, 4))


def blocks_of(channels: int, threads: int) -> list[tuple[int, int]]:
    """Divides the channels of a layer among blocks, a multiple of the number of threads."""
    threads = max(1, min(threads, channels // _NARROWEST))
    return shares(channels, threads * -(-channels // (threads * _WIDEST)))


def make_filters(weights: list[Any], threads: int) -> list[list[Any]]:
    """Transforms the weights of all convolutions of a network.

    Args:
        weights: For each convolution (channels out, channels in, 3, 3) float32.
        threads: Number of threads that will share a convolution.

    Returns:
        For each convolution its blocks (25, channels in, channels of the block). All are parts
        of one array: the system uses large memory pages for an array of some megabytes.
    """
    sizes = [VALUES**2 * W.shape[0] * W.shape[1] for W in weights]
    memory = numpy.empty(sum(sizes), numpy.float32)
    filters: list[list[Any]] = []
    start = 0
    for W in weights:
        outputs, inputs = W.shape[:2]
        filters.append([])
        for first, last in blocks_of(outputs, threads):
            size = VALUES**2 * inputs * (last - first)
            block = memory[start : start + size].reshape(VALUES**2, inputs, -1)
            part = W[first:last].reshape(last - first, inputs, -1).transpose(1, 2, 0)
            numpy.matmul(FILTER, part, out=block.transpose(1, 0, 2))
            filters[-1].append(block)
            start += size
    return filters
