"""The batches of a search: how many positions, and how many batches at a time."""

from __future__ import annotations

from typing import Any

import numpy

from pydlshogi.inference.backend import OPENVINO_BFLOAT16, OPENVINO_INT8, OWN
from pydlshogi.layers.cpu.threads import get_threads

#: Positions for each thread of a CPU, and most positions on a CPU. A thread is as fast with 4
#: positions as with more. A search with larger batches selects more leaves before it knows the
#: values of the others.
_THREAD_BATCH, _CPU_BATCH = 4, 16

#: The backends that are so fast that the search itself takes a large part of the time.
_FAST_BACKENDS = OPENVINO_BFLOAT16, OPENVINO_INT8

#: Their numbers of positions. With two threads, a search in int8 makes a fifth more visits with 16
#: positions than with 8 (benchmarks/RESULTS.md, "Backends").
_FAST_THREAD_BATCH, _FAST_CPU_BATCH = 8, 32

#: Positions on a GPU.
_GPU_BATCH = 128


def default_batch_size(device: Any, backend: str = OWN) -> int:
    """Returns the number of positions in a batch that suits a device, and on a CPU the backend."""
    if _is_gpu(device):
        return _GPU_BATCH
    if backend in _FAST_BACKENDS:
        return min(_FAST_THREAD_BATCH * get_threads(), _FAST_CPU_BATCH)
    return min(_THREAD_BATCH * get_threads(), _CPU_BATCH)


def default_batches(device: Any, backend: str = OWN) -> int:
    """Returns the number of pending batches: with 2, one is computed while the next is collected.

    This helps if the network is fast, because the search then takes much of the time. With one
    thread there is one batch: the user wants only one busy core.
    """
    is_fast = backend in _FAST_BACKENDS and get_threads() > 1
    return 2 if _is_gpu(device) or is_fast else 1


def _is_gpu(device: Any) -> bool:
    return device.xp is not numpy
