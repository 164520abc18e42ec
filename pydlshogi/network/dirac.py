"""Initializes 3×3 layers near the identity.

With random initial weights, little of the position reaches the last of twelve layers, and
little of the error reaches the first. A residual network avoids this by adding the input of a
block to its output. A plain layer can do the same, because the identity δ is a filter too:

    W ← √(1 − 1/n) δ + √(1/n) W        δ = 1 in the middle of a plane's own filter, else 0

in all n layers with as many planes out as in. The squares of the factors add up to 1, so the
variance of a layer's output stays about the same. About √(1 − 1/n)ⁿ ≈ 0.6 of the first of
these layers' input reaches the end of the last. Only the initial weights change: network,
parameters and model files stay the same.

Layers of residual blocks are not changed. Such a block adds its input already; adding it
twice would about double the output, block after block.

Sources: S. Zagoruyko, N. Komodakis, DiracNets: Training Very Deep Neural Networks Without
Skip-Connections, arXiv:1706.00388 (2017), where identity and filters stay separate during
training; H. Zhang, Y. N. Dauphin, T. Ma, Fixup Initialization, arXiv:1901.09321 (2019), on
small residual parts in deep networks.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from pydlshogi.network.layers import ResidualBlock


def add_identity(network: Any) -> int:
    """Adds the identity to the filters of the 3×3 convolutions with as many planes out as in.

    Args:
        network: A ``chainer.Link`` with its initial weights, on the CPU.

    Returns:
        The number of changed convolutions; those in residual blocks are not changed.
    """
    blocks = [link for link in network.links() if isinstance(link, ResidualBlock)]
    residual = {id(parameter) for block in blocks for parameter in block.params()}
    weights = [parameter.array for parameter in network.params() if id(parameter) not in residual]
    layers = [W for W in weights if W.shape[1:] == (len(W), 3, 3)]
    for W in layers:
        own = numpy.arange(len(W))
        W *= math.sqrt(1 / len(layers))
        W[own, own, 1, 1] += math.sqrt(1 - 1 / len(layers))
    return len(layers)
