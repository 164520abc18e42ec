"""Makes shards of game records and position files, group by group.

A group is some consecutive files of a list. A file with the progress is written before the first
group and after each group. A run that was interrupted continues with the first unfinished group. If
shards of earlier groups are missing or damaged, their groups are made again.

The file describes the list, its files and the options. If they have changed, the shards belong to
something else, and the next run refuses the folder. There is one exception. Files may have been
missing, for example because a disk was not mounted. Then the next run keeps the groups before
the first missing file, and makes the others again.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy

from pydlshogi.bar import bar
from pydlshogi.errors import UserError
from pydlshogi.files import remove_leftovers, write_beside
from pydlshogi.kifu.cache import CACHE_VERSION, fingerprint
from pydlshogi.kifu.fixed import limit_evaluations
from pydlshogi.kifu.reading import stream
from pydlshogi.kifu.report import Report
from pydlshogi.kifu.shards import MAGIC, SUFFIX, Shard, ShardError, write_shard
from pydlshogi.kifu.sources import KifuError, Source
from pydlshogi.positions import Visits, join_visits

#: Name of the list of the shards; training reads it.
LIST = "list.txt"

#: Positions in a shard, at most: 100 MB.
SHARD_SIZE = 1 << 20

# A group ends when its files have this many bytes, or when it has this many files.
_GROUP_BYTES = 64 << 20
_GROUP_FILES = 10_000

#: Name of the file with the progress.
PROGRESS = "progress.json"

_NAME = re.compile(rf"\d{{5,}}-\d{{5,}}\{SUFFIX}")


class Made(NamedTuple):
    """What was made.

    Attributes:
        shards: Names of the shards in the folder.
        report: What was read and what was left out.
        continued: Whether an earlier run had made a part.
    """

    shards: list[str]
    report: Report
    continued: bool


def make_shards(
    sources: Sequence[Source], folder: Path, *, strict: bool = False, size: int = SHARD_SIZE
) -> Made:
    """Makes shards of the positions of some files, in their order.

    Args:
        sources: The files.
        folder: Receives the shards and ``list.txt``; it exists. A run that was interrupted
            continues there, and damaged shards are made again.
        strict: Whether to leave out records with an illegal move.
        size: Positions in a shard, at most.

    Raises:
        ShardingError: the folder holds shards of other files or options.
        KifuError: a file is a shard already, or no record can be used.
        OSError: a file cannot be written.
    """
    for source in sources:
        if source.name.lower().endswith(SUFFIX):
            raise KifuError(
                f"{source.name} is a shard already. Name it in the training list itself."
            )
    return _Maker(folder, Task(sources, strict, size)).make()


def _groups(sources: Sequence[Source]) -> Iterator[list[Source]]:
    """Divides the files into groups; the same files give the same groups."""
    group: list[Source] = []
    total = 0
    for source in sources:
        group.append(source)
        total += max(source.size, 0)
        if total >= _GROUP_BYTES or len(group) >= _GROUP_FILES:
            yield group
            group, total = [], 0
    if group:
        yield group


class _Maker:
    """Makes the shards of a task in a folder."""

    def __init__(self, folder: Path, task: Task) -> None:
        self._folder = folder
        self._task = task
        self._progress = read_progress(folder, task)

    def make(self) -> Made:
        """Makes the shards that an earlier run has not made, and those that are damaged."""
        folder, progress = self._folder, self._progress
        continued = progress.groups > 0
        # Before the first shard: the next run then knows which list the shards belong to.
        write_progress(folder, progress)
        damaged = {_group_of(name) for name in _damaged(progress.shards, folder)}
        for number, group in enumerate(_groups(self._task.sources)):
            if number >= progress.groups:
                if progress.before_missing is None and any(source.problem for source in group):
                    progress.before_missing = progress.so_far()
                # The list of a run with unreadable files names shards that are now written again.
                (folder / LIST).unlink(missing_ok=True)
                self._make_group(number, group)
            elif number in damaged:
                self._repair_group(number, group)
        report = Report.from_plain(progress.report)
        if not progress.shards:
            raise KifuError(
                f"no record can be used ({report.records} left out{report.first_left_out()})"
            )
        for path in folder.glob(f"*{SUFFIX}"):  # of an earlier run
            if _NAME.fullmatch(path.name) and path.name not in progress.shards:
                path.unlink()
        with write_beside(folder / LIST) as file:
            file.write("".join(f"{name}\n" for name in progress.shards).encode())
        return Made(progress.shards, report, continued)

    def _make_group(self, number: int, group: list[Source]) -> None:
        """Makes the shards of a group, and writes the progress if all its files could be read."""
        report = Report()
        progress = self._progress
        progress.shards += self._write_shards(number, group, report)
        total = _add(Report.from_plain(progress.report), report)
        progress.report = total.to_plain()
        progress.groups = number + 1
        # The next run reads the groups again from the first file on that could not be read.
        if not total.unreadable:
            write_progress(self._folder, progress)

    def _repair_group(self, number: int, group: list[Source]) -> None:
        """Makes the shards of a finished group again. Their names and the report stay."""
        report = Report()
        earlier = [name for name in self._progress.shards if _group_of(name) == number]
        names = self._write_shards(number, group, report)
        if report.unreadable or names != earlier:
            for name in {*names, *earlier}:
                (self._folder / name).unlink(missing_ok=True)
            raise ShardingError(
                f"damaged shards of {self._folder} cannot be made again, because files cannot be "
                f"read{report.first_left_out()}. Make them readable, and repeat the command."
            )

    def _write_shards(self, number: int, group: list[Source], report: Report) -> list[str]:
        """Writes the shards of a group, and returns their names."""
        names = []
        for part, (positions, visits) in enumerate(self._cut(group, report)):
            name = f"{number:05}-{part:05}{SUFFIX}"
            remove_leftovers(self._folder / name)
            write_shard(self._folder / name, positions, visits)
            names.append(name)
        return names

    def _cut(self, group: list[Source], report: Report) -> Iterator[tuple[numpy.ndarray, Visits]]:
        """Reads a group, and yields the positions and visits of a shard; at the end, fewer."""
        size = self._task.size
        waiting: list[tuple[numpy.ndarray, Visits]] = []
        count = 0
        for read in stream(group, report, strict=self._task.strict, drop_duplicates=False):
            limit_evaluations(read.positions)
            waiting.append((read.positions, read.visits_of_all()))
            count += len(read.positions)
            if count < size:
                continue
            positions, visits = _join(waiting)
            end = count - count % size
            for start in range(0, end, size):
                yield positions[start : start + size], visits[start : start + size]
            waiting = [(positions[end:], visits[end:])]
            count -= end
        if count:
            yield _join(waiting)


def _group_of(name: str) -> int:
    """Returns the number of a shard's group."""
    return int(name.partition("-")[0])


