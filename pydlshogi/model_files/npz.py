"""Reads Chainer's npz files; pickled objects in them are never loaded."""

from __future__ import annotations

import os
import zipfile

import numpy


class NpzError(Exception):
    """A file cannot be read. The text is the reason, a clause that follows the path."""


def read_npz(path: str | os.PathLike[str]) -> dict[str, numpy.ndarray]:
    """Reads every array of an npz.

    Args:
        path: A file made by Chainer's ``save_npz``.

    Returns:
        The arrays by key.

    Raises:
        NpzError: the path does not exist, is a folder, is not an npz, is damaged, or the npz
            holds a pickled object.
    """
    if os.path.isdir(path):  # on Windows, open would report "Permission denied"
        raise NpzError("is a folder, not a file")
    try:
        with open(path, "rb") as file:
            if file.read(2) != b"PK":  # the start of every zip
                raise NpzError("is not a Chainer npz, but another kind of file")
        with numpy.load(path, allow_pickle=False) as npz:
            return {key: npz[key] for key in npz.files}
    except FileNotFoundError:
        raise NpzError("does not exist") from None
    except NpzError:
        raise
    except Exception as error:
        # A damaged file raises errors of zipfile, zlib, tokenize, ast or numpy, depending on
        # the place of the damage. Their texts may have several lines or none.
        why = " ".join(str(error).split()) or type(error).__name__
        if isinstance(error, zipfile.BadZipFile):  # the list of files at the end may be missing
            why = f"it is incomplete or damaged: {why}"
        if "allow_pickle" in why:  # numpy advises to load the pickle, which would be dangerous
            why = "it holds a pickled object"
        raise NpzError(f"cannot be read as a Chainer npz ({why})") from None
