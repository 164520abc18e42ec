"""Times the search against the bare network and against another version of itself.

    python benchmarks/search.py [--seconds 2] [--rounds 4] [--infinite 15] [--parts network ...]
        [--model FILE] [--against FOLDER]

The weights are random; they take the same time as trained ones. All sides compute the same
kind of input: planes of real positions. The rounds of the sides alternate, because other
programs disturb them. A rate is the median of the rounds. A percentage is the median of the
rounds' own ratios to the bare network.

- network: evaluations a second at the same batch size, of the bare network and of the search with
  each board whose library is installed. Then playouts a second of processor time (of all threads),
  collisions, and the part of the time in which the network computes.
- backends: evaluations a second by each backend that this machine has. They are those of the bare
  network, of the search, and of the search with two pending batches. With two, the network computes
  one while the search collects the next. benchmarks/backends.py compares what the backends predict.
- overhead: processor time of a visit in three positions, with an evaluator that answers at once;
  also that of the version in the folder --against, a checkout. Each side runs in a process of its
  own. The number is the least of the rounds, because other programs only make them longer.
- memory: bytes of an evaluation in a tree of a fake network, unused memory included: those of the
  arrays, and those that tracemalloc counts.
- engine: how long the engine takes to answer stop at several batch sizes and during a mate
  search, and stop, usinewgame and quit after a long go infinite.
"""

from __future__ import annotations

import openblas  # noqa: F401

# isort: split
import argparse
import contextlib
import importlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import shogi
from sides import Side, processor

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from pydlshogi.commands.arguments import positive_int  # noqa: E402
from pydlshogi.device import select_device  # noqa: E402
from pydlshogi.inference.backend import BACKENDS, OWN, BackendError  # noqa: E402
from pydlshogi.inference.evaluator import Evaluator  # noqa: E402
from pydlshogi.layers.cpu.threads import get_threads  # noqa: E402
from pydlshogi.model_files.model_file import save_model  # noqa: E402
from pydlshogi.network.registry import make_network  # noqa: E402
from pydlshogi.uct.board import SearchBoard  # noqa: E402
from pydlshogi.uct.boards import make_search_board  # noqa: E402
from pydlshogi.uct.game import Game  # noqa: E402
from pydlshogi.uct.inputs import write_planes  # noqa: E402
from pydlshogi.uct.search import Search  # noqa: E402
from pydlshogi.uct.settings import Settings  # noqa: E402

#: Visits before the clock starts: by then the batches are full.
WARM = 300

NETWORKS = {"policy_value": (1, 4, 6, 8, 16, 32), "policy_value_small": (16, 64)}

#: The classes of the boards by library.
BOARDS = {"cshogi": "CshogiBoard", "rsshogi": "RsshogiBoard", "python_shogi": "PythonShogiBoard"}

PARTS = ("network", "backends", "overhead", "memory", "engine")

#: The positions of the part overhead, their number of visits, and the size of the batches.
OVERHEAD = {
    "start": "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1",
    "middle": "ln1gkg1nl/1r1s3b1/p1pppsppp/1p4P2/9/2P1P4/PPBP1P2P/2GSR1S2/LN2KG1NL b p 23",
    "end": "l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w RGgsn5p 1",
}
OVERHEAD_VISITS, OVERHEAD_BATCH = 6000, 32

#: Batch sizes that the backends are compared at.
BACKEND_SIZES = (1, 4, 8, 16, 32)

#: The position searched, from a game, with 96 legal moves; and one whose mate search takes
#: longer than a second.
POSITION = 100
MATE_POSITION = "l2+N2G2/rs7/1p1p1ps2/k3gg2P/2p1P4/6B2/4GPPP1/K1S4R1/LN2N1SNL b BL4P5p 103"

#: Visits of the tree whose memory is measured.
MEMORY_VISITS = 10000


