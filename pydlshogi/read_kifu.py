"""Kifu lists to packed positions, and the cache beside the list.

Files are read in batches (:mod:`pydlshogi.kifu.batch`), two at a time. A record that
cannot be read, or whose moves are not possible, is left out whole and named in the
report; it never ends the reading.
"""

from __future__ import annotations

import collections
import logging
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy
from tqdm import tqdm

from pydlshogi.files import remove_leftovers
from pydlshogi.kifu.batch import Batch, File, read_batch
from pydlshogi.kifu.replay import rows_of
from pydlshogi.kifu.report import Note, Report
from pydlshogi.kifu.sources import KifuError, Source, is_archive, read_archive, read_list
from pydlshogi.positions import (
    POSITION,
    CacheError,
    cache_path,
    count_common,
    fingerprint,
    load_cache,
    save_cache,
)

__all__ = [
    "KifuError",
    "Loaded",
    "Report",
    "count_common",
    "load_positions",
    "read_kifu",
]

_logger = logging.getLogger(__name__)

# A batch: as many files as fill this many bytes, and no more than so many.
_BATCH_BYTES = 8 << 20
_BATCH_FILES = 4096
_WORKERS = 2


class Loaded(NamedTuple):
    """The positions of a list.

    Attributes:
        positions: ``POSITION`` array, (n,), in the order of the list.
        report: What was read and what was left out.
        from_cache: Whether they come from the cache.
        saved: Whether a cache was made.
        cache: The cache's path, used or not.
    """

    positions: numpy.ndarray
    report: Report
    from_cache: bool
    saved: bool
    cache: Path


def read_kifu(
    kifu_list_file: str | os.PathLike[str],
    *,
    strict: bool = False,
    drop_duplicates: bool = False,
    report: Report | None = None,
) -> numpy.ndarray:
    """Reads the records that a kifu list names; the cache is neither used nor made.

    Args:
        kifu_list_file: A text file with the path of a CSA or KIF file, a folder or an
            archive a line; see :mod:`pydlshogi.kifu.sources`.
        strict: Leave out also the games with a move that is possible but not legal,
            such as one that leaves the king in check. Much slower.
        drop_duplicates: Of games with the same moves use the first only.
        report: Filled with what was read and what was left out. Without it the
            closing lines are logged where something was left out.

    Returns:
        ``POSITION`` array, (n,): every position in which a move was played, in the
        order of the list.

    Raises:
        KifuError: the list is missing or empty, or no record of it can be used.
    """
    sources = read_list(kifu_list_file)
    positions, found = _read(sources, strict=strict, drop_duplicates=drop_duplicates)
    if report is not None:
        vars(report).update(vars(found))
    elif found.excluded:
        for line in found.lines():
            _logger.warning("%s", line)
    _require_positions(kifu_list_file, found)
    return positions


def load_positions(
    kifu_list_file: str | os.PathLike[str], *, strict: bool = False, drop_duplicates: bool = False
) -> Loaded:
    """Takes a list's positions from its cache, or reads the records and makes the cache.

    The cache is used if the list, the sizes and times of its files and the options are
    those that it was made from. A cache of ours that is not, or is damaged, is replaced;
    a file of that name that is not ours is left alone. Each gives one warning, and so
    does a folder that cannot be written, or a file that is there but cannot be read:
    then no cache is made. The reading goes on.

    Args:
        kifu_list_file, strict, drop_duplicates: As for ``read_kifu``.

    Returns:
        The positions, the report, and where they come from.

    Raises:
        KifuError: as ``read_kifu``.
    """
    sources = read_list(kifu_list_file)
    cache = cache_path(kifu_list_file)
    mark = _fingerprint(sources, strict, drop_duplicates)
    may_save = True
    try:
        cached = load_cache(cache, mark)
        report = _report_of(cached.report)
        return Loaded(cached.positions, report, True, False, cache)
    except FileNotFoundError:
        pass
    except CacheError as error:
        may_save = error.ours
        action = "it is made anew" if error.ours else "it is left alone, and no cache is used"
        _logger.warning("the cache %s is not used: %s; %s", cache, error, action)
    positions, report = _read(sources, strict=strict, drop_duplicates=drop_duplicates)
    _require_positions(kifu_list_file, report)
    saved = False
    if may_save and report.unreadable:
        _logger.warning(
            "no cache %s is made, because %d files could not be read", cache, report.unreadable
        )
    elif may_save:
        remove_leftovers(cache)
        try:
            save_cache(cache, mark, positions, report.to_plain())
            saved = True
        except OSError as error:
            _logger.warning(
                "the cache %s cannot be written (%s); the records will be read again next time",
                cache,
                error.strerror,
            )
    return Loaded(positions, report, False, saved, cache)


