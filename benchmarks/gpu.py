"""Speed on a GPU: Chainer's convolution, ours, PyTorch, in several number formats.

    python benchmarks/gpu.py --torch_python VENV/bin/python

Prints positions per second of training steps and of evaluations (as in play) at several batch
sizes; the batch is on the GPU before the clock starts. PyTorch needs an environment of its
own; without ``--torch_python`` it is left out. Each side runs in its own process. The sides
take turns, and each figure is the median of all rounds that the time allows.
"""

from __future__ import annotations

import argparse
import platform
import shutil
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sides import Side, processor

from pydlshogi.commands.arguments import ArgumentParser, positive_int, positive_number
from pydlshogi.device import gpu_count

WORKER = Path(__file__).with_name("gpu_worker.py")

#: Task: batch sizes. Evaluations are quick, so a short run measures all of them first.
BATCHES = {"evaluate": (1, 8, 32, 128, 512), "train": (32, 64, 256, 1024, 4096)}

#: (side, number format, measures evaluations too)
SIDES = (
    ("chainer", "float32", True),
    ("chainer", "tf32", True),
    ("chainer", "mixed16", False),
    ("ours", "float32", True),
    ("ours", "tf32", True),
    ("ours", "float16", True),
    ("recorded", "tf32", True),
    ("recorded", "float16", True),
    ("torch", "float32", True),
    ("torch", "tf32", True),
    ("torch", "bf16", True),
)

#: (task, batch size, side)
Cell = tuple[str, int, str]


def build_parser() -> argparse.ArgumentParser:
    """Makes the parser of the command line."""
    parser = ArgumentParser(
        prog="benchmarks/gpu.py", description=(__doc__ or "").partition("\n")[0]
    )
    add = parser.add_argument
    add("--torch_python", metavar="FILE", help="a Python with PyTorch")
    add(
        "--rounds",
        type=positive_int,
        default=5,
        metavar="N",
        help="number of rounds (default: %(default)s)",
    )
    add(
        "--seconds",
        type=positive_number,
        metavar="S",
        help="start no measurement after S seconds (default: no limit)",
    )
    add("--tsv", metavar="FILE", help="file that receives the figures, tab-separated")
    add(
        "--dry_run",
        action="store_true",
        help="measure one batch of two positions on the CPU, to check that the script works",
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the benchmark and prints tables in Markdown."""
    parser = build_parser()
    args = parser.parse_args(argv)
    device, batches, rounds = "cuda", BATCHES, args.rounds
    if args.dry_run:
        device, batches, rounds = "cpu", {task: (2,) for task in BATCHES}, 1
        print("Dry run on the CPU: the figures mean nothing.\n")
    else:
        count, reason = gpu_count()
        if not count:
            parser.error(f"there is no GPU to measure: {reason}")
    if args.torch_python and not shutil.which(args.torch_python):
        parser.error(f"--torch_python {args.torch_python} cannot be run")
    end = time.monotonic() + (args.seconds or float("inf"))
    chosen = [
        (name, numbers, both)
        for name, numbers, both in SIDES
        # numpy computes 16 bits very slowly.
        if (name != "torch" or args.torch_python) and (numbers, device) != ("mixed16", "cpu")
    ]
    sides = {
        f"{name} {numbers}": make_side(name, numbers, args.torch_python, device)
        for name, numbers, _ in chosen
    }
    host = processor() if sys.platform == "linux" else platform.processor()
    print(f"{host}; rounds: {rounds}\n")
    for label, side in sides.items():
        print(f"- {label}: {ask(side, versions=True)}", flush=True)
    cells = [
        (task, size, label)
        for task, sizes in batches.items()
        for size in sizes
        for label, (_, _, measures_both) in zip(sides, chosen)
        if task == "train" or measures_both
    ]
    found: dict[Cell, list[Any]] = {cell: [] for cell in cells}
    for task, size, label in turns(cells, rounds, end):
        seconds = 0.01 if args.dry_run else 0.5
        answer = ask(sides[label], task=task, batch=size, seconds=seconds)
        found[task, size, label].append(answer)
        if args.tsv:
            write_tsv(args.tsv, found)
    for task, sizes in batches.items():
        print_table(task, sizes, list(sides), found)
    for side in sides.values():
        side.close()
    return 0


def make_side(name: str, numbers: str, torch_python: str | None, device: str) -> Side:
    """Starts a side."""
    python = torch_python if name == "torch" and torch_python else sys.executable
    variables = {"CUPY_TF32": "1" if numbers == "tf32" else "0"}
    return Side(name, python, WORKER, numbers, device, **variables)


def turns(cells: Sequence[Cell], rounds: int, end: float) -> Iterator[Cell]:
    """Yields the measurements in order, until the time is over."""
    for _ in range(rounds):
        for cell in cells:
            if time.monotonic() > end:
                return
            yield cell


def ask(side: Side, **request: Any) -> Any:
    """Asks a side; a sentence if its process has ended."""
    try:
        return side.ask(**request)
    except (SystemExit, OSError):
        return "failed: the process ended"


def result(answers: Sequence[Any]) -> str:
    """Formats the answers of a cell: the median in positions a second, or a sentence."""
    rates = [answer for answer in answers if isinstance(answer, (int, float))]
    if rates:
        return f"{statistics.median(rates):.0f}"
    return str(answers[0]) if answers else "not measured"


def write_tsv(path: str, found: dict[Cell, list[Any]]) -> None:
    """Writes the figures so far: task, batch size, side, result."""
    lines = ["task\tbatch\tside\tresult\n"]
    for (task, size, label), answers in found.items():
        if answers:
            lines.append(f"{task}\t{size}\t{label}\t{' '.join(result(answers).split())}\n")
    Path(path).write_text("".join(lines), encoding="utf-8")


def print_table(
    task: str, sizes: Sequence[int], labels: Sequence[str], found: dict[Cell, list[Any]]
) -> None:
    """Prints the table of a task."""
    print(f"\n| {task}: positions a second | {' | '.join(labels)} |")
    print("|---" * (len(labels) + 1) + "|")
    for size in sizes:
        cells = [result(found.get((task, size, label), [])) for label in labels]
        print(f"| batch {size} | {' | '.join(cells)} |")


if __name__ == "__main__":
    sys.exit(main())
