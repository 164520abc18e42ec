"""Shards: files of packed positions that training maps into memory.

=================  ==============================================================
part               content
=================  ==============================================================
header             64 bytes: ``MAGIC``; then, little-endian, the size of a record,
                   records in a block, number of records (8 bytes), number of
                   candidates (8 bytes), checksum of the table, checksum of the
                   header so far; zeros
records            ``POSITION`` records
visits             only if there are candidates: ``starts`` and ``candidates`` of
                   :class:`pydlshogi.kifu.visits.Visits`
table              CRC-32 of each block of records, then of the visits of each
                   block, if there are any; the last block may be shorter
=================  ==============================================================

A mapped file takes no private memory. Training reads positions in random order, so that a
checksum of the whole file would need all of it at the start. Each block therefore has a
checksum of its own, which is tested whenever a record of the block is read: a damaged record
never reaches the training. The checksum of the table identifies the content of the shard.

By default, the system reads 128 KB around each position from the disk. ``madvise`` (not on
Windows) limits that to the pages of the position. It also starts reading the pages of the next
batch, so that they are read during a step.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy

from pydlshogi.errors import UserError
from pydlshogi.files import write_beside
from pydlshogi.kifu.visits import CANDIDATE, Visits
from pydlshogi.positions import POSITION, raw_bytes

#: Suffix of a shard's name.
SUFFIX = ".shard"

MAGIC = b"pydlshogi shard 2\n"

# Small enough that testing the checksum costs about as much as making one board's planes.
_BLOCK = 32
#: Records that a check of the whole file copies at a time.
_CHECKED = 1 << 14
_HEADER_SIZE = 64
_HEADER = struct.Struct(f"<{len(MAGIC)}sIIQQI")
_CHECKSUM = struct.Struct("<I")


class ShardError(UserError):
    """A shard cannot be used."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"the shard {path} cannot be used: {reason}. "
            "Copy it again, or make it again with make_positions."
        )


def write_shard(path: Path, positions: numpy.ndarray, visits: Visits | None = None) -> None:
    """Writes a shard atomically.

    Args:
        path: The file to create or replace.
        positions: ``POSITION`` array, (n,), n at least 1.
        visits: Their visits; None if there are none.

    Raises:
        OSError: the file cannot be written.
    """
    rows = raw_bytes(positions)
    searched = None if visits is None or not len(visits.candidates) else _in_file(visits)
    checksums = [zlib.crc32(rows[block].data) for block in _blocks(len(rows))]
    if searched is not None:
        checksums += [_checksum_of_visits(searched, block) for block in _blocks(len(rows))]
    table = numpy.array(checksums, "<u4")
    count = 0 if searched is None else len(searched.candidates)
    sizes = POSITION.itemsize, _BLOCK, len(rows), count
    content = _HEADER.pack(MAGIC, *sizes, zlib.crc32(table.data))
    content += _CHECKSUM.pack(zlib.crc32(content))
    with write_beside(path) as file:
        file.write(content.ljust(_HEADER_SIZE, b"\0"))
        file.write(rows.data)
        if searched is not None:
            file.write(searched.starts.data)
            file.write(searched.candidates.tobytes())
        file.write(table.data)


def _in_file(visits: Visits) -> Visits:
    """Returns visits as a file holds them: the first candidate has the number 0."""
    starts = visits.starts - visits.starts[0]
    candidates = visits.candidates[visits.starts[0] : visits.starts[-1]]
    return Visits(numpy.ascontiguousarray(starts, "<i8"), numpy.ascontiguousarray(candidates))


def _blocks(count: int) -> list[slice]:
    """Divides ``count`` records into blocks."""
    return [slice(start, min(start + _BLOCK, count)) for start in range(0, count, _BLOCK)]


def _checksum_of_visits(visits: Visits, block: slice) -> int:
    """Computes the checksum of the visits of a block."""
    starts = visits.starts[block.start : block.stop + 1]
    candidates = visits.candidates[starts[0] : starts[-1]]
    return zlib.crc32(candidates.tobytes(), zlib.crc32(starts.tobytes()))


