"""The file with the progress of making shards, and what the next run may keep.

The file describes the list, its files and the options. If they have changed, the shards belong to
something else, and the next run refuses the folder. There is one exception. Files may have been
missing, for example because a disk was not mounted. Then the next run keeps the groups before
the first missing file, and makes the others again.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydlshogi.errors import UserError
from pydlshogi.files import write_beside
from pydlshogi.kifu.cache import CACHE_VERSION, fingerprint
from pydlshogi.kifu.report import Report
from pydlshogi.kifu.shards import MAGIC, SUFFIX
from pydlshogi.kifu.sources import Source

#: Name of the file.
PROGRESS = "progress.json"

_NAME = re.compile(rf"\d{{5,}}-\d{{5,}}\{SUFFIX}")


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
        """Describes the first file or folder that is missing or cannot be used.

        Returns:
            Its name, the number of files before it, and their fingerprint; empty if there is no
            such file.
        """
        for number, source in enumerate(self.sources):
            if source.problem:
                return [source.name, number, self._before(number).mark()]
        return []

    def may_complete(self, first_missing: Sequence[Any]) -> bool:
        """Says whether another task is the same as this one, up to its first missing file.

        Args:
            first_missing: What :meth:`first_missing` of the other task returned.
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
        report = Report.from_plain(progress.report)
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
    # Earlier versions counted groups with unreadable files as done.
    return fresh if report.unreadable else progress


def remove_other_shards(folder: Path, progress: Progress) -> None:
    """Removes the shards of an earlier run that are not shards of this one."""
    for path in folder.glob(f"*{SUFFIX}"):
        if _NAME.fullmatch(path.name) and path.name not in progress.shards:
            path.unlink()


def lists_shards(path: Path) -> bool:
    """Says whether each line of a file names a shard, as in the list that the program writes."""
    lines = path.read_bytes().decode("utf-8", "replace").splitlines() if path.is_file() else []
    return all(map(_NAME.fullmatch, lines))


def write_progress(folder: Path, progress: Progress) -> None:
    """Writes the file atomically."""
    with write_beside(folder / PROGRESS) as file:
        # A file name may have bytes that are no text.
        file.write(json.dumps(dataclasses.asdict(progress)).encode())
