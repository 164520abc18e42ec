"""Times self-play against the bare network, at the same batch.

    python benchmarks/selfplay.py [--model FILE ...] [--backends own openvino_int8] [--batch 64]
        [--rounds 5] [--seconds 4]

Each round times both, because other programs disturb them: batches of the network alone, on planes
of real positions, and self-play of games in flight. The figures are evaluations for each second of
processor time of all threads. The share is the median of the rounds' own ratios. Without --model,
the weights are random; they take the same time as trained ones.
"""

from __future__ import annotations

import openblas  # noqa: F401

# isort: split
import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from pydlshogi.commands.arguments import positive_int, positive_number  # noqa: E402
from pydlshogi.device import select_device  # noqa: E402
from pydlshogi.errors import UserError  # noqa: E402
from pydlshogi.model_files.model_file import save_model  # noqa: E402
from pydlshogi.network.registry import make_network  # noqa: E402
from pydlshogi.selfplay.game import LiveGame, Pool  # noqa: E402
from pydlshogi.selfplay.generate import Model, random_of  # noqa: E402
from pydlshogi.selfplay.search import RootSearch  # noqa: E402
from pydlshogi.selfplay.settings import SelfPlaySettings  # noqa: E402
from pydlshogi.selfplay.starts import draw_start  # noqa: E402
from pydlshogi.uct.search import compile_search  # noqa: E402

NETWORKS = ("policy_value", "policy_value_small")
SETTINGS = SelfPlaySettings()

#: Batches before the clock starts.
WARM = 30


class Table:
    """Games in flight, which never become fewer."""

    def __init__(self, model: Model, batch: int) -> None:
        self._model, self._number = model, 0
        self.pool = Pool([model.evaluator], batch)
        self._fill()

    def step(self) -> int:
        """Makes a batch; returns the number of evaluations."""
        evaluations = self.pool.step()[1]
        self._fill()
        return evaluations

    def _fill(self) -> None:
        while len(self.pool.games) < self.pool.size:
            self._number += 1
            rng = random_of(0, self._number)
            search = RootSearch(SETTINGS, self._model.evaluator.plane_num)
            start = draw_start(SETTINGS, rng)
            self.pool.games.append(LiveGame(self._number, start, (search, search), SETTINGS, rng))


def rate(step: object, seconds: float) -> float:
    """Returns evaluations for each second of processor time."""
    end, start, number = time.perf_counter() + seconds, time.process_time(), 0
    while time.perf_counter() < end:
        number += step()  # type: ignore[operator]
    return number / (time.process_time() - start)


def measure(model: Model, batch: int, rounds: int, seconds: float) -> tuple[float, float, float]:
    """Returns the rates of the bare network and of self-play, and the share."""
    table = Table(model, batch)
    for _ in range(WARM):
        table.step()
    planes = table.pool._batches[0].inputs._planes[:batch].copy()

    def bare() -> int:
        model.evaluator.evaluate(planes)
        return len(planes)

    pairs = [(rate(bare, seconds), rate(table.step, seconds)) for _ in range(rounds)]
    return (
        statistics.median(pair[0] for pair in pairs),
        statistics.median(pair[1] for pair in pairs),
        statistics.median(played / alone for alone, played in pairs),
    )


def main() -> None:
    """Prints a line for each network and backend."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", nargs="+", default=[])
    parser.add_argument("--backends", nargs="+", default=["own", "openvino_int8"])
    parser.add_argument("--batch", type=positive_int, default=64)
    parser.add_argument("--rounds", type=positive_int, default=5)
    parser.add_argument("--seconds", type=positive_number, default=4)
    args = parser.parse_args()
    compile_search()
    device = select_device(-1)
    print("| network | backend | bare network | self-play | share |")
    print("|:--|:--|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(name) for name in args.model]
        for name in NETWORKS if not paths else ():
            numpy.random.seed(0)
            paths.append(Path(folder, name))
            save_model(paths[-1], make_network(name))
        for path in paths:
            for backend in args.backends:
                try:
                    model = Model(path, device, backend)
                except UserError as error:
                    print(f"| {path.name} | {backend} | {error} |")
                    continue
                bare, played, share = measure(model, args.batch, args.rounds, args.seconds)
                print(f"| {path.name} | {backend} | {bare:.0f} | {played:.0f} | {share:.0%} |")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
