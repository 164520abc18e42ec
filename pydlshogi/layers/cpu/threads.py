"""The threads that compute the network on a CPU; BLAS uses one thread in each of them.

A layer is many products of a few million operations each. One thread a product is faster
and steadier than BLAS's own threads on each product. numpy releases Python's global lock
while it computes, so ordinary threads run in parallel.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Callable

import numpy
import threadpoolctl

from pydlshogi.processors import processors, threads_of_environment

_lock = threading.Lock()
_chosen: int | None = None
_pool: ThreadPoolExecutor | None = None
_pool_size = 0
_blas: list[Any] | None = None


def set_threads(number: int | None) -> None:
    """Chooses how many threads, at least 1, compute a layer on the CPU; None for the default.

    With the same number, two runs are bitwise equal. With another one, they differ by rounding.
    """
    global _chosen
    if number is not None and number < 1:
        raise ValueError(f"number of threads {number} must be at least 1")
    _chosen = number


def get_threads() -> int:
    """Returns the number of :func:`set_threads`, of ``PYDLSHOGI_THREADS``, or of processors.

    It raises ThreadsError if ``PYDLSHOGI_THREADS`` is no such number.
    """
    return _chosen or threads_of_environment() or processors()


def shares(n: int, number: int) -> list[tuple[int, int]]:
    """Divides 0 … n into ``number`` nearly equal ranges (start, stop), in order."""
    return [(n * k // number, n * (k + 1) // number) for k in range(number)]


def plan(n: int, least: int, most: int) -> list[list[tuple[int, int]]]:
    """Divides n boards among the threads: for each, its chunks (start, stop) in order.

    A thread has ``least`` boards or more, a chunk at most ``most``.
    """
    threads = max(1, min(get_threads(), n // least))
    return [
        [(start + a, start + z) for a, z in shares(stop - start, -(-(stop - start) // most))]
        for start, stop in shares(n, threads)
    ]


def in_threads(threads: int, *steps: Callable[[int], None]) -> None:
    """Runs steps one after another, each in all threads at once, the calling one included.

    BLAS uses one thread in each of them meanwhile. Only one call runs at a time; calls from
    other threads wait. The error of a step is raised after all threads have stopped.

    Args:
        threads: Number of threads.
        steps: Functions of the thread's number, 0 … ``threads`` - 1. A step starts when all
            threads have finished the step before. A step must not call this function: it
            would wait for itself.
    """
    barrier = _Barrier(threads)
    errors: list[BaseException] = []
    futures: list[Future[None]] = []

    def take_steps(thread: int) -> None:
        try:
            for number, step in enumerate(steps):
                if number:
                    barrier.wait(thread, number)
                step(thread)
        except threading.BrokenBarrierError:
            pass  # another thread failed and stored its error
        except BaseException as error:
            errors.append(error)
            barrier.abort()

    with blas_threads(1):
        try:
            for thread in range(1, threads):
                futures.append(_executor(threads).submit(take_steps, thread))
            take_steps(0)
            for future in futures:
                future.result()
        except BaseException:
            # The system gave no thread, or Ctrl-C: threads that have started must not wait. Their
            # arrays may be used again as soon as this function ends.
            barrier.abort()
            wait(futures)
            raise
    if errors:
        raise errors[0]


class _Barrier:
    """``threading.Barrier`` for one group of threads, in less than half the time.

    It is a dissemination barrier: in round r, each thread opens a gate of the thread 2^r places
    further, and passes its own gate. After the last round, each thread has heard, directly or
    through others, that all have arrived. The threads share no lock, so none holds up another.

    Each round has two gates a thread, used in turn. So a fast thread never opens a gate that
    the other has yet to pass.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._rounds = (threads - 1).bit_length()
        self._gates = [
            [[_closed() for _ in range(threads)] for _ in range(self._rounds)] for _ in range(2)
        ]
        self._broken = False

    def wait(self, thread: int, number: int) -> None:
        """Waits for the other threads; ``number`` is how often this thread has waited before."""
        for r, gates in enumerate(self._gates[number % 2]):
            _open(gates[(thread + 2**r) % self._threads])
            gates[thread].acquire()
            if self._broken:
                raise threading.BrokenBarrierError

    def abort(self) -> None:
        """Lets all threads raise an error, now or when they arrive."""
        self._broken = True
        for rounds in self._gates:
            for gates in rounds:
                for gate in gates:
                    _open(gate)


