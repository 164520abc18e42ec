"""The program fold_bn: a network with batch normalization as one without.

In play a batch normalization is a factor and a summand a channel, and so are a
convolution's filters and bias: the two become one. The result is the book's network.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydlshogi.network.network import Network
    from pydlshogi.network.policy import PolicyNetwork


class FoldError(Exception):
    """The network cannot become the book's; the text says why and what to do."""


def build_parser() -> argparse.ArgumentParser:
    """Makes the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="fold_bn",
        description="Makes the book's network, with exactly its 26 arrays, of one that was trained "
        "with batch normalization (--network policy_bn). One of the book's is taken as it is.",
    )
    add = parser.add_argument
    add("model", help="model file of train_policy")
    add("output", help="model file to write")
    add(
        "--float16",
        action="store_true",
        help="store the numbers in 16 bits: half the size; they are computed with in 32 bits "
        "as always (compare both with evaluate_model)",
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Folds as the command line says.

    Args:
        argv: The arguments; those of the process where it is None.

    Returns:
        Exit status: 0, or 1 with one sentence on standard error.
    """
    args = build_parser().parse_args(argv)
    # They import Chainer, so they come after the options have been found right.
    from pydlshogi.network.model_file import ModelFileError, load_network, save_model

    try:
        save_model(args.output, fold(load_network(args.model)), half=args.float16)
    except FoldError as error:
        print(f"fold_bn: error: model file {args.model}: {error}", file=sys.stderr)
        return 1
    except (ModelFileError, OSError) as error:
        print(f"fold_bn: error: {error}", file=sys.stderr)
        return 1
    return 0


def fold(network: Network) -> PolicyNetwork:
    """Makes the book's network of one with batch normalization.

    Args:
        network: Named ``policy_bn``, or ``policy``, which is returned as it is; on the CPU.

    Returns:
        A network that computes the same logits, but for rounding, as the other does
        where ``chainer.config.train`` is False.

    Raises:
        FoldError: it is another network.
    """
    import numpy

    from pydlshogi.network.policy import PolicyNetwork
    from pydlshogi.network.policy_bn import PolicyBNNetwork

    if type(network) is PolicyNetwork:
        return network
    if type(network) is not PolicyBNNetwork:
        raise FoldError(
            f"a {type(network).__name__} is not the book's network with batch normalization. "
            "Choose a model trained with --network policy_bn."
        )
    folded = PolicyNetwork(network.convolution)
    for n in range(1, network.depth + 1):
        layer, bn = network[f"l{n}"], network[f"l{n}"].bn
        factor = bn.gamma.array / numpy.sqrt(bn.avg_var.astype(numpy.float64) + bn.eps)
        folded[f"l{n}"].W.array[...] = layer.conv.W.array * factor[:, None, None, None]
        folded[f"l{n}"].b.array[...] = bn.beta.array - bn.avg_mean * factor
    folded.l13.copyparams(network.l13)
    folded.l13_bias.copyparams(network.l13_bias)
    return folded


if __name__ == "__main__":
    sys.exit(main())
