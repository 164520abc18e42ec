"""The program show_position: a position as a picture, with the moves of a model."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydlshogi.commands.arguments import (
    ArgumentParser,
    add_number,
    file_name,
    non_negative_int,
    positive_int,
)
from pydlshogi.commands.model_options import add_language, add_model, load_model
from pydlshogi.commands.program import program
from pydlshogi.commands.written import add_picture_output, check_picture_output
from pydlshogi.errors import UserError

if TYPE_CHECKING:
    import shogi

#: Words that a position may begin with; any other single word is a file.
_STARTS = ("position", "startpos", "sfen")


def build_parser() -> ArgumentParser:
    """Makes the parser of the command line."""
    parser = ArgumentParser(
        prog="show_position",
        description="Draws a position as a picture: board, hands and the opinion of a model. "
        "Arrows are the most probable moves; red shows the sum of the probabilities on each "
        "square. A model with a value head adds the probability of winning. Probabilities are "
        "those among the legal moves.",
    )
    parser.add_argument(
        "position",
        nargs="+",
        type=file_name,
        help="a CSA, KIF or KI2 file; or a position as in USI, such as startpos moves 7g7f 3c3d, "
        "or an SFEN",
    )
    text = "show the position after N moves (default: after all moves)"
    add_number(parser, "--ply", non_negative_int, text)
    add_number(parser, "--game", positive_int, "number of the game in a file with several", 1)
    add_picture_output(parser, "picture to write: .png, .svg or .pdf", required=True)
    add_number(parser, "--arrows", non_negative_int, "draw the N most probable moves", 5)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--board", action="store_true", help="draw the board alone, without a model")
    what.add_argument(
        "--planes", action="store_true", help="draw the 104 input planes of the network instead"
    )
    add_language(parser)
    add_model(parser)
    return parser


@program("show_position")
def main(argv: Sequence[str] | None = None) -> int:
    """Draws a position as the command line says; returns the exit status."""
    parser = build_parser()
    args = parser.parse_args(argv)
    _check_options(parser, args)
    from pydlshogi.drawing.font import required_font

    board = _board(args)
    required_font()
    check_picture_output(args.output)
    if args.planes:
        from pydlshogi.drawing.planes import save_planes
        from pydlshogi.features import make_input_features_from_board

        save_planes(make_input_features_from_board(board), args.output, language=args.language)
    else:
        from pydlshogi.analysis.pictures import diagram_of
        from pydlshogi.drawing.board import save_board

        opinion = None if args.board else load_model(args).opinions([board])[0]
        diagram = diagram_of(board, opinion, args.arrows, args.language)
        save_board(diagram, args.output, language=args.language)
    print(f"{args.output}: picture")
    return 0


def _check_options(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Refuses options of the model in a picture that shows nothing of a model."""
    what = "--board" if args.board else "--planes" if args.planes else ""
    for name in ("model", "network", "arrows", "gpu", "convolution", "precision", "threads"):
        if what and getattr(args, name) != parser.get_default(name):
            parser.error(f"--{name} has no effect with {what}: leave one of them out")


def _board(args: argparse.Namespace) -> shogi.Board:
    """Sets up the position of the options."""
    from pydlshogi.analysis.record import read_position, read_record

    words = args.position
    is_file = len(words) == 1 and _names_a_file(words[0])
    if is_file:
        return read_record(words[0], args.game, needs_moves=False).board(args.ply)
    if args.game > 1:
        raise UserError("--game is for a file with several games. Leave it out for a position.")
    return read_position(" ".join(words)).board(args.ply)


def _names_a_file(word: str) -> bool:
    """Says whether a single word is meant as a file: an SFEN has blanks."""
    from pydlshogi.kifu.formats import RECORD_SUFFIXES

    is_name = word.lower().endswith(RECORD_SUFFIXES) or os.path.exists(word)
    return word not in _STARTS and (" " not in word or is_name)
