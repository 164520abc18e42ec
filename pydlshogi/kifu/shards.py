"""Shards: files of packed positions that training maps into memory.

=================  ==============================================================
part               content
=================  ==============================================================
header             64 bytes: ``MAGIC``; then, little-endian, the size of a record,
                   records in a block, number of records (8 bytes), checksum of
                   the table, checksum of the header so far; zeros
records            ``POSITION`` records
table              CRC-32 of each block of records; the last block may be shorter
=================  ==============================================================

A mapped file takes no private memory. Training reads positions in random order, so that a
checksum of the whole file would need all of it at the start. Each block therefore has a
checksum of its own, which is tested whenever a record of the block is read: a damaged record
never reaches the training. The checksum of the table identifies the content of the shard.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Union

import numpy

from pydlshogi.errors import UserError
from pydlshogi.files import write_beside
from pydlshogi.positions import POSITION, raw_bytes

#: Suffix of a shard's name.
SUFFIX = ".shard"

MAGIC = b"pydlshogi shard 1\n"

# Small enough that testing the checksum costs about as much as making one board's planes.
_BLOCK = 32
_HEADER_SIZE = 64
_HEADER = struct.Struct(f"<{len(MAGIC)}sIIQI")
_CHECKSUM = struct.Struct("<I")

# Positions that are copied at a time where all are read.
_ROWS = 1 << 16


class ShardError(UserError):
    """A shard cannot be used."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"the shard {path} cannot be used: {reason}. "
            "Copy it again, or make it again with utils/make_positions.py."
        )


def write_shard(path: Path, positions: numpy.ndarray) -> None:
    """Writes a shard atomically.

    Args:
        path: The file to create or replace.
        positions: ``POSITION`` array, (n,), n at least 1.

    Raises:
        OSError: the file cannot be written.
    """
    rows = raw_bytes(positions)
    starts = range(0, len(rows), _BLOCK)
    table = numpy.array([zlib.crc32(rows[start : start + _BLOCK].data) for start in starts], "<u4")
    content = _HEADER.pack(MAGIC, POSITION.itemsize, _BLOCK, len(rows), zlib.crc32(table.data))
    content += _CHECKSUM.pack(zlib.crc32(content))
    with write_beside(path) as file:
        file.write(content.ljust(_HEADER_SIZE, b"\0"))
        file.write(rows.data)
        file.write(table.data)


class Shard:
    """A shard, mapped into memory.

    Args:
        path: The file.

    Attributes:
        path: The file.
        checksum: Identifies the content, 32 bits.

    Raises:
        ShardError: the file is no shard or is damaged; records are tested when they are read.
        OSError: the file cannot be read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        with open(path, "rb") as file:
            count, self.checksum = self._read_header(file.read(_HEADER_SIZE))
            size = os.fstat(file.fileno()).st_size
        table_size = 4 * -(-count // _BLOCK)
        wanted = _HEADER_SIZE + count * POSITION.itemsize + table_size
        if size != wanted:
            raise ShardError(self.path, f"it has {size} bytes in place of {wanted}")
        self._records = numpy.memmap(path, POSITION, "r", _HEADER_SIZE, (count,))
        self._bytes = self._records.view(numpy.uint8).reshape(count, POSITION.itemsize)
        table = numpy.fromfile(path, "<u4", offset=wanted - table_size)
        if zlib.crc32(table.data) != self.checksum:
            raise ShardError(self.path, "the table of its checksums is damaged")
        self._table = table

    def _read_header(self, header: bytes) -> tuple[int, int]:
        """Returns the number of records and the checksum of the table."""
        if not header.startswith(MAGIC):
            raise ShardError(self.path, "it is no shard of this version of pydlshogi")
        end = _HEADER.size + _CHECKSUM.size
        if len(header) < _HEADER_SIZE or _CHECKSUM.unpack(header[_HEADER.size : end]) != (
            zlib.crc32(header[: _HEADER.size]),
        ):
            raise ShardError(self.path, "its header is damaged")
        _, record_size, block, count, checksum = _HEADER.unpack(header[: _HEADER.size])
        if (record_size, block) != (POSITION.itemsize, _BLOCK):
            raise ShardError(self.path, "another version of pydlshogi made it")
        return count, checksum

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
        numbers = numpy.arange(len(self))[rows] if isinstance(rows, slice) else rows
        for block in numpy.unique(numbers // _BLOCK).tolist():
            start = block * _BLOCK
            if zlib.crc32(self._bytes[start : start + _BLOCK].data) != self._table[block]:
                raise ShardError(
                    self.path,
                    f"positions {start + 1} to {min(start + _BLOCK, len(self))} are damaged",
                )
        return numpy.array(self._records[rows])


class MappedPositions:
    """Positions of several shards, and of an array before them, as one sequence.

    Args:
        records: ``POSITION`` array, (n,); may be empty.
        shards: The shards.
    """

    def __init__(self, records: numpy.ndarray, shards: Sequence[Shard]) -> None:
        self._parts: list[Any] = [records, *shards]
        self._ends = numpy.cumsum([len(part) for part in self._parts])

    def __len__(self) -> int:
        return int(self._ends[-1])

    def __getitem__(self, rows: Any) -> numpy.ndarray:
        """Copies positions.

        Args:
            rows: Numbers of the positions, an array of integers or a slice.

        Returns:
            ``POSITION`` array.

        Raises:
            ShardError: a shard is damaged.
        """
        numbers = numpy.arange(*rows.indices(len(self))) if isinstance(rows, slice) else rows
        found = numpy.empty(len(numbers), POSITION)
        parts = numpy.searchsorted(self._ends, numbers, "right")
        for part in numpy.unique(parts).tolist():
            inside = parts == part
            start = self._ends[part - 1] if part else 0
            found[inside] = self._parts[part][numbers[inside] - start]
        return found

    def checksum(self, of_array: Any) -> int:
        """Computes a checksum of all positions, without reading the shards.

        Args:
            of_array: Function that computes the checksum of a ``POSITION`` array.
        """
        sums = [of_array(self._parts[0]), *(shard.checksum for shard in self._parts[1:])]
        return zlib.crc32(struct.pack(f"<{len(sums)}I", *sums))


#: Positions in memory or in shards. Both have a length, and rows by arrays and slices.
AnyPositions = Union[numpy.ndarray, MappedPositions]


def with_shards(records: numpy.ndarray, paths: Sequence[str]) -> AnyPositions:
    """Adds the positions of shards to an array of positions.

    Raises:
        ShardError: a file is no shard or is damaged.
        OSError: a file cannot be read.
    """
    return MappedPositions(records, [Shard(path) for path in paths]) if paths else records


def chunks(positions: AnyPositions, rows: int = _ROWS) -> Iterator[numpy.ndarray]:
    """Yields all positions, some at a time."""
    for start in range(0, len(positions), rows):
        yield positions[start : start + rows]
