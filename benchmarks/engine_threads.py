"""Times an engine's answers with one and two threads, on an idle and on a busy machine.

    python benchmarks/engine_threads.py [--busy 6] [--positions 60] [--engine policy_player]

The option ``Threads`` has the default that is good in both cases. Medians from ``go`` to
``bestmove``, measured from outside, as a GUI would.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]

#: Variables that would fix the number of threads.
VARIABLES = ("PYDLSHOGI_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")

#: Seconds after which a measurement is broken off, so that it ends also where threads starve.
PATIENCE = 60.0


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--busy", type=int, default=6, help="busy processes (default: 6)")
    parser.add_argument("--positions", type=int, default=60, help="answers each (default: 60)")
    parser.add_argument("--engine", default="policy_player", help="policy_player (default) or …")
    parser.add_argument("--modelfile", default="model/model_policy", help="model to play with")
    arguments = parser.parse_args()
    entries = json.loads((REPOSITORY / "tests" / "data" / "labels.json").read_text())
    sfens = [entry["sfen"] for entry in entries][: arguments.positions]
    for busy in (0, arguments.busy):
        for threads in (1, 2):
            with busy_processes(busy):
                seconds = answers(arguments.engine, arguments.modelfile, threads, sfens)
            late = sorted(seconds)[int(0.95 * (len(seconds) - 1))]
            print(
                f"{busy} busy processes, Threads {threads}: median "
                f"{1000 * statistics.median(seconds):.0f} ms, 95 %: {1000 * late:.0f} ms "
                f"({len(seconds)} positions)",
                flush=True,
            )
    return 0


@contextlib.contextmanager
def busy_processes(number: int) -> Iterator[None]:
    """Keeps the processor busy with other processes."""
    processes = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)
    ]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def answers(engine: str, modelfile: str, threads: int, sfens: list[str]) -> list[float]:
    """Returns the seconds from ``go`` to ``bestmove`` for each position, until PATIENCE ends."""
    environment = {name: text for name, text in os.environ.items() if name not in VARIABLES}
    process = subprocess.Popen(
        [sys.executable, str(REPOSITORY / f"{engine}_usi.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert process.stdin is not None and process.stdout is not None

    def ask(command: str, answer: str) -> float:
        start = time.perf_counter()
        print(command, file=process.stdin, flush=True)
        for line in process.stdout:  # type: ignore[union-attr]
            if line.startswith(answer):
                return time.perf_counter() - start
        raise SystemExit(f"{engine} ended without {answer}")

    print("setoption name device value cpu", file=process.stdin)
    print(f"setoption name modelfile value {modelfile}", file=process.stdin)
    ask(f"setoption name Threads value {threads}\nisready", "readyok")
    seconds: list[float] = []
    end = time.perf_counter() + PATIENCE
    for sfen in sfens:
        ask(f"position sfen {sfen}\nusi", "usiok")
        seconds.append(ask("go", "bestmove"))
        if time.perf_counter() > end:
            break
    process.communicate("quit\n")
    return seconds


if __name__ == "__main__":
    sys.exit(main())
