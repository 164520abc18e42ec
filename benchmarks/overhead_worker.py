"""Searches with an evaluator that answers at once, for the part overhead of benchmarks/search.py.

The first argument is a name, the second a checkout of this repository. Each line of input is a
request with a position, its number of visits, and the size of a batch; the answer is the
processor time of a visit in microseconds.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time

sys.path.insert(0, sys.argv[2])

import numpy

from pydlshogi.uct.boards import make_search_board
from pydlshogi.uct.game import Game
from pydlshogi.uct.search import Search
from pydlshogi.uct.settings import Settings

try:  # versions with a tree of Python objects
    from pydlshogi.uct.garbage_collector import no_garbage_collection
except ImportError:
    no_garbage_collection = contextlib.nullcontext

LARGEST_BATCH = 128


def random_answers() -> tuple[numpy.ndarray, numpy.ndarray]:
    """Returns logits and values for the largest batch, the same ones for each."""
    rng = numpy.random.default_rng(1)
    logits = rng.standard_normal((LARGEST_BATCH, 2187), numpy.float32)
    return logits, rng.uniform(0.3, 0.7, LARGEST_BATCH).astype(numpy.float32)


def measure(sfen: str, visits: int, batch_size: int) -> float:
    """Returns the microseconds of a visit."""
    logits, wins = random_answers()
    search = Search(
        lambda planes: (logits[: len(planes)], wins[: len(planes)]),
        Settings(batch_size=batch_size),
    )
    search.begin(Game(make_search_board(sfen)))
    start = time.process_time()
    with no_garbage_collection():
        while search.root.visits < visits and not search.root.proof:
            search.step(visits)
    return 1e6 * (time.process_time() - start) / search.root.visits


def main() -> None:
    """Answers requests."""
    for line in sys.stdin:
        print(json.dumps(measure(**json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
