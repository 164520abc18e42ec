"""Child process: prints the versions of the GPU, CUDA and the packages.

    python -m pydlshogi.gpu_check.machine GPU

Each line is ``item<TAB>text``. GPU is a number, or -1 for the CPU.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import sys
from typing import Any

#: Packages whose versions are printed.
_PACKAGES = ("cupy-cuda12x", "cupy-cuda13x", "cupy", "chainer", "numpy", "python-shogi", "cshogi")


def main() -> int:
    """Prints the lines; returns the exit status."""
    print(f"system\t{platform.platform()}, {os.cpu_count()} processors")
    print(f"packages\tPython {platform.python_version()}, {', '.join(_versions())}")
    if int(sys.argv[1]) >= 0:
        _print_gpu()
    return 0


def _versions() -> list[str]:
    found = []
    for name in _PACKAGES:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _print_gpu() -> None:
    import cupy

    from pydlshogi.device import select_device

    select_device(0)  # computes something
    properties = cupy.cuda.runtime.getDeviceProperties(0)
    runtime = cupy.cuda.runtime
    print(
        f"GPU\t{properties['name'].decode()}, compute capability "
        f"{properties['major']}.{properties['minor']}, "
        f"{properties['totalGlobalMem'] / 2**30:.1f} GiB, {properties['multiProcessorCount']} SM"
    )
    print(
        f"CUDA\tdriver {runtime.driverGetVersion()}, runtime {runtime.runtimeGetVersion()}, "
        f"NVRTC {'.'.join(map(str, cupy.cuda.nvrtc.getVersion()))}"
    )
    _print_details(cupy)


def _print_details(cupy: Any) -> None:
    """Prints what may help to explain a failure; nothing depends on it."""
    try:
        cupy.show_config()
        subprocess.run(["nvidia-smi"], check=False, timeout=10)
    except Exception as error:  # the computation above has succeeded
        print(f"no more details: {error}")


if __name__ == "__main__":
    sys.exit(main())
