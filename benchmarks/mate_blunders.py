r"""Counts the moves after which the opponent has a forced mate.

    python benchmarks/mate_blunders.py KIFULIST --engine ENGINE --engine ENGINE --output FOLDER

The engines are written as for the program match; the option ``go`` is the limit of a move. The
positions are those of the games of the list, 2 to 30 moves before the end. cshogi's df-pn
search with many positions looks for the mates. Some mates cannot be avoided, so only the
differences between engines count. Positions in which an engine resigns are left out.

The moves are kept in the output folder. The same command continues.
"""

from __future__ import annotations

import openblas  # noqa: F401

# isort: split
import itertools
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from move_choice import Position, check_names, choose_all

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from pydlshogi.commands.arguments import (  # noqa: E402
    ArgumentParser,
    engine_spec,
    file_name,
    named_path,
    positive_int,
)
from pydlshogi.commands.program import program  # noqa: E402
from pydlshogi.errors import UserError  # noqa: E402
from pydlshogi.kifu.parsed_game import RecordError  # noqa: E402
from pydlshogi.match.openings import first_moves, shuffled_records, unread  # noqa: E402
from pydlshogi.uct.cshogi_board import CshogiBoard  # noqa: E402

#: The positions are at least and at most so many moves before the end of their games.
LAST, FIRST = 2, 30

#: Games that are shorter are left out.
SHORTEST = 60

#: Positions that a search for a mate visits, and the longest mate.
NODES, LONGEST = 200_000, 31


@program("mate_blunders", interrupted="The same command continues.")
def main(argv: Sequence[str] | None = None) -> int:
    """Collects the moves, looks for mates after them, and prints the table."""
    parser = ArgumentParser(prog="mate_blunders", description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("kifulist", type=file_name, help="text file with the paths of the games")
    add("--engine", action="append", required=True, type=engine_spec, help="may be repeated")
    add("--positions", type=positive_int, default=400, help="default: %(default)s")
    add("--seed", type=int, default=0, help="of the positions (default: %(default)s)")
    add("--concurrency", type=positive_int, default=1, help="engines at a time (%(default)s)")
    add("--output", type=named_path, required=True, metavar="FOLDER")
    arguments = parser.parse_args(argv)
    check_names(parser, arguments.engine)
    positions = draw_endgames(arguments.kifulist, arguments.positions, arguments.seed)
    arguments.output.mkdir(parents=True, exist_ok=True)
    moves = choose_all(arguments.output, arguments.engine, positions, arguments.concurrency)
    print_table(positions, moves)
    return 0


def draw_endgames(kifulist: str, number: int, seed: int) -> list[Position]:
    """Draws a position from each of some games."""
    positions = []
    problems: list[str] = []
    for position in _endgames(kifulist, seed, problems):
        positions.append(position)
        if len(positions) == number:
            return positions
    raise UserError(
        f"the games of {kifulist} have {len(positions)} positions near their ends, but {number} "
        "are needed. Name more games, or lower --positions." + unread(problems)
    )


def _endgames(kifulist: str, seed: int, problems: list[str]) -> Iterator[Position]:
    """Yields a position of each game that is long enough; notes files that cannot be read."""
    generator = random.Random(seed)
    for record in shuffled_records(kifulist, seed, problems):
        try:
            length = len(record.parse().moves)
        except RecordError:
            continue
        if length >= SHORTEST:
            position = first_moves(record, length - generator.randint(LAST, FIRST))
            if position:
                yield position


def print_table(positions: list[Position], moves: dict[str, list[str]]) -> None:
    """Prints how often the opponent has a mate after the moves of each engine."""
    first, *_ = moves
    played = ["resign" not in chosen for chosen in zip(*moves.values())]
    positions = list(itertools.compress(positions, played))
    moves = {name: list(itertools.compress(chosen, played)) for name, chosen in moves.items()}
    mates = {
        name: [allows_mate(position, move) for position, move in zip(positions, chosen)]
        for name, chosen in moves.items()
    }
    print(f"{len(positions)} positions")
    print(f"| engine | moves into a mate | only {first} | only this engine | other moves |")
    print("|:--|--:|--:|--:|--:|")
    for name, found in mates.items():
        pairs = list(zip(mates[first], found))
        others = sum(a != b for a, b in zip(moves[first], moves[name]))
        print(
            f"| {name} | {sum(found)} | {pairs.count((True, False))} "
            f"| {pairs.count((False, True))} | {others} |"
        )


def allows_mate(position: Position, move: str) -> bool:
    """Says whether the opponent has a mate after a move."""
    if move == "win":
        return False
    line, _ = CshogiBoard(None, [*position, move]).search_mate(NODES, LONGEST)
    return bool(line)


if __name__ == "__main__":
    sys.exit(main())
