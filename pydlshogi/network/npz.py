"""Chainer's npz files, read without ever loading a pickled object."""

from __future__ import annotations

import os

import numpy


class NpzError(Exception):
    """A file cannot be read; the text is a clause that says why."""


def read_npz(path: str | os.PathLike[str]) -> dict[str, numpy.ndarray]:
    """Reads every array of an npz.

    Args:
        path: A file made by Chainer's ``save_npz``.

    Returns:
        The arrays by key.

    Raises:
        NpzError: no such file, a folder, not an npz, damaged, or it holds a pickled object.
    """
    if os.path.isdir(path):  # Windows would say "Permission denied" of it
        raise NpzError("is a folder, not a file")
    try:
        with open(path, "rb") as file:
            if file.read(2) != b"PK":  # as every zip begins
                raise NpzError("is not a Chainer npz, but another kind of file")
        with numpy.load(path, allow_pickle=False) as npz:
            return {key: npz[key] for key in npz.files}
    except FileNotFoundError:
        raise NpzError("does not exist") from None
    except NpzError:
        raise
    except Exception as error:
        # What a damaged file raises depends on where the damage is: errors of zipfile, zlib,
        # tokenize, ast and of numpy itself, some of them of several lines, some of none.
        why = " ".join(str(error).split()) or type(error).__name__
        if "allow_pickle" in why:  # numpy's advice to do what must not be done here
            why = "it holds a pickled object"
        raise NpzError(f"cannot be read as a Chainer npz ({why})") from None