def main() -> int:
    """Runs the measurements and prints them as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=2, help="of one round of one side")
    parser.add_argument("--rounds", type=positive_int, default=4)
    parser.add_argument("--infinite", type=float, default=15, help="seconds of go infinite")
    parser.add_argument("--model", type=Path, help="model of the part backends")
    parser.add_argument("--against", type=Path, help="checkout that overhead compares with")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    arguments = parser.parse_args()
    if arguments.against and not (arguments.against / "pydlshogi" / "uct").is_dir():
        parser.error(f"--against {arguments.against}: this is no checkout of pydlshogi")
    if arguments.model and not arguments.model.is_file():
        parser.error(f"--model {arguments.model}: there is no such file")
    print(f"{get_threads()} threads, {processor()}\n")
    with tempfile.TemporaryDirectory() as folder:
        models = {name: Path(folder) / name for name in NETWORKS}
        for name, path in models.items():
            save_model(path, make_network(name))
        if "network" in arguments.parts:
            compare_networks(models, arguments.seconds, arguments.rounds)
        if "backends" in arguments.parts:
            model = arguments.model or models["policy_value"]
            compare_backends(model, arguments.seconds, arguments.rounds)
        if "overhead" in arguments.parts:
            compare_overheads(arguments.against, arguments.rounds)
        if "memory" in arguments.parts:
            measure_memory()
        if "engine" in arguments.parts:
            time_engine(models, arguments.infinite)
    return 0


def compare_networks(models: dict[str, Path], seconds: float, rounds: int) -> None:
    """Prints evaluations a second of the bare network and of the search."""
    boards = installed_boards()
    print(f"| network, batch | bare, evaluations/s | {' | '.join(boards)} |")
    print("|---|--:|" + "--:|" * len(boards))
    details = []
    for name, sizes in NETWORKS.items():
        evaluator = Evaluator(models[name], select_device())
        for size in sizes:
            bare = Bare(evaluator, size)
            searches = {key: Searching(evaluator, size, make) for key, make in boards.items()}
            for _ in range(rounds):
                bare.run(seconds)
                for search in searches.values():
                    search.run(seconds)
            cells = [f"{median(side.rates)} ({side.share(bare):.0%})" for side in searches.values()]
            print(f"| {name} {size} | {median(bare.rates)} | {' | '.join(cells)} |", flush=True)
            details += [f"| {name} {size} | {b} | {side.row()} |" for b, side in searches.items()]
    print("\n| network, batch | board | playouts/CPU s | collisions/playout | network's time |")
    print("|---|---|--:|--:|--:|")
    print("\n".join(details))


def installed_boards() -> dict[str, Callable[[str], SearchBoard]]:
    """Returns the boards whose libraries are installed."""
    boards = {}
    for library, name in BOARDS.items():
        with contextlib.suppress(ImportError):
            module = importlib.import_module(f"pydlshogi.uct.{library}_board")
            boards[library.replace("_", "-")] = getattr(module, name)
    return boards


def compare_backends(model: Path, seconds: float, rounds: int) -> None:
    """Prints evaluations a second of each backend."""
    evaluators = {OWN: Evaluator(model, select_device(-1))}
    if not (evaluators[OWN].has_policy and evaluators[OWN].has_value):
        raise SystemExit(f"{model} has not both heads: name a model with a policy and a value.")
    for name in BACKENDS[2:]:  # after auto and own
        try:
            evaluators[name] = Evaluator(model, select_device(-1), name)
        except BackendError as error:
            print(f"\n{error}")
    print("\n| bare network, search, with two batches: evaluations/s | ", end="")
    print(" | ".join(evaluators) + " |")
    print("|---|" + "--:|" * len(evaluators))
    for size in BACKEND_SIZES:
        sides: dict[str, list[Bare | Searching]] = {
            name: [
                Bare(evaluator, size),
                Searching(evaluator, size),
                Searching(evaluator, size, batches=2),
            ]
            for name, evaluator in evaluators.items()
        }
        for _ in range(rounds):
            for name in evaluators:
                for side in sides[name]:
                    side.run(seconds)
        cells = [", ".join(median(side.rates) for side in sides[name]) for name in evaluators]
        print(f"| batch {size} | {' | '.join(cells)} |", flush=True)


class Bare:
    """The network alone.

    Attributes:
        rates: Evaluations a second in each round.
    """

    def __init__(self, evaluator: Evaluator, size: int) -> None:
        self._evaluate = evaluator.evaluate
        self._planes = numpy.zeros((size, evaluator.plane_num, 9, 9), numpy.float32)
        boards = [shogi.Board(sfen(POSITION + number)) for number in range(size)]
        write_planes(*zip(*((board.sfen(), board.turn) for board in boards)), self._planes)
        self._evaluate(self._planes)
        self.rates: list[float] = []

    def run(self, seconds: float) -> None:
        """Evaluates the same batch again and again."""
        batches, start = 0, time.perf_counter()
        while (spent := time.perf_counter() - start) < seconds:
            self._evaluate(self._planes)
            batches += 1
        self.rates.append(batches * len(self._planes) / spent)


class Searching:
    """A search of one position.

    Attributes:
        rates: Evaluations a second in each round.
        cpu_rates: Playouts in a second of processor time in each round.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        size: int,
        make_board: Callable[[str], SearchBoard] = make_search_board,
        batches: int = 1,
    ) -> None:
        self._evaluator = evaluator
        self._computing = 0.0
        self._spent = 0.0
        settings = Settings(batch_size=size, batches=batches, root_mate=False)
        self._search = Search(self._evaluate, settings)
        self._search.plane_num = evaluator.plane_num
        self._search.begin(Game(make_board(sfen(POSITION))))
        while self._search.root.visits < min(WARM, 10 * size + 20):
            self._search.step(10**9)
        self._search.finish()
        self._computing = 0.0
        self.rates: list[float] = []
        self.cpu_rates: list[float] = []

    def _evaluate(self, planes: numpy.ndarray) -> Any:
        start = time.perf_counter()
        answer = tuple(self._evaluator.evaluate(planes))
        self._computing += time.perf_counter() - start
        return answer

    def run(self, seconds: float) -> None:
        """Searches on."""
        search = self._search
        evaluations, visits = search.evaluations, search.root.visits
        start, cpu = time.perf_counter(), time.process_time()
        while (spent := time.perf_counter() - start) < seconds:
            search.step(10**9)
        cpu = time.process_time() - cpu
        self._spent += spent
        self.rates.append((search.evaluations - evaluations) / spent)
        self.cpu_rates.append((search.root.visits - visits) / cpu)
        search.finish()  # a batch that is still computed would disturb the next side

    def share(self, bare: Bare) -> float:
        """Median of the rounds' ratios to the bare network."""
        return statistics.median(ours / theirs for ours, theirs in zip(self.rates, bare.rates))

    def row(self) -> str:
        """Playouts a CPU second, collisions a playout, part of the network in the time."""
        search = self._search
        return (
            f"{median(self.cpu_rates)} | {search.collisions / search.root.visits:.1%} "
            f"| {self._computing / self._spent:.1%}"
        )