def _damaged(names: Sequence[str], folder: Path) -> Iterator[str]:
    """Reads all shards, and yields those that are missing or damaged; shows a progress bar."""
    for name in bar(names, desc="check shards", unit="shard", leave=False):
        try:
            Shard(folder / name).check()
        except (FileNotFoundError, IsADirectoryError, ShardError):
            yield name


def _join(parts: list[tuple[numpy.ndarray, Visits]]) -> tuple[numpy.ndarray, Visits]:
    """Joins parts of a shard."""
    positions, visits = zip(*parts)
    return numpy.concatenate(positions), join_visits(visits)


def _add(total: Report, part: Report) -> Report:
    """Adds the counts and the notes of two reports."""
    names = {field.name for field in dataclasses.fields(Report)} - {"duplicates_dropped"}
    return Report(**{name: getattr(total, name) + getattr(part, name) for name in names})


class ShardingError(UserError):
    """The shards cannot be made in a folder."""


class Task(NamedTuple):
    """What determines the shards.

    Attributes:
        sources: The files.
        strict: Whether to leave out records with an illegal move.
        size: Positions in a shard, at most.
    """

    sources: Sequence[Source]
    strict: bool
    size: int

    def mark(self) -> str:
        """Returns a fingerprint."""
        facts = [(source.name, source.size, source.time) for source in self.sources]
        everything = MAGIC, CACHE_VERSION, facts, self.strict, self.size
        return fingerprint([repr(everything).encode("utf-8", "surrogateescape")])

    def first_missing(self) -> list[Any]:
        """Describes the first missing file: name, files before it, and their fingerprint."""
        for number, source in enumerate(self.sources):
            if source.problem:
                return [source.name, number, self._before(number).mark()]
        return []

    def may_complete(self, first_missing: Sequence[Any]) -> bool:
        """Says whether another task is the same as this one, up to its first missing file.

        ``first_missing`` is what :meth:`first_missing` of the other task returned.
        """
        if not first_missing:
            return False
        name, number, mark = first_missing
        found = self.sources[number].name if number < len(self.sources) else ""
        is_found = found == name or found.startswith(f"{name.rstrip('/')}/")  # in the folder
        return is_found and self._before(number).mark() == mark

    def _before(self, number: int) -> Task:
        return self._replace(sources=self.sources[:number])


