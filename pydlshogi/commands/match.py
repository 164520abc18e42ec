"""The program match: plays matches between USI engines and prints the results."""

from __future__ import annotations

import argparse
import contextlib
import functools
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydlshogi.commands.arguments import (
    ArgumentParser,
    add_number,
    engine_spec,
    file_name,
    named_path,
    positive_int,
    whole_number,
)
from pydlshogi.commands.program import program
from pydlshogi.errors import UserError
from pydlshogi.match.engine_spec import MOST, USUAL_OPPONENTS, EngineSpec, parse_engine

#: Largest number of moves of an opening: longer games of random moves end too early.
_MOST_OPENING_MOVES = 200

#: Numbers of moves of an opening, if --plies is missing: random ones, and those of a game.
_RANDOM_MOVES, _GAME_MOVES = 4, 24

if TYPE_CHECKING:
    from pydlshogi.match.referee import Verdict
    from pydlshogi.match.series import Series, Tournament


def build_parser() -> ArgumentParser:
    """Makes the parser of the command line."""
    parser = ArgumentParser(
        prog="match",
        description="Plays games between every --engine and every --opponent and prints a table "
        "of the results. Two games start from each opening, with sides exchanged. Each "
        "game is saved in --output as a CSA file and as an HTML page with a board. "
        "The same command continues an interrupted match.",
        epilog="An ENGINE is NAME=COMMAND;OPTION=VALUE;... (a USI engine; quote the whole), "
        "random (plays any legal move), or fairy:LEVEL (fairy-stockfish at that Skill Level, "
        "-20 to 20). The OPTION go is the limit of this engine's moves: go=nodes 1000, go=depth 5 "
        "or go=byoyomi 1000.",
    )
    add = parser.add_argument
    add(
        "--engine",
        action="append",
        required=True,
        type=engine_spec,
        help="engine to test; may be repeated",
    )
    add(
        "--opponent",
        action="append",
        type=engine_spec,
        metavar="ENGINE",
        help=f"opponent; may be repeated (default: {' '.join(USUAL_OPPONENTS)})",
    )
    add(
        "--output",
        type=named_path,
        required=True,
        metavar="FOLDER",
        help="folder of the game records and tables",
    )
    text = "number of games against each opponent, even"
    add_number(parser, "--games", positive_int, text, 100)
    add(
        "--openings",
        type=file_name,
        metavar="KIFULIST",
        help="text file with the paths of games; the first moves of a game begin each pair of "
        "games (default: random moves)",
    )
    add_number(
        parser,
        "--plies",
        functools.partial(whole_number, least=1, most=_MOST_OPENING_MOVES),
        f"number of moves of an opening, at most {_MOST_OPENING_MOVES} (default: "
        f"{_RANDOM_MOVES} random moves, or {_GAME_MOVES} moves of a game)",
    )
    add_number(parser, "--seed", int, "seed of the openings", 0)
    add_number(parser, "--max_plies", positive_int, "a game of N moves is drawn", 320)
    add_number(parser, "--concurrency", positive_int, "number of games at a time", 1)
    limits = parser.add_mutually_exclusive_group()
    limit = functools.partial(whole_number, least=1, most=MOST)
    add_number(limits, "--nodes", limit, "nodes for each move (default: 1000)")
    add_number(limits, "--depth", limit, "search depth of each move")
    limits.add_argument("--byoyomi", type=limit, metavar="MS", help="milliseconds for each move")
    add(
        "--timeout",
        type=limit,
        default=120,
        metavar="SECONDS",
        help="an engine that does not answer for so long, in addition to the byoyomi, loses "
        "(default: %(default)s)",
    )
    return parser


@program("match", interrupted="The same command continues the match.")
def main(argv: Sequence[str] | None = None) -> int:
    """Plays the games that are missing, and prints the table; returns the exit status."""
    parser = build_parser()
    args = parser.parse_args(argv)
    if args.plies is None:
        args.plies = _GAME_MOVES if args.openings else _RANDOM_MOVES
    opponents = args.opponent or [parse_engine(text) for text in USUAL_OPPONENTS]
    _check(parser, args, opponents)
    tournament = _tournament(args, opponents)
    tournament.check()
    print(_play_all(tournament, args.concurrency), end="")
    print(f"{args.output}: table.md, table.tsv and a folder of records for each pair")
    return 0


def _check(
    parser: ArgumentParser, args: argparse.Namespace, opponents: Sequence[EngineSpec]
) -> None:
    """Refuses options that do not fit each other, and an output that is a file."""
    if args.games % 2:
        parser.error(f"--games {args.games} is odd; the engines change sides after each game")
    if args.max_plies <= args.plies:
        parser.error(f"--max_plies {args.max_plies} leaves no move after the --plies at the start")
    for option, specs in (("--engine", args.engine), ("--opponent", opponents)):
        names = [spec.name for spec in specs]
        if len(set(names)) < len(names):
            parser.error(f"two engines of {option} have the same name")
    specs_by_name = {spec.name: spec for spec in args.engine}
    for spec in opponents:
        if specs_by_name.get(spec.name, spec) != spec:
            parser.error(f"--engine and --opponent give the name {spec.name!r} to two engines")
    if args.output.exists() and not args.output.is_dir():
        raise UserError(
            f"--output {args.output} is a file. Name a folder; it is made if it is missing."
        )


def _tournament(args: argparse.Namespace, opponents: Sequence[EngineSpec]) -> Tournament:
    """Makes the match of the options."""
    from pydlshogi.match.engine_spec import Limit
    from pydlshogi.match.series import Conditions, Tournament

    kind = next((kind for kind in ("depth", "byoyomi") if getattr(args, kind)), "nodes")
    limit = Limit(kind, getattr(args, kind) or 1000)
    conditions = Conditions(limit, args.plies, args.seed, args.max_plies, args.openings)
    return Tournament(args.engine, opponents, args.games, conditions, args.output, args.timeout)


def _play_all(tournament: Tournament, concurrency: int) -> str:
    """Plays the missing games of all series; returns the table."""
    from pydlshogi.match.usi_client import EngineError

    table = ""
    for series in tournament.series():
        try:
            _play(series, tournament, concurrency)
        except (KeyboardInterrupt, EngineError):
            if tournament.output.is_dir():  # an interruption may come before the first game
                tournament.write_tables()
            raise
        table = tournament.write_tables()
    return table


def _play(series: Series, tournament: Tournament, concurrency: int) -> None:
    """Plays the missing games of a series; shows a progress bar on a terminal, else one line."""
    from tqdm import tqdm

    from pydlshogi.bar import bar, is_terminal

    games = tournament.games
    missing = series.missing(games)
    title = f"{series.engine.name} - {series.opponent.name}"
    kept = games - len(missing)
    if kept:
        # The folder does not show that a model of the same name was trained further.
        print(
            f"{title}: {kept} of {games} games were played before and are kept. "
            f"If an engine has changed since, remove {series.folder} and run again.",
            file=sys.stderr,
        )
    if not missing:
        return
    if not is_terminal(sys.stderr):
        print(f"{title}: {len(missing)} games", flush=True)
    with bar(desc=title, total=games, initial=kept, unit="game") as shown:

        def played(number: int, verdict: Verdict) -> None:
            with contextlib.suppress(OSError):  # the terminal may be closed
                shown.update()
                if verdict.is_fault:
                    tqdm.write(f"{title}, game {number}: {verdict.reason}", file=sys.stderr)

        def interrupted() -> None:
            tqdm.write(
                "match: the current games are played to their end; Ctrl-C again stops them",
                file=sys.stderr,
            )

        series.play(missing, tournament.timeout, concurrency, played, interrupted)
