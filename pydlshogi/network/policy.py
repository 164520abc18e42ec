"""The book's policy network: thirteen convolutions and a bias.

Source: 「将棋AIで学ぶディープラーニング」, chapter 7.
"""

from __future__ import annotations

from typing import Any

from pydlshogi.common import MOVE_DIRECTION_LABEL_NUM
from pydlshogi.compat import chainer
from pydlshogi.features import LABEL_NUM
from pydlshogi.layers.convolution import Convolution2D
from pydlshogi.network.trunk import Trunk, ch

F = chainer.functions
L = chainer.links


class PolicyNetwork(Trunk):
    """Planes of a position to one logit for each move label.

    The policy head on the trunk: ``l13``, a 1×1 convolution to one plane for each move
    direction, without bias; ``l13_bias``, one bias for each of the 27·81 outputs. There is no
    softmax inside.

    The book's size has 26 arrays with 3,838,923 numbers. The keys are ``l1/W``, ``l1/b`` …
    ``l12/b``, ``l13/W``, ``l13_bias/b``, as in the book's model files.
    """

    def __init__(self, channels: int = ch) -> None:
        super().__init__(channels)
        with self.init_scope():
            self.l13 = Convolution2D(channels, MOVE_DIRECTION_LABEL_NUM, ksize=1, nobias=True)
            self.l13_bias = L.Bias(shape=(LABEL_NUM,))

    def forward(self, x: Any) -> Any:
        """Computes the logits (batch, 2187) from planes (batch, 104, 9, 9)."""
        return self.policy(self.trunk(x))

    def policy(self, h: Any) -> Any:
        """Computes the logits (batch, 2187) from the output of the trunk."""
        h = self.l13(h)
        return self.l13_bias(F.reshape(h, (-1, LABEL_NUM)))
