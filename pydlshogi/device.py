"""The device that computes: asked for once, here.

A device is Chainer's own ``chainer.backend.Device``: ``device.xp`` is numpy or
cupy, ``device.send(x)`` moves arrays, ``device.use()`` makes it the current one.
"""

from __future__ import annotations

import logging
from typing import Any

from pydlshogi.errors import UserError

logger = logging.getLogger(__name__)


class DeviceError(UserError):
    """The GPU asked for cannot be used; the text says why and what to do.

    Args:
        number: The GPU's.
        reason: Why it cannot be used, a clause in words.

    Attributes:
        reason: The same.
    """

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(f"GPU {number} cannot be used: {reason}. Choose --gpu -1 for the CPU.")
        self.reason = reason


def gpu_count() -> tuple[int, str]:
    """Counts the GPUs that CUDA finds.

    ``chainer.backends.cuda.available`` says only that CuPy could be imported, so
    the driver itself is asked.

    Returns:
        The number of GPUs, and where it is 0 the reason in words.
    """
    try:
        import cupy
    except ImportError:
        return 0, "CuPy is not installed (see GPU in README.md)"
    except Exception as error:  # a broken driver fails in many ways at import
        return 0, f"CuPy cannot be imported: {error}"
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return 0, f"CUDA finds no GPU: {error}"
    return count, "" if count else "CUDA finds no GPU"


def select_device(gpu: int | None = None) -> Any:
    """Chooses the device.

    Args:
        gpu: Number of the GPU; negative for the CPU; None for the first GPU where CuPy
            can compute on it, else the CPU. A warning is logged where there is a GPU,
            and CuPy cannot compute on the first.

    Returns:
        A ``chainer.backend.Device``, not yet made the current one.

    Raises:
        DeviceError: GPU ``gpu`` was asked for and cannot be used.
    """
    from pydlshogi.compat import chainer

    if gpu is not None and gpu < 0:
        return chainer.get_device("@numpy")
    count, reason = gpu_count()
    number = gpu or 0
    if number < count:
        reason = _complaint(number)
        if not reason:
            return chainer.get_device(f"@cupy:{number}")
        if gpu is None:
            logger.warning("the GPU is not used: %s", reason)
    elif count:
        reason = f"there are {count}, numbered from 0"
    if gpu is not None:
        raise DeviceError(gpu, reason)
    return chainer.get_device("@numpy")


def in_words(device: Any) -> str:
    """Names a ``chainer.backend.Device`` for people: ``CPU``, or ``GPU 0`` and so on."""
    name = str(device.name)
    return f"GPU {name.partition(':')[2]}" if name.startswith("@cupy:") else "CPU"


def _complaint(number: int) -> str:
    """Says why CuPy cannot compute on a GPU; nothing where it can.

    A CuPy that was installed without CUDA's libraries finds GPUs too.
    """
    import cupy

    from pydlshogi.compat import chainer

    try:
        chainer.backends.cuda.check_cuda_available()
        with cupy.cuda.Device(number):
            ones = cupy.ones((2, 2), dtype="float32")
            float((ones @ ones).sum())
    except Exception as error:  # whatever is missing, CUDA's own libraries included
        # A GPU that others have filled is no reason to train on a CPU for days: that it is
        # full will be said when the network is moved there.
        if type(error).__name__ == "OutOfMemoryError":
            return ""
        return f"CuPy cannot compute on it: {' '.join(str(error).split())}"
    return ""
