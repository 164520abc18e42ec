"""Positions of several shards, and of an array, as one sequence for the training."""

from __future__ import annotations

import contextlib
import errno
import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, Union

import numpy

from pydlshogi.errors import UserError
from pydlshogi.kifu.shards import Shard
from pydlshogi.positions import POSITION, Visits, join_visits

# Positions that are copied at a time where all are read.
_ROWS = 1 << 16


class MappedPositions:
    """Positions of several shards, and of an array before them, as one sequence.

    Args:
        records: ``POSITION`` array, (n,); may be empty.
        shards: The shards.
        visits: Visits of ``records``; None if they have none.
    """

    def __init__(
        self, records: numpy.ndarray, shards: Sequence[Shard], visits: Visits | None = None
    ) -> None:
        self._records = records
        self._shards = shards
        self._visits = visits
        self._parts: list[Any] = [records, *shards]
        self._ends = numpy.cumsum([len(part) for part in self._parts])

    def __len__(self) -> int:
        return int(self._ends[-1])

    def __getitem__(self, rows: Any) -> numpy.ndarray:
        """Copies positions, given their numbers as an array or a slice.

        Raises:
            ShardError: a shard is damaged.
        """
        numbers = numpy.arange(*rows.indices(len(self))) if isinstance(rows, slice) else rows
        found = numpy.empty(len(numbers), POSITION)
        for part, places, inside in self._by_part(numbers):
            found[places] = self._parts[part][inside]
        return found

    def prefetch(self, numbers: numpy.ndarray, visits: bool = False) -> None:
        """Asks the system to read positions of shards into memory, and their visits if wanted.

        It waits only for the places of the visits.
        """
        parts = [(part, inside) for part, _, inside in self._by_part(numbers) if part]
        for part, inside in parts:
            self._shards[part - 1].prefetch(inside, visits)
        if visits:  # after the requests to all shards, which the disk can answer together
            for part, inside in parts:
                self._shards[part - 1].prefetch_candidates(inside)

    def _by_part(self, numbers: numpy.ndarray) -> Iterator[tuple[int, Any, Any]]:
        """Yields the number of each part, indices in ``numbers``, and numbers in the part."""
        parts = numpy.searchsorted(self._ends, numbers, "right")
        for part in numpy.unique(parts).tolist():
            places = numpy.flatnonzero(parts == part)
            yield part, places, numbers[places] - (self._ends[part - 1] if part else 0)

    @property
    def has_visits(self) -> bool:
        """Whether a position has candidates."""
        of_records = self._visits is not None and len(self._visits.candidates) > 0
        return of_records or any(shard.has_visits for shard in self._shards)

    def visits_of(self, numbers: numpy.ndarray) -> Visits:
        """Copies the visits of positions, given their numbers.

        Raises:
            ShardError: a shard is damaged.
        """
        found, order = [], []
        for part, places, inside in self._by_part(numbers):
            if part:
                found.append(self._shards[part - 1].visits_of(inside))
            elif self._visits is None:
                found.append(Visits.none(len(inside)))
            else:
                found.append(self._visits[inside])
            order.append(places)
        return join_visits(found)[numpy.argsort(numpy.concatenate(order))]

    def checksum(self, of_array: Any) -> int:
        """Computes a checksum of all positions, without reading the shards.

        ``of_array`` computes that of a ``POSITION`` array.
        """
        sums = [of_array(self._records), *(shard.checksum for shard in self._shards)]
        if self._visits is not None:
            sums.append(self._visits.checksum())
        return zlib.crc32(struct.pack(f"<{len(sums)}I", *sums))


#: Positions in memory or in shards. Both have a length, and rows by arrays and slices.
AnyPositions = Union[numpy.ndarray, MappedPositions]


def with_shards(
    records: numpy.ndarray, paths: Sequence[str], visits: Visits | None = None
) -> AnyPositions:
    """Adds the positions of shards, and visits, to a ``POSITION`` array (n,).

    ``visits`` are those of ``records``, None if they are not used.

    Raises:
        ShardError: a file is no shard or is damaged.
        UserError: the system does not allow so many open files.
        OSError: a file cannot be read.
    """
    if not paths and visits is None:
        return records
    _allow_open_files(len(paths))
    try:
        shards = [Shard(path) for path in paths]
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
        raise UserError(
            f"the system does not allow {len(paths)} shards to be open at once. Make fewer with "
            "a larger shard_size of make_positions, or raise the limit (ulimit -n)."
        ) from None
    return MappedPositions(records, shards, visits)


def _allow_open_files(count: int) -> None:
    """Raises this process's limit of open files, if that is possible and needed.

    A shard stays open. Linux and macOS allow 1,024 or fewer files unless a process asks
    for more. Both lists of a training may name shards, and other files are open too. So an
    eighth of the limit is the most that needs no more.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = soft + count
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and count > soft // 8 and wanted > soft:
        with contextlib.suppress(OSError, ValueError):  # macOS allows less than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def chunks(positions: AnyPositions, rows: int = _ROWS) -> Iterator[numpy.ndarray]:
    """Yields all positions, some at a time."""
    for start in range(0, len(positions), rows):
        yield positions[start : start + rows]
