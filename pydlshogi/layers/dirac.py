"""Initializes networks near the identity.

With random initial weights, little of the position reaches the last of twelve layers, and
little of the error reaches the first. A residual network avoids this by adding the input of a
block to its output. A plain layer can do the same, because the identity δ is a filter too:

    W ← √(1 − 1/n) δ + √(1/n) W        δ = 1 in the middle of a plane's own filter, else 0

in all n layers with as many planes out as in. The squares of the factors add up to 1, so the
variance of a layer's output stays about the same. About √(1 − 1/n)ⁿ ≈ 0.6 of the first of
these layers' input reaches the end of the last. Only the initial weights change: network,
parameters and model files stay the same.

A residual block adds its input already. Here its last batch normalization starts with γ = 0,
so that the block starts as the identity; its filters are not changed.

Sources: S. Zagoruyko, N. Komodakis, DiracNets: Training Very Deep Neural Networks Without
Skip-Connections, arXiv:1706.00388 (2017), where identity and filters stay separate during
training; P. Goyal et al., Accurate, Large Minibatch SGD: Training ImageNet in 1 Hour,
arXiv:1706.02677 (2017), section 5.1, on γ = 0; H. Zhang, Y. N. Dauphin, T. Ma, Fixup
Initialization, arXiv:1901.09321 (2019), on small residual parts in deep networks.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from pydlshogi.layers.blocks import ResidualBlock


def add_identity(network: Any) -> int:
    """Changes the 3×3 layers with as many planes out as in, and the residual blocks.

    The network is a ``chainer.Link`` with its initial weights, on the CPU. Returns the number of
    changed parameters: one for each such layer outside of residual blocks, and for each block.
    """
    blocks: list[Any] = [link for link in network.links() if isinstance(link, ResidualBlock)]
    for block in blocks:
        block.bn2.gamma.array[...] = 0
    residual = {id(parameter) for block in blocks for parameter in block.params()}
    weights = [parameter.array for parameter in network.params() if id(parameter) not in residual]
    layers = [W for W in weights if W.ndim == 4 and W.shape[1:] == (len(W), 3, 3)]
    for W in layers:
        own = numpy.arange(len(W))
        W *= math.sqrt(1 / len(layers))
        W[own, own, 1, 1] += math.sqrt(1 - 1 / len(layers))
    return len(layers) + len(blocks)
