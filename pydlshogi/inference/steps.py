"""The steps of a program: a forward pass in play (:mod:`pydlshogi.inference.program`).

A step is prepared once for each number of boards: :meth:`calls` returns its numpy operations,
bound to the arrays that they read and write. A run then only makes these calls. Python needs
its global lock between two calls, so the less it computes there, the less the threads wait for
one another.

The threads divide the channels of a 3×3 convolution among them. One thread makes all other
calls.

The convolutions use the algorithm and the names of :mod:`pydlshogi.layers.cpu.winograd`. The
weights do not change in play, so their transformation is done once. The outputs are computed
in blocks of channels. A block goes through all operations up to the tiles of the next layer
while it is in the cache. The filters of a block are divided into pieces. A piece is contiguous
and has the width of OpenBLAS's kernel for small AVX-512 products. So the processor reads it
from end to end, and OpenBLAS multiplies it without copying it first.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import accumulate
from typing import Any, Callable, Protocol

import numpy

from pydlshogi.layers.cpu.threads import Workspace, shares
from pydlshogi.layers.cpu.winograd import (
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

#: Largest number of channels in a piece of a block's filters.
_PIECE = 64

#: Temporary arrays, used within a step. The thread that prepares a run provides those of all
#: its threads.
_workspace = Workspace()

#: A numpy operation with its arguments.
Operation = Callable[[], Any]


class Run:
    """The arrays of a program for n boards.

    Args:
        values: By slot: the arrays (n, channels, 9, 9) that convolutions write.
        tiles: By slot: the tiles of a value, (25, 9, n, channels).

    Attributes:
        values: By slot: an array (n, …) of any memory order. The arrays that no convolution
            writes are present during a run only.
    """

    def __init__(
        self,
        boards: int,
        values: dict[int, Any] | None = None,
        tiles: dict[int, Any] | None = None,
    ) -> None:
        self.boards = boards
        self.tiles = tiles or {}
        self._written = values or {}
        self.values = dict(self._written)

    def finish(self, outputs: Iterable[int]) -> list[Any]:
        """Copies the values of the outputs' slots and forgets the input and all results."""
        found = [numpy.array(self.values[slot]) for slot in outputs]
        self.values = dict(self._written)
        return found


class Step(Protocol):
    """A step of a program."""

    def calls(self, run: Run, thread: int, threads: int) -> list[Operation]:
        """Returns what one of some threads has to do in each run."""


class Call:
    """Computes a value by a function of numpy arrays, in the first thread.

    The arguments are constant arrays and the slots of values; ``target`` is the slot of the result.
    """

    def __init__(self, function: Callable[..., Any], arguments: list[Any], target: int) -> None:
        self._function = function
        self._arguments = arguments
        self.target = target

    def __call__(self, run: Run) -> None:
        """Computes the value."""
        arguments = (run.values[a] if isinstance(a, int) else a for a in self._arguments)
        run.values[self.target] = self._function(*arguments)

    def calls(self, run: Run, thread: int, threads: int) -> list[Operation]:
        """Returns one call in the first thread."""
        return [] if thread else [partial(self, run)]

    def sources(self) -> set[int]:
        """Returns the slots of the values that the function takes."""
        return {a for a in self._arguments if isinstance(a, int)}


class Spread:
    """Computes the tiles of a value that no convolution computes; both have the same slot."""

    def __init__(self, slot: int, channels: int) -> None:
        self._slot = slot
        self._channels = channels

    def calls(self, run: Run, thread: int, threads: int) -> list[Operation]:
        """Returns the calls for the thread's share of the channels."""
        start, stop = shares(self._channels, threads)[thread]
        x = _workspace(f"x {thread}", (SIDE, SIDE, run.boards, stop - start))

        def copy() -> None:
            numpy.copyto(x, _in_memory(run.values[self._slot])[..., start:stop])

        return [copy, *_to_tiles(x, run.tiles[self._slot][..., start:stop], thread)]


class Convolution:
    """A 3×3 convolution, the addition of another value, and ReLU.

    Args:
        filters: The pieces of each block, as :func:`make_filters` returns them.
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
        filters: list[list[Any]],
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
        self._columns = _columns([sum(map(_width, pieces)) for pieces in filters])

    def calls(self, run: Run, thread: int, threads: int) -> list[Operation]:
        """Returns the calls for the thread's share of the blocks."""
        found: list[Operation] = []
        for block in range(*shares(len(self._filters), threads)[thread]):
            columns = self._columns[block]
            shape = (SIDE, SIDE, run.boards, columns.stop - columns.start)
            x = _workspace(f"x {thread}", shape)
            found += self._convolve(run, block, x, thread)
            found += self._finish(run, columns, x)
            if self.gives_tiles:
                found += _to_tiles(x, run.tiles[self._target][..., columns], thread)
        return found

    def _convolve(self, run: Run, block: int, x: Any, thread: int) -> list[Operation]:
        """Returns the calls that compute a block of the convolution: x, (9, 9, n, channels)."""
        tiles = run.tiles[self._source]
        tiles = tiles.reshape(VALUES**2, -1, tiles.shape[-1])
        products = _workspace(f"products {thread}", (*tiles.shape[:2], x.shape[-1]))
        pieces = self._filters[block]
        found: list[Operation] = [
            partial(numpy.matmul, tiles, piece, out=products[..., columns])
            for piece, columns in zip(pieces, _columns(map(_width, pieces)))
        ]
        if self._bias is not None:
            bias = self._bias[self._columns[block]]
            found.append(partial(numpy.add, products[BIAS], bias, out=products[BIAS]))
        return [*found, *_from_tiles(products, x, thread)]

    def _finish(self, run: Run, columns: slice, x: Any) -> list[Operation]:
        """Returns the calls for the addition, ReLU and the copy of a block's output x."""
        found: list[Operation] = []
        if self._added is not None:
            found.append(partial(_add_value, run, self._added, columns, x))
        if self._zeros is not None:
            found.append(partial(numpy.maximum, x, self._zeros[: x.shape[-1]], out=x))
        if self.gives_value:
            value = _in_memory(run.values[self._target])[..., columns]
            found.append(partial(numpy.copyto, value, x))
        return found


