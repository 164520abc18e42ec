"""Files written whole or not at all, and where the shipped model lives."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

#: Seconds between the attempts of :func:`replace`.
_PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8)


def behind_links(path: str | os.PathLike[str]) -> Path:
    """Gives the file that a symbolic link leads to, and any other path as it is."""
    return Path(os.path.realpath(path)) if os.path.islink(path) else Path(path)


def next_to(path: str | os.PathLike[str]) -> Path:
    """Names the file in which new content waits until it may be renamed to ``path``."""
    return Path(f"{behind_links(path)}.next")


def replace(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Renames a file, over another one where there is one; a link stays one.

    Windows refuses that while any program has the target open: an engine that loads
    its model, a virus scanner that looks at the new file. That is over in a moment, so
    it is tried again for a second and a half.

    Args:
        source: The file.
        target: Its new name, on the same disk.

    Raises:
        OSError: it cannot be renamed; both are as they were.
    """
    target = behind_links(target)
    for pause in _PAUSES:
        try:
            os.replace(source, target)
            return
        except PermissionError:
            time.sleep(pause)
    os.replace(source, target)


@contextlib.contextmanager
def write_beside(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Writes a file under another name in its folder, then renames it.

    Whatever happens in between (an error, a kill, a full disk), ``path`` holds
    either what it held before or all of the new content. Two programs that write
    the same path at once do not harm each other: the last rename wins.

    Args:
        path: The file to make or replace; its folder must exist. A symbolic link stays,
            and the file that it leads to is replaced.

    Yields:
        A binary file open for writing.

    Raises:
        OSError: the folder is missing, not writable, or the disk is full; its
            ``filename`` is ``path``.
    """
    target = behind_links(path)
    try:
        with _write_beside(target) as file:
            yield file
    except OSError as error:
        # The system names the file that was written beside, or where the disk is full none.
        named = os.path.basename(str(error.filename or ""))
        if not named or named.startswith(f".{target.name}."):
            error.filename = os.fspath(path)
            del error.filename2  # None would be shown: "'path' -> None"
        raise


@contextlib.contextmanager
def _write_beside(path: Path) -> Iterator[IO[bytes]]:
    beside = path.parent / f".{path.name}.{secrets.token_hex(4)}.tmp"
    # Not by tempfile: it makes files that only their owner can read.
    opened = beside.open("xb")
    try:
        with opened as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Removes what :func:`write_beside` left beside a file when it was killed.

    Only what has not been written to for a minute: a file younger than that may be
    another program's, which is just writing the same path.

    Args:
        path: The file that was to be written.
    """
    path = behind_links(path)
    name = re.compile(rf"\.{re.escape(path.name)}\.[a-z0-9_]{{8}}\.tmp")
    with contextlib.suppress(OSError):
        for entry in list(os.scandir(path.parent)):
            if name.fullmatch(entry.name) and entry.stat().st_mtime < time.time() - 60:
                os.unlink(entry)


def shipped_model() -> Path:
    """Says where the model is that the engine plays with by default.

    In a clone it is ``model/model_policy`` beside the package; a wheel carries the
    same folder as the package's ``pydlshogi/model`` (see setup.py).

    Returns:
        The first of the two that exists, else the first.
    """
    package = Path(__file__).resolve().parent
    in_clone = package.parent / "model" / "model_policy"
    in_wheel = package / "model" / "model_policy"
    return in_wheel if in_wheel.exists() and not in_clone.exists() else in_clone
