r"""Compares the moves that engines choose, by the evaluations of another engine.

    python benchmarks/move_choice.py KIFULIST --engine ENGINE --engine ENGINE --judge ENGINE \
        --output FOLDER

The engines and the judge are written as for the program match; the option ``go`` is the limit of a
move. The positions come from the games of the list, after 20 to 100 moves. The judge evaluates
the position after each chosen move. Its evaluation is converted to a probability of winning,
1 / (1 + exp(-centipawns / --scale)). A blunder is a move with 0.1 less than the best move of the
engines compared.

Each position gives a difference between two engines, so a hundred positions tell more than a
hundred games. But the judge also makes errors, and an engine that loses less here need not win
more games. The moves and evaluations are kept in the output folder. The same command continues.
"""

from __future__ import annotations

import openblas  # noqa: F401

# isort: split
import concurrent.futures
import contextlib
import json
import math
import statistics
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from pydlshogi.commands.arguments import (  # noqa: E402
    ArgumentParser,
    engine_spec,
    file_name,
    named_path,
    positive_int,
    positive_number,
)
from pydlshogi.commands.program import program  # noqa: E402
from pydlshogi.errors import UserError  # noqa: E402
from pydlshogi.files import write_beside  # noqa: E402
from pydlshogi.match.engine_spec import EngineSpec, Limit  # noqa: E402
from pydlshogi.match.openings import draw_openings  # noqa: E402
from pydlshogi.match.usi_client import UsiClient  # noqa: E402

#: Numbers of moves before the positions.
PLIES = (20, 30, 40, 50, 60, 70, 80, 90, 100)

#: The limit of engines that have none of their own.
LIMIT = Limit("nodes", 1000)

#: Seconds that an answer may take.
TIMEOUT = 600

#: Seconds that a move under way may take after an interrupt.
PATIENCE = 10

#: A loss of this winning probability is a blunder.
BLUNDER = 0.1

#: Positions between two saves.
SLICE = 10

#: Name of the file of the evaluations.
JUDGE = "judge"

#: The moves to a position, in USI notation.
Position = list[str]