def _in_memory(value: Any) -> Any:
    """Views a value (n, channels, 9, 9) as (9, 9, n, channels)."""
    return value.transpose(2, 3, 0, 1)


def _add_value(run: Run, slot: int, columns: slice, x: Any) -> None:
    """Adds some channels of a value to x (9, 9, n, channels)."""
    numpy.add(x, _in_memory(run.values[slot])[..., columns], out=x)


def _width(filters: Any) -> int:
    return int(filters.shape[2])


def _columns(widths: Iterable[int]) -> list[slice]:
    """Returns the columns of adjacent ranges of the given widths."""
    ends = list(accumulate(widths))
    return [slice(a, z) for a, z in zip([0, *ends], ends)]


def _from_tiles(products: Any, x: Any, thread: int) -> list[Operation]:
    """Returns the calls that compute outputs from products, both float32 and contiguous.

    Products are (25, 9 · n, channels), and the result x is (9, 9, n, channels).
    """
    size = x[0, 0].size
    rows = _workspace(f"rows {thread}", (VALUES * TILES, SIDE * size))
    columns = by_columns(products.reshape(VALUES**2, TILES**2, size))
    return [
        partial(numpy.matmul, GATHER, columns, out=rows.reshape(VALUES, TILES, SIDE, size)),
        partial(numpy.matmul, GATHER, rows, out=x.reshape(SIDE, -1)),
    ]


def _to_tiles(x: Any, tiles: Any, thread: int) -> list[Operation]:
    """Returns the calls that compute the tiles of some channels.

    Args:
        x: (9, 9, n, channels) float32, contiguous.
        tiles: (25, 9, n, channels), the result: contiguous, or some channels of such an array.
        thread: Number of the thread.
    """
    n, channels = x.shape[2:]
    size = n * channels
    rows = _workspace(f"rows {thread}", (VALUES * TILES, SIDE * size))
    if tiles.flags.c_contiguous:
        columns = rows.reshape(VALUES, TILES, SIDE, size)
        out = by_columns(tiles.reshape(VALUES**2, TILES**2, size))
    else:
        # The channels of two boards are not adjacent: a product for each board.
        columns = rows.reshape(VALUES, TILES, SIDE, n, channels).transpose(0, 1, 3, 2, 4)
        out = tiles.reshape(VALUES, VALUES * TILES, TILES, n, channels).transpose(0, 2, 3, 1, 4)
    return [
        partial(numpy.matmul, SPREAD, x.reshape(SIDE, -1), out=rows),
        partial(numpy.matmul, SPREAD, columns, out=out),
    ]


def _blocks_of(channels: int, threads: int) -> list[tuple[int, int]]:
    """Divides the channels of a layer among blocks, a multiple of the number of threads."""
    threads = max(1, min(threads, channels // _NARROWEST))
    return shares(channels, threads * -(-channels // (threads * _WIDEST)))


def make_filters(weights: list[Any], threads: int) -> list[list[list[Any]]]:
    """Transforms the weights of all convolutions of a network.

    Args:
        weights: For each convolution (channels out, channels in, 3, 3) float32.
        threads: Number of threads that will share a convolution.

    Returns:
        For each convolution its blocks; each is a list of pieces (25, channels in, channels of
        the piece). All are parts of one array: the system uses large memory pages for an array
        of some megabytes.
    """
    memory = numpy.empty(sum(VALUES**2 * W[:, :, 0, 0].size for W in weights), numpy.float32)
    start = 0

    def piece(W: Any, first: int, last: int) -> Any:
        nonlocal start
        inputs = W.shape[1]
        stop = start + VALUES**2 * inputs * (last - first)
        filters = memory[start:stop].reshape(VALUES**2, inputs, -1)
        start = stop
        part = W[first:last].reshape(last - first, inputs, -1).transpose(1, 2, 0)
        numpy.matmul(FILTER, part, out=filters.transpose(1, 0, 2))
        return filters

    return [
        [
            [piece(W, a, min(a + _PIECE, last)) for a in range(first, last, _PIECE)]
            for first, last in _blocks_of(len(W), threads)
        ]
        for W in weights
    ]