def _report_of(plain: dict[str, Any]) -> Report:
    """Takes the report out of a cache, which may have suffered."""
    try:
        return Report.from_plain(plain)
    except (KeyError, TypeError) as error:
        raise CacheError("it is damaged", ours=True) from error


def _require_positions(kifu_list_file: str | os.PathLike[str], report: Report) -> None:
    if not report.positions:
        why = f"; the first: {report.excluded[0]}" if report.excluded else ""
        raise KifuError(
            f"no record of the kifu list {os.fspath(kifu_list_file)} can be used "
            f"({report.records} left out{why})"
        )


def _fingerprint(sources: list[Source], strict: bool, drop_duplicates: bool) -> str:
    stats = numpy.array([(source.size, source.time) for source in sources], dtype="<i8")
    names = "\n".join(source.name for source in sources)
    options = f"strict={strict} drop_duplicates={drop_duplicates}"
    return fingerprint(
        [names.encode("utf-8", "surrogateescape"), stats.tobytes(), options.encode()]
    )


# --- reading ------------------------------------------------------------------------


def _read(
    sources: list[Source], *, strict: bool, drop_duplicates: bool
) -> tuple[numpy.ndarray, Report]:
    """Reads all sources."""
    report = Report(duplicates_dropped=drop_duplicates)
    chunks: list[numpy.ndarray] = []
    first_with: dict[bytes, tuple[str, int]] = {}
    report.excluded.extend(
        Note(source.name, 0, 0, source.problem) for source in sources if source.problem
    )
    with tqdm(total=len(sources), unit="file", disable=None, desc="read kifu") as progress:
        progress.update(len(report.excluded))
        for batch in _read_batches(sources, strict, report):
            progress.update(batch.files)
            kept = numpy.ones(len(batch.records), dtype=bool)
            for number, (key, record) in enumerate(zip(batch.keys, batch.records)):
                place = record.file, record.number
                earlier = first_with.setdefault(key, place)
                if earlier is not place:
                    reason = f"same moves as {earlier[0]}, record {earlier[1]}"
                    report.duplicates.append(record.note(0, reason))
                    kept[number] = not drop_duplicates
            positions = batch.positions
            if not kept.all():
                positions = positions[rows_of(batch.lengths, numpy.flatnonzero(kept))]
            chunks.append(positions)
            report.count(batch.results[kept].tolist(), len(positions))
            report.records += len(kept)
            report.excluded.extend(batch.excluded)
            report.unreadable += batch.unreadable
            report.contradictions.extend(batch.contradictions)
    report.records += len(report.excluded)
    return _concatenate(chunks, report.positions), report


def _concatenate(chunks: list[numpy.ndarray], total: int) -> numpy.ndarray:
    """Joins arrays, each freed as soon as it is copied; ``chunks`` is empty afterwards."""
    positions = numpy.empty(total, dtype=POSITION)
    end = total
    while chunks:
        chunk = chunks.pop()
        positions[end - len(chunk) : end] = chunk
        end -= len(chunk)
    return positions


def _read_batches(sources: list[Source], strict: bool, report: Report) -> Iterator[Batch]:
    """Reads batches, a few at a time, and gives them in order."""
    pool = ThreadPoolExecutor(_WORKERS)
    try:
        going_on: collections.deque[Future[Batch]] = collections.deque()
        for files in _batches(_files(sources, report)):
            going_on.append(pool.submit(read_batch, files, strict))
            # One batch waits for each worker, so that none is idle while one is used.
            if len(going_on) > 2 * _WORKERS:
                yield going_on.popleft().result()
        while going_on:
            yield going_on.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _files(sources: list[Source], report: Report) -> Iterator[File]:
    """Gives each file; archives are unpacked on the way."""
    for source in sources:
        if source.problem:
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


def _batches(files: Iterable[File]) -> Iterator[list[File]]:
    """Groups files so that a batch is worth while and yet fits the caches."""
    batch: list[File] = []
    total = 0
    for file in files:
        batch.append(file)
        total += file.size
        if total >= _BATCH_BYTES or len(batch) >= _BATCH_FILES:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch
