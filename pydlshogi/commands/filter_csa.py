"""The program ``filter_csa``: selects CSA files by player, rating, length and result."""

from __future__ import annotations

import argparse
import contextlib
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydlshogi.commands.arguments import ArgumentParser, named_path, non_negative_int
from pydlshogi.commands.program import program
from pydlshogi.commands.written import keep_list, warn
from pydlshogi.errors import UserError

if TYPE_CHECKING:
    from pydlshogi.kifu.filter import Selection


#: Titles of the table of what does not fit.
_REPORT_TITLES = ("file", "reason", "detail")


def _rating(text: str) -> float:
    """Parses a rating. nan is refused, because every comparison with it is false."""
    with contextlib.suppress(ValueError):
        if not math.isnan(float(text)):
            return float(text)
    raise argparse.ArgumentTypeError(f"{text} is not a rating")


def _player(text: str) -> str:
    """Parses a player's name. An empty one would select the games without names."""
    if not text.strip():
        raise argparse.ArgumentTypeError("a player's name must not be empty")
    return text.strip()


def _results(text: str) -> frozenset[str]:
    """Parses the end marks of --result."""
    known = _result_names()
    names = frozenset(name.strip().lstrip("%").upper() for name in text.split(","))
    if "" in names:
        raise argparse.ArgumentTypeError(f"{text!r} lacks a mark. Write marks with commas between")
    unknown = names - set(known)
    if unknown:
        raise argparse.ArgumentTypeError(
            f"{', '.join(sorted(unknown))} is none of {', '.join(known)}"
        )
    return names


def _result_names() -> tuple[str, ...]:
    from pydlshogi.kifu.filter import ANY_END_MARK, END_MARK_NAMES, NO_END_MARK

    return (*END_MARK_NAMES, NO_END_MARK, ANY_END_MARK)


def build_parser() -> ArgumentParser:
    """Builds the command line parser."""
    parser = ArgumentParser(
        prog="filter_csa",
        description="Select the CSA files of a folder by player, rating, length and result. "
        "The program prints how many files fit and why others do not. It writes, copies or "
        "deletes files only if an option asks for it.",
    )
    add = parser.add_argument
    add("dir", type=named_path, help="folder with .csa files; subfolders are searched too")
    add(
        "--player",
        type=_player,
        action="append",
        default=[],
        metavar="NAME",
        help="only games of this player: the whole name, in upper or lower case; "
        "can be repeated for several names",
    )
    add(
        "--min_rating",
        type=_rating,
        default=2500,
        help="lowest rating of both players (default: 2500; 0: any)",
    )
    add("--max_rating", type=_rating, help="highest rating of both players (default: no limit)")
    add(
        "--min_moves",
        type=non_negative_int,
        default=50,
        help="fewest moves of the game (default: 50)",
    )
    add("--max_moves", type=non_negative_int, help="most moves of the game (default: no limit)")
    add(
        "--result",
        type=_results,
        default=frozenset({"TORYO"}),
        metavar="MARK,...",
        help=f"accepted end marks (default: TORYO): {', '.join(_result_names())}; "
        "NONE: no end mark, ANY: every record",
    )
    add("--report", type=named_path, metavar="FILE", help="write what was left out and why, as TSV")
    action = parser.add_mutually_exclusive_group()
    action.add_argument(
        "--list", type=named_path, metavar="FILE", help="write a kifu list of what fits"
    )
    action.add_argument(
        "--copy_to",
        type=named_path,
        metavar="FOLDER",
        help="copy what fits to a folder; a FOLDER inside DIR is not searched",
    )
    action.add_argument(
        "--delete",
        action="store_true",
        help="delete the files in DIR that do not fit; files that cannot be opened or read "
        "are kept",
    )
    return parser


