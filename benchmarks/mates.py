"""Counts the mate problems that the search of ``go mate`` solves, by their length.

    python benchmarks/mates.py KIFULIST [--problems 300] [--seed 0]

A problem is a position near the end of a game of the list, with a mate of 3 to 25 plies. cshogi's
df-pn is the judge: a problem's length is that of the shortest mate that it finds. Each game gives
one problem, of the length that is rarest so far. The same list and seed give the same problems.

Each problem is searched with a limit of 1 s, and with one of 10 s if this was not enough. An answer
counts if it is a mate. The last line is the longest time from the limit to the answer.
"""

from __future__ import annotations

import openblas  # noqa: F401

# isort: split
import collections
import contextlib
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sides import processor

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from pydlshogi.bar import bar  # noqa: E402
from pydlshogi.commands.arguments import ArgumentParser, file_name, positive_int  # noqa: E402
from pydlshogi.commands.program import program  # noqa: E402
from pydlshogi.errors import UserError  # noqa: E402
from pydlshogi.kifu.formats import Record  # noqa: E402
from pydlshogi.kifu.parsed_game import RecordError  # noqa: E402
from pydlshogi.match.openings import first_moves, shuffled_records, unread  # noqa: E402
from pydlshogi.uct.board import ends_in_mate  # noqa: E402
from pydlshogi.uct.boards import board_library, make_search_board  # noqa: E402
from pydlshogi.uct.dfpn import MateSearch  # noqa: E402
from pydlshogi.uct.mate import find_mate  # noqa: E402
from pydlshogi.uct.move import from_usi  # noqa: E402

LENGTHS = range(3, 26, 2)

#: Positions that the judge visits.
NODES = 300_000

#: Limits of a search in seconds, and its memory in bytes.
LIMITS = (1, 10)
MEMORY = 5 * 10**8


class Problem(NamedTuple):
    """A mate problem.

    Attributes:
        moves: The moves from the start of the game to its position, in USI's notation.
        plies: Its length.
    """

    moves: list[str]
    plies: int


@program("mates")
def main(argv: Sequence[str] | None = None) -> int:
    """Makes the problems, searches them and prints the table."""
    parser = ArgumentParser(prog="mates", description=__doc__.splitlines()[0])
    parser.add_argument("kifulist", type=file_name, help="text file with the paths of the games")
    parser.add_argument("--problems", type=positive_int, default=300, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="of the games (default: %(default)s)")
    arguments = parser.parse_args(argv)
    if board_library() != "cshogi":
        print("No problems can be made: their judge, cshogi, is not installed.")
        return 0
    problems = make_problems(arguments.kifulist, arguments.problems, arguments.seed)
    print(f"{processor()}\n\n| plies | problems | solved in 1 s | in 10 s |\n|--:|--:|--:|--:|")
    latest, sums = 0.0, [0, 0, 0]
    for length in LENGTHS:
        row = [0, 0, 0]
        for problem in problems:
            if problem.plies == length:
                solved, late = solve(problem)
                latest = max(latest, late)
                row = [a + b for a, b in zip(row, (1, *solved))]
        sums = [a + b for a, b in zip(sums, row)]
        print(f"| {length} | {' | '.join(map(str, row))} |", flush=True)
    print(f"| all | {' | '.join(map(str, sums))} |\n\nlongest stop: {1000 * latest:.0f} ms")
    return 0


def make_problems(kifulist: str, number: int, seed: int) -> list[Problem]:
    """Makes problems, one from a game.

    Raises:
        UserError: There are too few games.
    """
    made: collections.Counter[int] = collections.Counter()
    problems: list[Problem] = []
    unreadable: list[str] = []
    with bar(total=number, unit="problem") as progress:
        for record in shuffled_records(kifulist, seed, unreadable):
            found = mates_of(record)
            if found:
                rarest = min(found, key=lambda problem: (made[problem.plies], -problem.plies))
                problems.append(rarest)
                made[rarest.plies] += 1
                progress.update()
            if len(problems) == number:
                return problems
    raise UserError(
        f"the games of {kifulist} give {len(problems)} mate problems, but {number} are needed. "
        "Name more games, or lower --problems." + unread(unreadable)
    )


def mates_of(record: Record) -> list[Problem]:
    """Lists the problems at the end of a game: from the last one back to the longest."""
    problems: list[Problem] = []
    with contextlib.suppress(RecordError):
        moves = first_moves(record, len(record.parse().moves) - 1)
        while moves and (plies := shortest_mate(moves)) <= LENGTHS[-1]:
            problems += [Problem(moves, plies)] if plies in LENGTHS else []
            moves = moves[:-2]
    return problems


def shortest_mate(moves: list[str]) -> int:
    """Returns the length of the shortest mate that cshogi finds; without one, a large number."""
    board, plies = make_search_board(), sys.maxsize
    for move in moves:
        board.push(from_usi(move))
    while line := board.search_mate(NODES, min(plies - 2, LENGTHS[-1] + 6))[0]:
        if len(line) >= plies:
            break
        plies = len(line)
    return plies


def solve(problem: Problem) -> tuple[list[bool], float]:
    """Searches a problem.

    Returns:
        Whether it was solved within each limit, and the longest time from a limit to the answer.
    """
    late, board = 0.0, make_search_board()
    for move in problem.moves:
        board.push(from_usi(move))
    for number, limit in enumerate(LIMITS):
        end = time.monotonic() + limit
        search = MateSearch(board, MEMORY)
        line = find_mate(search, lambda end=end: time.monotonic() >= end, MEMORY)
        late = max(late, time.monotonic() - end)
        search.free()
        if line and ends_in_mate(board, line):
            return [False] * number + [True] * (len(LIMITS) - number), late
    return [False] * len(LIMITS), late


if __name__ == "__main__":
    sys.exit(main())
