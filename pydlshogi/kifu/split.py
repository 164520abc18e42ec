"""Making kifu lists: the records of a folder, divided at random for training and test.

The whole of ``utils/make_kifu_list.py``; reading a list is :mod:`pydlshogi.kifu.sources`'s.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pydlshogi.commands.program import program
from pydlshogi.files import write_beside
from pydlshogi.kifu.sources import RECORD_SUFFIXES, is_record_name


class Found(NamedTuple):
    """The files under a folder.

    Attributes:
        records: The game records in the order of their names, which no file system changes.
        others: The number of other files.
        closed: The folders that cannot be searched, each with the reason.
    """

    records: list[Path]
    others: int
    closed: list[str]


def find_records(folder: Path) -> Found:
    """Finds the game records under a folder.

    Args:
        folder: Searched with all its subfolders; links to folders are not followed.
    """
    records = []
    others = 0
    errors: list[OSError] = []
    for root, _, names in os.walk(folder, onerror=errors.append):
        for name in names:
            if is_record_name(name):
                records.append(Path(root, name))
            else:
                others += 1
    return Found(
        sorted(records, key=lambda path: path.as_posix()),
        others,
        [f"{error.filename} ({error.strerror})" for error in errors],
    )


def warn_of_closed(name: str, closed: Sequence[str]) -> None:
    """Says on standard error, for a program of this name, which folders were not searched."""
    for folder in closed:
        print(f"{name}: warning: folder {folder} is left out.", file=sys.stderr)


def split(records: Sequence[Path], ratio: float, seed: int) -> tuple[list[Path], list[Path]]:
    """Divides records at random; the same records and seed give the same parts.

    Args:
        records: The records, in an order that does not change from run to run.
        ratio: The share that goes to training, 0..1.
        seed: Seed of the shuffle.

    Returns:
        The training and the test records, both shuffled.
    """
    shuffled = list(records)
    random.Random(seed).shuffle(shuffled)
    train = int(len(shuffled) * ratio)
    return shuffled[:train], shuffled[train:]


def write_lists(lists: Mapping[Path, Sequence[Path]], absolute: bool = False) -> None:
    """Writes kifu lists, all of them or none.

    Args:
        lists: The records of each list, which is UTF-8, a record a line. A name that is
            no text is written as the bytes it is.
        absolute: Whether to write absolute paths. Else they are relative to the
            list's own folder, with ``/`` on every system, so that the folder can be
            moved, except for records on another Windows drive.

    Raises:
        OSError: a list cannot be written.
    """
    with contextlib.ExitStack() as files:
        for path, records in lists.items():
            file = files.enter_context(write_beside(path))
            file.write(_lines_of(path, records, absolute))


def _lines_of(path: Path, records: Sequence[Path], absolute: bool) -> bytes:
    """Makes the lines of a list."""
    folder = path.resolve().parent
    lines = []
    for record in records:
        # A record that is a link is listed by its own name: the suffix tells what it is.
        line = str(record.parent.resolve() / record.name)
        if not absolute:
            # Another drive on Windows: there is no relative path.
            with contextlib.suppress(ValueError):
                line = Path(os.path.relpath(line, folder)).as_posix()
        lines.append(f"{line}\n")
    return "".join(lines).encode("utf-8", "surrogateescape")


def _ratio(text: str) -> float:
    """Reads a share between 0 and 1."""
    with contextlib.suppress(ValueError):
        if 0 <= float(text) <= 1:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text} is not a number from 0 to 1")


def _name(text: str) -> Path:
    """Reads the NAME that the lists' names begin with."""
    if os.path.basename(text) in ("", os.curdir, os.pardir):
        raise argparse.ArgumentTypeError(f"{text} is a folder; add the NAME of the lists in it")
    return Path(text)


def build_parser() -> argparse.ArgumentParser:
    """Makes the parser of make_kifu_list.py's command line."""
    parser = argparse.ArgumentParser(
        description="Divide the game records of a folder at random into a training and a test list."
    )
    parser.add_argument("dir", type=Path, help="folder with .csa, .kif or .kifu files")
    parser.add_argument(
        "filename", type=_name, help="NAME of the lists: NAME_train.txt and NAME_test.txt"
    )
    parser.add_argument(
        "--ratio", type=_ratio, default=0.9, help="share of the training games (default: 0.9)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of the random division (default: 0)"
    )
    parser.add_argument(
        "--absolute",
        action="store_true",
        help="write absolute paths (default: relative to the lists' folder)",
    )
    return parser


@program("make_kifu_list")
def main(argv: Sequence[str] | None = None) -> int:
    """Runs make_kifu_list.py.

    Args:
        argv: The arguments; those of the program when None.

    Returns:
        The exit status.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A name that cannot be shown as it is is no reason to end.
        sys.stdout.reconfigure(errors="backslashreplace")
    args = build_parser().parse_args(argv)
    if not os.path.isdir(args.dir):
        print(f"make_kifu_list: {args.dir} is not a folder. Check its path.", file=sys.stderr)
        return 1
    records, others, closed = find_records(args.dir)
    warn_of_closed("make_kifu_list", closed)
    if not records:
        print(
            f"make_kifu_list: {args.dir} holds no {', '.join(RECORD_SUFFIXES)} file "
            f"({others} other files). Unpack archives first.",
            file=sys.stderr,
        )
        return 1
    train, test = split(records, args.ratio, args.seed)
    lists = {}
    for part, games in (("train", train), ("test", test)):
        path = args.filename.with_name(f"{args.filename.name}_{part}.txt")
        lists[path] = games
        if not games:
            print(
                f"make_kifu_list: warning: no game is left for {part}: {path} is empty. "
                "Choose another --ratio, or more games.",
                file=sys.stderr,
            )
    try:
        args.filename.parent.mkdir(parents=True, exist_ok=True)
        write_lists(lists, args.absolute)
    except OSError as error:
        print(
            f"make_kifu_list: {error.filename} cannot be written: {error.strerror}.",
            file=sys.stderr,
        )
        return 1
    for path, games in lists.items():
        print(f"{path}: {len(games)} games")
    if others:
        print(f"{others} files that are no game records were left out")
    return 0
