"""Training on many positions in shards: start, memory and speed.

    python benchmarks/shards.py [--positions 50000000] [--folder FOLDER]

It writes shards of repeated embedded games with random results, 104 bytes a position. Then:

- ``train_policy.py`` runs on them: seconds until it logs that training starts, and its
  private memory after 10 seconds of training, without pages of the files that it maps;
- a training step on the shards and a bare step, the update on one constant batch, in turns
  in one process. Before each turn the system forgets the files, where it can be told so:
  almost every position is then read from the disk.

The figures are medians over the rounds. The shards are deleted afterwards, unless --folder
names a folder; shards that it holds already are used.
"""

from __future__ import annotations

import openblas  # noqa: F401

# isort: split
import argparse
import contextlib
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy

from pydlshogi.commands.arguments import positive_int
from pydlshogi.compat import chainer
from pydlshogi.kifu.loading import load_positions
from pydlshogi.kifu.mapped_positions import MappedPositions
from pydlshogi.kifu.reading import read_positions
from pydlshogi.kifu.sharding import LIST, SHARD_SIZE
from pydlshogi.kifu.shards import SUFFIX, write_shard
from pydlshogi.layers.cpu.threads import get_threads
from pydlshogi.network.registry import make_network
from pydlshogi.training.batches import EpochIterator, PlanesConverter
from pydlshogi.training.loss import Loss
from pydlshogi.training.optimizer import make_optimizer
from pydlshogi.training.recipe import Recipe

ROOT = Path(__file__).resolve().parents[1]
GAMES = ROOT / "kifu" / "kifulist_train.txt"
TEST = ROOT / "kifu" / "kifulist_test.txt"


def make(folder: Path, count: int) -> None:
    """Writes shards with ``count`` positions, and their list, unless the list exists."""
    if (folder / LIST).exists():
        kept = len(load_positions(folder / LIST).mapped)
        if kept != count:
            sys.exit(f"{folder} has {kept} positions: give --positions {kept}, or another folder.")
        return
    games = read_positions(GAMES)[0]
    random = numpy.random.RandomState(1)
    positions = numpy.resize(games, min(count, SHARD_SIZE))
    names: list[str] = []
    for start in range(0, count, SHARD_SIZE):
        positions["result"] = random.randint(0, 3, len(positions))
        names.append(f"{start:012}{SUFFIX}")
        write_shard(folder / names[-1], positions[: count - start])
    (folder / LIST).write_text("".join(f"{name}\n" for name in names))


def start(folder: Path, batchsize: int) -> None:
    """Starts the program, and prints how long it takes and how much memory."""
    log = folder / "log"
    log.unlink(missing_ok=True)
    files = [f"--{name}={folder / name}" for name in ("log", "model", "state")]
    command = [sys.executable, str(ROOT / "train_policy.py"), str(folder / LIST), str(TEST)]
    begin = time.perf_counter()
    process = subprocess.Popen([*command, *files, "--gpu=-1", f"--batchsize={batchsize}"])
    try:
        while "start training" not in (log.read_text() if log.exists() else ""):
            if process.poll() is not None:
                raise SystemExit("train_policy.py failed")
            time.sleep(0.02)
        print(f"training starts after {time.perf_counter() - begin:.1f} s")
        time.sleep(10)
        print(f"private memory {private_memory(process.pid) / 1e6:.0f} MB")
    finally:
        process.kill()
        process.wait()


def private_memory(process: int) -> int:
    """Returns the private memory of a process in bytes, as Linux tells it."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty"))


def forget(folder: Path) -> None:
    """Tells the system to drop the files from its memory (not on Windows and macOS)."""
    if not hasattr(os, "posix_fadvise"):
        return
    for path in folder.glob(f"*{SUFFIX}"):
        with open(path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def compare(folder: Path, batchsize: int, rounds: int, steps: int) -> None:
    """Times bare steps and steps on the shards in turns, and prints the medians."""
    positions = load_positions(folder / LIST).mapped
    assert isinstance(positions, MappedPositions)
    step, bare = make_steps(positions, batchsize)
    sides = {"bare step": bare, "step on shards": step}
    times: dict[str, list[float]] = {name: [] for name in sides}
    bare()
    for _ in range(rounds):
        forget(folder)
        for name, run in sides.items():
            begin = time.perf_counter()
            for _ in range(steps):
                run()
            times[name].append((time.perf_counter() - begin) / steps)
    medians = {name: statistics.median(found) for name, found in times.items()}
    for name, seconds in medians.items():
        kept = medians["bare step"] / seconds
        print(f"{name:22}{1000 * seconds:8.1f} ms, {kept:6.1%} of the speed of a bare step")


def make_steps(
    positions: MappedPositions, batchsize: int
) -> tuple[Callable[[], None], Callable[[], None]]:
    """Makes functions that train on the next batch of the positions, and on a constant one."""
    numpy.random.seed(0)
    network = make_network("policy")
    optimizer = make_optimizer(network, Recipe())
    loss = Loss(network)
    device: Any = chainer.get_device("@numpy")
    convert = PlanesConverter(positions)
    batches = EpochIterator(len(positions), batchsize, 0)
    batches.announce = positions.prefetch
    constant = convert(range(batchsize), device)
    return (
        lambda: optimizer.update(loss, *convert(next(batches), device)),
        lambda: optimizer.update(loss, *constant),
    )


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add = parser.add_argument
    add("--positions", type=positive_int, default=50_000_000, help="default: %(default)s")
    add("--batchsize", type=positive_int, default=64, help="default: %(default)s")
    add("--rounds", type=positive_int, default=5, help="turns (default: %(default)s)")
    add("--steps", type=positive_int, default=10, help="steps in a turn (default: %(default)s)")
    add("--folder", type=Path, help="folder of the shards, which are kept (default: temporary)")
    args = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = args.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        make(folder, args.positions)
        print(
            f"python {platform.python_version()}, numpy {numpy.__version__}, {get_threads()} "
            f"threads, batch {args.batchsize}, {args.positions:,} positions"
        )
        forget(folder)
        start(folder, args.batchsize)
        compare(folder, args.batchsize, args.rounds, args.steps)


if __name__ == "__main__":
    main()
