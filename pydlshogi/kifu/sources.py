"""Kifu lists: finds the files that a list names, and reads archives.

A list is a text file with one path a line. A relative path starts from the folder of the list.
If there is no such file, it starts from the current folder. A path names a record file, an
archive (.zip or .7z) or a folder, which stands for all records below it. In folders and
archives the suffix tells which files are records. A file that the list names may have any name.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import stat
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from pydlshogi.errors import UserError
from pydlshogi.files import plain_file
from pydlshogi.kifu.formats import RECORD_SUFFIXES
from pydlshogi.kifu.kif import looks_like_kif
from pydlshogi.text import decode, is_utf_16

#: A folder of self-play has this file, and a subfolder with some of its games once more.
SELF_PLAY_MARK, SELF_PLAY_RECORDS = "selfplay.json", "records"

ARCHIVE_SUFFIXES = (".zip", ".7z")
# Archives and compressed files that cannot be read.
_PACKED_SUFFIXES = (".gz", ".bz2", ".xz", ".zst", ".tar", ".tgz", ".txz", ".lzh", ".rar")

# First bytes of archives (.zip, .7z, .gz), of pickles and of shards.
_BINARY = (b"PK\3\4", b"7z\xbc\xaf\x27\x1c", b"\x1f\x8b", b"\x80", b"pydlshogi shard")
# The flag of a .zip for names in UTF-8.
_ZIP_UTF8 = 0x800
# What an archive may unpack to: its size so many times, or so many bytes if that is more. Many
# similar records shrink to a tenth.
_RATIO, _FREE = 100, 1 << 26
# A line with a move in CSA.
_CSA_MOVE = re.compile(rb"^[+-]\d{4}[A-Z]{2}\b", re.MULTILINE)


class KifuError(UserError):
    """A kifu list cannot be read, or has no usable record."""


def is_record_name(name: str) -> bool:
    """Tests by the name whether a file in a folder or an archive is a record.

    macOS adds a file ``._NAME`` beside each file of an archive. It is not a record.
    """
    if not name.lower().endswith(RECORD_SUFFIXES):
        return False
    return not re.split(r"[/\\]", name)[-1].startswith("._")


class Source(NamedTuple):
    """A file that a list names, directly or in a folder.

    Attributes:
        name: The file as the list names it; in a folder FOLDER/FILE.
        path: Its path; empty if it was not found.
        size: Its size in bytes; -1 if it was not found.
        time: Time of the last change, in nanoseconds.
        problem: Why it cannot be read; empty if it can.
    """

    name: str
    path: str
    size: int
    time: int
    problem: str = ""


def read_list(kifu_list_file: str | os.PathLike[str]) -> list[Source]:
    """Finds the files that a list names.

    Args:
        kifu_list_file: The list in UTF-8 with or without a BOM, CP932, or UTF-16 with a BOM (as
            PowerShell's ``>`` writes). Undecodable file names keep their bytes. Quotation
            marks around a path and blank lines are ignored.

    Returns:
        The files in order; those of a folder are sorted by name. Missing files, folders
        without records and archives in folders are included with their problem.

    Raises:
        KifuError: the list is missing, unreadable or empty, or the file is a record or an
            archive instead of a list.
    """
    path = os.fspath(kifu_list_file)
    try:
        data = plain_file(path, pipe=True).read_bytes()
    except OSError as error:
        raise KifuError(
            f"the kifu list {path} cannot be read ({error.strerror}); "
            "give a text file with one path of a record on each line"
        ) from error
    # A line of such a file may name a folder: "/" separates two CSA records.
    if (
        is_readable_name(path)
        or data.startswith(_BINARY)
        or _CSA_MOVE.search(data)
        or looks_like_kif(data)
    ):
        raise KifuError(
            f"{path} is a record, an archive or a program's file, not a kifu "
            "list; write its path into a text file, one path a line, and give that file"
        )
    places = _places(path)
    sources: list[Source] = []
    for number, names in enumerate(_lines(data), 1):
        if names[0]:
            # Windows copies a path with quotation marks around it.
            bare = [name[1:-1] for name in names if len(name) > 2 and name[0] == name[-1] == '"']
            sources.extend(_find([*names, *bare], places, number))
    if not sources:
        raise KifuError(
            f"the kifu list {path} names no file; "
            "write the path of a record, a folder or an archive on each line"
        )
    return sources


def _places(kifu_list_file: str) -> list[str]:
    """Returns the folders from which a relative path of a list may start, in order.

    The folder of the list comes first. If the list is a link, the folder of the link comes
    first, then the folder of the file.
    """
    path = os.path.abspath(kifu_list_file)
    own = [os.path.dirname(path), os.path.dirname(os.path.realpath(path))]
    return [*dict.fromkeys(own), os.curdir]


def _lines(data: bytes) -> Iterator[list[str]]:
    """Decodes the lines of a list; yields the possible names of each, likely ones first."""
    try:
        text = decode(data) if is_utf_16(data) else data.decode("utf-8-sig")
    except UnicodeDecodeError:
        # The list may be CP932, or it may contain undecodable file names as bytes. Only the file
        # system can tell which name is right.
        for line in re.split(b"\r\n|\n|\r", data):
            # os.fsdecode() would raise on Windows.
            names = [line.strip().decode("utf-8", "surrogateescape")]
            with contextlib.suppress(UnicodeDecodeError):
                names.append(line.strip().decode("cp932"))
            yield names
    else:
        for name in re.split("\r\n|\n|\r", text):
            yield [name.strip()]


def find_path(path: str) -> list[Source]:
    """Finds the files that one path names: a record, a folder or an archive.

    Problems are among the results, as :func:`read_list` returns them.
    """
    return list(_find([path], [os.curdir], 0))


def is_readable_name(name: str) -> bool:
    """Tests by the name whether a file is a record or an archive, not a list of them."""
    return name.lower().endswith((*RECORD_SUFFIXES, *ARCHIVE_SUFFIXES, *_PACKED_SUFFIXES))


def _naming(line: int) -> str:
    """Says for a note where a path comes from; line 0 means the command line."""
    return f"line {line} of the list names it" if line else "the command line names it"


def _find(names: Sequence[str], places: Sequence[str], line: int) -> Iterator[Source]:
    """Finds the files that a line of a list names. A folder yields all its records."""
    if os.sep == "/":
        # A list made on Windows may have backslashes.
        names = [*names, *(name.replace("\\", "/") for name in names if "\\" in name)]
    for name, place in itertools.product(names, places):
        path = os.path.join(place, name)
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            continue
        if stat.S_ISDIR(status.st_mode):
            found = list(_find_in_folder(name, path))
            problem = f"{_naming(line)}, but the folder holds no record"
            yield from found or [Source(name, path, -1, 0, problem)]
        elif not stat.S_ISREG(status.st_mode):
            problem = f"{_naming(line)}, but it is a device or a pipe; name a file"
            yield Source(name, "", -1, 0, problem)
        elif name.lower().endswith(_PACKED_SUFFIXES):
            problem = f"{_naming(line)}, but it is packed; unpack it first"
            yield Source(name, "", -1, 0, problem)
        else:
            yield Source(name, path, status.st_size, status.st_mtime_ns)
        return
    problem = f"{_naming(line)}, but there is no such file; correct the path"
    readable = next((name for name in names if name.isprintable()), names[0])
    yield Source(readable, "", -1, 0, problem)


def _find_in_folder(name: str, path: str) -> Iterator[Source]:
    """Finds all records in a folder and its subfolders, sorted by name.

    Archives, and folders that cannot be searched, are included with their problem.
    """
    try:
        with os.scandir(path) as entries:
            inside = sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        yield Source(name, "", -1, 0, f"the folder cannot be searched ({error.strerror})")
        return
    if any(entry.name == SELF_PLAY_MARK for entry in inside):
        inside = [entry for entry in inside if entry.name != SELF_PLAY_RECORDS]
    for entry in inside:
        # pathlib would take most of the time of a folder with a million files.
        shown = f"{name.rstrip('/')}/{entry.name}"
        # os.walk leaves junctions of Windows out, too, from Python 3.12 on.
        is_junction = getattr(entry, "is_junction", bool)
        if entry.is_dir(follow_symlinks=False) and not is_junction():
            yield from _find_in_folder(shown, entry.path)
        elif entry.name.lower().endswith(ARCHIVE_SUFFIXES):
            problem = "archives in a folder are not opened; write its path into the list"
            yield Source(shown, "", -1, 0, problem)
        elif entry.name.lower().endswith(_PACKED_SUFFIXES):
            yield Source(shown, "", -1, 0, "it is packed; unpack it first")
        elif is_record_name(entry.name):
            try:
                status = os.stat(entry.path)
            except OSError as error:
                yield Source(shown, "", -1, 0, f"its size cannot be read ({error.strerror})")
                continue
            if stat.S_ISREG(status.st_mode):
                yield Source(shown, entry.path, status.st_size, status.st_mtime_ns)


def is_archive(source: Source) -> bool:
    """Tests by the name whether a source is an archive."""
    return source.path.lower().endswith(ARCHIVE_SUFFIXES)


class Member(NamedTuple):
    """A record in an archive.

    Attributes:
        name: ARCHIVE/FILE.
        data: Its content; empty if it cannot be read.
        problem: Why it cannot be read; empty if it can.
    """

    name: str
    data: bytes
    problem: str = ""


def read_archive(source: Source) -> Iterator[Member]:
    """Reads the records of a .zip or .7z archive, one file at a time.

    A damaged file in a .zip does not affect the others. A .7z compresses all files together.

    Raises:
        KifuError: the file is a .7z and py7zr is not installed.
        OSError, ValueError: the archive is damaged, or would take far more memory than its size.
    """
    if source.path.lower().endswith(".zip"):
        yield from _read_zip(source)
    else:
        yield from _read_7z(source)


def _read_zip(source: Source) -> Iterator[Member]:
    try:
        archive = zipfile.ZipFile(source.path)
    except OSError:
        raise
    except Exception as error:  # a damaged directory raises exceptions of many kinds
        raise ValueError(f"{type(error).__name__}: {error}") from error
    with archive:
        records = [inside for inside in archive.infolist() if is_record_name(inside.filename)]
        _check_size(source, sum(inside.file_size for inside in records))
        for inside in records:
            if not inside.is_dir():
                yield _unpack(archive, inside, f"{source.name}/{_name_in_zip(inside)}")


def _check_size(source: Source, unpacked: int) -> None:
    """Refuses an archive that is far smaller than its content, before it is unpacked."""
    if unpacked > max(_FREE, _RATIO * source.size):
        raise ValueError(
            f"its {source.size:,} bytes would unpack to {unpacked:,}, which no games do; "
            "if they are records, unpack it and name their folder"
        )


def _name_in_zip(inside: zipfile.ZipInfo) -> str:
    """Returns the name of a file in a .zip.

    If the names are not marked as UTF-8, zipfile decodes them with code page 437. Windows in
    Japanese writes them in CP932.
    """
    if not inside.flag_bits & _ZIP_UTF8:
        with contextlib.suppress(UnicodeError):
            return inside.filename.encode("cp437").decode("cp932")
    return inside.filename


def _unpack(archive: zipfile.ZipFile, inside: zipfile.ZipInfo, name: str) -> Member:
    """Reads one file of a .zip. A damaged file has a problem; an unreadable disk raises OSError."""
    try:
        return Member(name, archive.read(inside))
    except Exception as error:  # of zipfile or of a decompressor
        if isinstance(error, OSError) and error.errno:
            raise
        # bz2 raises an OSError without a number for damaged data.
        return Member(name, b"", f"it cannot be unpacked ({error})")


def _read_7z(source: Source) -> Iterator[Member]:
    try:
        import py7zr
    except ImportError as error:
        raise KifuError(
            f"{source.name} is a 7z archive, and py7zr, which reads them, is not installed. "
            "Install it: python -m pip install py7zr"
        ) from error
    # All versions of py7zr can unpack to a folder, and this needs little memory.
    with tempfile.TemporaryDirectory(prefix="pydlshogi-") as folder:
        try:
            with py7zr.SevenZipFile(source.path) as archive:
                _check_size(source, sum(inside.uncompressed for inside in archive.list()))
                archive.extractall(path=folder)
        except (OSError, ValueError):
            raise
        except Exception as error:  # the exceptions of py7zr have no common base
            raise ValueError(f"{type(error).__name__}: {error}") from error
        for inside in sorted(Path(folder).rglob("*")):
            if is_record_name(inside.name) and inside.is_file():
                shown = f"{source.name}/{inside.relative_to(folder).as_posix()}"
                yield Member(shown, inside.read_bytes())
