"""The batches of a search: how many positions, and how many batches at a time."""

from __future__ import annotations

from typing import Any

import numpy

from pydlshogi.network.cpu.threads import get_threads

#: Positions for each thread of a CPU, most positions on a CPU, and positions on a GPU. A thread is
#: as fast with 4 positions as with more. A search with larger batches chooses worse moves, because
#: it selects more leaves before it knows the values of the others.
_THREAD_BATCH, _CPU_BATCH, _GPU_BATCH = 4, 16, 128


def default_batch_size(device: Any) -> int:
    """Returns the number of positions in a batch that suits a device.

    Args:
        device: The ``chainer.backend.Device`` that computes the network.
    """
    return _GPU_BATCH if _is_gpu(device) else min(_THREAD_BATCH * get_threads(), _CPU_BATCH)


def default_batches(device: Any) -> int:
    """Returns the number of pending batches: on a GPU, it computes one while the next is collected.

    Args:
        device: As for :func:`default_batch_size`.
    """
    return 2 if _is_gpu(device) else 1


def _is_gpu(device: Any) -> bool:
    return device.xp is not numpy
