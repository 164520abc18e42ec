"""Making kifu lists: the records of a folder, divided at random for training and test.

The whole of ``utils/make_kifu_list.py``; reading a list is :mod:`pydlshogi.kifu_list`'s.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import random
import sys
from collections.abc import Sequence
from pathlib import Path

from pydlshogi.files import write_beside
from pydlshogi.kifu_list import RECORD_SUFFIXES, is_record_name
from pydlshogi.program import program


def find_records(folder: Path) -> tuple[list[Path], int]:
    """Finds the game records under a folder.

    Args:
        folder: Searched with all its subfolders; links to folders are not followed.

    Returns:
        The records in the order of their names, which no file system changes, and
        the number of other files.
    """
    records = []
    others = 0
    for root, _, names in os.walk(folder):
        for name in names:
            if is_record_name(name):
                records.append(Path(root, name))
            else:
                others += 1
    return sorted(records, key=lambda path: path.as_posix()), others


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


def write_list(path: Path, records: Sequence[Path], absolute: bool = False) -> None:
    """Writes a kifu list, whole or not at all.

    Args:
        path: The list; UTF-8, a record a line. A name that is no text is written as
            the bytes it is.
        records: The records.
        absolute: Whether to write absolute paths. Else they are relative to the
            list's own folder, with ``/`` on every system, so that the folder can be
            moved, except for records on another Windows drive.

    Raises:
        OSError: the list cannot be written.
    """
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
    with write_beside(path) as file:
        file.write("".join(lines).encode("utf-8", "surrogateescape"))


def _ratio(text: str) -> float:
    """Reads a share between 0 and 1."""
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1")
    return value


def build_parser() -> argparse.ArgumentParser:
    """Makes the parser of make_kifu_list.py's command line."""
    parser = argparse.ArgumentParser(
        description="Divide the game records of a folder at random into a training and a test list."
    )
    parser.add_argument("dir", type=Path, help="folder with .csa, .kif or .kifu files")
    parser.add_argument(
        "filename", type=Path, help="NAME of the lists: NAME_train.txt and NAME_test.txt"
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
    if not args.dir.is_dir():
        print(f"make_kifu_list: {args.dir} is not a folder. Check its path.", file=sys.stderr)
        return 1
    records, others = find_records(args.dir)
    if not records:
        print(
            f"make_kifu_list: {args.dir} holds no {', '.join(RECORD_SUFFIXES)} file "
            f"({others} other files). Unpack archives first.",
            file=sys.stderr,
        )
        return 1
    train, test = split(records, args.ratio, args.seed)
    for part, games in (("train", train), ("test", test)):
        path = args.filename.with_name(f"{args.filename.name}_{part}.txt")
        if not games:
            print(
                f"make_kifu_list: warning: no game is left for {part}: {path} is empty. "
                "Choose another --ratio, or more games.",
                file=sys.stderr,
            )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_list(path, games, args.absolute)
        except OSError as error:
            print(f"make_kifu_list: {path} cannot be written: {error.strerror}.", file=sys.stderr)
            return 1
        print(f"{path}: {len(games)} games")
    if others:
        print(f"{others} files that are no game records were left out")
    return 0