def sfen(number: int) -> str:
    """Returns a position of a real game."""
    return json.loads((REPOSITORY / "tests" / "data" / "labels.json").read_text())[number]["sfen"]


def median(numbers: list[float]) -> str:
    """Formats the median."""
    return f"{statistics.median(numbers):.0f}"


def compare_overheads(against: Path | None, rounds: int) -> None:
    """Prints the processor time of a visit, here and in another version."""
    folders = {"this version": REPOSITORY} | ({against.name: against} if against else {})
    worker = Path(__file__).with_name("overhead_worker.py")
    sides = [
        Side(name, sys.executable, worker, str(folder.resolve()))
        for name, folder in folders.items()
    ]
    request = {"visits": OVERHEAD_VISITS, "batch_size": OVERHEAD_BATCH}
    ratio = " ratio |" if against else ""
    print(f"\n| µs of CPU a visit | {' | '.join(folders)} |{ratio}")
    print("|---|" + "--:|" * (len(sides) + bool(against)))
    for name, position in OVERHEAD.items():
        for side in sides:
            side.ask(sfen=position, **request)  # the first run loads modules
        times = [[side.ask(sfen=position, **request) for side in sides] for _ in range(rounds)]
        least = [min(column) for column in zip(*times)]
        cells = " | ".join(f"{time:.1f}" for time in least)
        ratio = f" {least[-1] / least[0]:.2f} |" if against else ""
        print(f"| {name} | {cells} |{ratio}", flush=True)
    for side in sides:
        side.close()


