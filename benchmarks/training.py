"""Speed of a train_policy run, compared with bare training steps.

    python benchmarks/training.py TRAIN_LIST TEST_LIST

A bare step is the update of the optimizer on one constant batch of planes. An iteration
of a run also shuffles, reads and converts positions, sums the losses and runs the
extensions. An evaluation of 512 test positions, with a save, follows every 1,000
iterations. Both are measured in turns in one process, so that other load slows both. The
figures are medians. The kept share of the speed is

    1000 · bare / (1000 · iteration + evaluation)
"""

from __future__ import annotations

import openblas  # noqa: F401

# isort: split
import argparse
import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.device import in_words, select_device
from pydlshogi.layers.cpu.threads import get_threads
from pydlshogi.network.policy import PolicyNetwork
from pydlshogi.read_kifu import read_kifu
from pydlshogi.training.batches import PlanesConverter
from pydlshogi.training.trainer import Settings, Task, make_trainer

#: Default of --eval_interval in train_policy.
EVAL_INTERVAL = 1000


class Clock(chainer.training.Extension):
    """Trainer extension that times iterations, and bare steps between them.

    Args:
        chunk: Number of iterations in a turn, and of bare steps.
        step: Runs one bare step.
        finish: Waits until the device has finished.
    """

    # After the snapshot, so that a whole iteration lies between two calls.
    priority = -1000

    def __init__(self, chunk: int, step: Any, finish: Any) -> None:
        self._chunk = chunk
        self._step = step
        self._finish = finish
        self.iterations: list[float] = []
        self.bare: list[float] = []
        self.evaluations: list[float] = []
        self._count = 0
        self._since = 0.0

    def initialize(self, trainer: Any) -> None:
        """Warms up, then starts the clock."""
        for _ in range(3):
            self._step()
        self._start()

    def _start(self) -> None:
        self._finish()
        self._since = time.perf_counter()

    def _elapsed(self) -> float:
        self._finish()
        return time.perf_counter() - self._since

    def __call__(self, trainer: Any) -> None:
        """Ends a turn of iterations and runs a turn of bare steps."""
        self._count += 1
        if self._count % self._chunk:
            return
        seconds = self._elapsed() / self._chunk
        if self._count // self._chunk % 2:
            self.iterations.append(seconds)
            self._start()
            for _ in range(self._chunk):
                self._step()
            self.bare.append(self._elapsed() / self._chunk)
        else:  # a turn that ends with an evaluation; see main
            self.evaluations.append((seconds - self.iterations[-1]) * self._chunk)
        self._start()


def main() -> int:
    """Measures and prints the result."""
    parser = argparse.ArgumentParser(
        description="Compares the speed of train_policy with bare training steps."
    )
    parser.add_argument("kifulist_train")
    parser.add_argument("kifulist_test")
    parser.add_argument("--batchsize", type=int, default=32)
    parser.add_argument("--gpu", type=int)
    parser.add_argument(
        "--chunk", type=int, default=20, help="iterations in a turn (default: %(default)s)"
    )
    parser.add_argument(
        "--rounds", type=int, default=7, help="number of rounds (default: %(default)s)"
    )
    args = parser.parse_args()

    device = select_device(args.gpu)
    train, test = read_kifu(args.kifulist_train).array, read_kifu(args.kifulist_test).array
    network = PolicyNetwork()
    optimizer = chainer.optimizers.SGD(0.01).setup(network)
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(
            model=str(Path(folder) / "model"),
            state=str(Path(folder) / "state"),
            seed=0,
            batchsize=args.batchsize,
            epoch=sys.maxsize,
            # One more, because the last iteration of a run also validates.
            iterations=2 * args.chunk * args.rounds + 1,
            eval_interval=2 * args.chunk,
        )
        trainer = make_trainer(Task(network, optimizer, train, test[:512], settings, device))
        planes, labels, _ = PlanesConverter(train)(numpy.arange(args.batchsize), device)

        def loss(x: Any, t: Any) -> Any:
            return chainer.functions.softmax_cross_entropy(network(x), t)

        clock = Clock(
            args.chunk,
            lambda: optimizer.update(loss, planes, labels),
            device.device.synchronize if device.xp is not numpy else lambda: None,
        )
        trainer.extend(clock)
        trainer.run()
    bare, iteration, evaluation = (
        statistics.median(times) for times in (clock.bare, clock.iterations, clock.evaluations)
    )
    kept = EVAL_INTERVAL * bare / (EVAL_INTERVAL * iteration + evaluation)
    print(
        f"python {platform.python_version()}, numpy {numpy.__version__}, {in_words(device)}, "
        f"{get_threads()} threads, batch {args.batchsize}, {len(train)} training positions"
    )
    print(f"bare step   {bare * 1e3:8.2f} ms")
    print(f"iteration   {iteration * 1e3:8.2f} ms")
    print(f"evaluation  {evaluation * 1e3:8.2f} ms, every {EVAL_INTERVAL} iterations")
    print(f"kept        {kept:8.1%} of the speed of bare steps")
    return 0


if __name__ == "__main__":
    sys.exit(main())
