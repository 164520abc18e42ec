"""Kifu lists to packed positions.

Files are read in batches (:mod:`pydlshogi.kifu.record_batch`) on two threads. A record that cannot
be parsed, or that has an impossible move, is left out. The report names it, and reading continues.
"""

from __future__ import annotations

import collections
import functools
import itertools
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import numpy

from pydlshogi.bar import bar
from pydlshogi.kifu import stopping
from pydlshogi.kifu.fixed import limit_evaluations
from pydlshogi.kifu.formats import Record, is_binary, records_of
from pydlshogi.kifu.record_batch import Batch, File, parts_of, read_batch, read_part, read_records
from pydlshogi.kifu.replay import rows_of
from pydlshogi.kifu.report import Note, Report
from pydlshogi.kifu.shards import SUFFIX
from pydlshogi.kifu.sources import KifuError, Source, is_archive, read_archive, read_list
from pydlshogi.positions import POSITION, Visits

# A batch ends when its files have this many bytes, or when it has this many files. A larger file
# is divided into batches of records.
_BATCH_BYTES = 8 << 20
_BATCH_FILES = 4096
_WORKERS = 2

_IS_SHARD = "it is a shard, which this program cannot read; name its records instead"

_Item = TypeVar("_Item", File, Record)


def read_positions(
    kifu_list_file: str | os.PathLike[str], *, strict: bool = False, drop_duplicates: bool = False
) -> tuple[numpy.ndarray, Report]:
    """Reads all records that a kifu list names, without the cache.

    Arguments, order and errors are those of :func:`pydlshogi.read_kifu.read_kifu`.

    Returns:
        ``POSITION`` array (n,), and the report.
    """
    sources = read_list(kifu_list_file)
    return read_sources(kifu_list_file, sources, strict=strict, drop_duplicates=drop_duplicates)


def read_sources(
    kifu_list_file: str | os.PathLike[str],
    sources: list[Source],
    *,
    strict: bool,
    drop_duplicates: bool,
    may_be_empty: bool = False,
    visits: list[Visits] | None = None,
) -> tuple[numpy.ndarray, Report]:
    """Reads the files that ``read_list`` found. Result and errors as above.

    Args:
        kifu_list_file: Name of the list, for messages.
        sources: The files.
        strict: Whether to leave out games with an illegal move.
        drop_duplicates: Whether to use only the first of several games with the same moves.
        may_be_empty: Whether it is no error that none of the records can be used.
        visits: Receives the visits of each batch. Only HCPE3 files have candidates.
    """
    report = Report(duplicates_dropped=drop_duplicates)
    chunks: list[numpy.ndarray] = []
    for read in stream(sources, report, strict=strict, drop_duplicates=drop_duplicates):
        limit_evaluations(read.positions)
        chunks.append(read.positions)
        if visits is not None:
            visits.append(read.visits_of_all())
    if not (report.positions or may_be_empty):
        raise KifuError(
            f"no record of the kifu list {os.fspath(kifu_list_file)} can be used "
            f"({report.records} left out{report.first_left_out()})"
        )
    return _concatenate(chunks, report.positions), report


def stream(
    sources: list[Source], report: Report, *, strict: bool, drop_duplicates: bool
) -> Iterator[Batch]:
    """Reads sources, a batch at a time: positions, sides to move and visits of the games used.

    Evaluations from HCPE, HCPE3 and PSV files are not limited. ``report`` receives the counts and
    notes. The other arguments are those of :func:`read_sources`.
    """
    first_with: dict[bytes, tuple[str, int]] = {}
    report.excluded.extend(
        Note(source.name, 0, 0, source.problem) for source in sources if source.problem
    )
    with bar(total=len(sources), unit="file", desc="read kifu") as progress:
        progress.update(len(report.excluded))
        for batch in _read_batches(sources, strict, report):
            progress.update(batch.files)
            kept = numpy.ones(len(batch.results), dtype=bool)
            for number, (key, record) in enumerate(zip(batch.keys, batch.records)):
                place = record.file, record.number
                earlier = first_with.setdefault(key, place)
                if earlier is not place:
                    reason = f"same moves as {earlier[0]}, record {earlier[1]}"
                    report.duplicates.append(record.note(0, reason))
                    kept[number] = not drop_duplicates
            if not kept.all():
                # Only text records have keys, and they have no visits.
                rows = rows_of(batch.lengths, numpy.flatnonzero(kept))
                batch.positions, batch.turns = batch.positions[rows], batch.turns[rows]
            report.count(batch.results[kept].tolist(), len(batch.positions))
            report.records += len(kept) + batch.unlisted - batch.remarks
            report.excluded.extend(batch.excluded)
            report.unreadable += batch.unreadable
            report.contradictions.extend(batch.contradictions)
            yield batch
    report.records += len(report.excluded)


