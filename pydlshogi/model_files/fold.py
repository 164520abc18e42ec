"""Batch normalization folded into the convolutions before it.

Outside of training, a batch normalization multiplies each channel by a factor and adds a
number. A convolution with a bias can do both itself, so the normalization costs nothing.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.errors import UserError
from pydlshogi.features import HAND_PLANES, PIECE_PLANES, PLANE_NUM
from pydlshogi.layers.blocks import Folds, NormalizedConvolution, PiecesAndHands
from pydlshogi.network.network import Network
from pydlshogi.network.policy import PolicyNetwork
from pydlshogi.network.policy_value import PolicyValueNetwork
from pydlshogi.network.registry import name_of
from pydlshogi.network.trunk import DEPTH

F = chainer.functions

#: Names of the networks whose policy the book's policy network can compute.
FOLDABLE = (
    "policy_bn",
    "policy_hand1x1",
    "policy_hand1x1_unpool",
    "policy_hand1x1_bn",
    "policy_value",
    "policy_value_hand1x1_bn",
)

_PACKAGE = __name__.partition(".")[0]

#: Names of the links of the policy head of the book's networks.
POLICY_HEAD = ("l13", "l13_bias")

# The links of the heads, which folding leaves unchanged.
_HEADS = {
    PolicyNetwork: POLICY_HEAD,
    PolicyValueNetwork: (*POLICY_HEAD, *PolicyValueNetwork.value_head),
}


class FoldError(UserError):
    """The book's network cannot compute what this network computes."""


def fold_for_play(network: Network) -> Network:
    """Makes a network without batch normalization that computes the same in play.

    It is for play only: it cannot be trained further or saved. A network without batch
    normalization is returned itself. Links of a user's classes keep theirs.
    """
    if not any(map(_pairs, network.links())):
        return network
    folded = copy.deepcopy(network)
    for link in list(folded.links()):
        for convolutions, normalization in _pairs(link):
            _fold_pair(link, [link[name] for name in convolutions], normalization)
    return folded


def _pairs(link: Any) -> Folds:
    """Returns the pairs of a link that can be folded and are not folded yet.

    A user's subclass inherits ``folds``, but its forward may compute something else.
    """
    is_ours = type(link).__module__.startswith(f"{_PACKAGE}.")
    pairs = getattr(link, "folds", ()) if is_ours else ()
    return tuple(pair for pair in pairs if not isinstance(link[pair[1]], _Activation))


def _fold_pair(chain: Any, convolutions: list[Any], name: str) -> None:
    """Folds the normalization ``chain[name]`` of a sum of convolutions into these."""
    bn = chain[name]
    factor = bn.gamma.array / numpy.sqrt(bn.avg_var.astype(numpy.float64) + bn.eps)
    bias = bn.beta.array - bn.avg_mean * factor
    for conv in convolutions:
        if conv.b is not None:
            bias = bias + conv.b.array * factor
        conv.W.array = (conv.W.array * factor[:, None, None, None]).astype(conv.W.dtype)
    first = convolutions[0]
    with first.init_scope():
        first.b = chainer.Parameter(bias.astype(first.W.dtype))
    # A single convolution applies ReLU itself; after a sum, ReLU is a step of its own.
    first.relu = bn.relu and len(convolutions) == 1
    delattr(chain, name)
    with chain.init_scope():
        setattr(chain, name, _Activation(bn.relu and not first.relu))


class _Activation(chainer.Link):
    """Takes the place of a folded normalization: ReLU, or nothing."""

    def __init__(self, relu: bool) -> None:
        super().__init__()
        self.relu = relu

    def forward(self, x: Any) -> Any:
        """Computes the activation of a Variable of any shape."""
        return F.relu(x) if self.relu else x


def fold(network: Network, *, keep_value: bool = False) -> Network:
    """Makes the book's network from a network that computes the same, except for rounding.

    Args:
        network: One of :data:`FOLDABLE`, on the CPU; another raises FoldError. The book's network
            is returned itself.
        keep_value: Whether to make the book's network with two heads; FoldError: there is no value
            head. Otherwise it is the book's policy network.
    """
    kind = PolicyValueNetwork if keep_value else PolicyNetwork
    if type(network) is kind:
        return network
    if keep_value and network.value_kind is None:
        raise FoldError("it has no value head to keep. Keep the policy alone.")
    if name_of(network) not in FOLDABLE:
        raise FoldError(
            f"a {name_of(network) or type(network).__name__} network cannot become the book's "
            f"policy network. Choose a model of the network {', '.join(FOLDABLE[:-1])} or "
            f"{FOLDABLE[-1]}."
        )
    plain: Any = fold_for_play(network)
    folded = kind(plain.channels)
    for n in range(1, DEPTH + 1):
        W, b = _as_convolution(plain[f"l{n}"])
        folded[f"l{n}"].W.array[...] = W
        folded[f"l{n}"].b.array[...] = b
    for head in _HEADS[kind]:
        folded[head].copyparams(plain[head])
    return folded


def _as_convolution(layer: Any) -> tuple[Any, Any]:
    """Returns filters (channels out, channels in, 3, 3) and bias that compute a folded layer."""
    if isinstance(layer, PiecesAndHands):
        pieces, hands = layer.pieces.W.array, layer.hands.W.array
        # A 1×1 filter is a 3×3 filter with zeros around its middle.
        W = numpy.zeros((len(pieces), PLANE_NUM, 3, 3), pieces.dtype)
        W[:, PIECE_PLANES] = pieces
        W[:, HAND_PLANES, 1, 1] = hands[:, :, 0, 0]
        return W, layer.pieces.b.array
    conv = layer.conv if isinstance(layer, NormalizedConvolution) else layer
    return conv.W.array, conv.b.array
