"""Reads Chainer's npz files; pickled objects in them are never loaded."""

from __future__ import annotations

import math
import os
import zipfile
from typing import IO, Any

import numpy
from numpy.lib import format as npy

from pydlshogi.files import plain_file

# What a file may unpack to: its size so many times, or so many bytes if that is more. Weights
# shrink by 7 %, and the zeros of an optimizer's first state add as many bytes again.
_RATIO, _FREE = 16, 1 << 26

# Most arrays of a file; 100 residual blocks have 1,400.
_MOST = 20_000

# Arrays of at most so many bytes are read with the headers, for example names.
_SMALL = 1 << 12

_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


class NpzError(Exception):
    """A file cannot be read. The text is the reason, a clause that follows the path."""


def read_npz(path: str | os.PathLike[str]) -> dict[str, numpy.ndarray]:
    """Reads the arrays of an npz by key.

    Raises:
        NpzError: the path does not exist, is no plain file, is not an npz, is damaged, the npz
            holds a pickled object, or it would take far more memory than its size.
    """
    return _read(path, headers_only=False)


def read_headers(path: str | os.PathLike[str]) -> dict[str, numpy.ndarray]:
    """Reads names, shapes and dtypes as :func:`read_npz` does, without unpacking the arrays.

    Large arrays take no memory, and their numbers have no meaning.
    """
    return _read(path, headers_only=True)


def _read(path: str | os.PathLike[str], headers_only: bool) -> dict[str, numpy.ndarray]:
    if os.path.isdir(path):  # on Windows, open would report "Permission denied"
        raise NpzError("is a folder, not a file")
    try:
        with open(plain_file(path), "rb") as file:
            if file.read(2) != b"PK":  # the start of every zip
                raise NpzError("is not a Chainer npz, but another kind of file")
            with zipfile.ZipFile(file) as archive:
                _check_size(archive, os.fstat(file.fileno()).st_size)
                return dict(_member(archive, info, headers_only) for info in archive.infolist())
    except FileNotFoundError:
        raise NpzError("does not exist") from None
    except NpzError:
        raise
    except Exception as error:
        # A damaged file raises errors of zipfile, zlib, tokenize, ast or numpy, depending on
        # the place of the damage. Their texts may have several lines or none.
        why = getattr(error, "strerror", None) or " ".join(str(error).split())
        if isinstance(error, zipfile.BadZipFile):  # the list of files at the end may be missing
            why = f"it is incomplete or damaged: {why}"
        raise NpzError(f"cannot be read as a Chainer npz ({why or type(error).__name__})") from None


def _check_size(archive: zipfile.ZipFile, size: int) -> None:
    """Refuses an archive that is far smaller than its content, before it is unpacked."""
    unpacked = sum(info.file_size for info in archive.infolist())
    if len(archive.infolist()) > _MOST:
        raise NpzError(f"is no model or state: it has more than {_MOST:,} arrays")
    if unpacked > max(_FREE, _RATIO * size):
        raise NpzError(f"is no model or state: its {size:,} bytes unpack to {unpacked:,}")
    # Others may need much memory before the first byte; numpy makes only these.
    if any(info.compress_type > zipfile.ZIP_DEFLATED for info in archive.infolist()):
        raise NpzError("cannot be read as a Chainer npz (it has another compression)")


def _member(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, header_only: bool
) -> tuple[str, numpy.ndarray]:
    """Reads an array of the archive with its key."""
    with archive.open(info) as file:
        shape, dtype = _header(file, info.file_size)
        key = info.filename[: -len(".npy")] if info.filename.endswith(".npy") else info.filename
        if header_only and info.file_size > _SMALL:
            return key, numpy.broadcast_to(numpy.zeros((), dtype), shape)
        file.seek(0)
        return key, npy.read_array(file, allow_pickle=False)


def _header(file: IO[bytes], size: int) -> tuple[tuple[int, ...], Any]:
    """Reads the shape and the dtype of an array, which must fill a member of ``size`` bytes."""
    version = npy.read_magic(file)
    if version not in _HEADERS:
        raise ValueError(f"it has arrays of the version {version}")
    shape, _, dtype = _HEADERS[version](file)
    if dtype.hasobject:
        raise ValueError("it holds a pickled object")
    if file.tell() + dtype.itemsize * math.prod(shape) != size or min(shape, default=0) < 0:
        raise ValueError(f"an array of the shape {shape} does not fit its {size:,} bytes")
    return shape, dtype
