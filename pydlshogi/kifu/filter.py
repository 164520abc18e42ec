"""Choosing game records by rating, length and result, as ``utils/filter_csa.py`` does.

The book trains on floodgate games of strong programs that ended in resignation; its
script deletes all other files. Here what fits is listed or copied, and nothing is
deleted unless that is asked for by name.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from pydlshogi.commands.program import program
from pydlshogi.files import write_beside
from pydlshogi.kifu.csa import (
    END_MARKS,
    END_MARKS_FOR_BLACK,
    Game,
    RecordError,
    parse_game,
    split_records,
)
from pydlshogi.kifu.report import write_table
from pydlshogi.kifu.split import find_records, warn_of_closed, write_lists

#: The end marks without their %, as --result takes them.
RESULTS = tuple(mark.lstrip("%") for mark in (*END_MARKS, *END_MARKS_FOR_BLACK))
_NO_END_MARK = "NONE"
_ANY_RESULT = "ANY"
_CANNOT_BE_OPENED = "cannot be opened"


@dataclass(frozen=True)
class Criteria:
    """What a game must be like to be chosen.

    Attributes:
        min_rating: Both players' least floodgate rating; 0 also admits games without
            ratings.
        max_rating: Both players' highest rating, None for no limit.
        min_moves: Least number of moves.
        max_moves: Greatest number of moves, None for no limit.
        results: End marks without ``%``, in upper case; ``NONE`` stands for a record
            without one, ``ANY`` for every record.
    """

    min_rating: float = 0
    max_rating: float | None = None
    min_moves: int = 0
    max_moves: int | None = None
    results: frozenset[str] = frozenset({_ANY_RESULT})

    def objection(self, game: Game) -> str | None:
        """Says why a game does not fit.

        Args:
            game: A record's game.

        Returns:
            The first reason, the same words for every game of a kind; None if it fits.
        """
        ratings = [rating for rating in game.ratings if rating is not None]
        if self.min_rating and len(ratings) < 2:
            return "a player has no rating"
        if any(rating < self.min_rating for rating in ratings):
            return f"a player is rated below {self.min_rating:g}"
        if self.max_rating is not None and any(rating > self.max_rating for rating in ratings):
            return f"a player is rated above {self.max_rating:g}"
        if len(game.moves) < self.min_moves:
            return f"fewer than {self.min_moves} moves"
        if self.max_moves is not None and len(game.moves) > self.max_moves:
            return f"more than {self.max_moves} moves"
        result = (game.end_mark or _NO_END_MARK).lstrip("%")
        if _ANY_RESULT not in self.results and result not in self.results:
            return f"ended by {game.end_mark}" if game.end_mark else "no end mark"
        return None


def file_objection(path: Path, criteria: Criteria) -> tuple[str | None, str]:
    """Says why a file does not fit: its first record that cannot be read or does not fit.

    Args:
        path: A CSA file of one record or several.
        criteria: What its games must be like.

    Returns:
        The reason's kind, None if the file fits, and details of this one file.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        return _CANNOT_BE_OPENED, str(error.strerror)
    for before, record in split_records(data):
        try:
            objection = criteria.objection(parse_game(record))
        except RecordError as error:
            line = f"line {before + error.line}: " if error.line else ""
            return "cannot be read", f"{line}{error.reason}"
        if objection:
            return objection, ""
    return None, ""


def copy_files(files: Sequence[Path], source: Path, target: Path) -> None:
    """Copies files to the same places under another folder, each whole or not at all.

    Args:
        files: Files under ``source``.
        source: The folder they were found in.
        target: The folder to copy to; made if it is missing.

    Raises:
        OSError: a file cannot be read or written.
    """
    for path in tqdm(files, unit="file", disable=None, desc="copy"):
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        with path.open("rb") as original, write_beside(copy) as file:
            shutil.copyfileobj(original, file)


def _rating(text: str) -> float:
    """Reads a rating; nan, which is no number, would admit every game."""
    with contextlib.suppress(ValueError):
        if not math.isnan(float(text)):
            return float(text)
    raise argparse.ArgumentTypeError(f"{text} is not a rating")


def _results(text: str) -> frozenset[str]:
    """Reads the end marks of --result."""
    names = frozenset(name.strip().lstrip("%").upper() for name in text.split(","))
    unknown = names - {*RESULTS, _NO_END_MARK, _ANY_RESULT}
    if unknown:
        known = ", ".join((*RESULTS, _NO_END_MARK, _ANY_RESULT))
        raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))} is none of {known}")
    return names


