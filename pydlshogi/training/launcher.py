"""What mpiexec or srun tells the processes that it starts.

This module imports nothing heavy: a wrong command line is reported once, and at once.
"""

from __future__ import annotations

import contextlib
import os
import traceback
from collections.abc import Iterator
from typing import Callable

# What launchers tell a process: MPICH, Intel MPI and MS-MPI; Open MPI; srun.
_SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")
_RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")


def launched() -> tuple[int, int]:
    """Returns the rank and the number of ranks that mpiexec or srun tell; (0, 1) without."""
    size = _number(_SIZES)
    return (_number(_RANKS) or 0, size) if size and size > 1 else (0, 1)


def _number(names: tuple[str, ...]) -> int | None:
    """Returns the first of some environment variables that is a number."""
    found = (os.environ.get(name, "") for name in names)
    return next((int(text) for text in found if text.isdecimal()), None)


@contextlib.contextmanager
def first_speaks() -> Iterator[None]:
    """Silences the other ranks until they have joined, because all of them find the same errors."""
    if launched()[0] == 0:
        yield
        return
    with contextlib.ExitStack() as silence:
        nothing = silence.enter_context(
            open(os.devnull, "w", encoding="utf-8", errors="backslashreplace")
        )
        silence.enter_context(contextlib.redirect_stdout(nothing))
        silence.enter_context(contextlib.redirect_stderr(nothing))
        yield


# Ends all ranks: a function of the exit status and of a message.
_end_all: Callable[[int, str], None] | None = None


def end_failures_with(end_all: Callable[[int, str], None]) -> None:
    """Chooses how :func:`end_together` ends the other ranks."""
    global _end_all
    _end_all = end_all


def end_together(program: Callable[[], int]) -> int:
    """Runs a program, and ends all ranks if it fails.

    Args:
        program: Returns its exit status, after it has reported its error.
    """
    try:
        status = program()
    except SystemExit as error:
        if _end_all is not None:
            _end_all(1, f"rank {launched()[0]} ended with status {error.code}\n")
        raise
    except BaseException:
        if _end_all is not None:
            _end_all(1, traceback.format_exc())
        raise
    if status and _end_all is not None:
        _end_all(status, "")
    return status
