"""First weights with which a deep network passes its input on.

Twelve layers of random weights leave little of a position for the last one to see, and
little of the error for the first. A residual network adds what goes into a block to what
comes out of it. The identity δ and the filters W of a layer can be added up as well, and
their sum is a layer like any other, so that a plain network can begin that way:

    W ← √(1 − 1/n) δ + √(1/n) W        δ = 1 in the middle of a plane's own filter, else 0

in all n layers that have as many planes out as in. The squares of the factors add up to 1,
so that a layer gives outputs of about the variance it gave before; and of what the first
of these layers gets, a share of √(1 − 1/n)ⁿ ≈ 0.6 comes through all of them. Only first
weights are changed: network, parameters and model files are the same.

Layers in residual blocks are left alone: such a block adds what it gets by itself, and
what comes out of one that adds it twice is about doubled, block after block.

Sources: S. Zagoruyko, N. Komodakis, DiracNets: Training Very Deep Neural Networks Without
Skip-Connections, arXiv:1706.00388 (2017), where identity and filters stay apart while the
network learns; that a deep network wants its residual parts small is in H. Zhang,
Y. N. Dauphin, T. Ma, Fixup Initialization, arXiv:1901.09321 (2019).
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from pydlshogi.network.layers import ResidualBlock


def add_identity(network: Any) -> int:
    """Adds the identity to the weights of 3×3 convolutions that keep the number of planes.

    Args:
        network: A ``chainer.Link`` with its first weights, on the CPU.

    Returns:
        The number of these convolutions: all but those in residual blocks.
    """
    blocks = [link for link in network.links() if isinstance(link, ResidualBlock)]
    left_alone = {id(parameter) for block in blocks for parameter in block.params()}
    weights = [parameter.array for parameter in network.params() if id(parameter) not in left_alone]
    layers = [W for W in weights if W.shape[1:] == (len(W), 3, 3)]
    for W in layers:
        own = numpy.arange(len(W))
        W *= math.sqrt(1 / len(layers))
        W[own, own, 1, 1] += math.sqrt(1 - 1 / len(layers))
    return len(layers)
