"""Kifu lists to packed positions, and the cache beside the list.

Records are read in batches, two batches at a time: the plain ones of a batch together
(:mod:`pydlshogi.csa_scan`), the others one by one (:mod:`pydlshogi.csa`,
:mod:`pydlshogi.kif`), then all are played together (:mod:`pydlshogi.replay`). A record
that cannot be read, or whose moves are not possible, is left out whole and named in the
report; it never ends the reading.
"""

from __future__ import annotations

import collections
import hashlib
import logging
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy
from tqdm import tqdm

from pydlshogi import csa, csa_scan
from pydlshogi.csa import Game, RecordError
from pydlshogi.kif import KIF_SUFFIXES, parse_kif
from pydlshogi.kifu_list import KifuError, Source, is_archive, read_archive, read_list
from pydlshogi.kifu_report import Note, Report
from pydlshogi.legality import first_illegal
from pydlshogi.positions import (
    DRAW,
    LOSS,
    POSITION,
    UNKNOWN,
    WIN,
    CacheError,
    cache_path,
    count_common,
    fingerprint,
    load_cache,
    save_cache,
)
from pydlshogi.replay import Games, replay, rows_of

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
            archive a line; see :mod:`pydlshogi.kifu_list`.
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
    does a folder that cannot be written; the reading goes on.

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
    if may_save:
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


class _File(NamedTuple):
    """A file to read: its name, its size, and its path or its bytes."""

    name: str
    size: int
    path: str
    data: bytes | None


class _Origin(NamedTuple):
    """Where a record's text comes from."""

    file: str
    record: int
    lines_before: int

    def note(self, line: int, reason: str) -> Note:
        """Makes a note about the record; ``line`` counts within it."""
        return Note(self.file, self.record, line + self.lines_before if line else 0, reason)


@dataclass
class _Batch:
    """What a batch of files gave; the fields of ``games`` run alike.

    Attributes:
        positions: Those of all its good games, in order.
        lengths: Positions of each good game, (games,).
        results: The result for Black of each good game, (games,).
        origins: The origin of each good game.
        keys: A digest of start and moves of each good game.
        excluded, contradictions: Notes about the others, and about some of the good.
        files: How many files it came from.
    """

    files: int
    positions: numpy.ndarray = field(default_factory=lambda: numpy.empty(0, dtype=POSITION))
    lengths: numpy.ndarray = field(default_factory=lambda: numpy.empty(0, dtype=numpy.int64))
    results: numpy.ndarray = field(default_factory=lambda: numpy.empty(0, dtype=numpy.uint8))
    origins: list[_Origin] = field(default_factory=list)
    keys: list[bytes] = field(default_factory=list)
    excluded: list[Note] = field(default_factory=list)
    contradictions: list[Note] = field(default_factory=list)


def _read(
    sources: list[Source], *, strict: bool, drop_duplicates: bool
) -> tuple[numpy.ndarray, Report]:
    """Reads all sources."""
    report = Report(duplicates_dropped=drop_duplicates)
    chunks: list[numpy.ndarray] = []
    first_with: dict[bytes, _Origin] = {}
    report.excluded.extend(
        Note(source.name, 0, 0, source.problem) for source in sources if source.problem
    )
    with tqdm(total=len(sources), unit="file", disable=None, desc="read kifu") as progress:
        progress.update(len(report.excluded))
        for batch in _read_batches(sources, strict, report.excluded):
            progress.update(batch.files)
            kept = numpy.ones(len(batch.lengths), dtype=bool)
            for number, (key, origin) in enumerate(zip(batch.keys, batch.origins)):
                earlier = first_with.setdefault(key, origin)
                if earlier is not origin:
                    reason = f"same moves as {earlier.file}, record {earlier.record}"
                    report.duplicates.append(origin.note(0, reason))
                    kept[number] = not drop_duplicates
            positions = batch.positions
            if not kept.all():
                positions = positions[rows_of(batch.lengths, numpy.flatnonzero(kept))]
            chunks.append(positions)
            counts = numpy.bincount(batch.results[kept], minlength=4)
            report.black_wins += int(counts[WIN])
            report.white_wins += int(counts[LOSS])
            report.draws += int(counts[DRAW])
            report.unknowns += int(counts[UNKNOWN])
            report.games += int(kept.sum())
            report.positions += len(positions)
            report.records += len(kept)
            report.excluded.extend(batch.excluded)
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


def _read_batches(sources: list[Source], strict: bool, excluded: list[Note]) -> Iterator[_Batch]:
    """Reads batches, a few at a time, and gives them in order."""
    pool = ThreadPoolExecutor(_WORKERS)
    try:
        going_on: collections.deque[Future[_Batch]] = collections.deque()
        for files in _batches(_files(sources, excluded)):
            going_on.append(pool.submit(_read_batch, files, strict))
            # One batch waits for each worker, so that none is idle while one is used.
            if len(going_on) > 2 * _WORKERS:
                yield going_on.popleft().result()
        while going_on:
            yield going_on.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _files(sources: list[Source], excluded: list[Note]) -> Iterator[_File]:
    """Gives each file; archives are unpacked on the way."""
    for source in sources:
        if source.problem:
            continue
        if not is_archive(source):
            yield _File(source.name, source.size, source.path, None)
            continue
        try:
            for name, data in read_archive(source):
                yield _File(name, len(data), "", data)
        except (OSError, ValueError) as error:
            excluded.append(Note(source.name, 0, 0, f"the archive cannot be read ({error})"))


