"""The book's policy network with batch normalization.

Source: 「将棋AIで学ぶディープラーニング」.
"""

from __future__ import annotations

from typing import Any

from pydlshogi.layers.batch_normalization import BatchNormalization
from pydlshogi.layers.blocks import Folds
from pydlshogi.layers.convolution import Convolution2D
from pydlshogi.network import policy
from pydlshogi.network.trunk import DEPTH, ch


class PolicyNetwork(policy.PolicyNetwork):
    """The policy network with ``norm1`` … ``norm12`` between convolution and ReLU.

    Training normalizes each batch by its own mean and variance, and keeps running averages of
    both in the model. Outside of training (``chainer.config.train`` is False) the network
    normalizes by these averages. The convolutions keep their biases, as in the book.
    """

    folds: Folds = tuple(((f"l{n}",), f"norm{n}") for n in range(1, DEPTH + 1))

    def __init__(self, channels: int = ch) -> None:
        super().__init__(channels)
        with self.init_scope():
            for n in range(1, DEPTH + 1):
                setattr(self, f"norm{n}", BatchNormalization(channels, relu=True))

    def hidden_layer(self, inputs: int) -> Any:
        """Makes a 3×3 convolution; ReLU follows after the normalization."""
        return Convolution2D(inputs, self.channels, ksize=3, pad=1)

    def trunk(self, x: Any) -> Any:
        """Computes the last hidden layer (batch, channels, 9, 9) from the input planes."""
        h = x
        for n in range(1, DEPTH + 1):
            h = self[f"norm{n}"](self[f"l{n}"](h))
        return h
