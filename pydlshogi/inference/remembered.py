"""What an earlier process has found out about a network, in a folder of the user.

The folder is that of the environment variable ``PYDLSHOGI_CACHE``, else ``pydlshogi`` in the
system's folder for caches. Whatever is missing, damaged or not writable there is passed over.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import os
import platform
from pathlib import Path

import numpy

from pydlshogi.files import write_beside
from pydlshogi.layers.cpu.threads import get_threads
from pydlshogi.network.network import Network

#: The folder, if the user names one.
VARIABLE = "PYDLSHOGI_CACHE"

#: Most files that are kept, the newest.
_MOST_FILES = 24

#: Packages whose versions count.
_PACKAGES = ("numpy", "openvino", "onnx", "chainer")

_DIGEST_BYTES = hashlib.sha256().digest_size


def recall(network: Network, subject: str) -> bytes | None:
    """Returns what :func:`remember` has stored; None if there is nothing of use."""
    with contextlib.suppress(OSError):
        stored = _path(network, subject).read_bytes()
        content = stored[_DIGEST_BYTES:]
        if stored[:_DIGEST_BYTES] == hashlib.sha256(content).digest():
            return content
    return None


def remember(network: Network, subject: str, content: bytes) -> None:
    """Stores something about a network.

    Args:
        network: The network, as it is computed.
        subject: What it is.
        content: What :func:`recall` is to return for this network and subject, on a processor of
            the same kind, with the same versions and the same number of threads.
    """
    with contextlib.suppress(OSError):
        path = _path(network, subject)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with write_beside(path) as file:
            file.write(hashlib.sha256(content).digest() + content)
        files = sorted(path.parent.glob("network-*"), key=lambda file: file.stat().st_mtime)
        for old in files[:-_MOST_FILES]:
            old.unlink()


def _path(network: Network, subject: str) -> Path:
    """Returns the path of a file, whose name says what it depends on."""
    digest = hashlib.sha256(f"{subject} {type(network).__name__} {get_threads()} ".encode())
    digest.update(_surroundings())
    for name, parameter in sorted(network.namedparams()):
        digest.update(name.encode() + numpy.asarray(parameter.array).tobytes())
    return _folder() / f"network-{digest.hexdigest()[:32]}"


def _folder() -> Path:
    home = Path.home()
    if os.environ.get(VARIABLE):
        return Path(os.environ[VARIABLE])
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
    room = Path(__file__).parent
    sources = [*room.glob("*.py"), *room.with_name("model_files").glob("onnx_*.py")]
    return "\n".join(words).encode() + b"".join(path.read_bytes() for path in sorted(sources))
