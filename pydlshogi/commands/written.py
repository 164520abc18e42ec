"""What the programs say about the files that they write or replace."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydlshogi.commands.arguments import file_name
from pydlshogi.errors import UserError

if TYPE_CHECKING:
    from pydlshogi.kifu.loading import Loaded


def keep(program: str, path: str | os.PathLike[str], source: str = "") -> None:
    """Copies a file that a program will replace, and says where the copy is.

    ``source``, which the program refuses to replace, is not copied. Raises ``OutputError``.
    """
    from pydlshogi.outputs import keep_earlier

    if source and os.path.exists(path) and os.path.samefile(path, source):
        return
    copy = keep_earlier(os.fspath(path))
    if copy:
        print(f"{program}: {path} exists already; its content is kept as {copy}", file=sys.stderr)


def keep_list(program: str, path: Path, records: Sequence[Path], absolute: bool = False) -> None:
    """Copies a kifu list that a program will replace by another one, as :func:`keep` does."""
    from pydlshogi.kifu.split import content_of

    if path.is_file() and path.read_bytes() != content_of(path, records, absolute):
        keep(program, path)


def add_picture_output(parser: argparse.ArgumentParser, text: str, required: bool = False) -> None:
    """Adds ``--output`` of a picture."""
    parser.add_argument(
        "--output", "-o", type=file_name, required=required, metavar="FILE", help=text
    )


def check_picture_output(output: str, *inputs: str) -> None:
    """Checks, before a long computation, that ``--output`` can receive its picture.

    Raises:
        UserError: it is one of the ``inputs`` or another file to keep, its format is unknown, it
            cannot be written, or matplotlib is missing.
    """
    from pydlshogi.figure import check_picture, new_figure
    from pydlshogi.outputs import prepare_outputs, real_path

    if real_path(output) in map(real_path, inputs):
        raise UserError(f"--output {output} is a file to read. Choose another name.")
    new_figure(1, 1)
    check_picture(output)
    prepare_outputs({"--output": output}, {})


def warn(program: str, sentence: str) -> None:
    """Prints a warning of a program to standard error."""
    print(f"{program}: warning: {sentence}", file=sys.stderr)


def load_games(path: str) -> Loaded:
    """Reads the positions of a list; says what was left out, and where the cache was written.

    Raises:
        KifuError: the list is missing or empty, or none of its records can be used.
    """
    from pydlshogi.kifu.loading import load_positions

    games = load_positions(path)
    if games.report.records:  # shards have no report
        games.report.print(path)
    if games.saved:
        print(f"{games.cache}: cache of {path}", file=sys.stderr)
    return games
