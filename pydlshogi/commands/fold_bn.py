"""The program fold_bn: a model of another network as the book's network."""

from __future__ import annotations

from collections.abc import Sequence

from pydlshogi.commands.arguments import ArgumentParser, file_name
from pydlshogi.commands.model_options import add_own_network, use_own_network
from pydlshogi.commands.program import program
from pydlshogi.commands.written import keep


def build_parser() -> ArgumentParser:
    """Makes the parser of the command line."""
    parser = ArgumentParser(
        prog="fold_bn",
        description="Writes a model as the book's policy network, with exactly its 26 arrays. "
        "The new model computes the same moves. It takes models trained with --network "
        "policy_bn, policy_hand1x1, policy_hand1x1_unpool, policy_hand1x1_bn, policy_value or "
        "policy_value_hand1x1_bn; a value head is left out without --keep_value. It also takes "
        "the book's policy network, for example to store it with --float16. With --no_fold it "
        "takes any network.",
    )
    add = parser.add_argument
    add("model", type=file_name, help="model file to read")
    add("output", type=file_name, help="model file to write")
    add(
        "--keep_value",
        action="store_true",
        help="keep the value head: the result is the book's network with two heads",
    )
    add(
        "--no_fold",
        action="store_true",
        help="do not fold: store the model of any network as it is, with --float16",
    )
    add(
        "--float16",
        action="store_true",
        help="store numbers of 16 bits: the file has half the size; the computation still uses "
        "32 bits (compare both files with evaluate_model)",
    )
    add_own_network(parser)
    return parser


@program("fold_bn")
def main(argv: Sequence[str] | None = None) -> int:
    """Reads a model, folds it and writes the result; returns the exit status."""
    parser = build_parser()
    args = parser.parse_args(argv)
    if args.no_fold and (args.keep_value or not args.float16):
        parser.error("--no_fold needs --float16, and excludes --keep_value")
    # These modules import Chainer; a mistake in the options is reported without that delay.
    from pydlshogi.model_files.fold import FoldError, fold
    from pydlshogi.model_files.model_file import load_network, save_derived_model
    from pydlshogi.network.registry import name_of
    from pydlshogi.outputs import check_model

    use_own_network(args)
    network = load_network(args.model)
    if not args.no_fold:
        try:
            network = fold(network, keep_value=args.keep_value)
        except FoldError as error:
            raise FoldError(f"model file {args.model}: {error}") from None
    check_model("output", args.output)
    keep("fold_bn", args.output, args.model)
    save_derived_model(args.output, network, args.model, half=args.float16)
    print(f"{args.output}: {name_of(network)} of {args.model}")
    return 0
