"""The program evaluate_model: accuracy and loss of a model on games, by phase of the game."""

from __future__ import annotations

from collections.abc import Sequence

from pydlshogi.commands.arguments import ArgumentParser, positive_int
from pydlshogi.commands.computation import add_computation, apply_computation
from pydlshogi.commands.model_options import add_own_network, use_own_network
from pydlshogi.commands.program import program
from pydlshogi.commands.written import load_games


def build_parser() -> ArgumentParser:
    """Makes the parser of the command line."""
    parser = ArgumentParser(
        prog="evaluate_model",
        description="Evaluates a model on the games of a list and prints a table, by phase of "
        "the game: loss and share of predicted moves of a policy head, loss and share of "
        "predicted winners of a value head.",
    )
    add = parser.add_argument
    add("model", help="model file of any network")
    add("kifulist", help="text file with the paths of the games, one a line")
    add("--tsv", action="store_true", help="print tab-separated values instead of Markdown")
    add(
        "--batchsize",
        "-b",
        type=positive_int,
        default=512,
        metavar="N",
        help="positions in a batch (default: %(default)s)",
    )
    add_own_network(parser)
    add_computation(parser)
    return parser


@program("evaluate_model", remedy="Lower --batchsize, or end other programs.")
def main(argv: Sequence[str] | None = None) -> int:
    """Evaluates a model as the command line says; returns the exit status."""
    args = build_parser().parse_args(argv)
    # These modules import Chainer; a wrong command line has been reported before.
    from pydlshogi.device import select_device
    from pydlshogi.network.model_file import load_network
    from pydlshogi.training import evaluate

    device = select_device(args.gpu)
    apply_computation(args)
    use_own_network(args)
    network = load_network(args.model)
    games = load_games(args.kifulist)
    rows = evaluate.evaluate(network, games.positions, device, args.batchsize)
    print((evaluate.format_tsv if args.tsv else evaluate.format_markdown)(rows), end="")
    return 0
