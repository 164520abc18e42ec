"""The program ``make_kifu_list``: splits the records of a folder into two kifu lists."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from pydlshogi.commands.arguments import ArgumentParser, named_path, proportion
from pydlshogi.commands.program import program
from pydlshogi.commands.written import keep_list, warn


def _name(text: str) -> Path:
    """Parses the common part of the lists' names."""
    if os.path.basename(text) in ("", os.curdir, os.pardir):
        raise argparse.ArgumentTypeError(f"{text} is a folder; add the NAME of the lists in it")
    return Path(text)


def build_parser() -> ArgumentParser:
    """Builds the command line parser."""
    parser = ArgumentParser(
        prog="make_kifu_list",
        description="Split the game records of a folder at random into a training and a test list.",
    )
    parser.add_argument(
        "dir",
        type=named_path,
        help="folder with game records (.csa, .kif, .kifu, .ki2, .ki2u) or position files "
        "(.hcpe, .hcpe3, .psv, .bin); each file goes into one list",
    )
    parser.add_argument(
        "filename",
        type=_name,
        help="NAME of the lists: NAME_train.txt and NAME_test.txt; lists that exist already are "
        "kept as NAME_train.txt.old",
    )
    parser.add_argument(
        "--ratio", type=proportion, default=0.9, help="proportion of training files (default: 0.9)"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the random split (default: 0)")
    parser.add_argument(
        "--absolute",
        action="store_true",
        help="write absolute paths (default: relative to the folder of the lists)",
    )
    return parser


@program("make_kifu_list")
def main(argv: Sequence[str] | None = None) -> int:
    """Runs the program; returns the exit status."""
    args = build_parser().parse_args(argv)
    return make_lists(args.dir, args.filename, args.ratio, args.seed, args.absolute)


def make_lists(folder: Path, name: Path, ratio: float, seed: int, absolute: bool) -> int:
    """Writes the lists ``NAME_train.txt`` and ``NAME_test.txt``; returns the exit status."""
    from pydlshogi.errors import UserError
    from pydlshogi.kifu.formats import RECORD_SUFFIXES
    from pydlshogi.kifu.split import find_records, split, write_lists
    from pydlshogi.text import counted

    if not os.path.isdir(folder):
        raise UserError(f"{folder} is not a folder. Check its path.")
    records, others, closed = find_records(folder)
    for reason in closed:
        warn("make_kifu_list", f"folder {reason} is left out.")
    if not records:
        raise UserError(
            f"{folder} holds no {', '.join(RECORD_SUFFIXES)} file ({others} other files). "
            "Unpack archives first."
        )
    lists = {}
    for part, files in zip(("train", "test"), split(records, ratio, seed)):
        path = name.with_name(f"{name.name}_{part}.txt")
        lists[path] = files
        if not files:
            warn(
                "make_kifu_list",
                f"no file is left for {part}: {path} is empty. "
                "Choose another --ratio, or give more files.",
            )
    try:
        name.parent.mkdir(parents=True, exist_ok=True)
        for path, files in lists.items():
            keep_list("make_kifu_list", path, files, absolute)
        write_lists(lists, absolute)
    except OSError as error:
        raise UserError(f"{error.filename} cannot be written: {error.strerror}.") from error
    for path, files in lists.items():
        print(f"{path}: {counted(len(files), 'file')}")
    if others:
        print(f"{others} files that are not game records were left out")
    return 0
