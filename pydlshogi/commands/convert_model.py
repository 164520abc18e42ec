"""The program convert_model: a new model, made of another one without training."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydlshogi.commands.arguments import (
    ArgumentParser,
    add_number,
    file_name,
    positive_int,
    proportion,
    seed_number,
)
from pydlshogi.commands.model_options import (
    add_batchsize,
    add_computation,
    add_own_network,
    apply_computation,
    use_own_network,
)
from pydlshogi.commands.program import program
from pydlshogi.commands.written import keep, load_games
from pydlshogi.errors import UserError
from pydlshogi.network.registry import UNFOLDABLE

if TYPE_CHECKING:
    import numpy

    from pydlshogi.network.network import Network

_NAME = "convert_model"

#: Networks that ``transfer`` makes.
TARGETS = ("value", "policy_value", *UNFOLDABLE)

#: Positions that the statistics of a mean, and of ``--unfold``, are measured on.
_OF_MEAN, _OF_UNFOLD = 65536, 1024


def build_parser() -> ArgumentParser:
    """Makes the parser of the command line."""
    parser = ArgumentParser(
        prog=_NAME, description="Writes a new model that is made of another one without training."
    )
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    for name, (convert, add_options, help_, description) in _KINDS.items():
        kind: ArgumentParser = kinds.add_parser(name, help=help_, description=description)
        kind.set_defaults(convert=convert, parser=kind)
        add = kind.add_argument
        add("model", type=file_name, help="model file to read")
        if name == "average":
            add("other", type=file_name, help="model file of the same network")
        if name == "calibrate":
            add("kifulist", type=file_name, help="text file with the paths of games, one a line")
        add("output", type=file_name, help="model file to write")
        add_options(kind)
    return parser


@program(_NAME, remedy="Lower --batchsize, or end other programs.")
def main(argv: Sequence[str] | None = None) -> int:
    """Converts a model as the command line says; returns the exit status."""
    args = build_parser().parse_args(argv)
    args.convert(args)
    return 0


def _average_options(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--weight",
        type=proportion,
        default=0.5,
        metavar="X",
        help="share of the first model in the mean, 0 to 1 (default: %(default)s)",
    )
    add(
        "--kifulist",
        type=file_name,
        metavar="LIST",
        help="games of the training; a network with batch normalization needs them for the "
        "statistics of the mean",
    )
    text = "positions of LIST, evenly chosen, that the statistics are measured on (default: "
    add_number(parser, "--positions", positive_int, f"{text}{_OF_MEAN})")
    _add_measurement(parser, 1024)


def _fold_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--keep_value",
        action="store_true",
        help="keep the value head: the result is the book's network with two heads",
    )
    parser.add_argument(
        "--no_fold",
        action="store_true",
        help="do not fold: store the model of any network as it is, with --float16",
    )
    _add_storage(parser)
    add_own_network(parser)


def _transfer_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--network", choices=TARGETS, required=True, help="network of the new model"
    )
    parser.add_argument(
        "--unfold",
        type=file_name,
        metavar="LIST",
        help="kifu list; puts batch normalization back into a model without it, measured on "
        f"{_OF_UNFOLD:,} positions of the list. For --network {_any_of(UNFOLDABLE)}",
    )
    add_seed(parser)


def add_seed(parser: ArgumentParser) -> None:
    """Adds ``--seed``."""
    text = "seed of the random weights (default: a different one each time)"
    add_number(parser, "--seed", seed_number, text)


def _add_storage(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--float16",
        action="store_true",
        help="store numbers of 16 bits: the file has half the size; the computation still uses "
        "32 bits (compare both files with evaluate_model)",
    )


def _add_measurement(parser: ArgumentParser, batchsize: int = 512) -> None:
    _add_storage(parser)
    add_batchsize(parser, batchsize)
    add_own_network(parser)
    add_computation(parser)


@contextlib.contextmanager
def _about(what: str) -> Iterator[None]:
    """Begins the sentence of an error with the file that it is about."""
    try:
        yield
    except UserError as error:
        raise type(error)(f"{what}: {error}") from None


# The functions below import Chainer; a wrong command line has been reported before.


def _save(args: argparse.Namespace, network: Network) -> None:
    from pydlshogi.model_files.model_file import save_derived_model

    keep(_NAME, args.output, args.model)
    save_derived_model(args.output, network, args.model, half=args.float16)


def _load(args: argparse.Namespace) -> tuple[Network, Any]:
    """Loads the model, and chooses the device that will compute it."""
    from pydlshogi.device import select_device
    from pydlshogi.model_files.model_file import load_network

    device = select_device(args.gpu)
    apply_computation(args)
    use_own_network(args)
    return load_network(args.model), device


def _check_output(
    name: str, args: argparse.Namespace, models: Mapping[str, str], lists: Mapping[str, str]
) -> None:
    """Checks, before games are read, that the new model can be written, and replaces no input."""
    from pydlshogi.kifu.cache import with_caches
    from pydlshogi.outputs import check_model, prepare_outputs

    prepare_outputs({name: args.output}, {**models, **with_caches(lists)})
    check_model(name, args.output)


def _average(args: argparse.Namespace) -> None:
    """Writes the mean of two models."""
    import numpy

    from pydlshogi.model_files.model_file import load_network
    from pydlshogi.network.registry import name_of
    from pydlshogi.training import average

    if args.positions and not args.kifulist:
        args.parser.error("--positions needs --kifulist")
    network, device = _load(args)
    with _about(f"model files {args.model} and {args.other}"):
        average.average(network, load_network(args.other), args.weight)
    has_statistics = bool(average.normalizations_of(network))
    if has_statistics != bool(args.kifulist):
        raise average.AverageError(
            f"model file {args.model}: its network has batch normalization. Name games of its "
            "training with --kifulist."
            if has_statistics
            else f"model file {args.model}: its network has no batch normalization. Leave out "
            "--kifulist."
        )
    models = {"model": args.model, "other model": args.other}
    _check_output("output", args, models, {"--kifulist": args.kifulist or ""})
    if has_statistics:
        positions = load_games(args.kifulist).mapped
        count = min(args.positions or _OF_MEAN, len(positions))
        chosen = numpy.arange(count, dtype=numpy.int64) * len(positions) // count
        network.to_device(device)
        average.measure_statistics(network, positions[chosen], device, args.batchsize)
        network.to_device("@numpy")
    _save(args, network)
    print(
        f"{args.output}: {name_of(network)}, {args.weight:g} times {args.model} and "
        f"{1 - args.weight:g} times {args.other}"
    )


def _calibrate(args: argparse.Namespace) -> None:
    """Writes a model whose values fit the results of games."""
    from pydlshogi.features import WINS
    from pydlshogi.network.registry import name_of
    from pydlshogi.training import calibration
    from pydlshogi.training.evaluate import measure_finite

    network, device = _load(args)
    with _about(f"model file {args.model}"):
        calibration.check_network(network)
    _check_output("output", args, {"model": args.model}, {"kifulist": args.kifulist})
    positions = load_games(args.kifulist).positions
    measured = measure_finite(network, positions, device, args.batchsize)
    assert measured.wins is not None, "check_network"
    with _about(args.kifulist):
        scale = calibration.fit_value_scale(measured.wins, WINS[positions["result"]])
    calibration.apply_value_scale(network, scale)
    network.to_device("@numpy")
    _save(args, network)
    print(
        f"value loss of {scale.positions:,} positions: {scale.before:.4f}, corrected "
        f"{scale.after:.4f} (factor {scale.factor:.4f})"
    )
    print(f"{args.output}: {name_of(network)} of {args.model}")


def _fold(args: argparse.Namespace) -> None:
    """Writes a model as the book's network, or with 16 bits."""
    if args.no_fold and (args.keep_value or not args.float16):
        args.parser.error("--no_fold needs --float16, and excludes --keep_value")
    from pydlshogi.model_files.fold import fold
    from pydlshogi.model_files.model_file import load_network
    from pydlshogi.network.registry import name_of
    from pydlshogi.outputs import check_model

    use_own_network(args)
    network = load_network(args.model)
    if not args.no_fold:
        with _about(f"model file {args.model}"):
            network = fold(network, keep_value=args.keep_value)
    check_model("output", args.output)
    _save(args, network)
    print(f"{args.output}: {name_of(network)} of {args.model}")