def measure_memory() -> None:
    """Prints the memory of an evaluation."""
    rng = numpy.random.default_rng(1)

    def evaluate(planes: numpy.ndarray) -> Any:
        logits = 2 * rng.standard_normal((len(planes), 2187), numpy.float32)
        return logits, rng.random(len(planes), numpy.float32)

    search = Search(evaluate, Settings(root_mate=False))
    search.begin(Game(make_search_board(OVERHEAD["middle"])))
    search.step(200)  # what the first visits import and prepare is not the tree's
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    search.tree.forget()
    search.begin(Game(make_search_board(OVERHEAD["middle"])))
    while search.root.visits < MEMORY_VISITS:
        search.step(MEMORY_VISITS)
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    tree, number = search.tree, search.evaluations
    print(f"\nmemory: {tree.size / number:.0f} bytes an evaluation, with unused memory ", end="")
    print(f"{tree.allocated / number:.0f}, {used / number:.0f} with Python's objects", flush=True)


class Engine:
    """The engine as a program."""

    def __init__(self, model: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(REPOSITORY / "mcts_player_usi.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.send(f"setoption name modelfile value {model}")
        self.ask("isready", "readyok")

    def send(self, line: str) -> None:
        """Sends a line."""
        print(line, file=self._process.stdin, flush=True)

    def ask(self, line: str, answer: str) -> tuple[float, str]:
        """Sends a line; returns the milliseconds to the answer, and the line before it."""
        begin, last = time.perf_counter(), ""
        self.send(line)
        for said in self._process.stdout:  # type: ignore[union-attr]
            if said.startswith(answer):
                return 1000 * (time.perf_counter() - begin), last
            last = said
        raise SystemExit(f"The engine ended without {answer}. Its error is above.")

    def stop_after(self, go: str, seconds: float, answer: str) -> float:
        """Starts a search and stops it; returns the milliseconds to the answer."""
        self.send(go)
        time.sleep(seconds)
        return self.ask("stop", answer)[0]

    def quit(self) -> float:
        """Ends the engine; returns the milliseconds until it has ended."""
        begin = time.perf_counter()
        self.send("quit")
        self._process.wait()
        return 1000 * (time.perf_counter() - begin)


def time_engine(models: dict[str, Path], seconds: float) -> None:
    """Prints how fast the engine answers."""
    engine = Engine(models["policy_value"])
    print("\n| stop | median, ms | most, ms |\n|---|--:|--:|")
    for size in (1, 16, 128):
        engine.send(f"setoption name batch_size value {size}")
        engine.ask("usinewgame\nposition startpos\ngo nodes 300", "bestmove")
        engine.send("position startpos")
        times = [engine.stop_after("go infinite", 0.2 + n / 50, "bestmove") for n in range(8)]
        print_times(f"batch {size}", times)
    engine.send(f"position sfen {MATE_POSITION}")
    times = [engine.stop_after("go mate infinite", 0.2 + n / 50, "checkmate") for n in range(8)]
    print_times("mate search", times)
    engine.quit()
    engine = Engine(models["policy_value_small"])  # its tree grows fastest
    engine.send("position startpos\ngo infinite")
    time.sleep(seconds)
    stop, last = engine.ask("stop", "bestmove")
    new_game, _ = engine.ask("usinewgame\nusi", "usiok")
    print(f"\nafter go infinite of {seconds:g} s ({last.split(' pv ')[0]}):")
    print(f"stop {stop:.0f} ms, usinewgame and usi {new_game:.0f} ms, ", end="")
    print(f"quit {engine.quit():.0f} ms", flush=True)


def print_times(name: str, times: list[float]) -> None:
    """Prints a row of the table of answers."""
    print(f"| {name} | {statistics.median(times):.0f} | {max(times):.0f} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
