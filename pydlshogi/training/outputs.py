"""The places a run writes to, made or refused, and what they hold kept, before it starts."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pydlshogi.files import behind_links, remove_leftovers, write_beside


class OutputError(Exception):
    """A run cannot write where it was told to; the text says where, why and what to do."""


def real_path(path: str) -> str:
    """Gives the one name of a file that has several: by links, or by case on Windows."""
    return os.path.normcase(os.path.realpath(path))


def prepare_outputs(outputs: Mapping[str, str], inputs: Mapping[str, str]) -> None:
    """Makes sure that files can be written later, makes their folders, and tidies up.

    Args:
        outputs: Option and path of each file that will be written; an empty path is
            passed over.
        inputs: Name and path of each file that must not be overwritten.

    Raises:
        OutputError: two of the paths are one file, a path is a folder, also that of
            another output, a device or read-only, its name is too long, or its folder
            cannot be made or written to.
    """
    seen = {real_path(path): name for name, path in inputs.items() if path}
    for option, path in outputs.items():
        if not path:
            continue
        real = real_path(path)
        if real in seen:
            raise OutputError(
                f"{option} {path} is the same file as {seen[real]}. Give it another name."
            )
        seen[real] = option
        # Not by the Path: it drops the separator that says so.
        if path.endswith((os.sep, os.altsep or os.sep)):
            raise _is_folder(option, path)
        _prepare(option, Path(path))
    for option, path in outputs.items():
        if path and os.path.isdir(path):  # made for another one, a moment ago
            raise _is_folder(option, path)


def keep_earlier(path: str) -> str:
    """Copies a file that a run is going to replace.

    Without ``--model`` a run writes where the shipped model is; and days of training are
    easily replaced by the first minutes of a run that was begun anew by mistake.

    Args:
        path: A file that the run will write.

    Returns:
        The copy's path, ``PATH.old`` or, where there is one, ``PATH.old2`` and so on; empty
        where there is nothing to keep.

    Raises:
        OutputError: the copy cannot be made.
    """
    if not os.path.isfile(path):
        return ""
    names = itertools.chain([f"{path}.old"], (f"{path}.old{n}" for n in itertools.count(2)))
    copy = next(name for name in names if not os.path.lexists(name))
    try:
        with open(path, "rb") as file, write_beside(copy) as kept:
            shutil.copyfileobj(file, kept)
    except OSError as error:
        raise OutputError(
            f"{path} is there already, and cannot be kept as {copy} ({error.strerror}). "
            "Move it, or give this run's files other names."
        ) from None
    return copy


def check_report(path: str) -> None:
    """Makes sure that the table of records left out replaces nothing but an older one.

    Args:
        path: What --report says; an empty one is passed over.

    Raises:
        OutputError: a file is there that is no such table.
    """
    from pydlshogi.kifu.report import TITLES

    if not path or not os.path.isfile(path):
        return
    with open(path, "rb") as file:
        titles = "\t".join(TITLES).encode()
        begin = file.read(len(titles))
    if begin not in (b"", titles):
        raise OutputError(
            f"--report {path} exists and is no table of records left out. Give it another name."
        )


def _is_folder(option: str, path: str) -> OutputError:
    return OutputError(f"{option} {path} is a folder. Name a file in it.")


def _prepare(option: str, path: Path) -> None:
    folder = behind_links(path).parent
    try:
        if path.is_dir():
            raise _is_folder(option, str(path))
        if path.exists() and not path.is_file():
            raise OutputError(f"{option} {path} is a device or a pipe. Name a file.")
        # Its bits too: a superuser may write everywhere, and still wants to keep such a file.
        if path.exists() and not (path.stat().st_mode & 0o222 and os.access(path, os.W_OK)):
            raise OutputError(f"{option} {path} is read-only. Give it another name.")
        folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(path)
        # Named as write_beside names what it writes: longer than the file will be called.
        with tempfile.NamedTemporaryFile(dir=folder, prefix=f".{path.name}.", suffix=".tmp"):
            pass
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise OutputError(f"{option} {path}: the name is too long. Shorten it.") from None
        raise OutputError(
            f"{option} {path}: folder {folder} cannot be made or written to "
            f"({error.strerror}). Choose another folder."
        ) from None
