"""The run: the parts in order, each with its share of the time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from pydlshogi.errors import UserError
from pydlshogi.gpu_check.division import divide_large_files, how_to_join
from pydlshogi.gpu_check.job import Job, PartError, Request
from pydlshogi.gpu_check.parts import PARTS
from pydlshogi.gpu_check.table import OUTCOME, Row, Table


class ChecksFailed(UserError):
    """Some parts failed; the table names them."""


def check(request: Request, names: Sequence[str]) -> None:
    """Runs parts, and prints and writes their results.

    Args:
        request: What to do; its folder belongs to the check (:func:`table.claim`).
        names: The parts, among ``PARTS``.

    Raises:
        ChecksFailed: a part failed; all others have run, except after ``machine``.
        KeyboardInterrupt: the run was interrupted; the table has the results so far.
        OSError: the table cannot be written.
    """
    (request.output / "logs").mkdir(exist_ok=True)
    table = Table(request.output)
    jobs: list[Job] = []
    end = time.monotonic() + 60 * request.minutes
    weights = [PARTS[name].weight for name in names]
    failed = []
    try:
        for number, name in enumerate(names):
            share = weights[number] / sum(weights[number:])
            seconds = max(0.0, end - time.monotonic()) * share
            jobs.append(Job(name, request, seconds))
            if not _run_part(jobs[-1], seconds, table):
                failed.append(name)
                if name == "machine":  # nothing else can work
                    break
    finally:
        divided = divide_large_files(path for job in jobs for path in job.files)
        print(f"\n{table.markdown()}", flush=True)
        for path, parts in divided.items():
            _print_divided(request.output, path, parts)
    if failed:
        raise ChecksFailed(
            f"{len(failed)} of {len(names)} parts failed: {', '.join(failed)}. "
            f"{request.output / 'table.md'} says why, and the folder logs has their output."
        )


def _print_divided(folder: Path, path: Path, parts: Sequence[Path]) -> None:
    """Tells how to join a divided file."""
    name = path.relative_to(folder)
    command = how_to_join(name, [part.relative_to(folder) for part in parts])
    print(f"{name} is divided. To join it, run in the folder {folder}: {command}", flush=True)


def _run_part(job: Job, seconds: float, table: Table) -> bool:
    """Runs a part and writes its rows; returns whether it succeeded."""
    print(f"{job.name} (at most {seconds:.0f} s)", flush=True)
    start = time.monotonic()
    outcome = "interrupted"
    try:
        outcome = _outcome(job)
    finally:
        outcome += f" ({time.monotonic() - start:.0f} s)"
        print(f"  {outcome}", flush=True)
        table.replace(job.name, [Row(job.name, OUTCOME, outcome), *job.rows])
    return not outcome.startswith("FAILED")


def _outcome(job: Job) -> str:
    """Runs a part; an error of any kind becomes its outcome."""
    try:
        PARTS[job.name].run(job)
    except PartError as error:
        return f"FAILED: {error}"
    except Exception as error:  # a fault of a part must not end the run
        return f"FAILED: {type(error).__name__}: {error}"
    return "done"