@program("filter_csa")
def main(argv: Sequence[str] | None = None) -> int:
    """Runs the program; returns the exit status."""
    from pydlshogi.kifu.filter import Criteria, select
    from pydlshogi.kifu.sources import is_readable_name
    from pydlshogi.outputs import check_report, prepare_outputs

    parser = build_parser()
    args = parser.parse_args(argv)
    _check_limits(parser, args)
    criteria = Criteria(
        args.min_rating,
        args.max_rating,
        args.min_moves,
        args.max_moves,
        args.result,
        frozenset(args.player),
    )
    files = find_files(args.dir, args.copy_to)
    # Examining the files takes minutes, so that mistakes in paths are found before it.
    report, kifu_list = ("" if path is None else str(path) for path in (args.report, args.list))
    check_report(report, _REPORT_TITLES)
    if is_readable_name(kifu_list):
        raise UserError(
            f"--list {kifu_list} has the name of a record or an archive. Choose a name such as "
            "list.txt."
        )
    prepare_outputs({"--report": report, "--list": kifu_list}, {})
    selection = select(files, criteria)
    print_summary(selection)
    if not selection.fitting and (args.player or args.list or args.copy_to or args.delete):
        # A misspelt name or limit would write an empty list, or delete every game.
        raise UserError(
            "No file fits, so nothing was written, copied or deleted. Check "
            f"{'--player' if args.player else 'the limits and --result'}."
        )
    write_outputs(args, selection)
    return 0


def _check_limits(parser: ArgumentParser, args: argparse.Namespace) -> None:
    """Refuses limits that no game fits."""
    for least, most in (("min_rating", "max_rating"), ("min_moves", "max_moves")):
        low, high = getattr(args, least), getattr(args, most)
        if high is not None and low > high:
            parser.error(f"--{least} {low:g} is above --{most} {high:g}, so no game fits")


def find_files(folder: Path, copy_to: Path | None) -> list[Path]:
    """Finds the CSA files of a folder, except those in the folder that copies go to.

    Raises:
        UserError: the folder does not exist or has no CSA file, or ``copy_to`` is the folder or
            a file.
    """
    from pydlshogi.kifu.split import find_records

    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder. Check its path.")
    if copy_to is not None and copy_to.exists() and not copy_to.is_dir():
        raise UserError(f"--copy_to {copy_to} is a file. Name a folder.")
    if copy_to is not None and folder.resolve() == copy_to.resolve():
        raise UserError(f"{copy_to.resolve()} is DIR itself. Name another folder.")
    found = find_records(folder)
    for reason in found.closed:
        warn("filter_csa", f"folder {reason} is left out.")
    files = [path for path in found.records if path.suffix.lower() == ".csa"]
    if copy_to is not None and folder.resolve() in copy_to.resolve().parents:
        # A second run would find the copies of the first one and copy them again.
        target = copy_to.resolve()
        files = [path for path in files if target not in path.resolve().parents]
    if not files:
        raise UserError(f"{folder} holds no .csa file. Unpack archives first.")
    return files


def write_outputs(args: argparse.Namespace, selection: Selection) -> None:
    """Writes, copies and deletes what the options ask for, and prints what it did."""
    from pydlshogi.kifu.filter import copy_files
    from pydlshogi.kifu.report import write_table
    from pydlshogi.kifu.split import find_records, write_lists

    if args.report is not None:
        write_table(args.report, [_REPORT_TITLES, *selection.misfits])
        print(f"{args.report}: {len(selection.misfits)} files that do not fit, with reasons")
    if args.list is not None:
        keep_list("filter_csa", args.list, selection.fitting)
        write_lists({args.list: selection.fitting})
        print(f"{args.list}: list of {len(selection.fitting)} files")
    elif args.copy_to is not None:
        copy_files(selection.fitting, args.dir, args.copy_to)
        print(f"{args.copy_to}: {len(selection.fitting)} files copied")
        others = len(find_records(args.copy_to).records) - len(selection.fitting)
        if others:
            warn(
                "filter_csa",
                f"{args.copy_to} holds {others} other records, perhaps of an earlier run. "
                "Copy to a new folder to have only these games.",
            )
    elif args.delete:
        unwanted = [misfit.path for misfit in selection.misfits if misfit.fits_nowhere]
        deleted = 0
        for path in unwanted:
            try:
                path.unlink()
                deleted += 1
            except OSError as error:
                warn("filter_csa", f"{path} cannot be deleted ({error.strerror}).")
        print(f"{args.dir}: {deleted} files deleted")
        kept = len(selection.misfits) - len(unwanted)
        if kept:
            warn(
                "filter_csa",
                "files that cannot be opened or read, or of which only some games fit, are kept: "
                f"{kept}. --report lists them.",
            )


def print_summary(selection: Selection) -> None:
    """Prints how many files fit, and the reasons of the others."""
    fit, left_out = len(selection.fitting), len(selection.misfits)
    print(f"{fit + left_out} files, {fit} fit, {left_out} do not{':' if left_out else ''}")
    for reason, count in Counter(misfit.reason for misfit in selection.misfits).most_common():
        print(f"  {count:7} {reason}")