def transfer(args: argparse.Namespace, name: str = _NAME) -> None:
    """Writes another network with the hidden layers of a policy model.

    Args:
        args: The options ``model``, ``output``, ``network``, ``unfold`` and ``seed``.
        name: Name of the program.
    """
    if args.unfold and args.network not in UNFOLDABLE:
        args.parser.error(f"--unfold needs --network {_any_of(UNFOLDABLE)}")
    import numpy

    from pydlshogi.model_files.fold import fold
    from pydlshogi.model_files.model_file import UnnamedNetwork, load_network, save_derived_model
    from pydlshogi.model_files.transfer import TransferError, make_from_policy, unfold

    try:
        policy = load_network(args.model)
    except UnnamedNetwork:
        raise TransferError(
            f"model file {args.model} is of a network that is not part of this package. "
            "Only layers of its own networks can be copied. Choose another model."
        ) from None
    _check_output("the new model", args, {}, {"--unfold": args.unfold or ""})
    numpy.random.seed(args.seed)  # Chainer's initializers use numpy's global generator
    about = f"model file {args.model}"
    if args.unfold:
        # A wrong model is refused before the list is read.
        with _about(about):
            plain = fold(policy, keep_value=policy.value_kind is not None)
        planes = _some_planes(args.unfold)
        with _about(about):
            network = unfold(plain, args.network, planes)
    else:
        with _about(about):
            network = make_from_policy(policy, args.network)
    keep(name, args.output, args.model)
    save_derived_model(args.output, network, args.model)
    print(f"{args.output}: {args.network} with the layers of {args.model}")
    if network.plane_num < policy.plane_num:
        print(
            f"{name}: {args.model} sees the last two moves, and {args.network} does not: their "
            "filters are left out. The new model predicts fewer moves until it is trained further.",
            file=sys.stderr,
        )


