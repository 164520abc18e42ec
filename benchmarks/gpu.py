"""Training speed on a GPU: Chainer's convolution, ours, PyTorch.

    python benchmarks/gpu.py --torch-python VENV/bin/python

Prints trained positions per second at several batch sizes; the batch is on the GPU before
the clock starts. PyTorch needs an environment of its own; without ``--torch-python`` it is
left out. Each side runs in its own process. The sides take turns, and each figure is the
median of all rounds.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from sides import Side, processor

from pydlshogi.device import gpu_count

WORKER = Path(__file__).with_name("gpu_worker.py")

#: Batch size: training steps in a round.
BATCHES = {32: 100, 256: 40, 1024: 12, 4096: 4}

#: (side, number format)
SIDES = (
    ("chainer", "float32"),
    ("chainer", "tf32"),
    ("chainer", "mixed16"),
    ("winograd", "float32"),
    ("winograd", "tf32"),
    ("torch", "float32"),
    ("torch", "tf32"),
    ("torch", "bf16"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the benchmark and prints a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--torch-python", metavar="FILE", help="a Python with PyTorch")
    parser.add_argument(
        "--rounds", type=int, default=5, help="number of rounds (default: %(default)s)"
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="run one step of two positions on the CPU to check that the script works",
    )
    args = parser.parse_args(argv)
    device, batches, rounds = "cuda", BATCHES, args.rounds
    if not args.dry_run:
        count, reason = gpu_count()
        if not count:
            parser.error(f"no GPU to measure: {reason}")
    else:
        device, batches, rounds = "cpu", {2: 1}, 1
        print("Dry run on the CPU: the figures mean nothing.\n")

    sides = []
    for name, numbers in SIDES:
        if name == "torch" and not args.torch_python:
            continue
        python = args.torch_python if name == "torch" else sys.executable
        variables = {"CUPY_TF32": "1" if numbers == "tf32" else "0"}
        side = Side(name, python, WORKER, numbers, device, **variables)
        sides.append((f"{name} {numbers}", side))
    print(f"{processor()}; rounds: {rounds}\n")
    for label, side in sides:
        print(f"- {label}: {side.ask(versions=True)}")

    print(f"\n| positions a second | {' | '.join(label for label, _ in sides)} |")
    print("|---" * (len(sides) + 1) + "|")
    for size, steps in batches.items():
        times = [[side.ask(batch=size, steps=steps) for _, side in sides] for _ in range(rounds)]
        cells = [
            "out of memory" if None in column else f"{size * steps / statistics.median(column):.0f}"
            for column in zip(*times)
        ]
        print(f"| batch {size} | {' | '.join(cells)} |")
    for _, side in sides:
        side.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
