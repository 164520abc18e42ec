"""Division of large files, for ways of transport that limit the size of a file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath

from pydlshogi.files import write_beside

#: Largest size of a file in bytes; larger ones are divided.
LARGEST = 16_000_000

_ON_WINDOWS = os.name == "nt"


def divide_large_files(paths: Iterable[Path], largest: int = LARGEST) -> dict[Path, list[Path]]:
    """Divides those files of a list that are larger than ``largest`` bytes.

    A file ``NAME`` becomes ``NAME.part0``, ``NAME.part1`` and so on. All numbers have the same
    length, so that the order of the names is that of the parts. Paths that do not exist are
    ignored.

    Returns:
        The parts of each divided file.
    """
    divided = {}
    for path in sorted(set(paths)):
        if path.is_file():
            remove_parts(path)  # of an earlier file
            if path.stat().st_size > largest:
                divided[path] = _divide(path, largest)
    return divided


def _divide(path: Path, largest: int) -> list[Path]:
    """Divides a file and returns its parts."""
    data = path.read_bytes()
    starts = range(0, len(data), largest)
    digits = len(str(len(starts) - 1))
    parts = []
    for number, start in enumerate(starts):
        part = path.with_name(f"{path.name}.part{number:0{digits}}")
        part.write_bytes(data[start : start + largest])
        parts.append(part)
    path.unlink()
    return parts


def join_file(path: Path) -> bool:
    """Joins a file that an earlier run divided; a file that is not divided stays as it is.

    Returns:
        Whether the file was divided.
    """
    parts = _parts(path)
    if not parts or path.exists():
        return False
    with write_beside(path) as file:
        for part in parts:
            file.write(part.read_bytes())
    remove_parts(path)
    return True


def remove_parts(path: Path) -> None:
    """Removes the parts of a file, but not the file."""
    for part in _parts(path):
        part.unlink()


def how_to_join(path: PurePath, parts: Sequence[PurePath]) -> str:
    """Returns the command that joins a file on this system.

    Args:
        path: The file, relative to the current folder of the command.
        parts: Its parts, likewise.
    """
    if _ON_WINDOWS:  # for cmd.exe and for PowerShell, whose own copy is another command
        return f"cmd /c copy /b {'+'.join(map(str, parts))} {path}"
    return f"cat {path}.part* > {path}"


def _parts(path: Path) -> list[Path]:
    """Lists the parts of a file in order."""
    start = f"{path.name}.part"
    found = path.parent.glob("*.part[0-9]*")
    return sorted(
        part
        for part in found
        if part.name.startswith(start) and part.name[len(start) :].isdecimal()
    )
