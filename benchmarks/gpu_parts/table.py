"""The results of the parts: one table, written after each part."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from pydlshogi import table
from pydlshogi.errors import UserError
from pydlshogi.files import write_beside

#: Item of the row that says how a part ended.
OUTCOME = "outcome"

#: The table that later runs read, and the mark of their folder.
_TSV = "table.tsv"

_TITLES = ("part", "item", "result")


class FolderError(UserError):
    """The output folder does not belong to the check."""


class Row(NamedTuple):
    """One result.

    Attributes:
        part: Name of the part.
        item: What was measured.
        result: The figure, or a sentence.
    """

    part: str
    item: str
    result: str


class Table:
    """The rows of all parts, in the order in which the parts are first named.

    Args:
        folder: Folder of ``table.md`` and ``table.tsv``. The rows of an earlier
            ``table.tsv`` are kept until their part runs again.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._rows: dict[str, list[Row]] = {}
        for row in _read(folder / _TSV):
            self._rows.setdefault(row.part, []).append(row)

    def write(self) -> None:
        """Writes both files.

        Raises:
            OSError: a file cannot be written.
        """
        for name, text in (("table.md", self.markdown()), (_TSV, table.tsv(_TITLES, self._all()))):
            with write_beside(self._folder / name) as file:
                file.write(text.encode("utf-8"))

    def replace(self, part: str, rows: Iterable[Row]) -> None:
        """Replaces the rows of a part and writes both files.

        Raises:
            OSError: a file cannot be written.
        """
        self._rows[part] = [Row(*map(_one_line, row)) for row in rows]
        self.write()

    def markdown(self) -> str:
        """Formats the table in Markdown."""
        return table.markdown(_TITLES, self._all(), texts=(0, 1, 2))

    def _all(self) -> list[Row]:
        return [row for rows in self._rows.values() for row in rows]


def claim(folder: Path) -> None:
    """Makes an output folder, or accepts that of an earlier run.

    The table marks such a folder. The parts replace files in it, so a folder with files of the
    user is refused.

    Raises:
        FolderError: the path is a file, or the folder holds other files.
        OSError: the folder or the table cannot be written.
    """
    if folder.exists() and not folder.is_dir():
        raise FolderError(f"--output {folder} is a file. Name a folder; it is made if missing.")
    if _has_table(folder):
        return
    folder.mkdir(parents=True, exist_ok=True)
    # Hidden files are those of a desktop, or locks that a killed run has left.
    if any(not name.startswith(".") for name in os.listdir(folder)):
        raise FolderError(
            f"--output {folder} holds files, and no {_TSV} of an earlier check. "
            "Name a new or an empty folder."
        )
    Table(folder).write()


def _has_table(folder: Path) -> bool:
    """Tests whether a folder has the table of an earlier run."""
    path = folder / _TSV
    if not path.is_file():
        return False
    with path.open(encoding="utf-8", errors="replace") as lines:
        return lines.readline() == table.tsv(_TITLES, ())


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _read(path: Path) -> list[Row]:
    """Reads the rows of an earlier run; a file that is missing or damaged has none."""
    if not os.path.exists(path):
        return []
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    cells = [line.split("\t") for line in lines[1:]]
    return [Row(*row) for row in cells if len(row) == len(_TITLES)]