def _closed() -> Any:
    """Returns a gate: a thread that acquires it waits until another thread releases it."""
    gate = threading.Lock()
    gate.acquire()
    return gate


def _open(gate: Any) -> None:
    """Opens a gate. It is open already only if the barrier was aborted meanwhile."""
    with contextlib.suppress(RuntimeError):
        gate.release()


def _executor(threads: int) -> ThreadPoolExecutor:
    """Returns the pool, which has at least ``threads - 1`` threads."""
    global _pool, _pool_size
    if _pool is None or _pool_size < threads - 1:
        # The old pool ends by itself.
        _pool_size = threads - 1
        _pool = ThreadPoolExecutor(_pool_size, thread_name_prefix="pydlshogi-network")
    return _pool


@contextlib.contextmanager
def blas_threads(number: int) -> Iterator[None]:
    """Limits the threads of BLAS while the context is open.

    The setting belongs to the whole process, so only one context is open at a time. If two
    overlapped, the last to close would restore the setting of the other.
    """
    with _lock:
        saved = [(library, library.get_num_threads()) for library in _blas_libraries()]
        for library, threads in saved:
            _set_blas_threads(library, min(threads, number))
        try:
            yield
        finally:
            for library, threads in saved:
                _set_blas_threads(library, threads)


def limit_blas() -> None:
    """Limits BLAS to :func:`get_threads`, for Chainer's own functions."""
    number = get_threads()
    with _lock:
        for library in _blas_libraries():
            _set_blas_threads(library, min(library.get_num_threads(), number))


def compute_with(number: int) -> None:
    """Sets the number of threads, at least 1, of our threads and of BLAS without them.

    It waits until a computation in our threads has ended, which would restore BLAS's number.
    """
    set_threads(number)
    with _lock:
        for library in _blas_libraries():
            _set_blas_threads(library, number)


def _set_blas_threads(library: Any, number: int) -> None:
    """Sets the number of threads of a BLAS library, from any thread.

    threadpoolctl obeys only the first thread that calls it, and ignores the others without
    an error. The search computes the network in another thread than the one that loads it.
    """
    release = getattr(library, "clear_controlling_thread", None)  # since threadpoolctl 3.8
    if release:
        release(force=True)
    library.set_num_threads(number)
    if release:
        release(force=True)


def _blas_libraries() -> list[Any]:
    """Returns the BLAS libraries of the process; the first search takes milliseconds."""
    global _blas
    if _blas is None:
        _blas = threadpoolctl.ThreadpoolController().select(user_api="blas").lib_controllers
    return _blas


class Workspace(threading.local):
    """Arrays that each thread keeps from call to call.

    For a new array of some megabytes, the system takes as long to provide the memory as the
    program takes to fill it.
    """

    def __init__(self) -> None:
        self._arrays: dict[str, Any] = {}

    def __call__(self, name: str, shape: tuple[int, ...]) -> Any:
        """Returns the thread's float32 memory of a name in a shape; its content is undefined."""
        size = math.prod(shape)
        array = self._arrays.get(name)
        if array is None or array.size < size:
            array = self._arrays[name] = numpy.empty(size, numpy.float32)
        return array[:size].reshape(shape)


def _after_fork() -> None:
    """Resets the state in a forked process, which has none of its parent's threads."""
    global _lock, _pool, _pool_size, _blas
    _lock = threading.Lock()
    _pool, _pool_size, _blas = None, 0, None


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)
