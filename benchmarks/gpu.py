"""Speed and losses on a GPU: Chainer's convolution, ours, cuDNN's and PyTorch, side by side.

    python benchmarks/gpu.py --torch_python VENV/bin/python

Prints positions per second of training steps and of evaluations (as in play) at several batch
sizes; the batch is on the GPU before the clock starts. PyTorch needs an environment of its
own; without ``--torch_python`` it is left out. Each side runs in its own process. The sides
take turns, and each figure is the median of all rounds that the time allows.

With ``--losses``, the sides make the same training steps from the same weights instead. The table
has the mean of the last losses, and the largest difference of a mean from that of our float32.
"""

from __future__ import annotations

import argparse
import math
import platform
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy
from sides import Side, processor

from pydlshogi.commands.arguments import ArgumentParser, file_name, positive_int, positive_number
from pydlshogi.device import gpu_count
from pydlshogi.features import make_input_planes
from pydlshogi.kifu.loading import load_positions

WORKER = Path(__file__).with_name("gpu_worker.py")

#: Task: batch sizes. A short run measures the first ones only.
BATCHES = {"train": (1024, 64, 256, 4096), "evaluate": (512, 32, 1, 128)}

#: (side, number format)
SIDES = (
    ("chainer", "float32"),
    ("ours", "float32"),
    ("ours", "tf32"),
    ("ours", "float16"),
    ("ours-recorded", "tf32"),
    ("ours-recorded", "float16"),
    ("cudnn", "float32"),
    ("cudnn", "tf32"),
    ("cudnn", "float16"),
    ("cudnn", "bfloat16"),
    ("cudnn-recorded", "tf32"),
    ("cudnn-recorded", "bfloat16"),
    ("torch", "float32"),
    ("torch", "tf32"),
    ("torch", "bfloat16"),
)

#: The side with which the losses of the others are compared.
REFERENCE = "ours float32"

#: Positions in a step of ``--losses``, and steps of which a mean is taken.
LOSS_BATCH, LOSS_BLOCK = 64, 50

#: Result of a measurement that the time did not allow.
NOT_MEASURED = "not measured"

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
    add(
        "--losses",
        type=file_name,
        metavar="LIST",
        help="compare the losses of the training on the games of a list, and measure no speed",
    )
    add(
        "--steps",
        type=positive_int,
        default=500,
        metavar="N",
        help="training steps of --losses (default: %(default)s)",
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
    sides = {
        f"{name} {numbers}": make_side(name, numbers, args.torch_python, device)
        for name, numbers in SIDES
        if name != "torch" or args.torch_python
    }
    host = processor() if sys.platform == "linux" else platform.processor()
    print(f"{host}; rounds: {rounds}\n")
    for label, side in sides.items():
        print(f"- {label}: {ask(side, versions=True)}", flush=True)
    if args.losses:
        compare_losses(sides, args)
    else:
        measure_speed(sides, args, batches, rounds, end)
    for side in sides.values():
        side.close()
    return 0


def measure_speed(
    sides: dict[str, Side],
    args: argparse.Namespace,
    batches: dict[str, tuple[int, ...]],
    rounds: int,
    end: float,
) -> None:
    """Lets the sides take turns, and prints their speeds."""
    cells = [
        (task, size, label) for task, sizes in batches.items() for size in sizes for label in sides
    ]
    found: dict[Cell, list[Any]] = {cell: [] for cell in cells}
    for task, size, label in turns(cells, rounds, end):
        seconds = 0.01 if args.dry_run else 0.5
        answer = ask(sides[label], task=task, batch=size, seconds=seconds)
        found[task, size, label].append(answer)
        if args.tsv:
            write_tsv(args.tsv, {cell: result(answers) for cell, answers in found.items()})
    for task, sizes in batches.items():
        print_table(task, sizes, list(sides), found)


def compare_losses(sides: dict[str, Side], args: argparse.Namespace) -> None:
    """Lets each side train, and prints how far its losses are from those of our float32.

    The losses of a precision drift from those of another one. Between means of some steps, the
    difference is to be smaller than the standard error of these means.
    """
    size = 2 if args.dry_run else LOSS_BATCH
    found: dict[Cell, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder, "positions.npz"))
        write_positions(args.losses, file)
        order = sorted(sides, key=lambda label: label != REFERENCE)
        curves: dict[str, Any] = {}
        for label in order:
            curves[label] = ask(sides[label], losses=file, batch=size, steps=args.steps)
            found["losses", size, label] = difference(label, curves)
            print(f"- {label}: {found['losses', size, label]}", flush=True)
            if args.tsv:
                write_tsv(args.tsv, found)


def write_positions(path: str, file: str) -> None:
    """Writes the planes, packed to bits, and the labels of the positions of a list's games."""
    positions = load_positions(path).positions
    planes = [
        numpy.packbits(make_input_planes(part).astype(bool).reshape(len(part), -1), axis=1)
        for part in numpy.array_split(positions, max(1, len(positions) // 1000))
    ]
    numpy.savez(file, planes=numpy.concatenate(planes), labels=positions["label"])


def difference(label: str, curves: dict[str, Any]) -> str:
    """Compares a side's losses with those of ``REFERENCE``, and with the side's unrecorded ones."""
    curve, reference = curves[label], curves[REFERENCE]
    if isinstance(curve, str) or isinstance(reference, str):
        return curve if isinstance(curve, str) else f"no losses of {REFERENCE}: {reference}"
    blocks = [numpy.array_split(c, max(1, len(c) // LOSS_BLOCK)) for c in (curve, reference)]
    means, expected = ([block.mean() for block in side] for side in blocks)
    noise = max(block.std() / len(block) ** 0.5 for block in blocks[1])
    far = max(abs(one - other) for one, other in zip(means, expected))
    text = f"{means[-1]:.4f} at the end, at most {far:.4f} from {REFERENCE}, noise {noise:.4f}"
    plain = curves.get(label.replace("-recorded", "", 1))
    if "-recorded" in label and isinstance(plain, list):
        text += f"; at most {max(abs(a - b) for a, b in zip(curve, plain)):.2g} from unrecorded"
    return f"{text}; DIFFERENT" if far > noise or not math.isfinite(far) else text


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
    except ValueError as error:  # a library printed a line
        return f"failed: {error}"


def result(answers: Sequence[Any]) -> str:
    """Formats the answers of a cell: the median in positions a second, or the first sentence."""
    rates = [answer for answer in answers if isinstance(answer, (int, float))]
    if rates:
        return f"{statistics.median(rates):.0f}"
    return str(answers[0]) if answers else NOT_MEASURED


def write_tsv(path: str, found: dict[Cell, str]) -> None:
    """Writes the figures so far: task, batch size, side, result."""
    lines = ["task\tbatch\tside\tresult\n"]
    for (task, size, label), text in found.items():
        if text != NOT_MEASURED:
            lines.append(f"{task}\t{size}\t{label}\t{' '.join(text.split())}\n")
    Path(path).write_text("".join(lines), encoding="utf-8")


def print_table(
    task: str, sizes: Sequence[int], labels: Sequence[str], found: dict[Cell, list[Any]]
) -> None:
    """Prints the table of a task."""
    print(f"\n| {task}: positions a second | {' | '.join(labels)} |")
    print("|---" * (len(labels) + 1) + "|")
    for size in sorted(sizes):
        cells = [result(found.get((task, size, label), [])) for label in labels]
        print(f"| batch {size} | {' | '.join(cells)} |")


if __name__ == "__main__":
    sys.exit(main())
