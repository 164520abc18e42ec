"""Shards: files of packed positions, of which training reads those of a batch.

=================  ==============================================================
part               content
=================  ==============================================================
header             64 bytes: ``MAGIC``; then, little-endian, the size of a record,
                   records in a block, number of records (8 bytes), number of
                   candidates (8 bytes), checksum of the table, checksum of the
                   header so far; zeros
records            ``POSITION`` records
visits             only if there are candidates: ``starts`` and ``candidates`` of
                   :class:`pydlshogi.positions.Visits`
table              CRC-32 of each block of records, then of the visits of each
                   block, if there are any; the last block may be shorter
=================  ==============================================================

Training reads positions in random order, so that a checksum of the whole file would need all of
it at the start. Each block therefore has a checksum of its own, which is tested whenever a record
of the block is read: a damaged record never reaches the training. The checksum of the table
identifies the content of the shard. The file is not mapped into memory: if it is cut or its disk
fails, a read of it is an error, but a mapped page ends the process.

By default, the system reads 128 KB around each position from the disk. ``posix_fadvise`` (on
Linux) limits that to the pages of the position. It also starts reading the pages of the next
batch, so that they are read during a step.
"""

from __future__ import annotations

import os
import struct
import weakref
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy

from pydlshogi.errors import UserError
from pydlshogi.files import plain_file, write_beside
from pydlshogi.positions import CANDIDATE, POSITION, Visits, raw_bytes

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
_START = struct.Struct("<q")


