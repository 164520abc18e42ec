"""Kifu lists from a folder: finds the records, splits them at random, writes the lists.

:mod:`pydlshogi.kifu.sources` reads such lists.
"""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pydlshogi.errors import UserError
from pydlshogi.files import behind_links, write_beside
from pydlshogi.kifu.sources import SELF_PLAY_MARK, SELF_PLAY_RECORDS, is_record_name


class Found(NamedTuple):
    """The files below a folder.

    Attributes:
        records: The game records, sorted by name.
        others: Number of other files.
        closed: Folders that cannot be searched, each with the reason.
    """

    records: list[Path]
    others: int
    closed: list[str]


def find_records(folder: Path) -> Found:
    """Finds the game records in a folder and its subfolders. Links to folders are skipped."""
    records = []
    others = 0
    errors: list[OSError] = []
    for root, folders, names in os.walk(folder, onerror=errors.append):
        if SELF_PLAY_MARK in names and SELF_PLAY_RECORDS in folders:
            folders.remove(SELF_PLAY_RECORDS)
        for name in names:
            path = os.path.join(root, name)
            # A pipe may have no end. A broken link is named where it is opened.
            if is_record_name(name) and (os.path.isfile(path) or not os.path.exists(path)):
                records.append(Path(path))
            else:
                others += 1
    return Found(
        sorted(records, key=lambda path: path.as_posix()),
        others,
        [f"{error.filename} ({error.strerror})" for error in errors],
    )


def split(records: Sequence[Path], ratio: float, seed: int) -> tuple[list[Path], list[Path]]:
    """Splits records at random into training and test records, both shuffled.

    The same records, proportion of training records (0..1) and seed give the same parts.
    """
    shuffled = list(records)
    random.Random(seed).shuffle(shuffled)
    train = int(len(shuffled) * ratio + 1e-9)  # 100 * 0.29 is 28.999999999999996
    return shuffled[:train], shuffled[train:]


def write_lists(lists: Mapping[Path, Sequence[Path]], absolute: bool = False) -> None:
    """Writes the records of each list, one a line. If one cannot be written, none is replaced.

    Relative paths start from the folder of the list and use ``/`` on every system; a record on
    another Windows drive has an absolute path. Undecodable file names keep their bytes.

    Raises:
        OSError: a list cannot be written.
    """
    before = {path: path.read_bytes() if path.is_file() else None for path in lists}
    try:
        with contextlib.ExitStack() as files:
            for path, records in lists.items():
                file = files.enter_context(write_beside(path))
                file.write(content_of(path, records, absolute))
    except BaseException:  # one list may have been replaced already
        for path, content in before.items():
            with contextlib.suppress(OSError):
                _restore(path, content)
        raise


def _restore(path: Path, content: bytes | None) -> None:
    """Gives a file its earlier content again; None: there was no file."""
    if not path.is_file():
        return
    if content is None:
        behind_links(path).unlink()
    elif path.read_bytes() != content:
        with write_beside(path) as file:
            file.write(content)


def content_of(path: Path, records: Sequence[Path], absolute: bool = False) -> bytes:
    """Returns the content of a list; the arguments are those of :func:`write_lists`.

    Raises:
        UserError: the path of a record contains a line break.
    """
    # Each folder is handled once: to resolve a path asks the system about each part of it.
    folders = {
        inside: str(inside.resolve()) if absolute else _relative(inside, path.parent)
        for inside in {record.parent for record in records}
    }
    lines = []
    for record in records:
        # A link keeps its own name, because the suffix tells the format.
        path_in_list = Path(folders[record.parent], record.name)
        is_absolute = absolute or path_in_list.is_absolute()
        line = str(path_in_list) if is_absolute else path_in_list.as_posix()
        if "\n" in line or "\r" in line:
            raise UserError(f"{line!r} contains a line break, so no list can name it. Rename it.")
        # Readers of a list remove blanks and quotation marks around a path.
        lines.append(f"./{line}\n" if line[0].isspace() or line[0] == '"' else f"{line}\n")
    return "".join(lines).encode("utf-8", "surrogateescape")


def _relative(folder: Path, start: Path) -> str:
    """Writes the path of a folder as seen from another one."""
    if ".." not in (*folder.parts, *start.parts):
        # A link below the list keeps its name, so lists of other people have the same lines.
        with contextlib.suppress(ValueError):
            return str(folder.absolute().relative_to(start.absolute()))
    # The system follows a link before it goes to the folder above.
    with contextlib.suppress(ValueError):  # on another Windows drive there is no relative path
        return os.path.relpath(folder.resolve(), start.resolve())
    return str(folder.resolve())