@program("move_choice", interrupted="The same command continues.")
def main(argv: Sequence[str] | None = None) -> int:
    """Collects the moves and their evaluations, and prints the table."""
    parser = ArgumentParser(prog="move_choice", description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("kifulist", type=file_name, help="text file with the paths of the games")
    add("--engine", action="append", required=True, type=engine_spec, help="may be repeated")
    add("--judge", required=True, type=engine_spec, metavar="ENGINE")
    add("--positions", type=positive_int, default=396, help="default: %(default)s")
    add("--scale", type=positive_number, default=400, help="in centipawns (default: %(default)s)")
    add("--concurrency", type=positive_int, default=1, help="engines at a time (%(default)s)")
    add("--output", type=named_path, required=True, metavar="FOLDER")
    arguments = parser.parse_args(argv)
    check_names(parser, arguments.engine, reserved=JUDGE)
    positions = draw_positions(arguments.kifulist, arguments.positions)
    arguments.output.mkdir(parents=True, exist_ok=True)
    moves = choose_all(arguments.output, arguments.engine, positions, arguments.concurrency)
    lines = sorted({" ".join([*p, m]) for ms in moves.values() for p, m in zip(positions, ms)})
    values = judge(arguments.output, arguments.judge, lines, arguments.scale)
    print_table(positions, moves, values)
    return 0


def check_names(parser: ArgumentParser, specs: Sequence[EngineSpec], reserved: str = "") -> None:
    """Refuses engines whose results would go to the same file, or to the reserved one."""
    names = [spec.name.lower() for spec in specs]
    if len(set(names)) < len(names):
        parser.error("two engines have the same name")
    if reserved in names:
        parser.error(
            f"the name {reserved!r} is reserved for {reserved}.json; give the engine another name"
        )


def draw_positions(kifulist: str, number: int) -> list[Position]:
    """Draws positions from games, as many from each part of a game."""
    each = -(-number // len(PLIES))
    return [
        opening.moves for plies in PLIES for opening in draw_openings(each, plies, plies, kifulist)
    ][:number]


def choose_all(
    folder: Path, specs: Sequence[EngineSpec], positions: list[Position], concurrency: int
) -> dict[str, list[str]]:
    """Asks engines for their moves in each position; returns the moves by the engine's name."""
    stop = threading.Event()
    clients: list[UsiClient] = []
    with concurrent.futures.ThreadPoolExecutor(concurrency) as pool:
        jobs = [pool.submit(choose, folder, spec, positions, stop, clients) for spec in specs]
        try:
            return {spec.name: job.result() for spec, job in zip(specs, jobs)}
        finally:  # an interrupt, or a fault of one engine, ends all of them
            stop.set()
            end(jobs, clients)


def end(jobs: Sequence[concurrent.futures.Future], clients: Sequence[UsiClient]) -> None:
    """Waits for the current moves; kills the engines after some seconds or at Ctrl-C."""
    with contextlib.suppress(KeyboardInterrupt):
        concurrent.futures.wait(jobs, PATIENCE)
    while any(job.running() for job in jobs):
        with contextlib.suppress(KeyboardInterrupt):
            for client in list(clients):
                client.kill()
            concurrent.futures.wait(jobs, 0.1)


def choose(
    folder: Path,
    spec: EngineSpec,
    positions: list[Position],
    stop: threading.Event,
    clients: list[UsiClient],
) -> list[str]:
    """Asks an engine for its move in each position, until it is told to stop."""
    path = folder / f"{spec.name}.json"
    known = read(path, describe(spec))
    if stop.is_set():
        return []
    client = UsiClient(spec, TIMEOUT)
    clients.append(client)
    with client:
        for number, position in enumerate(positions):
            if stop.is_set():
                write(path, describe(spec), known)
                return []
            line = " ".join(position)
            if line not in known:
                client.new_game()
                known[line] = client.best_move(position, LIMIT).move
            if number % SLICE == 0 or position is positions[-1]:
                write(path, describe(spec), known)
    return [known[" ".join(position)] for position in positions]


def judge(folder: Path, spec: EngineSpec, lines: list[str], scale: float) -> dict[str, float]:
    """Returns the winning probability of the side that made the last move of each line."""
    path = folder / f"{JUDGE}.json"
    known = read(path, describe(spec))
    with UsiClient(spec, TIMEOUT) as client:
        for number, line in enumerate(lines):
            if line not in known:
                known[line] = evaluate(client, line.split())
            if number % SLICE == 0 or line == lines[-1]:
                write(path, describe(spec), known)
    return {line: 1 / (1 + math.exp(known[line] / scale)) for line in lines}


def evaluate(client: UsiClient, moves: list[str]) -> int:
    """Evaluates a position for its side to move, in centipawns, within 4,000."""
    if moves[-1] in ("resign", "win"):
        return 4000 if moves[-1] == "resign" else -4000
    client.new_game()
    answer = client.best_move(moves, LIMIT)
    if answer.evaluation is None and answer.move != "resign":
        raise UserError(f"the judge sent no evaluation after: {' '.join(moves)}")
    if answer.evaluation is None or answer.move == "resign":
        return -4000
    return max(-4000, min(4000, answer.evaluation))


def describe(spec: EngineSpec) -> str:
    """Describes an engine, so that results of other options are not mixed."""
    return repr((spec.command, spec.options, spec.limit))


def read(path: Path, engine: str) -> dict:
    """Reads the results of an engine; ends the program if they are of another one."""
    if not path.exists():
        return {}
    stored = json.loads(path.read_text(encoding="utf-8"))
    if stored["engine"] != engine:
        raise UserError(f"{path} holds results of {stored['engine']}. Choose another --output.")
    return stored["results"]


def write(path: Path, engine: str, results: dict) -> None:
    """Writes the results of an engine."""
    with write_beside(path) as file:
        file.write(json.dumps({"engine": engine, "results": results}, indent=1).encode("utf-8"))


def print_table(
    positions: list[Position], moves: dict[str, list[str]], values: dict[str, float]
) -> None:
    """Prints how good the moves of each engine are, compared with those of the first."""
    first, *_ = moves
    found = {
        name: [values[" ".join([*p, m])] for p, m in zip(positions, chosen)]
        for name, chosen in moves.items()
    }
    best = [max(at) for at in zip(*found.values())]
    print(f"{len(positions)} positions")
    print(f"| engine | winning probability | compared with {first} | other moves | blunders |")
    print("|:--|--:|--:|--:|--:|")
    for name, at in found.items():
        blunders = sum(b - value > BLUNDER for b, value in zip(best, at))
        others = sum(a != b for a, b in zip(moves[name], moves[first]))
        print(
            f"| {name} | {100 * statistics.fmean(at):.2f} % | {difference(at, found[first])} "
            f"| {others} | {blunders} |"
        )


def difference(values: Sequence[float], others: Sequence[float]) -> str:
    """Formats the mean difference of pairs with its 95 % interval, in points."""
    pairs = [100 * (a - b) for a, b in zip(values, others)]
    error = 1.96 * statistics.stdev(pairs) / math.sqrt(len(pairs)) if len(pairs) > 1 else math.inf
    return f"{statistics.fmean(pairs):+.2f} ± {error:.2f}"


if __name__ == "__main__":
    sys.exit(main())