def _batches(files: Iterable[_File]) -> Iterator[list[_File]]:
    """Groups files so that a batch is worth while and yet fits the caches."""
    batch: list[_File] = []
    total = 0
    for file in files:
        batch.append(file)
        total += file.size
        if total >= _BATCH_BYTES or len(batch) >= _BATCH_FILES:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch


def _read_batch(files: list[_File], strict: bool) -> _Batch:
    """Reads some files to positions."""
    batch = _Batch(len(files))
    texts: list[bytes] = []
    origins: list[_Origin] = []
    for file in files:
        try:
            data = file.data if file.data is not None else _read_file(file.path, file.size)
        except OSError as error:
            batch.excluded.append(Note(file.name, 0, 0, f"it cannot be read ({error.strerror})"))
            continue
        records = [(0, data)] if _is_kif(file.name) else csa.split_records(data)
        for number, (lines_before, text) in enumerate(records, 1):
            texts.append(text)
            origins.append(_Origin(file.name, number, lines_before))
    if texts:
        _read_texts(batch, texts, origins, strict)
    return batch


def _read_file(path: str, size: int) -> bytes:
    """Reads a file that was ``size`` bytes long when the list was read.

    Thousands of small files: ``open()`` would ask the system thrice as often.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        data = os.read(descriptor, size + 1)
    finally:
        os.close(descriptor)
    return data if len(data) == size else Path(path).read_bytes()


def _is_kif(name: str) -> bool:
    return name.lower().endswith(KIF_SUFFIXES)


def _parse(text: bytes, origin: _Origin) -> Game:
    """Reads one record with care."""
    return parse_kif(text) if _is_kif(origin.file) else csa.parse_game(text)


def _read_texts(batch: _Batch, texts: list[bytes], origins: list[_Origin], strict: bool) -> None:
    """Reads records to positions."""
    scanned = csa_scan.scan(texts)
    parts = [] if scanned.games is None else [scanned.games]
    records: list[int] = numpy.flatnonzero(scanned.plain).tolist()
    summaries = list(scanned.summaries)
    careful: list[Game] = []
    for record in numpy.flatnonzero(~scanned.plain).tolist():
        try:
            game = _parse(texts[record], origins[record])
        except RecordError as error:
            batch.excluded.append(origins[record].note(error.line, error.reason))
            continue
        careful.append(game)
        records.append(record)
        summaries.append(UNKNOWN if game.summary is None else game.summary)
    if careful:
        parts.append(Games.of(careful))
    if not parts:
        return
    games = Games.join(parts) if len(parts) > 1 else parts[0]
    if careful:
        order = numpy.argsort(records)
        games = games.select(order)
        records = [records[number] for number in order]
        summaries = [summaries[number] for number in order]
    positions, faults = replay(games)
    good = numpy.ones(len(records), dtype=bool)
    for fault in faults:
        good[fault.game] = False
        record = records[fault.game]
        move = _parse(texts[record], origins[record]).moves[fault.ply]
        batch.excluded.append(
            origins[record].note(move.line, f"move {fault.ply + 1} is not possible: {fault.reason}")
        )
    if strict:
        _leave_out_illegal(batch, games, records, texts, origins, good)
    summary = numpy.array(summaries, dtype=numpy.uint8)
    disagree = (games.results != summary) & (games.results != UNKNOWN) & (summary != UNKNOWN)
    for number in numpy.flatnonzero(disagree & good).tolist():
        origin = origins[records[number]]
        batch.contradictions.append(origin.note(0, _contradiction(games, summary, number)))
    batch.keys = [key for key, used in zip(_keys(games), good) if used]
    batch.origins = [origins[record] for record, used in zip(records, good) if used]
    batch.results = games.results[good]
    batch.lengths = games.lengths[good]
    batch.positions = (
        positions if good.all() else positions[rows_of(games.lengths, numpy.flatnonzero(good))]
    )


def _leave_out_illegal(
    batch: _Batch,
    games: Games,
    records: list[int],
    texts: list[bytes],
    origins: list[_Origin],
    good: numpy.ndarray,
) -> None:
    """Plays the good games under all the rules; changes ``good``."""
    end = numpy.cumsum(games.lengths)
    for number in numpy.flatnonzero(good):
        rows = slice(end[number] - games.lengths[number], end[number])
        columns = (games.origin[rows], games.target[rows], games.piece[rows])
        moves = list(zip(*(column.tolist() for column in columns)))
        ply = first_illegal(games.starts[number].tobytes(), int(games.turns[number]), moves)
        if ply is not None:
            good[number] = False
            record = records[number]
            line = _parse(texts[record], origins[record]).moves[ply].line
            batch.excluded.append(origins[record].note(line, f"move {ply + 1} is not legal"))


def _contradiction(games: Games, summary: numpy.ndarray, number: int) -> str:
    words = {WIN: "Black won", LOSS: "White won", DRAW: "a draw"}
    return (
        f"{words[games.results[number]]} by the end mark, {words[summary[number]]} by the summary"
    )


def _keys(games: Games) -> Iterator[bytes]:
    """Digests start and moves of each game."""
    moves = numpy.stack([games.origin, games.target, games.piece], axis=1).tobytes()
    starts = games.starts.tobytes()
    size = games.starts.shape[1]
    end = 0
    for number, length in enumerate(games.lengths.tolist()):
        start, end = end, end + 3 * length
        digest = hashlib.blake2b(moves[start:end], digest_size=16)
        digest.update(starts[number * size : (number + 1) * size])
        yield digest.digest()
