"""The program fold_bn: a relative that computes what the book's network can, as the book's.

In play a batch normalization is a factor and a summand a channel, and so are a
convolution's filters and bias: the two become one. A 1×1 filter is a 3×3 filter with
nothing around its middle.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydlshogi.commands.program import program

if TYPE_CHECKING:
    from pydlshogi.network.network import Network
    from pydlshogi.network.policy import PolicyNetwork

#: Names of the networks that compute what the book's can.
FOLDABLE = ("policy_bn", "policy_hand1x1", "policy_hand1x1_unpool", "policy_hand1x1_bn")


class FoldError(Exception):
    """The network cannot become the book's; the text says why and what to do."""


def build_parser() -> argparse.ArgumentParser:
    """Makes the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="fold_bn",
        description="Makes the book's network, with exactly its 26 arrays, of one that was trained "
        "with batch normalization (--network policy_bn, policy_hand1x1_bn) or with hand planes "
        "through 1x1 filters (policy_hand1x1, policy_hand1x1_unpool). One of the book's is taken "
        "as it is.",
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


@program("fold_bn")
def main(argv: Sequence[str] | None = None) -> int:
    """Folds as the command line says.

    Args:
        argv: The arguments; those of the process where it is None.

    Returns:
        Exit status: 0, or 1 with one sentence on standard error.
    """
    args = build_parser().parse_args(argv)
    files = (args.model, args.output)
    if all(map(os.path.exists, files)) and os.path.samefile(*files):
        print(
            f"fold_bn: error: {args.output} is the model file itself, and its run could not go on "
            "without it. Give the output another name.",
            file=sys.stderr,
        )
        return 1
    # They import Chainer, so they come after the options have been found right.
    from pydlshogi.network.model_file import ModelFileError, load_network, save_model

    try:
        folded = fold(load_network(args.model))
        os.makedirs(os.path.dirname(args.output) or ".", exist_ok=True)
        save_model(args.output, folded, half=args.float16)
    except FoldError as error:
        print(f"fold_bn: error: model file {args.model}: {error}", file=sys.stderr)
        return 1
    except ModelFileError as error:
        print(f"fold_bn: error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(
            f"fold_bn: error: {args.output} cannot be written ({error.strerror}). "
            "Name a file in a folder that can be written to.",
            file=sys.stderr,
        )
        return 1
    return 0


def fold(network: Network) -> PolicyNetwork:
    """Makes the book's network of a relative.

    Args:
        network: One of :data:`FOLDABLE`, or the book's, which is returned as it is; on the CPU.

    Returns:
        A network that computes the same logits, but for rounding, as the other does
        where ``chainer.config.train`` is False.

    Raises:
        FoldError: it is another network.
    """
    from pydlshogi.network.policy import PolicyNetwork
    from pydlshogi.network.registry import name_of

    if type(network) is PolicyNetwork:
        return network
    if name_of(network) not in FOLDABLE:
        raise FoldError(
            f"a {type(network).__name__} does not compute what the book's network can. "
            f"Choose a model trained with --network {', '.join(FOLDABLE[:-1])} or {FOLDABLE[-1]}."
        )
    folded = PolicyNetwork(network.convolution)
    for n in range(1, network.depth + 1):
        W, b = _as_convolution(network[f"l{n}"])
        folded[f"l{n}"].W.array[...] = W
        folded[f"l{n}"].b.array[...] = b
    folded.l13.copyparams(network.l13)
    folded.l13_bias.copyparams(network.l13_bias)
    return folded


def _as_convolution(layer: Any) -> tuple[Any, Any]:
    """Gives the filters and the bias of a 3×3 convolution that does in play what a layer does.

    Args:
        layer: ``Convolution2D``, ``NormalizedConvolution`` or ``PiecesAndHands``.

    Returns:
        (channels out, channels in, 3, 3) and (channels out,), float32 or float64.
    """
    import numpy

    from pydlshogi.features import HAND_PLANES, PIECE_PLANES, PLANE_NUM
    from pydlshogi.network.layers import NormalizedConvolution, PiecesAndHands

    if isinstance(layer, PiecesAndHands):
        pieces, hands = layer.pieces.W.array, layer.hands.W.array
        W = numpy.zeros((len(pieces), PLANE_NUM, 3, 3), pieces.dtype)
        W[:, PIECE_PLANES] = pieces
        W[:, HAND_PLANES, 1, 1] = hands[:, :, 0, 0]
        conv = layer.pieces
    else:
        conv = layer.conv if isinstance(layer, NormalizedConvolution) else layer
        W = conv.W.array
    if conv.b is not None:
        return W, conv.b.array
    bn = layer.bn
    factor = bn.gamma.array / numpy.sqrt(bn.avg_var.astype(numpy.float64) + bn.eps)
    return W * factor[:, None, None, None], bn.beta.array - bn.avg_mean * factor


if __name__ == "__main__":
    sys.exit(main())
