"""Recordings: CUDA's graphs, which start many kernels with one call.

A training step has hundreds of kernels, and Python starts them one by one. With small batches, this
takes longer than the kernels. A recording starts all kernels of a function again without Python.

Recordings have not run on a real GPU yet. So the programs use them only if the environment variable
``PYDLSHOGI_RECORDING`` is 1. ``make gpu`` tests and measures them.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy

#: Environment variable: 1 turns recordings on.
VARIABLE = "PYDLSHOGI_RECORDING"

logger = logging.getLogger(__name__)

_state = threading.local()

_Result = TypeVar("_Result")


class Memory:
    """Memory of recordings on the current GPU.

    The result of one is valid until another one is called. Nothing else may use the pool, not even
    where an array was freed, because a recording will write there again.
    """

    def __init__(self) -> None:
        import cupy

        self.pool = cupy.cuda.MemoryPool()
        self.stream = cupy.cuda.Stream(non_blocking=True)


class Recording(Generic[_Result]):
    """A function of the GPU that is recorded in its second call, and then repeated.

    The first call compiles and loads the kernels. A recording repeats the same kernels on the same
    memory. So the function must

    - read its input from arrays that stay in place;
    - start the same kernels in each call: it draws no random numbers, and nothing on the CPU
      depends on what the GPU computes;
    - neither wait for the GPU nor copy between CPU and GPU.

    The function's result contains the arrays that it computes, and ``memory`` is the memory for
    them. Where CuPy or CUDA cannot record it, every call runs the function itself, and a warning
    says so. CuPy's own products of matrices cannot be recorded.
    """

    def __init__(self, function: Callable[[], _Result], memory: Memory) -> None:
        self._function = function
        self._memory = memory
        self._was_called = False
        self._may_record = True
        self._graph: Any = None
        self._result: Any = None

    @property
    def is_recorded(self) -> bool:
        """Whether calls repeat a recording."""
        return self._graph is not None

    def __call__(self) -> _Result:
        """Computes the result; the GPU may still compute when the call returns.

        Returns:
            What the function returned. Once there is a recording, these are the same arrays in
            each call, with new numbers.
        """
        if self._graph is None and self._was_called and self._may_record:
            self._record()
        self._was_called = True
        if self._graph is None:
            return self._function()
        self._graph.launch()
        return self._result  # type: ignore[no-any-return]

    def _record(self) -> None:
        import cupy

        stream = self._memory.stream
        try:
            # The first call may have used as much memory as the recording needs.
            cupy.get_default_memory_pool().free_all_blocks()
            with cupy.cuda.using_allocator(self._memory.pool.malloc), stream:
                stream.begin_capture()
                _state.records = True
                try:
                    result = self._function()
                except BaseException:
                    with contextlib.suppress(RuntimeError):
                        stream.end_capture()
                    raise
                finally:
                    _state.records = False
                graph = stream.end_capture()
        # CuPy's errors of CUDA and cuBLAS are RuntimeErrors, and so is NotImplementedError.
        except (RuntimeError, MemoryError) as error:
            logger.warning("the GPU's work cannot be recorded: %s: %s", type(error).__name__, error)
            self._may_record = False
        else:
            self._graph, self._result = graph, result


def is_recording() -> bool:
    """Says whether this thread records."""
    return getattr(_state, "records", False)


def is_wanted() -> bool:
    """Says whether the user wants recordings."""
    return os.environ.get(VARIABLE) == "1"


def can_record(network: Any, device: Any) -> bool:
    """Says whether the work for a network on a ``chainer.backend.Device`` is to be recorded.

    A user's network may draw random numbers, as for dropout, which a recording would repeat.
    """
    is_ours = type(network).__module__.startswith(f"{__package__.partition('.')[0]}.")
    return is_wanted() and device.xp is not numpy and is_ours
