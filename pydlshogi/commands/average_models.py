"""The program average_models: the weighted mean of two models of one network."""

from __future__ import annotations

from collections.abc import Sequence

from pydlshogi.commands.arguments import ArgumentParser, file_name, positive_int, proportion
from pydlshogi.commands.computation import add_computation, apply_computation
from pydlshogi.commands.model_options import add_own_network, use_own_network
from pydlshogi.commands.program import program
from pydlshogi.commands.written import keep, load_games

#: Positions that the statistics are measured on, by default.
_MEASURED = 65536


def build_parser() -> ArgumentParser:
    """Makes the parser of the command line."""
    parser = ArgumentParser(
        prog="average_models",
        description="Writes the weighted mean of two models: one that was trained, and the one "
        "that this training began from. The mean often predicts other games better than both.",
    )
    add = parser.add_argument
    add("model", type=file_name, help="model file to read")
    add("other", type=file_name, help="model file of the same network")
    add("output", type=file_name, help="model file to write")
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
    add(
        "--positions",
        type=positive_int,
        metavar="N",
        help="positions of LIST, evenly chosen, that the statistics are measured on (default: "
        f"{_MEASURED})",
    )
    add(
        "--float16",
        action="store_true",
        help="store numbers of 16 bits: the file has half the size",
    )
    add(
        "--batchsize",
        "-b",
        type=positive_int,
        default=1024,
        metavar="N",
        help="positions in a batch (default: %(default)s)",
    )
    add_own_network(parser)
    add_computation(parser)
    return parser


@program("average_models", remedy="Lower --batchsize, or end other programs.")
def main(argv: Sequence[str] | None = None) -> int:
    """Computes the mean as the command line says; returns the exit status."""
    parser = build_parser()
    args = parser.parse_args(argv)
    if args.positions and not args.kifulist:
        parser.error("--positions needs --kifulist")
    # These modules import Chainer; a wrong command line has been reported before.
    import numpy

    from pydlshogi.device import select_device
    from pydlshogi.kifu.cache import with_caches
    from pydlshogi.model_files.model_file import load_network, save_derived_model
    from pydlshogi.network.registry import name_of
    from pydlshogi.outputs import check_model, prepare_outputs
    from pydlshogi.training.average import (
        AverageError,
        average,
        measure_statistics,
        normalizations_of,
    )

    device = select_device(args.gpu)
    apply_computation(args)
    use_own_network(args)
    network = load_network(args.model)
    try:
        average(network, load_network(args.other), args.weight)
    except AverageError as error:
        raise AverageError(f"model files {args.model} and {args.other}: {error}") from None
    has_statistics = bool(normalizations_of(network))
    if has_statistics != bool(args.kifulist):
        raise AverageError(
            f"model file {args.model}: its network has batch normalization. Name games of its "
            "training with --kifulist."
            if has_statistics
            else f"model file {args.model}: its network has no batch normalization. Leave out "
            "--kifulist."
        )
    lists = with_caches({"--kifulist": args.kifulist or ""})
    check_model("output", args.output)
    prepare_outputs(
        {"output": args.output}, {"model": args.model, "other model": args.other, **lists}
    )
    if has_statistics:
        positions = load_games(args.kifulist).mapped
        count = min(args.positions or _MEASURED, len(positions))
        chosen = numpy.arange(count) * len(positions) // count
        network.to_device(device)
        measure_statistics(network, positions[chosen], device, args.batchsize)
        network.to_device("@numpy")
    keep("average_models", args.output, args.model)
    save_derived_model(args.output, network, args.model, half=args.float16)
    print(
        f"{args.output}: {name_of(network)}, {args.weight:g} times {args.model} and "
        f"{1 - args.weight:g} times {args.other}"
    )
    return 0
