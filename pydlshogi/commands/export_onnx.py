"""The program export_onnx: a model as an ONNX file."""

from __future__ import annotations

from collections.abc import Sequence

from pydlshogi.commands.arguments import ArgumentParser, file_name
from pydlshogi.commands.model_options import add_own_network, use_own_network
from pydlshogi.commands.program import program
from pydlshogi.commands.written import keep


def build_parser() -> ArgumentParser:
    """Makes the parser of the command line."""
    parser = ArgumentParser(
        prog="export_onnx",
        description="Converts a model to ONNX. The input is planes (batch, 104, 9, 9), or 106 of "
        "them for a network that sees the last two moves. The outputs are policy (batch, 2187), "
        "logits, and value (batch, 1), the probability that the side to move wins; a head that the "
        "network lacks is left out. Before the file is written, ONNX Runtime computes it, and the "
        "results are compared with the network.",
    )
    add = parser.add_argument
    add("model", type=file_name, help="model file to read")
    add("output", type=file_name, help="ONNX file to write")
    add(
        "--dlshogi",
        action="store_true",
        help="use dlshogi's names, input planes and order of labels; needs a policy and a value",
    )
    add_own_network(parser)
    return parser


@program("export_onnx")
def main(argv: Sequence[str] | None = None) -> int:
    """Converts a model as the command line says; returns the exit status."""
    args = build_parser().parse_args(argv)
    # These modules import Chainer; a mistake in the options is reported without that delay.
    from pydlshogi.model_files.agreement import check_onnx
    from pydlshogi.model_files.model_file import load_network
    from pydlshogi.model_files.onnx_dlshogi import export_dlshogi
    from pydlshogi.model_files.onnx_export import ExportError, export, onnx_library, save
    from pydlshogi.outputs import prepare_outputs

    onnx_library()
    prepare_outputs({"the ONNX file": args.output}, {"model": args.model})
    use_own_network(args)
    network = load_network(args.model)
    try:
        model = (export_dlshogi if args.dlshogi else export)(network)
        differences = check_onnx(model, network)
    except ExportError as error:
        raise ExportError(f"model file {args.model}: {error}") from None
    keep("export_onnx", args.output)
    save(model, args.output)
    print(f"{args.output}: ONNX model of {args.model}")
    for name, difference in differences.items():
        print(f"{name}: largest difference to the network {difference:.1e} (relative)")
    return 0
