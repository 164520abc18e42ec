"""Speed of the policy network on the CPU: ours, Chainer's convolution, PyTorch.

    python benchmarks/network.py --torch-python VENV/bin/python

PyTorch needs an environment of its own (``pip install torch numpy``); without
``--torch-python`` it is left out. Each side runs in its own process, because the idle
threads of PyTorch slow other code in the same process. Only one side works at a time. The
sides take turns, so that other load slows all of them. Each figure is the median of all
rounds. Linux only (peak memory).
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from sides import Side, processor

WORKER = Path(__file__).with_name("network_worker.py")

#: (task, batch size, repetitions in a round)
TASKS = (
    ("forward", 1, 30),
    ("forward", 32, 3),
    ("forward", 256, 1),
    ("step", 32, 3),
    ("step", 256, 1),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the benchmark and prints a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--torch-python", metavar="FILE", help="a Python with PyTorch")
    parser.add_argument(
        "--rounds", type=int, default=5, help="number of rounds (default: %(default)s)"
    )
    parser.add_argument(
        "--tasks",
        default=",".join(f"{task}-{size}" for task, size, _ in TASKS),
        help="tasks to run, separated by commas (default: %(default)s)",
    )
    parser.add_argument("--no-memory", action="store_true", help="do not measure the peak memory")
    args = parser.parse_args(argv)
    chosen = args.tasks.split(",")
    tasks = [task for task in TASKS if f"{task[0]}-{task[1]}" in chosen]

    pythons = {"winograd": sys.executable, "chainer": sys.executable}
    if args.torch_python:
        pythons["torch"] = pythons["torch channels_last"] = args.torch_python

    sides = [Side(name, python, WORKER) for name, python in pythons.items()]
    print(f"{processor()}, {len(os.sched_getaffinity(0))} processors; rounds: {args.rounds}\n")
    for side in sides:
        print(f"- {side.name}: {side.ask(versions=True)}")
    times: dict[tuple[str, str, int], list[float]] = {}
    for _ in range(args.rounds):
        for task, size, repeats in tasks:
            for side in sides:
                seconds = side.ask(task=task, batch=size, repeats=repeats)
                times.setdefault((side.name, task, size), []).extend(seconds)
    for side in sides:
        side.close()

    names = list(pythons)
    print(f"\n| median, ms | {' | '.join(names)} | × Chainer's own | × PyTorch's better |")
    print("|---" * (len(names) + 3) + "|")
    for task, size, _ in tasks:
        ms = {name: statistics.median(times[name, task, size]) * 1e3 for name in names}
        torch = [value for name, value in ms.items() if name.startswith("torch")]
        against = f"{min(torch) / ms['winograd']:.2f}" if torch else "–"
        cells = " | ".join(f"{ms[name]:.2f}" if ms[name] < 10 else f"{ms[name]:.1f}" for name in ms)
        print(
            f"| {task}, batch {size} | {cells} | {ms['chainer'] / ms['winograd']:.2f} | {against} |"
        )

    if not args.no_memory:
        print(f"\n| memory of training at batch 256, MB | {' | '.join(names)} |")
        print("|---" * (len(names) + 1) + "|")
        peaks = []
        for name, python in pythons.items():
            side = Side(name, python, WORKER)
            peaks.append([value / 1e6 for value in side.ask(peak=256)])
            side.close()
        print(f"| peak of the process | {' | '.join(f'{after:.0f}' for _, after in peaks)} |")
        growth = (f"{after - before:.0f}" for before, after in peaks)
        print(f"| of that, beyond the loaded libraries and network | {' | '.join(growth)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
