"""The processors that this process may use."""

from __future__ import annotations

import functools
import math
import os
from pathlib import Path
from typing import Any

from pydlshogi.errors import UserError

#: Environment variable with the number of threads that compute the network on a CPU.
THREADS_VARIABLE = "PYDLSHOGI_THREADS"

#: Most threads that a user may ask for. Each takes memory, and no machine gains by more.
MOST_THREADS = 512

#: Files with the CPU quota and period of a Linux container: control groups version 2 have
#: one file, version 1 has two. Other control groups have other files and are not read.
_QUOTAS = (
    ("/sys/fs/cgroup/cpu.max",),
    ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu/cpu.cfs_period_us"),
)


class ThreadsError(UserError, ValueError):
    """The environment variable ``PYDLSHOGI_THREADS`` is not a number of threads."""


def threads_of_environment() -> int | None:
    """Returns the number of threads that ``PYDLSHOGI_THREADS`` gives; None if it is not set.

    Raises:
        ThreadsError: it is not a whole number from 1 to ``MOST_THREADS``.
    """
    text = os.environ.get(THREADS_VARIABLE, "").strip()
    if not text:
        return None
    if not text.isdecimal() or not 1 <= int(text) <= MOST_THREADS:
        raise ThreadsError(
            f"environment variable {THREADS_VARIABLE} is {text!r}. "
            f"Set it to a number of threads from 1 to {MOST_THREADS}, or unset it."
        )
    return int(text)


def has_avx2() -> bool:
    """Says whether the processor can run programs compiled for AVX2; True if that is not known."""
    import numpy

    core: Any = numpy._core if hasattr(numpy, "_core") else numpy.core
    features = getattr(core._multiarray_umath, "__cpu_features__", {})
    return features.get("AVX2", True)


def processors() -> int:
    """Returns how many processors this process may use.

    The process's CPU affinity and the quota of its container limit the number.
    """
    if hasattr(os, "sched_getaffinity"):  # not on Windows and macOS
        bound = len(os.sched_getaffinity(0))
    else:
        bound = os.cpu_count() or 1
    # With more threads, the system would stop all of them whenever the quota is used up.
    return max(1, int(min(bound, _quota())))


@functools.cache  # every layer calls it
def _quota() -> float:
    """Reads the CPU quota of a container, in processors; infinity without a quota."""
    for files in _QUOTAS:
        try:
            words = " ".join(Path(file).read_text(encoding="ascii") for file in files).split()
            quota, period = map(float, words)
        except (OSError, ValueError):  # no such file, or no limit ("max")
            continue
        if quota > 0 and period > 0:  # -1 means no limit
            return quota / period
    return math.inf
