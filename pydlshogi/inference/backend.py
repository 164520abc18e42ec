"""The backends: what computes a network in play on a CPU.

==================  =================================================================
own                 this package's program (:mod:`pydlshogi.inference.compiler`)
openvino_float32    OpenVINO (:mod:`pydlshogi.inference.openvino_program`)
openvino_bfloat16   OpenVINO with numbers of 16 bits: faster, and less exact
openvino_int8       OpenVINO with numbers of 8 bits in most convolutions: still faster
auto                openvino_int8 or openvino_bfloat16 where it is much faster, else own
==================  =================================================================

Chainer computes what the program of ``own`` cannot compute, and everything on a GPU. There, ``own``
can record it (:mod:`pydlshogi.layers.gpu.recording`).

The choice of ``auto`` and OpenVINO's compiled networks are kept in the folder of the environment
variable ``PYDLSHOGI_CACHE``, else in ``pydlshogi`` in the system's folder for caches. Whatever is
missing, damaged or not writable there is passed over.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import math
import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Callable, Optional

import numpy

from pydlshogi.errors import UserError
from pydlshogi.files import write_beside
from pydlshogi.inference.compiler import compile_network
from pydlshogi.inference.gpu_forward import Forward
from pydlshogi.inference.openvino_program import (
    BFLOAT16,
    FLOAT32,
    INT8,
    OpenVINOError,
    OpenVINOProgram,
)
from pydlshogi.layers.cpu.threads import get_threads
from pydlshogi.layers.gpu.recording import can_record
from pydlshogi.network.network import Network

AUTO, OWN = "auto", "own"
OPENVINO_FLOAT32, OPENVINO_BFLOAT16 = "openvino_float32", "openvino_bfloat16"
OPENVINO_INT8 = "openvino_int8"

_PRECISIONS = {OPENVINO_FLOAT32: FLOAT32, OPENVINO_BFLOAT16: BFLOAT16, OPENVINO_INT8: INT8}

#: All backends: one word each, since GUIs cut the choices of an option at a space.
BACKENDS = AUTO, OWN, *_PRECISIONS

#: Computes the outputs of a network, logits before values, from planes (n, plane_num, 9, 9)
#: float32. None stands for Chainer.
Compute = Optional[Callable[[numpy.ndarray], Sequence[numpy.ndarray]]]

#: ``auto`` chooses bfloat16 or int8 only if it is so many times faster than our own program. If it
#: has chosen bfloat16, int8 must be so many times faster than that. Less would not repay the
#: rounding.
_MUCH_FASTER, _FASTER = 1.5, 1.2

#: Number of positions that ``auto`` gives to each backend. A search on a CPU has such batches.
_POSITIONS = 8

#: Largest and smallest number of runs of each backend. After some seconds, no further ones begin.
#: With 5 runs on a busy computer, ``auto`` sometimes chose a backend of half the speed.
_RUNS, _LEAST_RUNS, _SECONDS = 16, 5, 1.0


class BackendError(UserError):
    """A backend cannot compute here."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"backend {name} cannot be used: {reason} Choose the backend auto or own.")


def make_forward(name: str, network: Network, device: Any) -> tuple[str, Compute]:
    """Makes the function that computes a network, and names the backend that does so.

    Args:
        name: One of the table above.
        network: The network, on the CPU and folded for play; it must not change afterwards.
        device: The ``chainer.backend.Device`` that is to compute.

    Raises:
        BackendError: ``name`` is a backend that cannot compute here.
    """
    if device.xp is not numpy:
        if name not in (AUTO, OWN):
            raise BackendError(name, "it computes on the CPU, and the device is a GPU.")
        return OWN, Forward(network) if can_record(network, device) else None
    if name == AUTO:
        return _fastest(network)
    if name == OWN:
        return OWN, _own(network)
    return name, _openvino(name, network)


def _own(network: Network) -> Compute:
    """Makes the function of our own program; an earlier process may have checked it."""
    is_checked = recall(network, OWN) is not None
    program = compile_network(network, is_checked)
    if program and not is_checked:
        remember(network, OWN, b"checked")
    return program


def _openvino(name: str, network: Network) -> Compute:
    """Makes the function of an OpenVINO backend."""
    try:
        compiled = recall(network, name)
        if compiled:
            with contextlib.suppress(OpenVINOError):
                return OpenVINOProgram(compiled, _PRECISIONS[name])
        program = OpenVINOProgram(network, _PRECISIONS[name])
        remember(network, name, program.compiled())
        return program
    except OpenVINOError as error:
        raise BackendError(name, str(error)) from None