def _any_of(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def _some_planes(kifulist: str) -> numpy.ndarray:
    """Returns the input planes of random positions of a list: (n, 104, 9, 9) float32."""
    import numpy

    from pydlshogi.features import make_input_planes

    positions = load_games(kifulist).positions
    count = min(_OF_UNFOLD, len(positions))
    chosen = numpy.random.choice(len(positions), count, replace=False)
    return make_input_planes(positions[numpy.sort(chosen)])


#: Each kind: what converts, what adds its options, one line of help, and its description.
_KINDS = {
    "average": (
        _average,
        _average_options,
        "the weighted mean of two models",
        "Writes the weighted mean of two models: one that was trained, and the one that this "
        "training began from. The mean often predicts other games better than both.",
    ),
    "calibrate": (
        _calibrate,
        _add_measurement,
        "values that fit the results of games",
        "Writes a model whose winning probabilities fit the results of games. The program fits "
        "one factor of the value's logit. Name games that the model was not trained on. The "
        "policy and the order of the values do not change.",
    ),
    "fold_bn": (
        _fold,
        _fold_options,
        "the book's network without batch normalization, or 16 bits",
        "Writes a model as the book's policy network, with exactly its 26 arrays. The new model "
        "computes the same moves. It takes models trained with --network policy_bn, "
        "policy_hand1x1, policy_hand1x1_unpool, policy_hand1x1_bn, policy_value or "
        "policy_value_hand1x1_bn; a value head is left out without --keep_value. It also takes "
        "the book's policy network, for example to store it with --float16. With --no_fold it "
        "takes any network.",
    ),
    "transfer": (
        transfer,
        _transfer_options,
        "another network with the same hidden layers",
        "Writes a new model with the hidden layers of a policy model, as a start for training it "
        "(--initmodel). A network with a policy head gets that head, too. A value head that the "
        "model lacks gets random weights. Filters of the last two moves are 0 if the model lacks "
        "them, and left out if the new network does not see these moves.",
    ),
}
