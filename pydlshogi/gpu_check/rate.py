"""Child process: measures the speed of training and of validation.

    python -m pydlshogi.gpu_check.rate GPU PRECISION NETWORK BATCHSIZE TRAIN TEST SECONDS

TRAIN and TEST are the lists of the games. Prints ``iterations a second<TAB>NUMBER`` and
``validation, seconds<TAB>NUMBER``, an estimate for the whole test set.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy

from pydlshogi.device import select_device
from pydlshogi.kifu.loading import load_positions
from pydlshogi.layers.cpu.threads import limit_blas
from pydlshogi.layers.gpu.products import set_precision
from pydlshogi.training.evaluate import measure as evaluate
from pydlshogi.training.recipe import Recipe, make_optimizer
from pydlshogi.training.run import make_first_network
from pydlshogi.training.trainer import Settings, Task, make_trainer

#: Iterations before the clock starts. CuPy compiles its kernels in the first ones.
_WARM_UP = 3

#: Positions in a batch of the validation, and the most batches that are measured.
_TEST_BATCH, _TEST_BATCHES = 512, 8


def main() -> int:
    """Measures and prints the result; returns the exit status."""
    gpu, precision, network, batchsize, train, test, seconds = sys.argv[1:]
    set_precision(precision)
    limit_blas()
    with tempfile.TemporaryDirectory() as folder:
        updater = _make_updater(int(gpu), network, int(batchsize), train, Path(folder))
        rate = measure(updater, _finish(int(gpu)), float(seconds))
    print(f"iterations a second\t{rate:.6g}")
    network, device = updater.get_optimizer("main").target, updater.device
    needed = validation_seconds(network, device, load_positions(test).positions, float(seconds))
    print(f"validation, seconds\t{needed:.6g}")
    return 0


def _make_updater(gpu: int, network_name: str, batchsize: int, path: str, folder: Path) -> Any:
    """Makes the updater of a training run with momentum."""
    positions = load_positions(path).positions
    network = make_first_network(network_name, 0)
    recipe = Recipe(lr=0.001, momentum=0.9, nesterov=True, weight_decay=1e-4)
    settings = Settings(
        folder / "model", folder / "state", batchsize=batchsize, epoch=1 << 30, recipe=recipe
    )
    optimizer = make_optimizer(network, recipe)
    device = select_device(gpu)
    trainer = make_trainer(Task(network, optimizer, positions, positions[:1], settings, device))
    return trainer.updater


def measure(updater: Any, finish: Any, seconds: float) -> float:
    """Measures the iterations a second.

    Args:
        updater: Chainer's updater.
        finish: Waits until the device has finished.
        seconds: Time to measure; at least one iteration is measured.
    """
    for _ in range(_WARM_UP):
        updater.update()
    finish()
    start = time.perf_counter()
    count = 0
    while not count or time.perf_counter() - start < seconds:
        updater.update()
        count += 1
    finish()
    return count / (time.perf_counter() - start)


def validation_seconds(network: Any, device: Any, positions: Any, seconds: float) -> float:
    """Estimates the seconds that a validation takes.

    Args:
        network: A ``Network`` on ``device``.
        device: The ``chainer.backend.Device`` that computes.
        positions: The test set, at least one position.
        seconds: Time to measure; at least one batch is measured.
    """
    size = min(_TEST_BATCH, len(positions))
    evaluate(network, positions[:size], device, size)  # compiles kernels
    start = time.perf_counter()
    count = 0
    while not count or (count < _TEST_BATCHES and time.perf_counter() - start < seconds):
        evaluate(network, positions[:size], device, size)
        count += 1
    return (time.perf_counter() - start) / (count * size) * len(positions)


def _finish(gpu: int) -> Any:
    if gpu < 0:
        return lambda: None
    import cupy

    return cupy.cuda.Device().synchronize


if __name__ == "__main__":
    numpy.seterr(all="ignore")
    sys.exit(main())
