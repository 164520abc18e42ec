"""The book's policy network with batch normalization."""

from __future__ import annotations

from typing import Any

from pydlshogi.network.layers import NormalizedConvolution
from pydlshogi.network.policy import PolicyNetwork, ch


class PolicyBNNetwork(PolicyNetwork):
    """PolicyNetwork with a batch normalization before each ReLU.

    In training each batch is normalized by its own mean and variance, and a running
    average of them is kept in the model. Evaluation and play (``chainer.config.train``
    is False) normalize by that average and leave it alone.
    """

    def hidden_layer(self, inputs: int) -> Any:
        """See :class:`PolicyNetwork`."""
        return NormalizedConvolution(inputs, ch, self.convolution)
