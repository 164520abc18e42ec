"""Checks and prepares the output files of a run before it starts."""

from __future__ import annotations

import codecs
import errno
import filecmp
import itertools
import os
import re
import secrets
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydlshogi.errors import UserError
from pydlshogi.files import behind_links, is_disk_full, remove_leftovers, write_beside
from pydlshogi.kifu.report import TITLES

# A log begins with such a line, perhaps after lines that the user wrote.
_LOG_LINE = re.compile(rb"^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\t", re.MULTILINE)
_LOG_BYTES = 1 << 16

# The first bytes of an npz, which is a ZIP archive.
_NPZ = b"PK"


class OutputError(UserError):
    """An output file cannot be written."""


def real_path(path: str) -> str:
    """Returns one spelling for all names of a file: links, and upper and lower case on Windows."""
    return os.path.normcase(os.path.realpath(path))


def prepare_outputs(outputs: Mapping[str, str], inputs: Mapping[str, str]) -> None:
    """Checks that files can be written later, makes their folders, and removes leftovers.

    Args:
        outputs: Path of each file that will be written, perhaps empty, by its option.
        inputs: Path of each file that must not be overwritten, by its name in messages.

    Raises:
        OutputError: two paths are the same file; a path is a folder, a device or read-only; its
            name is too long; or its folder cannot be made or written to.
    """
    seen = {real_path(path): name for name, path in inputs.items() if path}
    for option, path in outputs.items():
        if not path:
            continue
        real = real_path(path)
        if real in seen:
            raise OutputError(
                f"{option} {path} is the same file as {seen[real]}. Choose another name."
            )
        seen[real] = option
        # Checked before it becomes a Path, which drops the separator at the end.
        if path.endswith((os.sep, os.altsep or os.sep)):
            raise _is_folder(option, path)
        _prepare(option, Path(path))
    for option, path in outputs.items():
        if path and os.path.isdir(path):  # made above, for another output
            raise _is_folder(option, path)


def keep_earlier(path: str) -> str:
    """Copies a file that a run will replace: it may be the result of days of training.

    Returns the path of the copy: ``PATH.old``, or ``PATH.old2`` and so on if that exists with
    another content. It is empty if there is no such file.

    Raises:
        OutputError: the copy cannot be made.
    """
    if not os.path.isfile(path):
        return ""
    names = itertools.chain([f"{path}.old"], (f"{path}.old{n}" for n in itertools.count(2)))
    try:
        for copy in names:
            if not os.path.lexists(copy):
                break
            if os.path.isfile(copy) and filecmp.cmp(path, copy, shallow=False):
                return copy
        with open(path, "rb") as file, write_beside(copy) as kept:
            shutil.copyfileobj(file, kept)
    except OSError as error:
        raise OutputError(
            f"{path} exists already and cannot be copied to {copy} ({error.strerror}). "
            + ("Free some space." if is_disk_full(error) else "Move it, or choose another name.")
        ) from None
    return copy


def check_report(path: str, titles: Sequence[str] = TITLES) -> None:
    """Checks that ``--report`` replaces nothing but an older table with its titles."""
    wanted = "\t".join(titles).encode()
    if _begin(path, len(wanted)) not in (b"", wanted):
        raise OutputError(
            f"the report {path} exists and is not a table of records left out. Choose another name."
        )


def check_model(option: str, path: str) -> None:
    """Checks that the model or state of an option replaces nothing but an npz or an empty file."""
    if _begin(path, len(_NPZ)) not in (b"", _NPZ):
        raise OutputError(
            f"{option} {path} exists and was not saved by a training. Choose another name."
        )


def check_book(path: str, header: str) -> None:
    """Checks that a book, which begins with ``header``, replaces nothing but a book."""
    begin = _begin(path, len(codecs.BOM_UTF8) + len(header)).removeprefix(codecs.BOM_UTF8)
    if begin and not begin.startswith(header.encode()):
        raise OutputError(f"{path} exists and is not a book. Choose another name for the book.")


def check_log(path: str) -> None:
    """Checks that ``--log``, which may be empty, appends to nothing but a log."""
    begin = _begin(path, _LOG_BYTES)
    if begin.strip() and not _LOG_LINE.search(begin):
        raise OutputError(
            f"the log {path} exists and is not a log, so nothing is appended to it. "
            "Choose another name."
        )


def _begin(path: str, size: int) -> bytes:
    """Reads the first bytes of a file; none if there is no such file."""
    if not path or not os.path.isfile(path):
        return b""
    with open(path, "rb") as file:
        return file.read(size)


def _is_folder(option: str, path: str) -> OutputError:
    return OutputError(f"{option} {path} is a folder. Choose a file in it.")


def _prepare(option: str, path: Path) -> None:
    folder = behind_links(path).parent
    try:
        if path.is_dir():
            raise _is_folder(option, str(path))
        if path.exists() and not path.is_file():
            raise OutputError(f"{option} {path} is a device or a pipe. Choose a file.")
        # os.access lets a superuser write everywhere, so the permission bits are checked too.
        if path.exists() and not (path.stat().st_mode & 0o222 and os.access(path, os.W_OK)):
            raise OutputError(f"{option} {path} is read-only. Choose another name.")
        folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(path)
        # write_beside uses such a longer name before it renames the file.
        # In a folder that Windows protects, tempfile would try other names for hours.
        beside = folder / f".{path.name}.{secrets.token_hex(4)}.tmp"
        beside.open("xb").close()
        beside.unlink()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise OutputError(f"{option} {path}: the name is too long. Shorten it.") from None
        raise OutputError(
            f"{option} {path}: folder {folder} cannot be made or written to "
            f"({error.strerror}). Choose another folder."
        ) from None
