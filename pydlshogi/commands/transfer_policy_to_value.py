"""The book's program transfer_policy_to_value: a value model that starts from a policy model."""

from __future__ import annotations

from collections.abc import Sequence

from pydlshogi.commands.arguments import ArgumentParser, file_name
from pydlshogi.commands.convert_model import add_seed, transfer
from pydlshogi.commands.program import program

_NAME = "transfer_policy_to_value"


def build_parser() -> ArgumentParser:
    """Makes the parser of the command line."""
    parser = ArgumentParser(
        prog=_NAME,
        description="Writes a value model with the hidden layers of a policy model, as a start "
        "for training it (--initmodel). The value head gets random weights, unless the model has "
        "one. convert_model transfer makes other networks, too.",
    )
    add = parser.add_argument
    add("model", type=file_name, metavar="model_policy", help="model file of a policy network")
    add("output", type=file_name, metavar="model_value", help="model file to write")
    add_seed(parser)
    parser.set_defaults(network="value", unfold=None)
    return parser


@program(_NAME)
def main(argv: Sequence[str] | None = None) -> int:
    """Makes the model that the command line names; returns the exit status."""
    transfer(build_parser().parse_args(argv), _NAME)
    return 0
