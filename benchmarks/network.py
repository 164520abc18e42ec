"""Speed of the policy network on the CPU: ours, Chainer's convolution, and other libraries.

    python benchmarks/network.py --torch_python PYTHON --onnxruntime_python PYTHON \\
        --openvino_python PYTHON

PYTHON is a Python that can import the library; a library without one is left out. ONNX Runtime
and OpenVINO compute the model that our exporter writes; this needs the package onnx.

Each side runs in its own process, because the idle threads of PyTorch slow other code in the
same process. Only one side works at a time. The sides take turns, so that other load slows all
of them. Each figure is the median of all rounds. Linux only (peak memory).
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from sides import Side, processor

WORKER = Path(__file__).with_name("network_worker.py")

#: (task, batch size, repetitions in a round). A search asks for the first five.
TASKS = (
    ("forward", 1, 40),
    ("forward", 4, 20),
    ("forward", 8, 10),
    ("forward", 16, 6),
    ("forward", 32, 3),
    ("forward", 256, 1),
    ("step", 32, 3),
    ("step", 256, 1),
)

#: Seconds before each turn. By then the idle threads of the side before have stopped spinning.
PAUSE = 0.3

#: Sides that only compute exported models.
RUNTIMES = ("onnxruntime", "openvino")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the benchmark and prints its tables in Markdown."""
    args = parse(argv)
    chosen = args.tasks.split(",")
    tasks = [task for task in TASKS if f"{task[0]}-{task[1]}" in chosen]
    pythons = {"ours": sys.executable, "chainer": sys.executable}
    if args.torch_python:
        pythons["torch"] = pythons["torch channels_last"] = args.torch_python
    for name in RUNTIMES:
        python = getattr(args, f"{name}_python")
        if python:
            pythons[name] = python
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "network.onnx")
        sides = []
        for name, python in pythons.items():
            if name in RUNTIMES and not os.path.exists(model):
                sides[0].ask(export=model)
            sides.append(start(name, python, args.threads, model))
        print_times(sides, tasks, args.rounds, args.threads)
        for side in sides:
            side.close()
        if not args.no_memory:
            print_memory({k: v for k, v in pythons.items() if k not in RUNTIMES}, args.threads)
    return 0


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parses the options."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name in ("torch", *RUNTIMES):
        parser.add_argument(f"--{name}_python", metavar="FILE", help=f"a Python with {name}")
    parser.add_argument(
        "--rounds", type=int, default=5, help="number of rounds (default: %(default)s)"
    )
    parser.add_argument(
        "--threads",
        type=int,
        default=len(os.sched_getaffinity(0)),
        help="threads of each side (default: the number of processors)",
    )
    parser.add_argument(
        "--tasks",
        default=",".join(f"{task}-{size}" for task, size, _ in TASKS),
        help="tasks to run, separated by commas (default: %(default)s)",
    )
    parser.add_argument("--no_memory", action="store_true", help="do not measure the peak memory")
    args = parser.parse_args(argv)
    known = {f"{task}-{size}" for task, size, _ in TASKS}
    for task in args.tasks.split(","):
        if task not in known:
            parser.error(f"task {task!r} is unknown; choose from {', '.join(sorted(known))}")
    return args


def start(name: str, python: str, threads: int, model: str = "") -> Side:
    """Starts a side with its number of threads."""
    number = str(threads)
    variables = {"PYDLSHOGI_THREADS": number, "OPENBLAS_NUM_THREADS": number}
    return Side(name, python, WORKER, number, model, OMP_NUM_THREADS=number, **variables)


def print_times(
    sides: list[Side], tasks: list[tuple[str, int, int]], rounds: int, threads: int
) -> None:
    """Measures the tasks in turns and prints a table of medians."""
    print(f"{processor()}, {threads} threads; rounds: {rounds}\n")
    for side in sides:
        print(f"- {side.name}: {side.ask(versions=True)}")
    times: dict[tuple[str, str, int], list[float]] = {}
    for _ in range(rounds):
        for task, size, repeats in tasks:
            for side in sides:
                if task == "step" and side.name in RUNTIMES:
                    continue
                time.sleep(PAUSE)
                seconds = side.ask(task=task, batch=size, repeats=repeats)
                times.setdefault((side.name, task, size), []).extend(seconds)
    names = [side.name for side in sides]
    print(f"\n| median, ms | {' | '.join(names)} | fastest other / ours |")
    print("|---" * (len(names) + 2) + "|")
    for task, size, _ in tasks:
        ms = {
            name: statistics.median(times[name, task, size]) * 1e3
            for name in names
            if (name, task, size) in times
        }
        others = min(value for name, value in ms.items() if name != "ours")
        cells = " | ".join(formatted(ms.get(name)) for name in names)
        print(f"| {task}, batch {size} | {cells} | {others / ms['ours']:.2f} |")


def formatted(milliseconds: float | None) -> str:
    """Returns a time with three digits."""
    if milliseconds is None:
        return "–"
    return f"{milliseconds:.2f}" if milliseconds < 10 else f"{milliseconds:.1f}"


def print_memory(pythons: dict[str, str], threads: int) -> None:
    """Measures the peak memory of training and prints a table."""
    print(f"\n| memory of training at batch 256, MB | {' | '.join(pythons)} |")
    print("|---" * (len(pythons) + 1) + "|")
    peaks = []
    for name, python in pythons.items():
        side = start(name, python, threads)
        peaks.append([value / 1e6 for value in side.ask(peak=256)])
        side.close()
    print(f"| peak of the process | {' | '.join(f'{after:.0f}' for _, after in peaks)} |")
    growth = (f"{after - before:.0f}" for before, after in peaks)
    print(f"| of that, beyond the loaded libraries and network | {' | '.join(growth)} |")


if __name__ == "__main__":
    sys.exit(main())
