"""The threads that compute the network on a CPU, and BLAS held to one thread each.

Many products of a few million operations each are faster and steadier on one thread
a product, with our threads working on different boards, than on BLAS's own threads.
numpy lets go of Python's global lock while it computes, so plain threads do.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable

import numpy
import threadpoolctl

#: Environment variable with the number of threads; :func:`set_threads` goes before it.
THREADS_VARIABLE = "PYDLSHOGI_THREADS"

_lock = threading.Lock()
_chosen: int | None = None
_pool: ThreadPoolExecutor | None = None
_pool_size = 0


def set_threads(number: int | None) -> None:
    """Chooses how many threads compute a layer on the CPU.

    Results are the same to the last bit from run to run with the same number; between
    two numbers they differ by rounding.

    Args:
        number: At least 1; None for what the machine has (see :func:`get_threads`).

    Raises:
        ValueError: ``number`` is less than 1.
    """
    global _chosen
    if number is not None and number < 1:
        raise ValueError(f"number of threads {number} must be at least 1")
    _chosen = number


def get_threads() -> int:
    """Tells how many threads compute a layer on the CPU.

    Returns:
        What :func:`set_threads` chose, else the environment's ``PYDLSHOGI_THREADS``,
        else the number of processors that this process may use.

    Raises:
        ValueError: ``PYDLSHOGI_THREADS`` is not a whole number of at least 1.
    """
    if _chosen is not None:
        return _chosen
    text = os.environ.get(THREADS_VARIABLE, "").strip()
    if text:
        if not text.isdecimal() or int(text) < 1:
            raise ValueError(
                f"environment variable {THREADS_VARIABLE} is {text!r}; "
                "set it to a number of threads from 1 on, or unset it"
            )
        return int(text)
    if hasattr(os, "sched_getaffinity"):  # not on Windows and macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_threads(work: Callable[[int], None], threads: int) -> None:
    """Calls ``work(0)`` … ``work(threads - 1)`` at the same time, BLAS at one thread each.

    Args:
        work: What to do, given the number of its thread. It must not call this function.
        threads: How many calls. The first is made by the calling thread.

    Raises:
        Exception: what ``work`` raised, after all calls have ended.
    """
    with _single_threaded_blas():
        futures = [_executor(threads).submit(work, n) for n in range(1, threads)]
        try:
            work(0)
        finally:
            # Also when work(0) failed: nobody may still write to the caller's arrays.
            errors = [future.exception() for future in futures]
        for error in errors:
            if error is not None:
                raise error


def _executor(threads: int) -> ThreadPoolExecutor:
    """Returns the pool, of at least ``threads - 1`` threads."""
    global _pool, _pool_size
    with _lock:
        if _pool is None or _pool_size < threads - 1:
            # A pool that is replaced ends by itself once its work is done.
            _pool_size = threads - 1
            _pool = ThreadPoolExecutor(_pool_size, thread_name_prefix="pydlshogi-network")
        return _pool


class _Blas:
    """The process's BLAS libraries, whose number of threads is one setting for everybody.

    Several threads may be inside at once: the first in saves the setting and the last
    out restores it. Were each to restore what it found, the one that came second would
    leave BLAS at one thread for good.
    """

    def __init__(self) -> None:
        # Looking for the libraries takes milliseconds, so it is done once.
        libraries = threadpoolctl.ThreadpoolController().select(user_api="blas")
        self._libraries = libraries.lib_controllers
        self._lock = threading.Lock()
        self._inside = 0
        self._saved: list[int] = []

    @contextlib.contextmanager
    def single_threaded(self) -> Iterator[None]:
        with self._lock:
            if self._inside == 0:
                self._saved = [library.get_num_threads() for library in self._libraries]
                for library in self._libraries:
                    library.set_num_threads(1)
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if self._inside == 0:
                    for library, number in zip(self._libraries, self._saved):
                        library.set_num_threads(number)


_blas: _Blas | None = None


def _single_threaded_blas() -> contextlib.AbstractContextManager[None]:
    """Holds BLAS to one thread while the context is open."""
    global _blas
    with _lock:
        if _blas is None:
            _blas = _Blas()
    return _blas.single_threaded()


class Workspace(threading.local):
    """Arrays that each thread keeps from call to call.

    A fresh array of some megabytes costs the system as much time to hand out, page by
    page, as it takes to fill.
    """

    def __init__(self) -> None:
        self._arrays: dict[str, Any] = {}

    def __call__(self, name: str, shape: tuple[int, ...]) -> Any:
        """Returns the thread's float32 array of a name; what it holds is undefined.

        Args:
            name: The same name gives the same memory.
            shape: Shape of the array.
        """
        size = int(numpy.prod(shape))
        array = self._arrays.get(name)
        if array is None or array.size < size:
            array = self._arrays[name] = numpy.empty(size, numpy.float32)
        return array[:size].reshape(shape)


def _after_fork() -> None:
    """A forked child has none of its parent's threads: it makes its own when it needs them."""
    global _lock, _pool, _pool_size, _blas
    _lock = threading.Lock()
    _pool, _pool_size, _blas = None, 0, None


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)
