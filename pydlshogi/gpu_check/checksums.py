"""Checksums of the files that earlier runs wrote, so that a run replaces no other file.

They are in the file ``sha256.txt`` of the output folder, in the format of ``sha256sum``.
``sha256sum -c --ignore-missing sha256.txt`` also verifies a file that was divided and joined.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from pydlshogi.files import write_beside
from pydlshogi.gpu_check.division import join_file, remove_parts
from pydlshogi.outputs import keep_earlier

NAME = "sha256.txt"


def note(folder: Path, paths: Iterable[Path]) -> None:
    """Notes the checksums of files that a part wrote; paths that do not exist are ignored.

    Args:
        folder: The output folder.
        paths: Files in it.

    Raises:
        OSError: the checksums cannot be written.
    """
    known = _read(folder)
    known.update({_name(folder, path): _checksum(path) for path in paths if path.is_file()})
    lines = (f"{checksum}  {name}\n" for name, checksum in sorted(known.items()))
    with write_beside(folder / NAME) as file:
        file.write("".join(lines).encode("utf-8"))


def make_room(folder: Path, path: Path) -> str:
    """Removes a file that an earlier run wrote. Any other file is kept as ``PATH.old``.

    Args:
        folder: The output folder.
        path: A file in it that a part will write.

    Returns:
        Path of the copy; empty if an earlier run wrote the file, or if there is none.

    Raises:
        OutputError: the copy cannot be made; the file is unchanged.
        OSError: the file cannot be removed.
    """
    join_file(path)
    if not path.is_file():
        return ""
    is_own = _read(folder).get(_name(folder, path)) == _checksum(path)
    copy = "" if is_own else keep_earlier(os.fspath(path))
    path.unlink()
    remove_parts(path)
    return copy


def _name(folder: Path, path: Path) -> str:
    return path.relative_to(folder).as_posix()


def _checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _read(folder: Path) -> dict[str, str]:
    """Reads the checksums by the names of the files."""
    path = folder / NAME
    if not path.is_file():
        return {}
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    cells = (line.split("  ", 1) for line in lines)
    return {cell[1]: cell[0] for cell in cells if len(cell) == 2}
