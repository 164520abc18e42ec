"""Child processes of the run: each prints lines ``item<TAB>text``.

    python benchmarks/gpu_parts/measure.py machine GPU
    python benchmarks/gpu_parts/measure.py reading LIST ...
    python benchmarks/gpu_parts/measure.py rate GPU PRECISION NETWORK BATCHSIZE TRAIN TEST SECONDS
    python benchmarks/gpu_parts/measure.py moves SCRIPT DEVICE MODELFILE LIST POSITIONS GO [NAME=VALUE ...]

GPU is a number, or -1 for the CPU.
"""  # noqa: E501

from __future__ import annotations

import importlib.metadata
import itertools
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydlshogi.kifu.loading import load_positions
from pydlshogi.kifu.sources import read_list

#: Packages whose versions are printed.
_PACKAGES = (
    *("cupy-cuda12x", "cupy-cuda13x", "cupy", "chainer", "numpy", "python-shogi", "cshogi"),
    *("nvidia-cudnn-frontend", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13"),
)

#: Iterations before the clock starts. CuPy compiles its kernels in the first ones.
_WARM_UP = 3

#: Positions in a batch of the validation, and the most batches that are measured.
_TEST_BATCH, _TEST_BATCHES = 512, 8

#: Moves between two positions of a game that an engine is asked for.
_STEP = 10


def machine(gpu: str) -> None:
    """Prints the versions of the GPU, CUDA and the packages."""
    print(f"system\t{platform.platform()}, {os.cpu_count()} processors")
    print(f"packages\tPython {platform.python_version()}, {', '.join(_versions())}")
    if int(gpu) >= 0:
        _print_gpu()


def _versions() -> list[str]:
    found = []
    for name in _PACKAGES:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _print_gpu() -> None:
    import cupy

    from pydlshogi.device import select_device
    from pydlshogi.errors import UserError
    from pydlshogi.layers.gpu import cudnn

    device = select_device(0)  # computes something
    properties = cupy.cuda.runtime.getDeviceProperties(0)
    runtime = cupy.cuda.runtime
    print(
        f"GPU\t{properties['name'].decode()}, compute capability "
        f"{properties['major']}.{properties['minor']}, "
        f"{properties['totalGlobalMem'] / 2**30:.1f} GiB, {properties['multiProcessorCount']} SM"
    )
    print(
        f"CUDA\tdriver {runtime.driverGetVersion()}, runtime {runtime.runtimeGetVersion()}, "
        f"NVRTC {'.'.join(map(str, cupy.cuda.nvrtc.getVersion()))}"
    )
    try:
        cudnn.require(device, "cudnn")
        print("cuDNN\tcan be used")
    except UserError as error:
        print(f"cuDNN\t{error}")
    _print_details(cupy)


def _print_details(cupy: Any) -> None:
    """Prints what may help to explain a failure; nothing depends on it."""
    try:
        cupy.show_config()
        subprocess.run(["nvidia-smi"], check=False, timeout=10)
    except Exception as error:  # the computation above has succeeded
        print(f"no more details: {error}")


def reading(*lists: str) -> None:
    """Reads the records of lists and writes their caches."""
    for path in lists:
        start = time.perf_counter()
        loaded = load_positions(path)
        source = "from the cache" if loaded.from_cache else "from the records"
        seconds = time.perf_counter() - start
        print(f"{path}\t{len(loaded.positions)} positions {source}, {seconds:.1f} s", flush=True)


def rate(
    gpu: str, precision: str, network: str, batchsize: str, train: str, test: str, seconds: str
) -> None:
    """Prints the iterations a second, and the seconds of a validation on the whole test set."""
    import numpy

    from pydlshogi.layers.cpu.threads import limit_blas
    from pydlshogi.layers.gpu import cudnn
    from pydlshogi.layers.gpu.products import set_precision

    numpy.seterr(all="ignore")
    set_precision(precision)
    limit_blas()
    with tempfile.TemporaryDirectory() as folder:
        updater = _make_updater(int(gpu), network, int(batchsize), train, Path(folder))
        if precision == "bfloat16":  # without cuDNN, it would be tf32
            cudnn.require(updater.device, "auto")
        iterations = _iterations_a_second(updater, _finish(int(gpu)), float(seconds))
    print(f"iterations a second\t{iterations:.6g}")
    trained, device = updater.get_optimizer("main").target, updater.device
    needed = _validation_seconds(trained, device, load_positions(test).positions, float(seconds))
    print(f"validation, seconds\t{needed:.6g}")


def _make_updater(gpu: int, network_name: str, batchsize: int, path: str, folder: Path) -> Any:
    """Makes the updater of a training run with momentum."""
    from pydlshogi.device import select_device
    from pydlshogi.training.optimizer import make_optimizer
    from pydlshogi.training.recipe import Recipe
    from pydlshogi.training.run import make_first_network
    from pydlshogi.training.trainer import Settings, Task, make_trainer

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


def _iterations_a_second(updater: Any, finish: Any, seconds: float) -> float:
    """Measures at least one iteration; ``finish`` waits until the device has finished."""
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


def _validation_seconds(network: Any, device: Any, positions: Any, seconds: float) -> float:
    """Estimates the seconds that a validation takes; at least one batch is measured."""
    from pydlshogi.training.evaluate import measure

    size = min(_TEST_BATCH, len(positions))
    measure(network, positions[:size], device, size)  # compiles kernels
    start = time.perf_counter()
    count = 0
    while not count or (count < _TEST_BATCHES and time.perf_counter() - start < seconds):
        measure(network, positions[:size], device, size)
        count += 1
    return (time.perf_counter() - start) / (count * size) * len(positions)


def _finish(gpu: int) -> Any:
    if gpu < 0:
        return lambda: None
    import cupy

    return cupy.cuda.Device().synchronize


class Engine:
    """A running engine; the caller limits the time of this process.

    Args:
        script: The engine's script.
    """

    def __init__(self, script: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def send(self, command: str) -> None:
        """Sends a line."""
        assert self._process.stdin is not None
        print(command, file=self._process.stdin, flush=True)

    def ask(self, command: str, answer: str) -> list[str]:
        """Sends a line and returns the output up to a line that starts with ``answer``."""
        self.send(command)
        assert self._process.stdout is not None
        lines: list[str] = []
        for line in self._process.stdout:
            lines.append(line.rstrip())
            if line.startswith(answer):
                return lines
        raise SystemExit(f"the engine ended without {answer}: {' / '.join(lines[-3:])}")

    def quit(self) -> None:
        """Ends the engine."""
        self.send("quit")
        self._process.wait()


def moves(
    script: str, device: str, modelfile: str, path: str, number: str, go: str, *options: str
) -> None:
    """Asks an engine for moves, and prints ``move<TAB>MOVE<TAB>MILLISECONDS<TAB>NPS``.

    NPS is empty if the engine does not print it. The positions are from the games of a list,
    every tenth move. The first answer is not printed: it contains the compilation of kernels.
    """
    engine = Engine(script)
    engine.ask("usi", "usiok")
    for option in (f"device={device}", f"modelfile={modelfile}", *options):
        engine.send("setoption name {} value {}".format(*option.split("=", 1)))
    engine.ask("isready", "readyok")
    engine.send("usinewgame")
    for count, position in enumerate(itertools.islice(_positions(path), int(number) + 1)):
        engine.send(f"position {position}")
        start = time.perf_counter()
        lines = engine.ask(go, "bestmove")
        milliseconds = 1000 * (time.perf_counter() - start)
        if count:
            print(f"move\t{lines[-1].split()[1]}\t{milliseconds:.2f}\t{_nps(lines)}", flush=True)
    engine.quit()


def _positions(path: str) -> Iterator[str]:
    """Yields positions of the games of a list, as the command ``position`` takes them."""
    import shogi.CSA

    for source in read_list(path):
        game = shogi.CSA.Parser.parse_file(str(source.path))[0]
        for count in range(0, len(game["moves"]), _STEP):
            yield " ".join(["startpos", *(["moves"] if count else []), *game["moves"][:count]])


def _nps(lines: list[str]) -> str:
    """Returns the nodes a second of the last line that has them; empty without one."""
    for line in reversed(lines):
        words = line.split()
        if words[:1] == ["info"] and "nps" in words[:-1]:
            return words[words.index("nps") + 1]
    return ""


if __name__ == "__main__":
    {"machine": machine, "reading": reading, "rate": rate, "moves": moves}[sys.argv[1]](
        *sys.argv[2:]
    )
