"""The program calibrate_value: a model whose values fit the results of games."""

from __future__ import annotations

from collections.abc import Sequence

from pydlshogi.commands.arguments import ArgumentParser, file_name, positive_int
from pydlshogi.commands.computation import add_computation, apply_computation
from pydlshogi.commands.model_options import add_own_network, use_own_network
from pydlshogi.commands.program import program
from pydlshogi.commands.written import keep, load_games


def build_parser() -> ArgumentParser:
    """Makes the parser of the command line."""
    parser = ArgumentParser(
        prog="calibrate_value",
        description="Writes a model whose winning probabilities fit the results of games. The "
        "program fits one factor of the value's logit. Name games that the model was not trained "
        "on. The policy and the order of the values do not change.",
    )
    add = parser.add_argument
    add("model", type=file_name, help="model file to read")
    add("kifulist", type=file_name, help="text file with the paths of the games, one a line")
    add("output", type=file_name, help="model file to write")
    add(
        "--float16",
        action="store_true",
        help="store numbers of 16 bits: the file has half the size",
    )
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


@program("calibrate_value", remedy="Lower --batchsize, or end other programs.")
def main(argv: Sequence[str] | None = None) -> int:
    """Fits the values as the command line says; returns the exit status."""
    args = build_parser().parse_args(argv)
    # These modules import Chainer; a wrong command line has been reported before.
    from pydlshogi.device import select_device
    from pydlshogi.features import WINS
    from pydlshogi.kifu.cache import with_caches
    from pydlshogi.model_files.model_file import load_network, save_derived_model
    from pydlshogi.network.registry import name_of
    from pydlshogi.outputs import check_model, prepare_outputs
    from pydlshogi.training.evaluate import measure_finite
    from pydlshogi.training.value_scale import (
        ValueScaleError,
        apply_value_scale,
        check_network,
        fit_value_scale,
    )

    device = select_device(args.gpu)
    apply_computation(args)
    use_own_network(args)
    network = load_network(args.model)
    try:
        check_network(network)
    except ValueScaleError as error:
        raise ValueScaleError(f"model file {args.model}: {error}") from None
    inputs = {"model": args.model, **with_caches({"kifulist": args.kifulist})}
    check_model("output", args.output)
    prepare_outputs({"output": args.output}, inputs)
    positions = load_games(args.kifulist).positions
    measured = measure_finite(network, positions, device, args.batchsize)
    assert measured.wins is not None, "check_network"
    try:
        scale = fit_value_scale(measured.wins, WINS[positions["result"]])
    except ValueScaleError as error:
        raise ValueScaleError(f"{args.kifulist}: {error}") from None
    apply_value_scale(network, scale)
    network.to_device("@numpy")
    keep("calibrate_value", args.output, args.model)
    save_derived_model(args.output, network, args.model, half=args.float16)
    print(
        f"value loss of {scale.positions:,} positions: {scale.before:.4f}, corrected "
        f"{scale.after:.4f} (factor {scale.factor:.4f})"
    )
    print(f"{args.output}: {name_of(network)} of {args.model}")
    return 0
