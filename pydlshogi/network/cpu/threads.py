"""The threads that compute the network on a CPU, and BLAS held to one thread each.

Many products of a few million operations each are faster and steadier on one thread
a product, with our threads working on different boards, than on BLAS's own threads.
numpy lets go of Python's global lock while it computes, so plain threads do.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable

import numpy
import threadpoolctl

#: Environment variable with the number of threads; :func:`set_threads` goes before it.
THREADS_VARIABLE = "PYDLSHOGI_THREADS"

#: Where a Linux container sees its control group's quota and period: version 2 in one file,
#: 1 in two. A group within the container, or of a machine's own, is elsewhere and not asked.
_QUOTAS = (
    ("/sys/fs/cgroup/cpu.max",),
    ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu/cpu.cfs_period_us"),
)

_lock = threading.Lock()
_chosen: int | None = None
_pool: ThreadPoolExecutor | None = None
_pool_size = 0
_blas: list[Any] | None = None


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
        else the number of processors that this process may use: those it is bound to, and
        no more than its container has time of (a Linux control group's quota).

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
        bound = len(os.sched_getaffinity(0))
    else:
        bound = os.cpu_count() or 1
    # More threads than that would be stopped all together whenever the time is used up.
    return max(1, int(min(bound, _quota())))


@functools.cache  # asked for by every layer
def _quota() -> float:
    """Reads how many processors' time the control group of a container has."""
    for files in _QUOTAS:
        try:
            words = " ".join(Path(file).read_text(encoding="ascii") for file in files).split()
            quota, period = map(float, words)
        except (OSError, ValueError):  # there is none, or no limit ("max")
            continue
        if quota > 0 and period > 0:  # -1 is no limit
            return quota / period
    return math.inf


def shares(n: int, number: int) -> list[tuple[int, int]]:
    """Divides 0 … n into ``number`` nearly equal ranges (start, stop), in order."""
    return [(n * k // number, n * (k + 1) // number) for k in range(number)]


def plan(n: int, least: int, most: int) -> list[list[tuple[int, int]]]:
    """Divides n boards among the threads, and each thread's boards among chunks.

    Args:
        n: Number of boards, at least 1.
        least: Fewer boards than this are not worth a thread of their own.
        most: Most boards of a chunk.

    Returns:
        For each thread its chunks (start, stop), in order.
    """
    threads = max(1, min(get_threads(), n // least))
    return [
        [(start + a, start + z) for a, z in shares(stop - start, -(-(stop - start) // most))]
        for start, stop in shares(n, threads)
    ]


def in_threads(threads: int, *steps: Callable[[int], None]) -> None:
    """Takes each step in all threads at once, one step after another.

    BLAS has one thread in each of them meanwhile. One call at a time computes; calls
    from other threads wait for it.

    Args:
        threads: How many threads, the calling one included.
        steps: What to do, given the number of its thread, 0 … ``threads`` - 1. A step
            begins in all threads when the step before it has ended in all. A step must
            not call this function, or it would wait for itself.

    Raises:
        Exception: what a step raised, after all threads have stopped.
    """
    barrier = threading.Barrier(threads)
    errors: list[BaseException] = []

    def take_steps(thread: int) -> None:
        try:
            for number, step in enumerate(steps):
                if number:
                    barrier.wait()
                step(thread)
        except threading.BrokenBarrierError:
            pass  # another thread has an error, and has kept it
        except BaseException as error:
            errors.append(error)
            barrier.abort()

    with blas_threads(1):
        try:
            futures = [_executor(threads).submit(take_steps, n) for n in range(1, threads)]
            take_steps(0)
            for future in futures:
                future.result()
        except BaseException:
            # No thread to be had, or an interrupt: those that have begun must not wait.
            barrier.abort()
            raise
    if errors:
        raise errors[0]


def _executor(threads: int) -> ThreadPoolExecutor:
    """Returns the pool, of at least ``threads - 1`` threads."""
    global _pool, _pool_size
    if _pool is None or _pool_size < threads - 1:
        # A pool that is replaced ends by itself.
        _pool_size = threads - 1
        _pool = ThreadPoolExecutor(_pool_size, thread_name_prefix="pydlshogi-network")
    return _pool


@contextlib.contextmanager
def blas_threads(number: int) -> Iterator[None]:
    """Holds BLAS to a number of threads, if it has more, while the context is open.

    The setting is one for the whole process, so one context at a time is open: were two
    to overlap, the one that closes last would restore what the other had set.
    """
    with _lock:
        saved = [(library, library.get_num_threads()) for library in _blas_libraries()]
        for library, threads in saved:
            library.set_num_threads(min(threads, number))
        try:
            yield
        finally:
            for library, threads in saved:
                library.set_num_threads(threads)


def limit_blas() -> None:
    """Gives BLAS no more threads than :func:`get_threads` tells, from now on.

    For what is not computed in our threads: Chainer's own functions.

    Raises:
        ValueError: as :func:`get_threads`.
    """
    number = get_threads()
    with _lock:
        for library in _blas_libraries():
            library.set_num_threads(min(library.get_num_threads(), number))


def _blas_libraries() -> list[Any]:
    """Finds the BLAS libraries of the process; looking for them takes milliseconds."""
    global _blas
    if _blas is None:
        _blas = threadpoolctl.ThreadpoolController().select(user_api="blas").lib_controllers
    return _blas


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
        size = math.prod(shape)
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
