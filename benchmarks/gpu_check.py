#!/usr/bin/env python3
"""Tests, speed, training and play on a GPU, in one table: what ``make gpu`` runs.

python benchmarks/gpu_check.py
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(1, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

from gpu_parts.job import ROOT, Job, PartError, Request
from gpu_parts.parts import PARTS
from gpu_parts.table import OUTCOME, Row, Table, claim

from pydlshogi.commands.arguments import (
    ArgumentParser,
    OptionalFile,
    file_name,
    gpu_number,
    named_path,
    positive_int,
    positive_number,
)
from pydlshogi.commands.program import program
from pydlshogi.errors import UserError


class CannotCheck(UserError):
    """The check cannot start here."""


def build_parser() -> ArgumentParser:
    """Makes the parser of the command line."""
    parser = ArgumentParser(
        prog="gpu_check",
        description="Runs on an NVIDIA GPU: the tests marked gpu, the benchmark, four trainings, "
        "the engine and the search. It prints one table and writes it with all logs, curves and "
        "models to a folder. A part that fails is named in the table, and the others go on.",
    )
    add = parser.add_argument
    add(
        "--gpu",
        "-g",
        type=gpu_number,
        default=0,
        metavar="N",
        help="number of the GPU (default: %(default)s); -1 runs a very short trial of all "
        "parts on the CPU",
    )
    add(
        "--minutes",
        type=positive_number,
        default=25,
        metavar="M",
        help="time limit of all parts together (default: %(default)s)",
    )
    add(
        "--output",
        "-o",
        type=named_path,
        default=Path("run/gpu"),
        metavar="FOLDER",
        help="folder of the results: a new or empty one, or that of an earlier check "
        "(default: %(default)s)",
    )
    add(
        "--kifulist_train",
        type=file_name,
        metavar="FILE",
        help="list of the training games (default: the 200 games of kifu/)",
    )
    add(
        "--kifulist_test",
        type=file_name,
        metavar="FILE",
        help="list of the test games (default: the 30 games of kifu/)",
    )
    add(
        "--epoch",
        "-e",
        type=positive_int,
        default=10,
        metavar="N",
        help="most epochs of each training (default: %(default)s)",
    )
    add(
        "--parts",
        default=",".join(PARTS),
        metavar="NAME,...",
        help="run these parts only; the table keeps the rows of the others (default: %(default)s)",
    )
    add(
        "--torch_python",
        action=OptionalFile,
        default="",
        metavar="FILE",
        help="a Python with PyTorch, which the benchmark then measures too",
    )
    return parser


@program("gpu_check", interrupted="The table has the results so far.")
def main(argv: Sequence[str] | None = None) -> int:
    """Runs the parts that the command line names; returns the exit status."""
    parser = build_parser()
    args = parser.parse_args(argv)
    names = _parts(parser, args.parts)
    from pydlshogi.lock import lock_outputs

    if args.gpu >= 0:
        _require_gpu(args.gpu)
    request = _request(args)
    with lock_outputs(request.output / "table.md"):
        check(request, names)
    return 0


def _parts(parser: argparse.ArgumentParser, text: str) -> list[str]:
    """Reads the names of the parts."""

    names = text.split(",")
    for name in names:
        if name not in PARTS:
            parser.error(f"part {name!r} is unknown; choose from {', '.join(PARTS)}")
    return [name for name in PARTS if name in names]


def _require_gpu(number: int) -> None:
    """Checks that CUDA finds the GPU; the part ``machine`` checks that it computes."""
    from pydlshogi.device import gpu_count

    count, reason = gpu_count()
    if number >= count:
        reason = reason or f"there are {count}, numbered from 0"
        raise CannotCheck(
            f"GPU {number} cannot be checked: {reason}. --gpu -1 rehearses on the CPU."
        )


def _request(args: argparse.Namespace) -> Request:
    """Makes the folder and what the run is asked to do."""

    torch_python = shutil.which(args.torch_python) if args.torch_python else ""
    if torch_python is None:
        raise CannotCheck(
            f"--torch_python {args.torch_python} cannot be run. Name the python of an environment "
            "with PyTorch, such as VENV/bin/python."
        )
    output = args.output.resolve()
    given = {"train": args.kifulist_train, "test": args.kifulist_test}
    lists = {name: _list(name, path) for name, path in given.items()}
    claim(output)
    if args.gpu < 0:
        short = {name: _shortest_game(name, output) for name, path in given.items() if not path}
        lists.update(short)
    return Request(
        gpu=args.gpu,
        minutes=args.minutes,
        epoch=args.epoch,
        output=output,
        kifulist_train=lists["train"],
        kifulist_test=lists["test"],
        # The parts run in another folder. The python of an environment may be a link, which stays.
        torch_python=torch_python and os.path.abspath(torch_python),
    )


def _list(name: str, given: str | None) -> Path:
    """Returns the path of a list: the given one, or that of the clone."""

    path = Path(given).resolve() if given else ROOT / "kifu" / f"kifulist_{name}.txt"
    if not path.is_file():
        raise CannotCheck(f"{path}: the list does not exist. Check its path.")
    return path


def _shortest_game(name: str, output: Path) -> Path:
    """Writes a list with the shortest game of the clone, for a rehearsal."""

    path = output / f"rehearsal_{name}.txt"
    game = min((ROOT / "kifu" / name).glob("*.csa"), key=lambda path: path.stat().st_size)
    path.write_text(f"{game}\n", encoding="utf-8")
    return path


class ChecksFailed(UserError):
    """Some parts failed; the table names them."""


def check(request: Request, names: Sequence[str]) -> None:
    """Runs parts, and prints and writes their results.

    Args:
        request: What to do; its folder belongs to the check (:func:`gpu_parts.table.claim`).
        names: The parts, among ``PARTS``.

    Raises:
        ChecksFailed: a part failed; all others have run, except after ``machine``.
        KeyboardInterrupt: the run was interrupted; the table has the results so far.
        OSError: the table cannot be written.
    """
    (request.output / "logs").mkdir(exist_ok=True)
    table = Table(request.output)
    end = time.monotonic() + 60 * request.minutes
    weights = [PARTS[name].weight for name in names]
    failed = []
    try:
        for number, name in enumerate(names):
            share = weights[number] / sum(weights[number:])
            seconds = max(0.0, end - time.monotonic()) * share
            if not _run_part(Job(name, request, seconds), seconds, table):
                failed.append(name)
                if name == "machine":  # nothing else can work
                    break
    finally:
        print(f"\n{table.markdown()}", flush=True)
    if failed:
        raise ChecksFailed(
            f"{len(failed)} of {len(names)} parts failed: {', '.join(failed)}. "
            f"{request.output / 'table.md'} says why, and the folder logs has their output."
        )


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


if __name__ == "__main__":
    sys.exit(main())
