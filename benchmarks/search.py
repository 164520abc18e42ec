"""Times the search against the bare network, and its selection against numpy arrays in nodes.

    python benchmarks/search.py [--seconds 5] [--rounds 3] [--infinite 20]

The weights are random; they take the same time as trained ones. The rounds of the sides
alternate. The best round of each side counts, because other programs only slow a round down.

- Evaluations a second at the same batch size: the bare network, the search with cshogi's board,
  and the search with python-shogi's.
- Playouts in a second of processor time, and memory of an evaluation.
- Time to select a child: with plain lists of the visited children (this package), and with
  arrays over all children of a node (the published method of python-dlshogi2, written anew).
- How long the engine takes to answer stop, usinewgame and quit after go infinite.
"""

from __future__ import annotations

import openblas  # noqa: F401

# isort: split
import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable

import numpy

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from pydlshogi.device import select_device  # noqa: E402
from pydlshogi.network.cpu.threads import get_threads  # noqa: E402
from pydlshogi.network.evaluator import Evaluator  # noqa: E402
from pydlshogi.network.model_file import save_model  # noqa: E402
from pydlshogi.network.registry import make_network  # noqa: E402
from pydlshogi.uct.collector import no_collection  # noqa: E402
from pydlshogi.uct.cshogi_board import CshogiBoard  # noqa: E402
from pydlshogi.uct.game import Game  # noqa: E402
from pydlshogi.uct.node import Node  # noqa: E402
from pydlshogi.uct.policy import Policy  # noqa: E402
from pydlshogi.uct.python_shogi_board import PythonShogiBoard  # noqa: E402
from pydlshogi.uct.search import Search  # noqa: E402
from pydlshogi.uct.selection import select  # noqa: E402
from pydlshogi.uct.settings import Settings  # noqa: E402

#: Visits before the clock starts: by then the batches are full.
WARM = 400

NETWORKS = {"policy_value": (1, 8, 16, 32), "policy_value_small": (16, 64)}
BOARDS = {"cshogi": CshogiBoard, "python-shogi": PythonShogiBoard}


