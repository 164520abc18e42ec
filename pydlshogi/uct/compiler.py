"""Compiles functions by numba, where it is installed."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any, Callable, TypeVar

import numpy

numba: Any
try:
    numba = importlib.import_module("numba")
except ImportError:  # there is no numba for Macs with Intel processors
    numba = None

_Function = TypeVar("_Function", bound=Callable[..., Any])

#: Whether functions are compiled.
IS_COMPILED = numba is not None

_compiled: list[Any] = []


def compiled(function: _Function) -> _Function:
    """Compiles a function at its first call, or takes it from numba's cache on the disk.

    The function must call compiled functions of its own module only: numba does not see changes of
    others. It runs without the GIL.
    """
    if numba is None:
        return function
    try:
        result = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # no folder for the cache is writable
        result = numba.njit(nogil=True)(function)
    _compiled.append(result)
    return result


def argument(array: numpy.ndarray) -> Any:
    """Returns an array in the form for such functions: plain Python reads memoryviews faster."""
    return array.data if numba is None else array


def is_in_cache(function: Any) -> bool:
    """Says whether an earlier process has left a compiled function on the disk, as it seems."""
    folder = getattr(getattr(function, "_cache", None), "cache_path", None)
    return folder is not None and any(Path(folder).glob(f"*.{function.__name__}-*.nbi"))


def call_first(call: Callable[[], object]) -> None:
    """Calls compiled functions for the first time. A cache that is damaged is passed over."""
    try:
        call()
    except Exception:
        if numba is None:
            raise
        for function in _compiled:
            function._cache = numba.core.caching.NullCache()
        call()
