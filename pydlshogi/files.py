"""Atomic writing of files, and the paths of the shipped models."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

# Folders without files that :func:`write_beside` of a killed program has left.
_tidied: set[Path] = set()

# Seconds between the attempts of :func:`replace`.
_PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8)


def is_disk_full(error: OSError) -> bool:
    """Says whether a file cannot grow: the disk, a quota or the largest size of a file is full."""
    # Windows has no EDQUOT on every version of Python.
    return error.errno in (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))


def not_written(path: object, error: OSError, remedy: str = "") -> str:
    """Says that a file cannot be written, why, and what to do: space on a full disk."""
    remedy = remedy or "Name a file in a folder that can be written to."
    return (
        f"{path} cannot be written ({error.strerror}). "
        f"{'Free some space.' if is_disk_full(error) else remedy}"
    )


def behind_links(path: str | os.PathLike[str]) -> Path:
    """Returns the target of a symbolic link, and any other path unchanged."""
    return Path(os.path.realpath(path)) if os.path.islink(path) else Path(path)


def plain_file(path: str | os.PathLike[str], pipe: bool = False) -> Path:
    """Returns the path of a file that will be read whole, or replaced.

    A pipe might never end, and ``/dev/zero`` does not; a new file would replace ``/dev/null``.

    Args:
        path: The file.
        pipe: Whether a pipe is allowed, as a shell makes it for ``<(find games)``.

    Raises:
        OSError: it is a device or a pipe. Folders and missing files pass: opening them says so.
    """
    with contextlib.suppress(FileNotFoundError, NotADirectoryError, ValueError):
        mode = os.stat(path).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or (pipe and stat.S_ISFIFO(mode))):
            raise OSError(errno.EINVAL, "it is a device or a pipe; name a file", os.fspath(path))
    return Path(path)


def next_to(path: str | os.PathLike[str]) -> Path:
    """Returns the name of the file with new content that will be renamed to ``path``."""
    return Path(f"{behind_links(path)}.next")


def replace(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Renames a file and replaces the target. A target that is a link stays a link.

    The file receives the permissions of the one that it replaces. Windows refuses to replace a file
    while another program has it open, such as a virus scanner; so there are several tries.

    Raises:
        OSError: the file cannot be renamed. Both files are unchanged.
    """
    target = behind_links(target)
    _keep_permissions(target, source)
    for pause in _PAUSES:
        try:
            os.replace(source, target)
            return
        except PermissionError:
            time.sleep(pause)
    os.replace(source, target)


@contextlib.contextmanager
def write_beside(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Writes a binary file atomically: under another name in its folder, then renamed.

    ``path`` has either its old content or all of the new content, even after an error, a kill
    or on a full disk. A file that is replaced keeps its permissions, and a link its target. Two
    programs that may write the same path at once need :func:`pydlshogi.lock.lock_outputs`. What
    killed programs have left in the folder is removed at the first call.

    Raises:
        OSError: the folder is missing or not writable, the disk is full, or ``path`` is a device
            or a pipe. ``filename`` is ``path``.
    """
    target = behind_links(path)
    plain_file(path)
    try:
        with _write_beside(target) as file:
            yield file
    except OSError as error:
        # The system names the temporary file, or no file if the disk is full.
        named = os.path.basename(str(error.filename or ""))
        if not named or named.startswith(f".{target.name}."):
            error.filename = os.fspath(path)
            del error.filename2  # otherwise the text would be "'path' -> None"
        raise


@contextlib.contextmanager
def _write_beside(path: Path) -> Iterator[IO[bytes]]:
    if path.parent not in _tidied:
        _tidied.add(path.parent)
        _remove_old(path.parent, r"\..+\.[0-9a-f]{8}\.tmp")
    beside = path.parent / f".{path.name}.{secrets.token_hex(4)}.tmp"
    # The files of tempfile are readable only by their owner.
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


def _keep_permissions(path: Path, beside: str | os.PathLike[str]) -> None:
    """Gives new content the permissions of the file that it replaces.

    Windows has only the mark of read-only files, which cannot be replaced there.
    """
    if os.name != "nt":
        with contextlib.suppress(OSError):  # there is no earlier file
            os.chmod(beside, stat.S_IMODE(os.stat(path).st_mode))


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Removes temporary files of :func:`write_beside` that a killed program left.

    A file that changed within the last day stays, because another program may still write it.
    """
    path = behind_links(path)
    _remove_old(path.parent, rf"\.{re.escape(path.name)}\.[a-z0-9_]{{8}}\.tmp")


def _remove_old(folder: Path, name: str) -> None:
    """Removes the files of a folder whose names match, if they are older than a day."""
    with contextlib.suppress(OSError):
        for entry in list(os.scandir(folder)):
            if re.fullmatch(name, entry.name) and entry.stat().st_mtime < time.time() - 86400:
                os.unlink(entry)


def file_stamp(path: Path) -> tuple[int, int] | None:
    """Returns the modification time and the size of a file; None if there is no file."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size


def shipped_model(name: str = "") -> Path:
    """Returns the path of a shipped model, by its name.

    Without a name, it is the model that the engines play: that with two heads, if it is there.
    """
    if name:
        return shipped_file(name)
    two_heads = shipped_file("model_policy_value")
    return two_heads if two_heads.exists() else shipped_file("model_policy")


def shipped_file(name: str) -> Path:
    """Returns the path of a file in the folder model: the clone's, or a wheel's (see setup.py)."""
    package = Path(__file__).resolve().parent
    in_clone = package.parent / "model" / name
    in_wheel = package / "model" / name
    return in_wheel if in_wheel.exists() and not in_clone.exists() else in_clone


def games_folder() -> Path:
    """Returns the folder of the games played: in a clone run/games, else one in the home folder."""
    root = Path(__file__).resolve().parent.parent
    if (root / "pyproject.toml").exists():
        return root / "run" / "games"
    return Path.home() / "pydlshogi-games"