def main() -> int:
    """Runs all measurements and prints them as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5, help="of one round of one side")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--infinite", type=float, default=20, help="seconds of go infinite")
    arguments = parser.parse_args()
    print(f"{get_threads()} threads\n")
    with tempfile.TemporaryDirectory() as folder:
        models = {name: Path(folder) / name for name in NETWORKS}
        for name, path in models.items():
            save_model(path, make_network(name))
        compare_networks(models, arguments.seconds, arguments.rounds)
        compare_selections()
        time_engine(models["policy_value_small"], arguments.infinite)
    return 0


def compare_networks(models: dict[str, Path], seconds: float, rounds: int) -> None:
    """Prints evaluations a second of the bare network and of the search."""
    print("| network, batch | bare, evaluations/s | search, cshogi | search, python-shogi |")
    print("|---|--:|--:|--:|")
    details = []
    for name, sizes in NETWORKS.items():
        evaluator = Evaluator(models[name], select_device())
        for size in sizes:
            bare = 0.0
            found: dict[str, list[dict[str, float]]] = {board: [] for board in BOARDS}
            for _ in range(rounds):
                bare = max(bare, time_network(evaluator, size, seconds))
                for board in BOARDS:
                    found[board].append(time_search(evaluator, board, size, seconds))
            best = {b: max(rows, key=lambda row: row["rate"]) for b, rows in found.items()}
            cells = [f"{best[b]['rate']:.0f} ({best[b]['rate'] / bare:.0%})" for b in BOARDS]
            print(f"| {name} {size} | {bare:.0f} | {' | '.join(cells)} |", flush=True)
            details += [(name, size, board, best[board]) for board in BOARDS]
    print("\n| network, batch | board | playouts/CPU s | collisions/playout | tree, B/evaluation |")
    print("|---|---|--:|--:|--:|")
    for name, size, board, row in details:
        print(
            f"| {name} {size} | {board} | {row['cpu_rate']:.0f} | {row['collisions']:.1%} "
            f"| {row['bytes']:.0f} |"
        )


def time_network(evaluator: Evaluator, size: int, seconds: float) -> float:
    """Returns the evaluations a second of the network alone."""
    planes = numpy.random.default_rng(1).random((size, 104, 9, 9), numpy.float32).round()
    evaluator.evaluate(planes)
    batches, start = 0, time.perf_counter()
    while (spent := time.perf_counter() - start) < seconds:
        evaluator.evaluate(planes)
        batches += 1
    return batches * size / spent


def time_search(evaluator: Evaluator, board: str, size: int, seconds: float) -> dict[str, float]:
    """Searches a position from a game and returns the figures of the table."""

    def evaluate(planes: numpy.ndarray) -> Any:
        return tuple(evaluator.evaluate(planes))

    entry = json.loads((REPOSITORY / "tests" / "data" / "labels.json").read_text())[40]
    search = Search(evaluate, Settings(batch_size=size, root_mate=False))
    search.begin(Game(BOARDS[board](entry["sfen"])))
    with no_collection():
        while search.root.visits < min(WARM, 10 * size + 20):
            search.step(10**9)
        known, visits, clashes = search.evaluations, search.root.visits, search.collisions
        start, cpu = time.perf_counter(), time.process_time()
        while (spent := time.perf_counter() - start) < seconds:
            search.step(10**9)
        cpu = time.process_time() - cpu
    playouts = search.root.visits - visits
    return {
        "rate": (search.evaluations - known) / spent,
        "cpu_rate": playouts / cpu,
        "collisions": (search.collisions - clashes) / playouts,
        "bytes": search.tree.size / search.evaluations,
    }


class ArrayNode:
    """A node with arrays over all its children, as python-dlshogi2 has it."""

    def __init__(self, priors: numpy.ndarray) -> None:
        self.priors = priors
        self.visits = numpy.zeros(len(priors), numpy.int32)
        self.totals = numpy.zeros(len(priors), numpy.float32)


def select_by_arrays(node: ArrayNode, visits: int) -> int:
    """Chooses the child with the highest score, over all children at once."""
    means = numpy.divide(
        node.totals, node.visits, out=numpy.zeros(len(node.visits), numpy.float32),
        where=node.visits != 0,
    )  # fmt: skip
    exploration = numpy.sqrt(numpy.float32(visits)) / (1 + node.visits)
    return int(numpy.argmax(means + node.priors * exploration))


def compare_selections() -> None:
    """Prints the time of a selection by the number of visited children, of 90."""
    print("\n| visited children | plain lists, µs | arrays in nodes, µs |")
    print("|--:|--:|--:|")
    rng = numpy.random.default_rng(1)
    for visited in (1, 8, 20, 90):
        policy = Policy(numpy.arange(90, dtype=numpy.uint16), rng.normal(size=90), 0.5)
        node = Node()
        node.policy = policy
        node.expand(1.0)
        arrays = ArrayNode(policy.priors)
        for index in range(visited):
            node.add_child()
            node.child_visits[index], arrays.visits[index] = 9, 9
            node.child_totals[index], arrays.totals[index] = 4.5, 4.5
        node.visits, node.total = 1 + 9 * visited, 4.5 * visited
        ours = microseconds(lambda node=node: select(node, 1.44, 28288, 0.27))
        theirs = microseconds(lambda arrays=arrays, n=node.visits: select_by_arrays(arrays, n))
        print(f"| {visited} | {ours:.1f} | {theirs:.1f} |")


def microseconds(work: Callable[[], object], repeats: int = 2000) -> float:
    """Returns the least of five mean times of a call."""
    best = math.inf
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(repeats):
            work()
        best = min(best, time.perf_counter() - start)
    return 1e6 * best / repeats


def time_engine(model: Path, seconds: float) -> None:
    """Prints how fast the engine answers behind a long search."""
    engine = subprocess.Popen(
        [sys.executable, str(REPOSITORY / "mcts_player_usi.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert engine.stdin and engine.stdout

    def send(line: str) -> None:
        print(line, file=engine.stdin, flush=True)

    def wait(start: str) -> tuple[float, str]:
        begin, last = time.perf_counter(), ""
        for line in engine.stdout:  # type: ignore[union-attr]
            if line.startswith(start):
                return 1000 * (time.perf_counter() - begin), last
            last = line
        raise SystemExit(f"The engine ended without {start}. Its error is above.")

    send(f"setoption name modelfile value {model}")
    send("isready")
    wait("readyok")
    stops = []
    for _ in range(20):
        send("go infinite")
        time.sleep(0.2)
        send("stop")
        stops.append(wait("bestmove")[0])
    send("go infinite")
    time.sleep(seconds)
    send("stop")
    stop, last = wait("bestmove")
    send("usinewgame")
    send("usi")
    new_game, _ = wait("usiok")
    begin = time.perf_counter()
    send("quit")
    engine.wait()
    print(f"\nstop after 0.2 s: median {statistics.median(stops):.0f} ms, most {max(stops):.0f} ms")
    print(f"after go infinite of {seconds:g} s ({last.split(' pv ')[0]}):")
    print(f"stop {stop:.0f} ms, usinewgame and usi {new_game:.0f} ms, ", end="")
    print(f"quit {1000 * (time.perf_counter() - begin):.0f} ms")


if __name__ == "__main__":
    sys.exit(main())
