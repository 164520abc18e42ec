"""The report of reading a kifu list: counts, and what was left out and why."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from pydlshogi.files import write_beside
from pydlshogi.positions import DRAW, LOSS, UNKNOWN, WIN

#: Column titles of :meth:`Report.write_tsv`.
TITLES = ("kind", "file", "record", "line", "reason")


class Note(NamedTuple):
    """A message about one record.

    Attributes:
        file: The file as the list names it; in an archive ARCHIVE/FILE.
        record: Number of the record in its file, from 1; 0 for the whole file.
        line: Line number in the file, from 1; 0 if the note is not about one line.
        reason: The message.
    """

    file: str
    record: int
    line: int
    reason: str

    def __str__(self) -> str:
        place = self.file
        if self.record > 1:
            place += f", record {self.record}"
        if self.line:
            place += f", line {self.line}"
        return f"{place}: {self.reason}"


@dataclass
class Report:
    """Counts and notes of one reading of a kifu list.

    Attributes:
        records: Number of records found, good or bad. An unreadable file counts as one.
        games: Number of records that are used.
        positions: Number of positions of these games.
        black_wins: Number of used games that Black won; likewise white_wins, draws, unknowns.
        excluded: Records that are left out, each with the reason.
        duplicates: Records with the same start position and moves as an earlier one.
        duplicates_dropped: Whether the duplicates are left out.
        unreadable: Number of files that exist but cannot be read. They may be readable
            later, so no cache is made without them.
        contradictions: Records whose ``'summary:`` line (CSA) or closing line (KIF) contradicts
            the end mark. They are used, and the end mark decides.
    """

    records: int = 0
    games: int = 0
    positions: int = 0
    black_wins: int = 0
    white_wins: int = 0
    draws: int = 0
    unknowns: int = 0
    excluded: list[Note] = field(default_factory=list)
    duplicates: list[Note] = field(default_factory=list)
    duplicates_dropped: bool = False
    unreadable: int = 0
    contradictions: list[Note] = field(default_factory=list)

    def first_left_out(self) -> str:
        """Names the first record that is left out, for a message; empty if there is none."""
        return f"; the first: {self.excluded[0]}" if self.excluded else ""

    def count(self, results: Sequence[int], positions: int) -> None:
        """Counts used games, given their results for Black and the number of their positions."""
        self.games += len(results)
        self.positions += positions
        self.black_wins += results.count(WIN)
        self.white_wins += results.count(LOSS)
        self.draws += results.count(DRAW)
        self.unknowns += results.count(UNKNOWN)

    def _kinds(self) -> list[tuple[str, str, list[Note]]]:
        """Lists the kinds of notes: a title, a word for a table, the notes."""
        done = "dropped" if self.duplicates_dropped else "kept"
        contradiction = "end mark and summary disagree, the end mark counts"
        return [
            ("left out", "left out", self.excluded),
            (f"duplicate, {done}", f"{done} duplicate", self.duplicates),
            (contradiction, "contradiction", self.contradictions),
        ]

    def lines(self, most: int = 10) -> Iterator[str]:
        """Yields lines for a person. Of each kind of notes the first ``most`` are listed."""
        yield (
            f"{self.records} records, {self.games} used, {self.positions} positions; "
            f"Black won {self.black_wins}, White won {self.white_wins}, "
            f"drawn {self.draws}, unknown {self.unknowns}"
        )
        for title, _, notes in self._kinds():
            if notes:
                yield f"{title}: {len(notes)}"
                yield from (f"  {note}" for note in notes[:most])
                if len(notes) > most:
                    yield f"  and {len(notes) - most} more"

    def print(self, name: str) -> None:
        """Prints :meth:`lines` to standard error, each after the name of the list."""
        for line in self.lines():
            print(f"{name}: {line}", file=sys.stderr)

    def write_tsv(self, path: str | os.PathLike[str]) -> None:
        """Writes all notes as :func:`write_table` does, with a line of titles."""
        rows: list[tuple[object, ...]] = [TITLES]
        for _, kind, notes in self._kinds():
            rows.extend((kind, *note) for note in notes)
        write_table(path, rows)

    def to_plain(self) -> dict[str, Any]:
        """Converts the report to dicts, lists and tuples, for the cache."""
        plain = asdict(self)
        for key in _NOTES:
            plain[key] = [tuple(note) for note in plain[key]]
        return plain

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Report:
        """Rebuilds a report from the result of ``to_plain``."""
        notes = {key: [Note(*note) for note in plain[key]] for key in _NOTES}
        return cls(**{**plain, **notes})


def write_table(path: str | os.PathLike[str], rows: Iterable[Sequence[object]]) -> None:
    """Writes titles and rows as tab-separated values in UTF-8, atomically; may raise ``OSError``.

    Tabs and line ends in a cell become blanks. Other characters stay, because scripts search
    for files by these names.
    """
    lines = ("\t".join(re.sub(r"[\t\r\n]+", " ", str(cell)) for cell in row) for row in rows)
    with write_beside(path) as file:
        file.write("".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace"))


_NOTES = ("excluded", "duplicates", "contradictions")