@dataclasses.dataclass
class Progress:
    """The content of the file.

    Attributes:
        mark: Fingerprint of the task.
        groups: Number of groups that are done.
        shards: Names of the shards.
        report: The report so far, as plain objects.
        missing: What :meth:`Task.first_missing` returns of the task.
        before_missing: What :meth:`so_far` returned before the group of the first missing file;
            None if this group is not done.
    """

    mark: str
    groups: int
    shards: list[str]
    report: dict[str, Any]
    missing: list[Any] = dataclasses.field(default_factory=list)
    before_missing: dict[str, Any] | None = None

    def so_far(self) -> dict[str, Any]:
        """Returns the groups, the shards and the report, by name."""
        return {"groups": self.groups, "shards": list(self.shards), "report": self.report}


def read_progress(folder: Path, task: Task) -> Progress:
    """Reads how far an earlier run came.

    A run that was interrupted in a group has left some of its shards. They are written again
    under the same names.

    Raises:
        ShardingError: the folder holds shards of another task, or the file is damaged.
    """
    path = folder / PROGRESS
    has_shards = any(folder.glob(f"*{SUFFIX}"))
    fresh = Progress(task.mark(), 0, [], Report().to_plain(), task.first_missing())
    if not path.exists():
        if has_shards:
            raise ShardingError(f"{folder} holds shards, but no {PROGRESS}. Choose another folder.")
        return fresh
    try:
        progress = Progress(**json.loads(path.read_text(encoding="utf-8")))
        if not all(map(_NAME.fullmatch, progress.shards)):
            raise ValueError("another name")
        Report.from_plain(progress.report)
        kept = dataclasses.replace(fresh, **(progress.before_missing or progress.so_far()))
        is_same = progress.mark == fresh.mark
        may_complete = not is_same and task.may_complete(progress.missing)
    except (KeyError, TypeError, ValueError):
        remedy = f"Delete {folder}, or choose" if has_shards else "Choose"
        raise ShardingError(f"{path} is damaged. {remedy} another folder.") from None
    if not is_same:
        if not has_shards:
            return fresh
        if may_complete:
            return kept
        raise ShardingError(
            f"{folder} holds shards of another list, or the list, a file or an option changed "
            "since, or another version of pydlshogi made it. Delete it, or choose another folder."
        )
    return progress


def lists_shards(path: Path) -> bool:
    """Says whether each line of a file names a shard, as in the list that the program writes."""
    lines = path.read_bytes().decode("utf-8", "replace").splitlines() if path.is_file() else []
    return all(map(_NAME.fullmatch, lines))


def write_progress(folder: Path, progress: Progress) -> None:
    """Writes the file atomically."""
    with write_beside(folder / PROGRESS) as file:
        # A file name may have bytes that are no text.
        file.write(json.dumps(dataclasses.asdict(progress)).encode())
