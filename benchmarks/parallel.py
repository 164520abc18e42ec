"""Speed of several processes, and the share of their communication.

    python benchmarks/parallel.py [--network policy_bn] [--rounds 5]

It times training steps of one process with one thread, and of two with one thread each, in
turns, so that other load slows both. The figures are medians over the rounds; the fastest
step of all rounds says most about an idle machine. Communication is the time that a rank
spends in sending and waiting.

Then it prints the share of communication for other hardware, computed, not measured. N ranks
average S bytes of gradients over links of B bytes a second and latency a by halving and
doubling (R. Rabenseifner, Optimization of Collective Reduction Operations, ICCS 2004):

    T = 2 log2(N) a + 2 (N - 1) / N S / B        share = T / (T + step)

B is the rate on the label of the link, so that T is a lower bound; the latencies are typical.
"""

from __future__ import annotations

import openblas  # noqa: F401

# isort: split
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy

from pydlshogi.commands.arguments import positive_int
from pydlshogi.compat import chainer
from pydlshogi.layers.cpu.threads import set_threads
from pydlshogi.network.registry import NETWORKS, make_network
from pydlshogi.positions import POSITION
from pydlshogi.training.batches import PlanesConverter
from pydlshogi.training.loss import Loss
from pydlshogi.training.optimizer import make_optimizer
from pydlshogi.training.parallel import Ranks, join, synchronize
from pydlshogi.training.recipe import Recipe

#: Bytes a second and seconds of latency of each link.
LINKS = {
    "1 GbE": (0.125e9, 50e-6),
    "10 GbE": (1.25e9, 25e-6),
    "100 GbE": (12.5e9, 5e-6),
    "NVLink 4": (450e9, 3e-6),
}

#: Numbers of ranks in the table of computed figures.
RANKS = (2, 8, 64, 1024)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add = parser.add_argument
    add("--network", choices=NETWORKS, default="policy", help="network (default: %(default)s)")
    add("--batchsize", type=positive_int, default=64, help="whole batch (default: %(default)s)")
    add("--rounds", type=positive_int, default=5, help="turns (default: %(default)s)")
    add("--steps", type=positive_int, default=10, help="steps in a turn (default: %(default)s)")
    add("--step", type=float, help="compute the shares for this step in ms; measure nothing")
    add("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        work(args.network, args.batchsize, args.steps)
        return
    step = args.step
    if step is None:
        step = compare(sys.argv[1:], args.rounds)
    print_computed(4 * make_network(args.network).count_params(), step)


def compare(options: list[str], rounds: int) -> float:
    """Times one process and two in turns; returns the milliseconds of a step of one."""
    found: dict[int, list[dict[str, float]]] = {1: [], 2: []}
    for _ in range(rounds):
        for ranks, times in found.items():
            times.append(run(ranks, options))
    print("| processes of one thread | ms a step | communication | speed | fastest step | speed |")
    print("|--:|--:|--:|--:|--:|--:|")
    alone = statistics.median(times["step"] for times in found[1])
    fastest_alone = min(times["fastest"] for times in found[1])
    for ranks, times in found.items():
        step = statistics.median(time["step"] for time in times)
        communication = statistics.median(time["communication"] for time in times)
        fastest = min(time["fastest"] for time in times)
        print(
            f"| {ranks} | {step:.0f} | {communication:.1f} ms, {communication / step:.1%} "
            f"| {alone / step:.2f} | {fastest:.0f} | {fastest_alone / fastest:.2f} |"
        )
    return alone


def run(ranks: int, options: list[str]) -> dict[str, float]:
    """Runs a turn in some processes."""
    mpiexec = Path(sys.executable).with_name("mpiexec")
    launcher = [str(mpiexec if mpiexec.exists() else "mpiexec"), "-n", str(ranks)]
    command = [*launcher, sys.executable, __file__, "--worker", *options]
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(result.stdout.splitlines()[-1]))


def work(name: str, batchsize: int, steps: int) -> None:
    """Times steps in this rank; the first one prints the medians in milliseconds."""
    ranks = join(gpu=-1)
    set_threads(1)
    times: list[float] = []
    waits: list[float] = []
    exchanges: list[float] = []
    if ranks.size > 1:
        _time_communication(ranks, waits)
    step = make_step(name, batchsize, ranks)
    for _ in range(2):
        step()
    for _ in range(steps):
        ranks.highest(0)  # all begin together
        waits.clear()  # not those before the step
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
        exchanges.append(sum(waits))
    if ranks.is_first:
        found = {
            "step": statistics.median(times),
            "communication": statistics.median(exchanges),
            "fastest": min(times),
        }
        print(json.dumps({key: 1000 * value for key, value in found.items()}))


def _time_communication(ranks: Ranks, waits: list[float]) -> None:
    """Appends the time of every exchange to ``waits``."""

    def timed(method: Any) -> Any:
        def call(*arguments: Any) -> Any:
            begin = time.perf_counter()
            try:
                return method(*arguments)
            finally:
                waits.append(time.perf_counter() - begin)

        return call

    ranks.gather = timed(ranks.gather)  # type: ignore[method-assign]
    ranks.merge_gradients = timed(ranks.merge_gradients)  # type: ignore[method-assign]


def make_step(name: str, batchsize: int, ranks: Any) -> Any:
    """Makes a function that trains on one batch."""
    numpy.random.seed(0)
    network = make_network(name)
    optimizer = make_optimizer(network, Recipe(), ranks)
    synchronize(network, ranks)
    positions = numpy.zeros(batchsize, POSITION)
    positions["board"] = numpy.random.RandomState(1).randint(0, 29, (batchsize, 81))
    convert = PlanesConverter(positions, ranks=ranks, plane_num=network.plane_num)
    loss = Loss(network, ranks=ranks)
    device = chainer.get_device("@numpy")

    def step() -> None:
        optimizer.update(loss, *convert(range(batchsize), device))

    return step


def print_computed(size: int, step: float) -> None:
    """Prints the computed shares of communication.

    Args:
        size: Bytes of gradients.
        step: Milliseconds of a step without communication.
    """
    print(f"\nComputed: {size / 1e6:.2f} MB of gradients, a step of {step:.0f} ms in each rank.\n")
    print("| link |" + "".join(f" {ranks:,} ranks |" for ranks in RANKS))
    print("|:--|" + "--:|" * len(RANKS))
    for link in LINKS:
        shares = (share(size, step / 1000, link, ranks) for ranks in RANKS)
        print(f"| {link} |" + "".join(f" {ms:.2f} ms, {part:.1%} |" for ms, part in shares))


def share(size: int, step: float, link: str, ranks: int) -> tuple[float, float]:
    """Computes the milliseconds of an average, and their share of a step."""
    bandwidth, latency = LINKS[link]
    seconds = 2 * math.log2(ranks) * latency + 2 * (ranks - 1) / ranks * size / bandwidth
    return 1000 * seconds, seconds / (seconds + step)


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    main()
