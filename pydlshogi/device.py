"""The choice of the device: the CPU or a GPU.

A device is a ``chainer.backend.Device``: ``device.xp`` is numpy or cupy,
``device.send(x)`` copies arrays to it, ``device.use()`` makes it the current device.
"""

from __future__ import annotations

import logging
import os
import tempfile
from pathlib import Path
from typing import Any

from pydlshogi.errors import UserError

logger = logging.getLogger(__name__)

_ON_WINDOWS = os.name == "nt"


class DeviceError(UserError):
    """The requested GPU cannot be used.

    Attributes:
        reason: Why it cannot be used, in words.
    """

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(f"GPU {number} cannot be used: {reason}. Choose GPU -1 for the CPU.")
        self.reason = reason


def gpu_count() -> tuple[int, str]:
    """Counts the GPUs that CUDA's driver finds; returns also the reason in words if it is 0."""
    try:
        import cupy
    except ImportError:
        return (
            0,
            'CuPy is not installed (python -m pip install "cupy-cuda12x[ctk]"; see docs/gpu.md)',
        )
    except Exception as error:  # a broken driver fails in many ways at import
        return 0, f"CuPy cannot be imported: {_in_one_line(error)}"
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # CUDARuntimeError without a driver; others if CuPy is damaged
        return 0, f"CUDA finds no GPU: {_in_one_line(error)}"
    return count, "" if count else "CUDA finds no GPU"


def select_device(gpu: int | None = None) -> Any:
    """Chooses a ``chainer.backend.Device``, which is not made the current device.

    Args:
        gpu: Number of the GPU; negative: the CPU; None: the first GPU, or the CPU if there
            is none. If the first GPU cannot be used, a warning is logged.

    Raises:
        DeviceError: The requested GPU cannot be used.
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
    """Returns the name of a ``chainer.backend.Device``: ``CPU``, ``GPU 0`` and so on."""
    name = str(device.name)
    return f"GPU {name.partition(':')[2]}" if name.startswith("@cupy:") else "CPU"


def _complaint(number: int) -> str:
    """Says why CuPy cannot compute on a GPU; empty if it can.

    CuPy also finds GPUs when the libraries of CUDA are missing, so it computes something.
    """
    import cupy

    from pydlshogi.compat import chainer

    try:
        chainer.backends.cuda.check_cuda_available()
        with cupy.cuda.Device(number):
            ones = cupy.ones((2, 2), dtype="float32")
            float((ones @ ones).sum())
    except Exception as error:  # its type depends on what is missing
        # A full GPU can be used: training on the CPU would take days. The program reports the
        # lack of memory when it copies the network to the GPU.
        if type(error).__name__ == "OutOfMemoryError":
            return ""
        return f"CuPy cannot compute on it: {_in_one_line(error)}{_path_advice()}"
    return ""


def _path_advice() -> str:
    """Says that paths outside ASCII are a possible cause; empty if there are none, or not here.

    CuPy gives the compiler of CUDA (NVRTC) paths in UTF-8, but on Windows it reads another encoding
    (https://github.com/cupy/cupy/issues/7581).
    """
    import cupy

    paths = [str(Path(getattr(cupy, "__file__", None) or "").parent), tempfile.gettempdir()]
    odd = [path for path in paths if not path.isascii()]
    if not (_ON_WINDOWS and odd):
        return ""
    return (
        f". CUDA's compiler may not read the path {odd[0]}: use folders of ASCII characters for "
        "the environment and for TEMP, such as C:\\pydlshogi"
    )


def _in_one_line(error: Exception) -> str:
    return " ".join(str(error).split())
