"""Networks with one trunk and two heads: the move to play and who will win.

Source: 「将棋AIで学ぶディープラーニング」.
"""

from __future__ import annotations

from typing import Any

from pydlshogi.common import MOVE_DIRECTION_LABEL_NUM
from pydlshogi.compat import chainer
from pydlshogi.features import LABEL_NUM, PLANE_NUM
from pydlshogi.network.cpu.convolution import Convolution2D
from pydlshogi.network.cpu.linear import Linear
from pydlshogi.network.layers import NormalizedConvolution, ResidualBlock
from pydlshogi.network.policy import PolicyNetwork, ch
from pydlshogi.network.value_kind import WinLogit

F = chainer.functions

#: Units of the fully connected layer of the value head.
fcl = 256


class PolicyValueNetwork(PolicyNetwork):
    """PolicyNetwork with a value head on its twelve hidden layers.

    The value head: ``l13_v``, a 1×1 convolution to 27 planes, and ``l14_v``, 256 units,
    each followed by ReLU; ``l15_v``, the logit of the probability that the side to move
    wins.
    """

    value_kind = WinLogit

    def __init__(self, convolution: str = "auto") -> None:
        super().__init__(convolution)
        with self.init_scope():
            self.l13_v = Convolution2D(
                ch, MOVE_DIRECTION_LABEL_NUM, ksize=1, relu=True, convolution=convolution
            )
            self.l14_v = Linear(LABEL_NUM, fcl, relu=True, convolution=convolution)
            self.l15_v = Linear(fcl, 1, convolution=convolution)

    def forward(self, x: Any) -> Any:
        """Computes logits and values.

        Args:
            x: (batch, 104, 9, 9) float32, numpy or cupy as the parameters are.

        Returns:
            Variables of shapes (batch, 2187) and (batch,).
        """
        h = self.trunk(x)
        return self.policy(h), self.value(h)

    def value(self, h: Any) -> Any:
        """Computes the values (batch,) from what the trunk gives."""
        return F.flatten(self.l15_v(self.l14_v(self.l13_v(h))))


class PolicyValueResnetNetwork(PolicyValueNetwork):
    """The same heads on a residual trunk: a convolution and five blocks of two.

    With eleven 3×3 convolutions of 192 filters it is the nearest in size to the book's
    trunk of twelve that whole blocks allow. All are batch-normalized.
    """

    depth = 1 + 5

    def first_layer(self) -> Any:
        """See :class:`PolicyNetwork`."""
        return NormalizedConvolution(PLANE_NUM, ch, self.convolution)

    def hidden_layer(self, inputs: int) -> Any:
        """See :class:`PolicyNetwork`."""
        return ResidualBlock(inputs, self.convolution)
