"""Positions of a kifu list, from its cache if possible."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy

from pydlshogi.files import remove_leftovers
from pydlshogi.kifu.cache import CacheError, cache_path, fingerprint, load_cache, save_cache
from pydlshogi.kifu.mapped_positions import AnyPositions, with_shards
from pydlshogi.kifu.reading import read_sources
from pydlshogi.kifu.report import Report
from pydlshogi.kifu.shards import SUFFIX
from pydlshogi.kifu.sources import KifuError, Source, read_list
from pydlshogi.positions import POSITION, Visits, join_visits

_logger = logging.getLogger(__name__)


class Loaded(NamedTuple):
    """The positions of a list.

    Attributes:
        records: Positions of the records, ``POSITION`` array (n,), in the order of the list.
        report: What was read and what was left out.
        from_cache: Whether these positions come from the cache.
        saved: Whether a new cache was written.
        cache: Path of the cache, used or not.
        shards: Paths of the shards of the list.
        visits: Visits of the records; None if they were not read.
    """

    records: numpy.ndarray
    report: Report
    from_cache: bool
    saved: bool
    cache: Path
    shards: tuple[str, ...] = ()
    visits: Visits | None = None

    @property
    def positions(self) -> numpy.ndarray:
        """All positions in memory, ``POSITION`` array: those of the records come first."""
        return self.mapped[:] if self.shards else self.records

    @property
    def mapped(self) -> AnyPositions:
        """The same positions; those of shards are read when they are indexed."""
        return with_shards(self.records, self.shards, self.visits)


def load_positions(
    kifu_list_file: str | os.PathLike[str],
    *,
    strict: bool = False,
    drop_duplicates: bool = False,
    visits: bool = False,
    sources: list[Source] | None = None,
) -> Loaded:
    """Finds the shards of a list, and loads the positions of its records.

    Args:
        kifu_list_file, strict, drop_duplicates: As in
            :func:`pydlshogi.read_kifu.read_kifu`.
        visits: Also read the visits of HCPE3 files. The cache does not hold them; the records
            are then read, and the cache is neither used nor written.
        sources: The files of the list, if :func:`read_list` has found them already.

    Raises:
        KifuError: the list is missing or empty, a shard is missing, or none of the records
            can be used and there is no shard.
    """
    sources = read_list(kifu_list_file) if sources is None else sources
    shards = [source for source in sources if source.name.lower().endswith(SUFFIX)]
    for shard in shards:
        if shard.problem:
            raise KifuError(f"the shard {shard.name} cannot be read: {shard.problem}")
    records = [source for source in sources if not source.name.lower().endswith(SUFFIX)]
    cache = cache_path(kifu_list_file)
    loaded = Loaded(numpy.empty(0, POSITION), Report(), False, False, cache)
    searched: list[Visits] = []

    def read() -> tuple[numpy.ndarray, Report]:
        return read_sources(
            kifu_list_file,
            records,
            strict=strict,
            drop_duplicates=drop_duplicates,
            may_be_empty=bool(shards),
            visits=searched if visits else None,
        )

    if records and visits:
        positions, report = read()
        loaded = loaded._replace(records=positions, report=report)
    elif records:
        loaded = _load_cached(cache, _fingerprint(records, strict, drop_duplicates), read)
    return loaded._replace(
        shards=tuple(shard.path for shard in shards),
        visits=join_visits(searched) if visits else None,
    )


def _load_cached(
    cache: Path, mark: str, read: Callable[[], tuple[numpy.ndarray, Report]]
) -> Loaded:
    """Loads the positions of records from the cache, or reads them and writes the cache.

    The cache is valid if the list, the sizes and times of its files, and the options have not
    changed. An invalid or damaged cache is replaced. A file of the same name that is
    not a cache is left alone. If a record file cannot be opened, or the folder cannot be
    written, no cache is written. Each of these cases logs one warning.
    """
    may_save = True
    try:
        cached = load_cache(cache, mark)
        return Loaded(cached.positions, _report_of(cached.report), True, False, cache)
    except FileNotFoundError:
        pass
    except CacheError as error:
        may_save = error.ours
        action = (
            "it is made again"
            if error.ours
            else "it is left alone, and no cache is used; move or delete it to have one"
        )
        _logger.warning("the cache %s is not used: %s; %s", cache, error, action)
    positions, report = read()
    saved = may_save and _save(cache, mark, positions, report)
    return Loaded(positions, report, False, saved, cache)


def _save(cache: Path, mark: str, positions: numpy.ndarray, report: Report) -> bool:
    """Writes the cache; returns False after a warning if that is not possible."""
    if report.unreadable:
        _logger.warning(
            "no cache %s is made, because %d files could not be read", cache, report.unreadable
        )
        return False
    remove_leftovers(cache)
    try:
        save_cache(cache, mark, positions, report.to_plain())
    except OSError as error:
        _logger.warning(
            "the cache %s cannot be written (%s); the records will be read again next time",
            cache,
            error.strerror,
        )
        return False
    return True


def _report_of(plain: dict[str, Any]) -> Report:
    """Rebuilds the report of a cache, which may be damaged."""
    try:
        return Report.from_plain(plain)
    except (KeyError, TypeError) as error:
        raise CacheError("it is damaged", ours=True) from error


def _fingerprint(sources: list[Source], strict: bool, drop_duplicates: bool) -> str:
    stats = numpy.array([(source.size, source.time) for source in sources], dtype="<i8")
    names = "\n".join(source.name for source in sources)
    options = f"strict={strict} drop_duplicates={drop_duplicates}"
    return fingerprint(
        [names.encode("utf-8", "surrogateescape"), stats.tobytes(), options.encode()]
    )