class Shard:
    """A shard, mapped into memory.

    Args:
        path: The file.

    Attributes:
        path: The file.
        checksum: Identifies the content, 32 bits.
        has_visits: Whether a position has candidates.

    Raises:
        ShardError: the file is no shard or is damaged; records are tested when they are read.
        OSError: the file cannot be read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        with open(path, "rb") as file:
            count, candidates, self.checksum = self._read_header(file.read(_HEADER_SIZE))
            size = os.fstat(file.fileno()).st_size
            self.has_visits = candidates > 0
            self._at_visits = _HEADER_SIZE + count * POSITION.itemsize
            self._at_candidates = self._at_visits + (8 * (count + 1) if candidates else 0)
            at_table = self._at_candidates + candidates * CANDIDATE.itemsize
            wanted = at_table + 4 * -(-count // _BLOCK) * (2 if candidates else 1)
            if size != wanted:
                raise ShardError(self.path, f"it has {size} bytes in place of {wanted}")
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if hasattr(mmap, "MADV_RANDOM"):  # not on Windows
            self._map.madvise(mmap.MADV_RANDOM)
        self._records = numpy.frombuffer(self._map, POSITION, count, _HEADER_SIZE)
        self._bytes = self._records.view(numpy.uint8).reshape(count, POSITION.itemsize)
        if candidates:
            self._visits = Visits(
                numpy.frombuffer(self._map, "<i8", count + 1, self._at_visits),
                numpy.frombuffer(self._map, CANDIDATE, candidates, self._at_candidates),
            )
        self._table = numpy.fromfile(path, "<u4", offset=at_table)
        if zlib.crc32(self._table.data) != self.checksum:
            raise ShardError(self.path, "the table of its checksums is damaged")

    def _read_header(self, header: bytes) -> tuple[int, int, int]:
        """Returns the numbers of records and candidates, and the checksum of the table."""
        if not header.startswith(MAGIC):
            raise ShardError(self.path, "it is no shard of this version of pydlshogi")
        end = _HEADER.size + _CHECKSUM.size
        if len(header) < _HEADER_SIZE or _CHECKSUM.unpack(header[_HEADER.size : end]) != (
            zlib.crc32(header[: _HEADER.size]),
        ):
            raise ShardError(self.path, "its header is damaged")
        _, record_size, block, *found = _HEADER.unpack(header[: _HEADER.size])
        if (record_size, block) != (POSITION.itemsize, _BLOCK):
            raise ShardError(self.path, "another version of pydlshogi made it")
        count, candidates, checksum = found
        return count, candidates, checksum

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, rows: Any) -> numpy.ndarray:
        """Copies records, after a test of their blocks.

        Args:
            rows: Numbers of the records, an array of integers or a slice.

        Returns:
            ``POSITION`` array.

        Raises:
            ShardError: a block is damaged.
        """
        if isinstance(rows, slice):
            self._will_need(_HEADER_SIZE, POSITION.itemsize, slice(*rows.indices(len(self))[:2]))
        for number, block in self._blocks_of(rows):
            self._check(number, block, zlib.crc32(self._bytes[block].data))
        return numpy.array(self._records[rows])

    def check(self) -> None:
        """Reads and tests all blocks.

        Raises:
            ShardError: a block is damaged.
        """
        for start in range(0, len(self), _CHECKED):
            end = min(start + _CHECKED, len(self))
            self[start:end]
            if self.has_visits:
                rows = numpy.arange(start, end)
                self.prefetch_candidates(rows)
                self.visits_of(rows)

    def prefetch(self, rows: numpy.ndarray, visits: bool = False) -> None:
        """Asks the system to read the blocks of positions into memory; does not wait.

        Args:
            rows: Numbers of the positions, an array of integers.
            visits: Whether to read the ``starts`` of their visits too.
        """
        for _, block in self._blocks_of(rows):
            self._will_need(_HEADER_SIZE, POSITION.itemsize, block)
            if visits and self.has_visits:
                self._will_need(self._at_visits, 8, slice(block.start, block.stop + 1))

    def prefetch_candidates(self, rows: numpy.ndarray) -> None:
        """Asks the system to read the candidates of positions; waits for their ``starts``.

        Args:
            rows: As for :meth:`prefetch`, which should have asked for the ``starts``.
        """
        if not self.has_visits:
            return
        for _, block in self._blocks_of(rows):
            ends = self._visits.starts[[block.start, block.stop]]
            # The checksum is tested later; until then, the numbers may be damaged.
            start, stop = numpy.clip(ends, 0, len(self._visits.candidates)).tolist()
            self._will_need(self._at_candidates, CANDIDATE.itemsize, slice(start, stop))

    def _will_need(self, start: int, size: int, rows: slice) -> None:
        """Asks the system to read items of ``size`` bytes; item 0 begins at ``start``."""
        if not hasattr(mmap, "MADV_WILLNEED") or rows.start >= rows.stop:
            return
        first = (start + size * rows.start) // mmap.PAGESIZE * mmap.PAGESIZE
        self._map.madvise(mmap.MADV_WILLNEED, first, start + size * rows.stop - first)

    def visits_of(self, rows: numpy.ndarray) -> Visits:
        """Copies the visits of positions, after a test of their blocks.

        Args:
            rows: Numbers of the positions, an array of integers.

        Raises:
            ShardError: a block is damaged.
        """
        if not self.has_visits:
            return Visits.none(len(rows))
        before = len(self._table) // 2
        for number, block in self._blocks_of(rows):
            self._check(before + number, block, _checksum_of_visits(self._visits, block))
        return self._visits[rows]

    def _blocks_of(self, rows: Any) -> Iterator[tuple[int, slice]]:
        """Yields the blocks of some records, with their numbers."""
        numbers = numpy.arange(len(self))[rows] if isinstance(rows, slice) else rows
        for number in numpy.unique(numbers // _BLOCK).tolist():
            start = number * _BLOCK
            yield number, slice(start, min(start + _BLOCK, len(self)))

    def _check(self, entry: int, block: slice, checksum: int) -> None:
        """Compares the checksum of a block with an entry of the table."""
        if checksum != self._table[entry]:
            raise ShardError(self.path, f"positions {block.start + 1} to {block.stop} are damaged")
