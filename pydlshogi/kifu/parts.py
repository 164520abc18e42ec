"""HCPE, HCPE3 and PSV files, read in parts so that large files need little memory.

A part is a piece of a file with whole records. Parts are decoded on several threads.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import numpy

from pydlshogi.kifu import hcpe3
from pydlshogi.kifu.fixed import HCPE, PSV, FixedFormat, LeftOut, decode_records, seen_by_mover
from pydlshogi.kifu.record_batch import Batch, File
from pydlshogi.kifu.report import Note

FIXED_FORMATS = (HCPE, PSV)

# About the size of a part in bytes.
_PART_BYTES = 4 << 20
# Notes about the records of a part. A file of another format has millions of wrong records.
_MOST_NOTES = 1000

# A part with more wrong records than this share is of another format, unless it has few records.
_WRONG_FORMAT = 0.9
_FEW = 100


class Part(NamedTuple):
    """A part of a file.

    Attributes:
        file: Name of the file.
        offset: Where the part begins, in bytes.
        number: Number of its first record or game in the file, from 0.
        data: Its bytes.
        problem: Why the rest of the file cannot be read, a clause in words; empty if it can.
    """

    file: str
    offset: int
    number: int
    data: bytes
    problem: str = ""


def parts_of(file: File, size: int = _PART_BYTES) -> Iterator[Part]:
    """Reads a file in parts of about ``size`` bytes, at least one."""
    offset = number = 0
    try:
        with _opened(file) as stream:
            for offset, number, data in _blocks(file.name, stream, size):
                yield Part(file.name, offset, number, data)
    except OSError as error:
        yield Part(file.name, offset, number, b"", f"it cannot be read ({error.strerror})")


def _opened(file: File) -> BinaryIO:
    return open(file.path, "rb") if file.data is None else io.BytesIO(file.data)


def _blocks(name: str, stream: BinaryIO, size: int) -> Iterator[tuple[int, int, bytes]]:
    """Cuts a file into blocks: their offsets, the numbers of their first records, their bytes."""
    format_ = fixed_format(name)
    if format_ is None:
        yield from hcpe3.blocks(stream, size)
        return
    count = max(size // format_.record.itemsize, 1)
    number = 0
    data = stream.read(count * format_.record.itemsize)
    while data or not number:
        yield number * format_.record.itemsize, number, data
        number += count
        data = stream.read(count * format_.record.itemsize)


def fixed_format(name: str) -> FixedFormat | None:
    """Finds the format of fixed records that a file name stands for; None for HCPE3."""
    for format_ in FIXED_FORMATS:
        if name.lower().endswith(format_.suffixes):
            return format_
    return None


def read_part(part: Part, strict: bool = False) -> Batch:
    """Decodes a part. Records of HCPE and PSV count as games with one position.

    ``strict`` also leaves out records and games with an illegal move. No content raises an error.
    """
    batch = Batch(files=part.offset == 0)
    if part.problem:
        batch.unreadable = 1
        batch.excluded.append(Note(part.file, 0, 0, part.problem))
        return batch
    format_ = fixed_format(part.file)
    if format_ is None:
        _read_games(part, strict, batch)
    else:
        _read_records(part, format_, strict, batch)
    return batch


def _read_records(part: Part, format_: FixedFormat, strict: bool, batch: Batch) -> None:
    decoded = decode_records(part.data, format_, strict)
    count = len(part.data) // format_.record.itemsize
    if count >= _FEW and len(decoded.left_out) > _WRONG_FORMAT * count:
        # What is valid by chance would teach nonsense.
        reason = (
            f"only {len(decoded.positions)} of {count} records from byte {part.offset} on are "
            f"valid, so that they are not taken for {format_.name}; the first is wrong because "
            f"{decoded.left_out[0].reason}; give the file the suffix of its format"
        )
        batch.excluded.append(Note(part.file, 0, 0, reason))
        batch.unlisted = count - 1
        return
    batch.positions, batch.turns = decoded.positions, decoded.turns
    batch.lengths = numpy.ones(len(decoded.positions), numpy.int64)
    batch.results = seen_by_mover(decoded.positions["result"], decoded.turns)
    _note(part, decoded.left_out, batch)
    size = format_.record.itemsize
    behind = len(part.data) % size
    if behind or not part.data:
        what = f"it ends {behind} bytes after a whole record" if behind else "it is empty"
        remedy = "copy the file again, or give it the suffix of its format"
        reason = f"{what}; a {format_.name} file has a multiple of {size} bytes; {remedy}"
        _remark(part, reason, batch, counted=not (part.number or count))


def _read_games(part: Part, strict: bool, batch: Batch) -> None:
    decoded = hcpe3.decode_games(part.data, strict)
    batch.positions, batch.turns = decoded.positions, decoded.turns
    batch.lengths, batch.results = decoded.lengths, decoded.results
    batch.visits = decoded.visits
    _note(part, decoded.left_out, batch)
    if not part.data:
        _remark(part, "it is empty; copy the file again", batch, counted=True)
    if decoded.not_searched:
        _remark(part, f"{decoded.not_searched} moves without candidates are left out", batch)


def _note(part: Part, left_out: list[LeftOut], batch: Batch) -> None:
    """Adds notes about records that cannot be used, but not millions."""
    batch.excluded.extend(
        Note(
            part.file,
            part.number + record.number + 1,
            0,
            f"at byte {part.offset + record.start}: {record.reason}",
        )
        for record in left_out[:_MOST_NOTES]
    )
    batch.unlisted = max(len(left_out) - _MOST_NOTES, 0)
    if batch.unlisted:
        last = part.offset + left_out[-1].start
        reason = (
            f"{batch.unlisted} more records up to byte {last} cannot be used; "
            "check the file's format, and copy it again"
        )
        _remark(part, reason, batch)


def _remark(part: Part, reason: str, batch: Batch, *, counted: bool = False) -> None:
    """Adds a note about a part; ``counted``: it counts as a record, as a file without one does."""
    batch.excluded.append(Note(part.file, 0, 0, reason))
    batch.remarks += not counted
