"""The backends: what computes a network in play on a CPU.

==================  =================================================================
own                 this package's program (:mod:`pydlshogi.network.compiler`)
openvino_float32    OpenVINO (:mod:`pydlshogi.network.openvino_program`)
openvino_bfloat16   OpenVINO with numbers of 16 bits: faster, and less exact
auto                openvino_bfloat16 where it is installed and much faster, else own
==================  =================================================================

Chainer computes what the program of ``own`` cannot compute, and everything on a GPU.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Callable, Optional

import numpy

from pydlshogi.errors import UserError
from pydlshogi.network.compiler import compile_network
from pydlshogi.network.network import Network
from pydlshogi.network.openvino_program import OpenVINOError, OpenVINOProgram

AUTO, OWN = "auto", "own"
OPENVINO_FLOAT32, OPENVINO_BFLOAT16 = "openvino_float32", "openvino_bfloat16"

#: All backends: one word each, since GUIs cut the choices of an option at a space.
BACKENDS = AUTO, OWN, OPENVINO_FLOAT32, OPENVINO_BFLOAT16

#: Computes the outputs of a network, logits before values, from planes (n, plane_num, 9, 9)
#: float32. None stands for Chainer.
Forward = Optional[Callable[[numpy.ndarray], Sequence[numpy.ndarray]]]

#: ``auto`` chooses bfloat16 if it is so many times faster. Less would not repay its rounding.
_MUCH_FASTER = 1.5

#: Number of positions and of runs that ``auto`` compares. A search on a CPU has such batches.
_POSITIONS, _RUNS = 8, 5


class BackendError(UserError):
    """A backend cannot compute here.

    Args:
        name: The backend.
        reason: The reason.
    """

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"backend {name} cannot be used: {reason} Choose the backend auto or own.")


def make_forward(name: str, network: Network, device: Any) -> tuple[str, Forward]:
    """Makes the function that computes a network.

    Args:
        name: One of the table above.
        network: The network, on the CPU and folded for play. Its arrays must not change
            afterwards. OpenVINO uses as many threads as this package does now
            (:func:`pydlshogi.network.cpu.threads.get_threads`).
        device: The ``chainer.backend.Device`` that is to compute.

    Returns:
        The backend that computes, and its function.

    Raises:
        BackendError: ``name`` is a backend that cannot compute here.
    """
    if device.xp is not numpy:
        if name not in (AUTO, OWN):
            raise BackendError(name, "it computes on the CPU, and the device is a GPU.")
        return OWN, None
    if name == AUTO:
        own = compile_network(network)
        faster = _faster_bfloat16(network, own)
        return (OPENVINO_BFLOAT16, faster) if faster else (OWN, own)
    if name == OWN:
        return OWN, compile_network(network)
    return name, _openvino(name, network)


def _openvino(name: str, network: Network) -> Forward:
    """Makes the function of an OpenVINO backend.

    Raises:
        BackendError: OpenVINO cannot compute here.
    """
    try:
        return OpenVINOProgram(network, bfloat16=name == OPENVINO_BFLOAT16)
    except OpenVINOError as error:
        raise BackendError(name, str(error)) from None


def _faster_bfloat16(network: Network, own: Forward) -> Forward:
    """Makes the function of bfloat16 if it is much faster than our own, else None.

    A network without a program of our own may compute what no conversion knows.
    """
    if own is None:
        return None
    try:
        candidate = _openvino(OPENVINO_BFLOAT16, network)
    except BackendError:
        return None
    if _seconds(network, own) > _MUCH_FASTER * _seconds(network, candidate):
        return candidate
    return None


def _seconds(network: Network, forward: Any) -> float:
    """Measures a function.

    Returns:
        The least time of a few runs, in seconds. Other programs may slow down some of them.
    """
    planes = numpy.zeros((_POSITIONS, network.plane_num, 9, 9), numpy.float32)
    forward(planes)  # prepares its arrays
    times = []
    for _ in range(_RUNS):
        start = time.perf_counter()
        forward(planes)
        times.append(time.perf_counter() - start)
    return min(times)
