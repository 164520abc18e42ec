"""The program transfer_policy_to_value: a value model that starts from a policy model."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydlshogi.commands.arguments import ArgumentParser, file_name, seed_number
from pydlshogi.commands.program import program
from pydlshogi.commands.written import keep, load_games
from pydlshogi.network.registry import UNFOLDABLE

if TYPE_CHECKING:
    import numpy

    from pydlshogi.network.network import Network

#: Choices of ``--network``, the default first.
TARGETS = ("value", "policy_value", *UNFOLDABLE)

#: Positions that ``--unfold`` measures.
_MEASURED = 1024


def build_parser() -> ArgumentParser:
    """Makes the parser of the command line."""
    parser = ArgumentParser(
        prog="transfer_policy_to_value",
        description="Writes a new model with the hidden layers of a policy model, as a start for "
        "training it (--initmodel). A network with a policy head gets that head, too. A value head "
        "that the model lacks gets random weights. Filters of the last two moves are 0 if the "
        "model lacks them, and left out if the new network does not see these moves.",
    )
    add = parser.add_argument
    add("model_policy", type=file_name, help="model file of a policy network")
    add("model_value", type=file_name, help="model file to write")
    add(
        "--network",
        choices=TARGETS,
        default=TARGETS[0],
        help="network of the new model (default: %(default)s)",
    )
    add(
        "--unfold",
        type=file_name,
        metavar="LIST",
        help="kifu list; puts batch normalization back into a model without it, measured on "
        f"{_MEASURED:,} positions of the list. For --network {_any_of(UNFOLDABLE)}",
    )
    add(
        "--seed",
        type=seed_number,
        metavar="N",
        help="seed of the random weights (default: a different one each time)",
    )
    return parser


@program("transfer_policy_to_value")
def main(argv: Sequence[str] | None = None) -> int:
    """Reads the policy model, makes the new network and writes it; returns the exit status."""
    parser = build_parser()
    args = parser.parse_args(argv)
    if args.unfold and args.network not in UNFOLDABLE:
        parser.error(f"--unfold needs --network {_any_of(UNFOLDABLE)}")
    # These modules import Chainer; a mistake in the options is reported without that delay.
    import numpy

    from pydlshogi.kifu.cache import with_caches
    from pydlshogi.model_files.fold import FoldError
    from pydlshogi.model_files.model_file import UnnamedNetwork, load_network, save_derived_model
    from pydlshogi.model_files.transfer import TransferError
    from pydlshogi.outputs import check_model, prepare_outputs

    try:
        policy = load_network(args.model_policy)
    except UnnamedNetwork:
        raise TransferError(
            f"model file {args.model_policy} is of a network that is not part of this package. "
            "Only layers of its own networks can be copied. Choose another model."
        ) from None
    lists = with_caches({"--unfold": args.unfold or ""})
    prepare_outputs({"the new model": args.model_value}, lists)
    check_model("the new model", args.model_value)
    numpy.random.seed(args.seed)  # Chainer's initializers use numpy's global generator
    make = _unfold if args.unfold else _transfer
    try:
        network = make(policy, args)
    except (FoldError, TransferError) as error:
        raise type(error)(f"model file {args.model_policy}: {error}") from None
    keep("transfer_policy_to_value", args.model_value, args.model_policy)
    save_derived_model(args.model_value, network, args.model_policy)
    print(f"{args.model_value}: {args.network} with the layers of {args.model_policy}")
    if network.plane_num < policy.plane_num:
        print(_without_history(args), file=sys.stderr)
    return 0


def _without_history(args: argparse.Namespace) -> str:
    """Says that the new network lacks the filters of the last two moves."""
    return (
        f"transfer_policy_to_value: {args.model_policy} sees the last two moves, and "
        f"{args.network} does not: their filters are left out. The new model predicts fewer "
        "moves until it is trained further."
    )


def _any_of(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def _transfer(policy: Network, args: argparse.Namespace) -> Network:
    """Makes the new network without ``--unfold``."""
    from pydlshogi.model_files.transfer import make_from_policy

    return make_from_policy(policy, args.network)


def _unfold(policy: Network, args: argparse.Namespace) -> Network:
    """Makes the new network with ``--unfold``. A wrong model is refused before the list is read."""
    from pydlshogi.model_files.fold import fold
    from pydlshogi.model_files.unfold import unfold

    plain = fold(policy, keep_value=policy.value_kind is not None)
    return unfold(plain, args.network, _some_planes(args.unfold))


def _some_planes(kifulist: str) -> numpy.ndarray:
    """Returns the input planes of random positions of a list: (n, 104, 9, 9) float32."""
    import numpy

    from pydlshogi.features import make_input_planes

    positions = load_games(kifulist).positions
    count = min(_MEASURED, len(positions))
    chosen = numpy.random.choice(len(positions), count, replace=False)
    return make_input_planes(positions[numpy.sort(chosen)])