def _concatenate(chunks: list[numpy.ndarray], total: int) -> numpy.ndarray:
    """Concatenates arrays and frees each one after it is copied; ``chunks`` becomes empty."""
    positions = numpy.empty(total, dtype=POSITION)
    end = total
    while chunks:
        chunk = chunks.pop()
        positions[end - len(chunk) : end] = chunk
        end -= len(chunk)
    return positions


def _read_batches(sources: list[Source], strict: bool, report: Report) -> Iterator[Batch]:
    """Reads several batches at a time and yields them in order."""
    pool = ThreadPoolExecutor(_WORKERS)
    stop = threading.Event()
    try:
        going_on: collections.deque[Future[Batch]] = collections.deque()
        for job in _jobs(_files(sources, report), strict):
            going_on.append(pool.submit(stopping.run, job, stop))
            # One batch waits for each worker, so that no worker is idle.
            if len(going_on) > 2 * _WORKERS:
                yield going_on.popleft().result()
        while going_on:
            yield going_on.popleft().result()
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)


def _files(sources: list[Source], report: Report) -> Iterator[File]:
    """Yields each file, also those in archives."""
    for source in sources:
        if source.problem:
            continue
        if source.name.lower().endswith(SUFFIX):
            report.excluded.append(Note(source.name, 0, 0, _IS_SHARD))
            continue
        if not is_archive(source):
            yield File(source.name, source.size, source.path, None)
            continue
        found = False
        try:
            for member in read_archive(source):
                found = True
                if member.problem:
                    report.excluded.append(Note(member.name, 0, 0, member.problem))
                else:
                    yield File(member.name, len(member.data), "", member.data)
        except (OSError, ValueError) as error:
            report.unreadable += isinstance(error, OSError)
            reason = f"the archive cannot be read ({error})"
            report.excluded.append(Note(source.name, 0, 0, reason))
        else:
            if not found:
                reason = "the archive holds no record (an archive in it is not opened)"
                report.excluded.append(Note(source.name, 0, 0, reason))


def _jobs(files: Iterable[File], strict: bool) -> Iterator[Callable[[], Batch]]:
    """Divides the reading into jobs for the threads."""
    for binary, group in itertools.groupby(files, key=lambda file: is_binary(file.name)):
        if binary:
            for file in group:
                yield from (functools.partial(read_part, part, strict) for part in parts_of(file))
        else:
            for batch in _batches(group, lambda file: file.size):
                if len(batch) == 1 and batch[0].size > _BATCH_BYTES:
                    yield from _jobs_of_large(batch[0], strict)
                else:
                    yield functools.partial(read_batch, batch, strict)


def _jobs_of_large(file: File, strict: bool) -> Iterator[Callable[[], Batch]]:
    """Divides a file with many records into jobs."""
    try:
        data = Path(file.path).read_bytes() if file.data is None else file.data
    except OSError:
        yield functools.partial(read_batch, [file], strict)  # reports it
        return
    # The first batch counts the file, and has no record.
    yield lambda: Batch(1)
    for records in _batches(records_of(file.name, data), lambda record: len(record.text)):
        yield functools.partial(read_records, records, strict)


def _batches(items: Iterable[_Item], size_of: Callable[[_Item], int]) -> Iterator[list[_Item]]:
    """Groups items: large batches amortize numpy's calls, small ones fit the CPU's cache.

    An item that fills a batch alone has one of its own.
    """
    batch: list[_Item] = []
    total = 0
    for item in items:
        size = size_of(item)
        if batch and size > _BATCH_BYTES:
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += size
        if total >= _BATCH_BYTES or len(batch) >= _BATCH_FILES:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch
