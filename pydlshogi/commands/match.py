"""The program ``utils/match.py``: matches of USI engines and their table."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import tqdm

from pydlshogi.files import write_beside
from pydlshogi.match.engine_spec import USUAL_OPPONENTS, EngineSpec, parse_engine

if TYPE_CHECKING:
    from pydlshogi.match.referee import Verdict
    from pydlshogi.match.series import Series

_PROGRAM = "match"


def main(argv: Sequence[str] | None = None) -> int:
    """Plays what is missing of a match, and prints its table.

    Args:
        argv: Arguments; None for those of the command line.

    Returns:
        The exit status: 0, or 1 after a sentence where the match cannot go on.
    """
    parser = _build_parser()
    args = parser.parse_args(argv)
    if args.games % 2:
        parser.error(f"--games {args.games} is odd; the engines change sides after each game")
    if args.max_plies <= args.plies:
        parser.error(f"--max-plies {args.max_plies} leaves no move after the opening's --plies")
    opponents = args.opponent or [parse_engine(text) for text in USUAL_OPPONENTS]
    for option, specs in (("--engine", args.engine), ("--opponent", opponents)):
        names = [spec.name for spec in specs]
        if len(set(names)) < len(names):
            parser.error(f"two engines of {option} have the same name")
    if args.output.exists() and not args.output.is_dir():
        return _fail(f"--output {args.output} is a file. Name a folder; it is made if need be.")
    try:
        import cshogi.usi  # noqa: F401
    except ImportError as error:
        return _fail(
            f"cshogi is needed ({error}). In the clone, run: "
            'python -m pip install --no-build-isolation -e ".[match]"'
        )
    from pydlshogi.match.series import SeriesError
    from pydlshogi.match.usi_client import EngineError

    try:
        _play(args, opponents)
    except (EngineError, SeriesError) as error:
        return _fail(str(error))
    except OSError as error:
        return _fail(f"{error.filename or args.output} cannot be written: {error.strerror}.")
    except KeyboardInterrupt:
        print(f"{_PROGRAM}: interrupted. The same command goes on from here.", file=sys.stderr)
        return 130
    return 0


def _fail(sentence: str) -> int:
    print(f"{_PROGRAM}: {sentence}", file=sys.stderr)
    return 1


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=_PROGRAM,
        description="Play every --engine against every --opponent, in pairs of games with "
        "changed sides from random openings, and print a table of the results. Each game is "
        "kept as a CSA file in --output; run again, the match goes on from there.",
        epilog="An ENGINE is NAME=COMMAND;OPTION=VALUE;... (a USI engine, the whole quoted), "
        "random (any legal move), or fairy:LEVEL (fairy-stockfish at that Skill Level, "
        "-20 to 20).",
    )
    parser.add_argument(
        "--engine", action="append", required=True, type=_engine, help="may be repeated"
    )
    parser.add_argument(
        "--opponent",
        action="append",
        type=_engine,
        metavar="ENGINE",
        help=f"may be repeated (default: {' '.join(USUAL_OPPONENTS)})",
    )
    parser.add_argument("--output", type=Path, required=True, help="folder of the records")
    parser.add_argument(
        "--games", type=_positive, default=100, help="against each opponent (default: 100)"
    )
    limits = parser.add_mutually_exclusive_group()
    limits.add_argument("--nodes", type=_positive, help="nodes a move (default: 1000)")
    limits.add_argument("--depth", type=_positive, help="depth of search")
    limits.add_argument("--byoyomi", type=_positive, help="milliseconds a move")
    parser.add_argument(
        "--plies", type=_positive, default=4, help="random moves of an opening (default: 4)"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the openings (default: 0)")
    parser.add_argument(
        "--max-plies", type=_positive, default=320, help="a longer game is drawn (default: 320)"
    )
    parser.add_argument(
        "--timeout",
        type=_positive,
        default=120,
        help="seconds without an answer, beyond the byoyomi, that lose a game (default: 120)",
    )
    parser.add_argument(
        "--concurrency", type=_positive, default=1, help="games at a time (default: 1)"
    )
    return parser


def _engine(text: str) -> EngineSpec:
    try:
        return parse_engine(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of at least 1")
    return int(text)


def _play(args: argparse.Namespace, opponents: Sequence[EngineSpec]) -> None:
    """Plays the match and writes its tables."""
    from pydlshogi.match.series import SETTINGS, Conditions, Series, SeriesError
    from pydlshogi.match.table import markdown, tsv
    from pydlshogi.match.usi_client import Limit, UsiClient

    kind = next((k for k in ("depth", "byoyomi") if getattr(args, k)), "nodes")
    limit = Limit(kind, getattr(args, kind) or 1000)
    conditions = Conditions(limit, args.plies, args.seed, args.max_plies)
    all_series = [
        Series(engine, opponent, conditions, args.output / f"{engine.name}_{opponent.name}")
        for engine in args.engine
        for opponent in opponents
    ]
    taken: set[str] = set()
    for series in all_series:
        folder = str(series.folder).casefold()  # as Windows and macOS compare names
        if folder in taken:
            raise SeriesError(
                f"{series.engine.name} against {series.opponent.name} is not the only match whose "
                f"games would go to {series.folder}. Give one of the engines another name."
            )
        taken.add(folder)
    # Whatever can be wrong with the command line is found before the first game.
    needed = {}
    for series in all_series:
        series.check_folder()
        if series.missing(args.games):
            needed.update(dict.fromkeys((series.engine, series.opponent)))
    # What other commands have played into the same folder stays in its tables.
    known = {series.folder for series in all_series}
    # Other programs too have settings of that name; only what has games is ours.
    folders = sorted({path.parent for path in args.output.glob("*/[0-9]*.csa")})
    folders = [folder for folder in folders if (folder / SETTINGS).exists()]
    others = [Series.read(folder).row() for folder in folders if folder not in known]
    others = [row for row in others if row.outcomes]
    for spec in needed:
        with UsiClient(spec, args.timeout) as client:
            client.new_game()

    for series in all_series:
        _play_series(series, args)
        rows = [*others, *(series.row(args.games) for series in all_series)]
        for name, text in (("table.md", markdown(rows)), ("table.tsv", tsv(rows))):
            with write_beside(args.output / name) as file:
                file.write(text.encode("utf-8"))
    print(markdown(rows), end="")


def _play_series(series: Series, args: argparse.Namespace) -> None:
    """Plays what is missing of a series, with a bar of progress on a terminal."""
    missing = series.missing(args.games)
    title = f"{series.engine.name} - {series.opponent.name}"
    kept = args.games - len(missing)
    if kept:
        # The folder does not show that a model was trained further under the same name.
        print(
            f"{title}: {kept} of {args.games} games were played before and are kept. "
            f"If an engine has changed since, remove {series.folder} and run again.",
            file=sys.stderr,
        )
    if not missing:
        return
    with tqdm.tqdm(
        desc=title, total=args.games, initial=args.games - len(missing), unit="game", disable=None
    ) as bar:

        def played(number: int, verdict: Verdict) -> None:
            bar.update()
            if verdict.is_fault:
                tqdm.tqdm.write(f"{title}, game {number}: {verdict.reason}", file=sys.stderr)

        def interrupted() -> None:
            tqdm.tqdm.write(
                f"{_PROGRAM}: the games under way are finished; Ctrl-C again gives them up",
                file=sys.stderr,
            )

        series.play(missing, args.timeout, args.concurrency, played, interrupted)


if __name__ == "__main__":
    sys.exit(main())