class ShardError(UserError):
    """A shard cannot be used."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"the shard {path} cannot be used: {reason}. "
            "Copy it again, or make it again with make_positions."
        )


def write_shard(path: Path, positions: numpy.ndarray, visits: Visits | None = None) -> None:
    """Writes a shard of a ``POSITION`` array (n,), n at least 1, and of its visits, atomically.

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
    """A shard, open for reading.

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
        self._file = os.open(plain_file(path), os.O_RDONLY | getattr(os, "O_BINARY", 0))
        weakref.finalize(self, os.close, self._file)
        size = os.fstat(self._file).st_size
        header = self._read(0, min(size, _HEADER_SIZE))
        self._count, self._candidates, self.checksum = self._read_header(header)
        self.has_visits = self._candidates > 0
        self._at_visits = _HEADER_SIZE + self._count * POSITION.itemsize
        self._at_candidates = self._at_visits + (8 * (self._count + 1) if self.has_visits else 0)
        at_table = self._at_candidates + self._candidates * CANDIDATE.itemsize
        wanted = at_table + 4 * -(-self._count // _BLOCK) * (2 if self.has_visits else 1)
        if size != wanted:
            raise ShardError(self.path, f"it has {size} bytes in place of {wanted}")
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._file, 0, 0, os.POSIX_FADV_RANDOM)
        table = self._read(at_table, size - at_table)
        if zlib.crc32(table) != self.checksum:
            raise ShardError(self.path, "the table of its checksums is damaged")
        self._table = numpy.frombuffer(table, "<u4")

    def _read(self, start: int, size: int) -> bytes:
        """Reads bytes of the file, all of them."""
        try:
            if hasattr(os, "pread"):
                data = os.pread(self._file, size, start)
            else:  # on Windows, where the training reads in one thread
                os.lseek(self._file, start, os.SEEK_SET)
                data = os.read(self._file, size)
        except OSError as error:
            raise ShardError(self.path, f"it cannot be read ({error.strerror})") from None
        if len(data) < size:
            raise ShardError(self.path, "it was cut while it was read")
        return data

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
        return self._count

    def __getitem__(self, rows: Any) -> numpy.ndarray:
        """Copies ``POSITION`` records, by numbers or a slice, after a test of their blocks.

        Raises:
            ShardError: a block is damaged or cannot be read.
        """
        if isinstance(rows, slice):
            self._will_need(_HEADER_SIZE, POSITION.itemsize, slice(*rows.indices(len(self))[:2]))
            rows = numpy.arange(*rows.indices(len(self)))
        parts = []
        for number, block in self._blocks_of(rows):
            data = self._read_items(_HEADER_SIZE, POSITION.itemsize, block)
            self._check(number, block, zlib.crc32(data))
            parts.append(data)
        # numpy's concatenate is slow for records.
        return numpy.frombuffer(b"".join(parts), POSITION)[_places(rows)]

    def _read_items(self, start: int, size: int, rows: slice) -> bytes:
        """Reads items of ``size`` bytes; item 0 begins at ``start``."""
        return self._read(start + size * rows.start, size * (rows.stop - rows.start))

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
        """Asks the system to read the blocks of positions into memory; does not wait."""
        for _, block in self._blocks_of(rows):
            self._will_need(_HEADER_SIZE, POSITION.itemsize, block)
            if visits and self.has_visits:
                self._will_need(self._at_visits, 8, slice(block.start, block.stop + 1))

    def prefetch_candidates(self, rows: numpy.ndarray) -> None:
        """Asks the system to read the candidates of positions; waits for their ``starts``.

        :meth:`prefetch` should have asked for the ``starts``.
        """
        if not self.has_visits:
            return
        for _, block in self._blocks_of(rows):
            # The checksum is tested later; until then, the numbers may be damaged.
            self._will_need(self._at_candidates, CANDIDATE.itemsize, self._candidates_of(block)[1])

    def _candidates_of(self, block: slice) -> tuple[bytes, slice]:
        """Reads the ``starts`` of a block; returns also the numbers of its candidates."""
        starts = self._read_items(self._at_visits, 8, slice(block.start, block.stop + 1))
        first, last = _START.unpack(starts[:8])[0], _START.unpack(starts[-8:])[0]
        fits = 0 <= first <= last <= self._candidates
        return starts, slice(first, last) if fits else slice(0, 0)

    def _will_need(self, start: int, size: int, rows: slice) -> None:
        """Asks the system to read items of ``size`` bytes; item 0 begins at ``start``."""
        if hasattr(os, "posix_fadvise") and rows.start < rows.stop:
            first, length = start + size * rows.start, size * (rows.stop - rows.start)
            os.posix_fadvise(self._file, first, length, os.POSIX_FADV_WILLNEED)

    def visits_of(self, rows: numpy.ndarray) -> Visits:
        """Copies the visits of positions, given their numbers, after a test of their blocks.

        Raises:
            ShardError: a block is damaged or cannot be read.
        """
        if not self.has_visits:
            return Visits.none(len(rows))
        before = len(self._table) // 2
        all_starts, all_candidates = [], []
        for number, block in self._blocks_of(rows):
            starts, of_block = self._candidates_of(block)
            candidates = self._read_items(self._at_candidates, CANDIDATE.itemsize, of_block)
            self._check(before + number, block, zlib.crc32(candidates, zlib.crc32(starts)))
            all_starts.append(starts)
            all_candidates.append(candidates)
        # Blocks are joined as one, without the differences between the last start of a block and
        # the first one of the next.
        lengths = numpy.diff(numpy.frombuffer(b"".join(all_starts), "<i8"))
        between = numpy.arange(_BLOCK, len(lengths), _BLOCK + 1)
        ends = numpy.cumsum(numpy.delete(lengths, between))
        candidates_of_all = numpy.frombuffer(b"".join(all_candidates), CANDIDATE)
        return Visits(numpy.append(0, ends), candidates_of_all)[_places(rows)]

    def _blocks_of(self, rows: numpy.ndarray) -> Iterator[tuple[int, slice]]:
        """Yields the blocks of some records, with their numbers."""
        for number in numpy.unique(rows // _BLOCK).tolist():
            start = number * _BLOCK
            yield number, slice(start, min(start + _BLOCK, len(self)))

    def _check(self, entry: int, block: slice, checksum: int) -> None:
        """Compares the checksum of a block with an entry of the table."""
        if checksum != self._table[entry]:
            raise ShardError(self.path, f"positions {block.start + 1} to {block.stop} are damaged")


def _places(rows: numpy.ndarray) -> numpy.ndarray:
    """Returns where records lie in their blocks, read one after another."""
    blocks = rows // _BLOCK
    return numpy.searchsorted(numpy.unique(blocks), blocks) * _BLOCK + rows % _BLOCK
