"""The cache file: positions of a kifu list, stored beside it.

The cache of ``NAME.txt`` is ``NAME.pickle``. It is a pickle that calls :func:`from_pickle` with two
byte strings: a header, and the raw ``POSITION`` records. The header is a pickled tuple of plain
objects: version, fingerprint, number of positions, their CRC-32, report.

A script for the book loads the file with ``pickle.load`` and gets the positions. This package
reads the parts itself and never runs the pickle: the header's unpickler accepts no class, and a
file that begins differently is neither read nor replaced. No numpy object is pickled, so
every numpy version reads what another one wrote.
"""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import struct
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy

from pydlshogi.errors import UserError
from pydlshogi.files import write_beside
from pydlshogi.positions import POSITION, Positions, raw_bytes, unpickled

#: Changes whenever the layout of the file, or the parsing of records, changes.
CACHE_VERSION = 13

# Opcodes of pickle protocol 4: the call of a function with two byte strings.
_START = b"\x80\x04" + b"cpydlshogi.kifu.cache\nfrom_pickle\n"
_HEADER = struct.Struct("<cI")  # BINBYTES, length of the header
_CONTENT = struct.Struct("<cQ")  # BINBYTES8, length of the records
_END = pickle.TUPLE2 + pickle.REDUCE + pickle.STOP
# Versions 1 to 6 began with a pickled tuple.
_OLD_START = b"\x80\x03(X\x13\0\0\0pydlshogi positions"


class CacheError(UserError):
    """The cache cannot be used; the text says why.

    Attributes:
        ours: Whether this package wrote the file, so that it may be replaced.
    """

    def __init__(self, reason: str, *, ours: bool) -> None:
        super().__init__(reason)
        self.ours = ours


class Cached(NamedTuple):
    """Content of a cache: a ``POSITION`` array (n,), and the report as plain objects."""

    positions: numpy.ndarray
    report: dict[str, Any]


class _PlainUnpickler(pickle.Unpickler):
    """Builds numbers, strings, lists, tuples and dicts, but nothing that runs code."""

    def find_class(self, module: str, name: str) -> Any:
        raise CacheError(f"it asks for {module}.{name}", ours=False)


def cache_path(kifu_list_file: str | os.PathLike[str]) -> Path:
    """Returns the path of a list's cache: ``./a.b.pickle`` for ``./a.b.txt``.

    Only the suffix ``.txt``, in any case, is replaced. ``games.train`` and ``games.test`` must not
    share a cache, and a list named ``….pickle`` must not be overwritten.
    """
    path = Path(kifu_list_file)
    name = path.name[: -len(".txt")] if path.name.lower().endswith(".txt") else path.name
    return path.with_name(f"{name}.pickle")


def with_caches(lists: Mapping[str, str]) -> dict[str, str]:
    """Adds the caches of some lists, by their names in messages, as ``the cache of NAME``.

    Empty paths have no cache.
    """
    caches = {
        f"the cache of {name}": str(cache_path(path))
        for name, path in lists.items()
        # A folder has no cache; read_list reports it.
        if os.path.basename(path) and not os.path.isdir(path)
    }
    return {**lists, **caches}


def fingerprint(parts: Iterable[bytes]) -> str:
    """Returns a hexadecimal digest of everything that a cache is made from."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


def save_cache(path: Path, mark: str, positions: numpy.ndarray, report: dict[str, Any]) -> None:
    """Writes a cache atomically; may raise ``OSError``.

    ``mark`` is the fingerprint of what the positions were made from. The report has plain
    objects only.
    """
    content = raw_bytes(positions).data
    fields = (CACHE_VERSION, mark, len(positions), zlib.crc32(content), report)
    header = pickle.dumps(fields, protocol=3)
    with write_beside(path) as file:
        file.write(_START + _HEADER.pack(pickle.BINBYTES, len(header)) + header)
        file.write(_CONTENT.pack(pickle.BINBYTES8, content.nbytes))
        file.write(content)
        file.write(_END)


def load_cache(path: Path, mark: str) -> Cached:
    """Reads a cache directly into the array; ``mark`` is the expected fingerprint.

    Raises:
        FileNotFoundError: there is no such file.
        CacheError: the file is not a cache, is damaged, or was made from something else.
    """
    try:
        with open(path, "rb") as file:
            count, checksum, report = _read_fields(file, mark)
            return Cached(_read_positions(file, count, checksum), report)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise CacheError(f"it cannot be read ({error.strerror})", ours=False) from error


def from_pickle(header: bytes, content: bytes) -> Positions:
    """Returns the positions of a cache that a script loads with ``pickle.load``.

    Raises:
        UserError: another version of the package wrote the file, or it is damaged.
    """
    version, _, _, checksum, *_ = _PlainUnpickler(io.BytesIO(header)).load()
    positions = unpickled(POSITION.itemsize if version == CACHE_VERSION else 0, content)
    if zlib.crc32(content) != checksum:
        raise UserError("the cache of positions is damaged; delete it and read the records again")
    return positions


def _read_fields(file: BinaryIO, mark: str) -> tuple[int, int, dict[str, Any]]:
    """Reads the number of positions, their checksum and the report."""
    start = file.read(len(_START))
    if start.startswith(_OLD_START):
        raise CacheError("an earlier version of pydlshogi made it", ours=True)
    if start != _START[: len(start)]:
        raise CacheError("it was not made by this program", ours=False)
    version, found_mark, *rest = _read_header(file)
    if version != CACHE_VERSION:
        raise CacheError("another version of pydlshogi made it", ours=True)
    if found_mark != mark:
        raise CacheError("the list, one of its files, or an option changed", ours=True)
    if [type(part) for part in rest] != [int, int, dict]:
        raise _damaged()
    return rest[0], rest[1], rest[2]


def _read_header(file: BinaryIO) -> tuple[Any, ...]:
    opcode, size = _unpack(file, _HEADER)
    # A damaged length must not ask for more memory than the file needs.
    header = file.read(min(size, os.fstat(file.fileno()).st_size))
    if opcode != pickle.BINBYTES or len(header) != size:
        raise _damaged()
    try:
        version, *rest = _PlainUnpickler(io.BytesIO(header)).load()
    except CacheError:
        raise
    except Exception as error:  # a damaged pickle raises exceptions of many kinds
        raise _damaged() from error
    return version, *rest, *[None] * (4 - len(rest))


def _read_positions(file: BinaryIO, count: int, checksum: int) -> numpy.ndarray:
    opcode, size = _unpack(file, _CONTENT)
    left = os.fstat(file.fileno()).st_size - file.tell() - len(_END)
    if opcode != pickle.BINBYTES8 or not left == size == count * POSITION.itemsize:
        raise _damaged()
    positions = numpy.empty(count, dtype=POSITION)
    got = file.readinto(positions.view(numpy.uint8).data)  # type: ignore[attr-defined]
    # One wrong bit could be an index outside a table.
    if (
        got != count * POSITION.itemsize
        or file.read() != _END
        or zlib.crc32(raw_bytes(positions).data) != checksum
    ):
        raise _damaged()
    return positions


def _unpack(file: BinaryIO, layout: struct.Struct) -> tuple[Any, ...]:
    content = file.read(layout.size)
    if len(content) != layout.size:
        raise _damaged()
    return layout.unpack(content)


def _damaged() -> CacheError:
    return CacheError("it is damaged", ours=True)
