"""The device that computes: asked for once, here.

A device is Chainer's own ``chainer.backend.Device``: ``device.xp`` is numpy or
cupy, ``device.send(x)`` moves arrays, ``device.use()`` makes it the current one.
"""

from __future__ import annotations

from typing import Any


class DeviceError(Exception):
    """The device asked for is not there; the text says why and what to do."""


def gpu_count() -> tuple[int, str]:
    """Counts the GPUs that CuPy can compute on.

    The driver itself is asked, since ``chainer.backends.cuda.available`` says only that
    CuPy could be imported; and something is computed, since a CuPy installed without
    CUDA's libraries finds GPUs too.

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
    if not count:
        return 0, "CUDA finds no GPU"
    from pydlshogi.compat import chainer

    try:
        chainer.backends.cuda.check_cuda_available()
        ones = cupy.ones((2, 2), dtype="float32")
        float((ones @ ones).sum())
    except Exception as error:  # whatever is missing, CUDA's own libraries included
        return 0, f"there is one, but CuPy cannot compute on it: {' '.join(str(error).split())}"
    return count, ""


def select_device(gpu: int | None = None) -> Any:
    """Chooses the device.

    Args:
        gpu: Number of the GPU; negative for the CPU; None for the first GPU where
            there is one, else the CPU.

    Returns:
        A ``chainer.backend.Device``, not yet made the current one.

    Raises:
        DeviceError: GPU ``gpu`` was asked for and cannot be used.
    """
    from pydlshogi.compat import chainer

    if gpu is not None and gpu < 0:
        return chainer.get_device("@numpy")
    count, reason = gpu_count()
    if gpu is None:
        return chainer.get_device("@cupy:0" if count else "@numpy")
    if gpu >= count:
        if count:
            reason = f"there are {count}, numbered from 0"
        raise DeviceError(f"GPU {gpu} cannot be used: {reason}. Choose --gpu -1 for the CPU.")
    return chainer.get_device(f"@cupy:{gpu}")