def build_parser() -> argparse.ArgumentParser:
    """Makes the parser of filter_csa.py's command line."""
    parser = argparse.ArgumentParser(
        description="Choose the CSA files of a folder by rating, number of moves and result. "
        "Says what fits and what does not and why; writes only what is asked for.",
    )
    add = parser.add_argument
    add("dir", type=Path, help="folder with .csa files, searched with its subfolders")
    add("--min-rating", type=_rating, default=2500, help="of both players (default: 2500; 0: any)")
    add("--max-rating", type=_rating, help="of both players (default: none)")
    add("--min-moves", type=int, default=50, help="least number of moves (default: 50)")
    add("--max-moves", type=int, help="greatest number of moves (default: none)")
    add(
        "--result",
        type=_results,
        default=frozenset({"TORYO"}),
        metavar="MARK,...",
        help=f"end marks: {', '.join(RESULTS)}; NONE: no end mark; ANY (default: TORYO)",
    )
    add("--report", type=Path, metavar="FILE", help="write what was left out and why, as TSV")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--list", type=Path, metavar="FILE", help="write a kifu list of what fits")
    action.add_argument(
        "--copy-to",
        type=Path,
        metavar="FOLDER",
        help="copy what fits to a folder; one below DIR is not searched",
    )
    action.add_argument(
        "--delete",
        action="store_true",
        help="delete from DIR the files that do not fit; those that cannot be opened stay",
    )
    return parser


def _examined(files: Sequence[Path], criteria: Criteria) -> Iterator[tuple[Path, str | None, str]]:
    """Examines files, with a progress bar on a terminal."""
    for path in tqdm(files, unit="file", disable=None):
        yield (path, *file_objection(path, criteria))


@program("filter_csa")
def main(argv: Sequence[str] | None = None) -> int:
    """Runs filter_csa.py.

    Args:
        argv: The arguments; those of the program when None.

    Returns:
        The exit status: 1 where the folder holds no record or a file cannot be written.
    """
    args = build_parser().parse_args(argv)
    if not os.path.isdir(args.dir):
        print(f"filter_csa: {args.dir} is not a folder. Check its path.", file=sys.stderr)
        return 1
    found = find_records(args.dir)
    warn_of_closed("filter_csa", found.closed)
    files = [path for path in found.records if path.suffix.lower() == ".csa"]
    if args.copy_to is not None:
        # A second run would find the first one's copies, and copy them deeper and deeper.
        target = args.copy_to.resolve()
        if args.dir.resolve() == target:
            print(f"filter_csa: {target} is DIR itself. Name another folder.", file=sys.stderr)
            return 1
        if args.dir.resolve() in target.parents:
            files = [path for path in files if target not in path.resolve().parents]
    if not files:
        print(f"filter_csa: {args.dir} holds no .csa file. Unpack archives first.", file=sys.stderr)
        return 1
    criteria = Criteria(
        args.min_rating, args.max_rating, args.min_moves, args.max_moves, args.result
    )
    try:
        # Before the files are examined, which takes minutes.
        for output in (args.report, args.list):
            if output is not None:
                output.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        print(f"filter_csa: {error.filename}: {error.strerror}.", file=sys.stderr)
        return 1
    fitting: list[Path] = []
    left_out: list[tuple[Path, str, str]] = []
    for path, objection, detail in _examined(files, criteria):
        if objection is None:
            fitting.append(path)
        else:
            left_out.append((path, objection, detail))
    try:
        _write(args, fitting, left_out)
    except OSError as error:
        print(f"filter_csa: {error.filename}: {error.strerror}.", file=sys.stderr)
        return 1
    end = ":" if left_out else ""
    print(f"{len(files)} files, {len(fitting)} fit, {len(left_out)} do not{end}")
    for objection, count in Counter(reason for _, reason, _ in left_out).most_common():
        print(f"  {count:7} {objection}")
    return 0


def _write(
    args: argparse.Namespace, fitting: Sequence[Path], left_out: Sequence[tuple[Path, str, str]]
) -> None:
    """Does what the command line asks for with what fits and what does not."""
    if args.report is not None:
        write_table(args.report, [("file", "reason", "detail"), *left_out])
    if args.list is not None:
        write_lists({args.list: fitting})
    elif args.copy_to is not None:
        copy_files(fitting, args.dir, args.copy_to)
        others = len(find_records(args.copy_to).records) - len(fitting)
        if others:
            print(
                f"filter_csa: warning: {args.copy_to} holds {others} other records, of an earlier "
                "run perhaps. To have these games alone, copy to a new folder.",
                file=sys.stderr,
            )
    elif args.delete:
        for path, objection, _ in left_out:
            # What is in a file that could not be opened, nobody knows.
            if objection != _CANNOT_BE_OPENED:
                path.unlink()