def _fastest(network: Network) -> tuple[str, Compute]:
    """Chooses the backend that is much faster than the more exact ones, and makes its function.

    The choice of an earlier process is kept.
    """
    remembered = (recall(network, AUTO) or b"").decode(errors="replace")
    if remembered in _PRECISIONS:
        with contextlib.suppress(BackendError):
            return remembered, _openvino(remembered, network)
    own = compile_network(network, remembered == OWN)
    if own is None:  # the network may compute what no conversion knows
        return OWN, None
    if remembered == OWN:
        return OWN, own
    candidates: dict[str, Any] = {OWN: own}
    for name in (OPENVINO_BFLOAT16, OPENVINO_INT8):
        try:
            candidates[name] = _openvino(name, network)
        except BackendError:
            continue
    seconds = _measure(network, candidates)
    chosen, limit = OWN, seconds[OWN] / _MUCH_FASTER
    for name in candidates:
        if seconds[name] < limit:
            chosen, limit = name, seconds[name] / _FASTER
    remember(network, AUTO, chosen.encode())
    return chosen, candidates[chosen]


def _measure(network: Network, candidates: dict[str, Any]) -> dict[str, float]:
    """Measures functions in turns: other programs slow down some runs, and all candidates alike.

    Returns:
        The least time of a run, in seconds.
    """
    planes = numpy.zeros((_POSITIONS, network.plane_num, 9, 9), numpy.float32)
    for forward in candidates.values():
        _seconds(forward, planes)  # the first run prepares its arrays
    seconds = dict.fromkeys(candidates, math.inf)
    end = time.perf_counter() + _SECONDS
    for number in range(_RUNS):
        if number >= _LEAST_RUNS and time.perf_counter() > end:
            break
        for name, forward in candidates.items():
            seconds[name] = min(seconds[name], _seconds(forward, planes))
    return seconds


def _seconds(forward: Any, planes: numpy.ndarray) -> float:
    """Measures a run of a function, in seconds."""
    start = time.perf_counter()
    forward(planes)
    return time.perf_counter() - start


#: The folder, if the user names one.
VARIABLE = "PYDLSHOGI_CACHE"

#: Most files that are kept, the newest.
_MOST_FILES = 24

#: Packages whose versions count.
_PACKAGES = ("numpy", "openvino", "onnx", "chainer")

#: Packages with known classes of links.
_KNOWN = "pydlshogi", "chainer"

_DIGEST_BYTES = hashlib.sha256().digest_size


def recall(network: Network, subject: str) -> bytes | None:
    """Returns what :func:`remember` has stored; None if there is nothing of use."""
    with contextlib.suppress(OSError, RuntimeError, KeyError):  # there may be no home folder
        stored = _path(network, subject).read_bytes()
        content = stored[_DIGEST_BYTES:]
        if stored[:_DIGEST_BYTES] == hashlib.sha256(content).digest():
            return content
    return None


def remember(network: Network, subject: str, content: bytes) -> None:
    """Stores what :func:`recall` is to return for a network, as it is computed, and a subject.

    It holds on a processor of the same kind, with the same versions and number of threads. Nothing
    is stored for a network with a class of the user's, whose code may change.
    """
    if any(type(link).__module__.split(".")[0] not in _KNOWN for link in network.links()):
        return
    with contextlib.suppress(OSError, RuntimeError, KeyError):
        path = _path(network, subject)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with write_beside(path) as file:
            file.write(hashlib.sha256(content).digest() + content)
        files = sorted(path.parent.glob("network-*"), key=lambda file: file.stat().st_mtime)
        for old in files[:-_MOST_FILES]:
            old.unlink()


def _path(network: Network, subject: str) -> Path:
    """Returns the path of a file, whose name says what it depends on."""
    name = f"{type(network).__module__}.{type(network).__qualname__}"
    digest = hashlib.sha256(f"{subject} {name} {get_threads()} ".encode())
    digest.update(_surroundings())
    for name, parameter in sorted(network.namedparams()):
        digest.update(name.encode() + numpy.asarray(parameter.array).tobytes())
    return _folder() / f"network-{digest.hexdigest()[:32]}"


def _folder() -> Path:
    if os.environ.get(VARIABLE):
        return Path(os.environ[VARIABLE])
    home = Path.home()
    if platform.system() == "Windows":
        return Path(os.environ.get("LOCALAPPDATA") or home) / "pydlshogi"
    if platform.system() == "Darwin":
        return home / "Library" / "Caches" / "pydlshogi"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "pydlshogi"


@functools.cache
def _surroundings() -> bytes:
    """Returns what names the processor, the versions, and the code that converts networks."""
    words = [platform.machine(), platform.processor(), platform.python_version()]
    with contextlib.suppress(OSError):  # Linux
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        words += sorted({line for line in lines if line.startswith(("model name", "flags"))})
    for package in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            words.append(importlib.metadata.version(package))
    root = Path(__file__).parents[1]
    rooms = "inference", "layers", "model_files", "network"
    sources = [path for room in rooms for path in root.glob(f"{room}/**/*.py")]
    return "\n".join(words).encode() + b"".join(path.read_bytes() for path in sorted(sources))
