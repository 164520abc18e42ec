"""The program evaluate_model: accuracy and loss of a model on games, by phase of the game."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydlshogi import table
from pydlshogi.commands.arguments import ArgumentParser, file_name, positive_number
from pydlshogi.commands.model_options import (
    add_batchsize,
    add_computation,
    add_own_network,
    apply_computation,
    use_own_network,
)
from pydlshogi.commands.program import program
from pydlshogi.commands.written import add_picture_output, check_picture_output, load_games
from pydlshogi.errors import UserError
from pydlshogi.training.recipe import EVAL_SCALE

if TYPE_CHECKING:
    from pydlshogi.network.network import Network


def build_parser() -> ArgumentParser:
    """Makes the parser of the command line."""
    parser = ArgumentParser(
        prog="evaluate_model",
        description="Evaluates a model on the games of a list and prints a table, by phase of "
        "the game: loss and share of predicted moves of a policy head, loss and share of "
        "predicted winners of a value head. A second table is the calibration of a value head: "
        "how often the side to move won at each predicted probability.",
    )
    add = parser.add_argument
    add("model", type=file_name, help="model file of any network")
    add("kifulist", type=file_name, help="text file with the paths of the games, one a line")
    add("--tsv", action="store_true", help="print tab-separated values instead of Markdown")
    text = "draw the calibration of the value head to a .png, .svg or .pdf file"
    add_picture_output(parser, text)
    add(
        "--eval_scale",
        type=positive_number,
        metavar="CENTIPAWNS",
        help=f"scale of the engines' evaluations in the calibration (default: {EVAL_SCALE:g})",
    )
    add_batchsize(parser, 512)
    add_own_network(parser)
    add_computation(parser)
    return parser


@program("evaluate_model", remedy="Lower --batchsize, or end other programs.")
def main(argv: Sequence[str] | None = None) -> int:
    """Evaluates a model as the command line says; returns the exit status."""
    args = build_parser().parse_args(argv)
    # These modules import Chainer; a wrong command line has been reported before.
    from pydlshogi.device import select_device
    from pydlshogi.model_files.model_file import load_network
    from pydlshogi.training import calibration, evaluate

    device = select_device(args.gpu)
    apply_computation(args)
    use_own_network(args)
    network = load_network(args.model)
    _check_calibration_options(args, network)
    positions = load_games(args.kifulist).positions
    measured = evaluate.measure_finite(network, positions, device, args.batchsize)
    rows = evaluate.summarize(positions["ply"], measured)
    form = table.tsv if args.tsv else table.markdown
    print(form(*evaluate.as_table(rows)), end="")
    if measured.wins is not None:
        scale = EVAL_SCALE if args.eval_scale is None else args.eval_scale
        bins = calibration.calibrate(measured.wins, positions, scale)
        if bins:
            print(f"\n{form(*calibration.as_table(bins))}", end="")
        elif args.output:
            raise UserError(
                f"no game of {args.kifulist} has a known result: there is no calibration to draw. "
                "Leave --output out."
            )
        if args.output:
            calibration.save(bins, args.output)
            print(f"{args.output}: picture", file=sys.stderr)
    return 0


def _check_calibration_options(args: argparse.Namespace, network: Network) -> None:
    """Checks the options of the calibration, before the evaluation."""
    options = {"--output": args.output, "--eval_scale": args.eval_scale}
    for option, value in options.items():
        if value is not None and network.value_kind is None:
            raise UserError(
                f"{option} is for the calibration of a value head, and {args.model} has none. "
                "Leave it out."
            )
    if args.output:
        check_picture_output(args.output, args.model, args.kifulist)
