"""The book's policy network: thirteen convolutions and a bias.

Source: 「将棋AIで学ぶディープラーニング」, chapter 7.
"""

from __future__ import annotations

from typing import Any

from pydlshogi.common import MOVE_DIRECTION_LABEL_NUM
from pydlshogi.compat import chainer
from pydlshogi.features import LABEL_NUM, PLANE_NUM
from pydlshogi.network.cpu.convolution import Convolution2D, check_convolution
from pydlshogi.network.network import Network

F = chainer.functions
L = chainer.links

#: Filters of each hidden layer.
ch = 192


class PolicyNetwork(Network):
    """Planes of a position to one logit a move label.

    Layers l1 … l12 are 3×3 convolutions with padding 1, each followed by ReLU;
    l13 is a 1×1 convolution to one plane a direction, without bias, whose 27·81
    numbers get a bias each from ``l13_bias``. There is no softmax inside.

    26 arrays, 3,838,923 numbers, at the paths ``l1/W``, ``l1/b`` … ``l12/b``,
    ``l13/W``, ``l13_bias/b``: a model file of the book's loads here and ours there.

    Its relatives make some of the hidden layers in another way and leave the rest.

    Args:
        convolution: How the layers are computed, one of
            :data:`pydlshogi.network.cpu.convolution.CONVOLUTIONS`.

    Raises:
        ValueError: ``convolution`` is not known.
    """

    #: Number of hidden layers.
    depth = 12

    def __init__(self, convolution: str = "auto") -> None:
        super().__init__()
        self.convolution = check_convolution(convolution)
        with self.init_scope():
            self.l1 = self.first_layer()
            for n in range(2, self.depth + 1):
                setattr(self, f"l{n}", self.hidden_layer(ch))
            self.l13 = Convolution2D(
                ch, MOVE_DIRECTION_LABEL_NUM, ksize=1, nobias=True, convolution=convolution
            )
            self.l13_bias = L.Bias(shape=(LABEL_NUM,))

    def first_layer(self) -> Any:
        """Makes the link from the input to ``ch`` planes."""
        return self.hidden_layer(PLANE_NUM)

    def hidden_layer(self, inputs: int) -> Any:
        """Makes a link from ``inputs`` to ``ch`` planes."""
        return Convolution2D(inputs, ch, ksize=3, pad=1, relu=True, convolution=self.convolution)

    def forward(self, x: Any) -> Any:
        """Computes the logits.

        Args:
            x: (batch, 104, 9, 9) float32, numpy or cupy as the parameters are.

        Returns:
            chainer.Variable of shape (batch, 2187), in the order of the labels.
        """
        return self.policy(self.trunk(x))

    def trunk(self, x: Any) -> Any:
        """Computes the hidden layers: (batch, ch, 9, 9) from the planes."""
        h = x
        for n in range(1, self.depth + 1):
            h = self[f"l{n}"](h)
        return h

    def policy(self, h: Any) -> Any:
        """Computes the logits (batch, 2187) from what the trunk gives."""
        h = self.l13(h)
        return self.l13_bias(F.reshape(h, (-1, LABEL_NUM)))
