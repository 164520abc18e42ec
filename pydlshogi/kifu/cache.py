"""The cache file: positions of a kifu list, stored beside it.

``NAME.txt`` has the cache ``NAME.pickle``: one pickled tuple of plain objects (magic, version,
fingerprint, number of positions, their CRC-32, report), followed by the bytes of the
positions. A file without our magic is never unpickled or overwritten, and the
unpickler accepts no class at all. No numpy object is pickled, so every numpy version reads
what another one wrote.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy

from pydlshogi.errors import UserError
from pydlshogi.files import write_beside
from pydlshogi.positions import POSITION, raw_bytes

#: Changes whenever the file's layout, or the reading of records, does.
CACHE_VERSION = 6

_MAGIC = "pydlshogi positions"
# What protocol 3, which has no frames, writes first for a tuple of more than three.
_CACHE_START = b"\x80\x03(X" + len(_MAGIC).to_bytes(4, "little") + _MAGIC.encode()


class CacheError(UserError):
    """The cache cannot be used; the text says why.

    Attributes:
        ours: Whether the file is a cache of ours, which may be replaced.
    """

    def __init__(self, reason: str, *, ours: bool) -> None:
        super().__init__(reason)
        self.ours = ours


class Cached(NamedTuple):
    """What a cache file holds: a ``POSITION`` array (n,), and the report's plain form."""

    positions: numpy.ndarray
    report: dict[str, Any]


class _PlainUnpickler(pickle.Unpickler):
    """Builds numbers, strings, lists, tuples and dicts, and nothing that runs code."""

    def find_class(self, module: str, name: str) -> Any:
        raise CacheError(f"it asks for {module}.{name}", ours=False)


def cache_path(kifu_list_file: str | os.PathLike[str]) -> Path:
    """Names the cache of a list: ``./a.b.txt`` has ``./a.b.pickle``.

    Only ``.txt``, in any case, is taken away: ``games.train`` and ``games.test`` must
    not share a cache, and a list that is called ``….pickle`` itself must survive.
    """
    path = Path(kifu_list_file)
    name = path.name[: -len(".txt")] if path.name.lower().endswith(".txt") else path.name
    return path.with_name(f"{name}.pickle")


def fingerprint(parts: Iterable[bytes]) -> str:
    """Digests what a cache was made from, so that a change of it is noticed.

    Args:
        parts: Anything in bytes: the list, sizes and times of files, options.

    Returns:
        A hexadecimal digest.
    """
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


def save_cache(path: Path, mark: str, positions: numpy.ndarray, report: dict[str, Any]) -> None:
    """Writes a cache, beside and renamed.

    Args:
        path: The file to make or replace.
        mark: The fingerprint of what the positions were made from.
        positions: ``POSITION`` array, (n,).
        report: Plain objects only.

    Raises:
        OSError: the folder cannot be written.
    """
    content = raw_bytes(positions).data
    with write_beside(path) as file:
        header = (_MAGIC, CACHE_VERSION, mark, len(positions), zlib.crc32(content), report)
        pickle.dump(header, file, protocol=3)
        file.write(content)


def load_cache(path: Path, mark: str) -> Cached:
    """Reads a cache straight into memory, without a second copy.

    Args:
        path: The file.
        mark: The fingerprint that it must carry.

    Returns:
        The positions and the report.

    Raises:
        FileNotFoundError: there is no such file.
        CacheError: it is not ours, damaged, or made from something else.
    """
    try:
        with open(path, "rb") as file:
            return _read_cache(file, mark)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise CacheError(f"it cannot be read ({error.strerror})", ours=False) from error


def _read_cache(file: BinaryIO, mark: str) -> Cached:
    start = file.read(len(_CACHE_START))
    if start != _CACHE_START[: len(start)]:
        raise CacheError("it was not made by this program", ours=False)
    file.seek(0)
    try:
        magic, version, found_mark, *rest = _PlainUnpickler(file).load()
    except CacheError:
        raise
    except Exception as error:  # a damaged pickle fails in every way there is
        raise CacheError("it is damaged", ours=True) from error
    if version != CACHE_VERSION or found_mark != mark:
        raise CacheError("the list, a file of it, an option or the version changed", ours=True)
    if [type(part) for part in rest] != [int, int, dict]:
        raise CacheError("it is damaged", ours=True)
    count, checksum, report = rest
    left = os.fstat(file.fileno()).st_size - file.tell()
    if left != count * POSITION.itemsize:
        raise CacheError("it is cut short", ours=True)
    positions = numpy.empty(count, dtype=POSITION)
    if file.readinto(positions.view(numpy.uint8).data) != left:  # type: ignore[attr-defined]
        raise CacheError("it is cut short", ours=True)
    # A flipped bit would train on another position, or point past the end of a table.
    if zlib.crc32(raw_bytes(positions).data) != checksum:
        raise CacheError("it is damaged", ours=True)
    return Cached(positions, report)
