"""The book's value network: the probability that the side to move wins.

Source: 「将棋AIで学ぶディープラーニング」.
"""

from __future__ import annotations

from typing import Any

from pydlshogi.common import MOVE_DIRECTION_LABEL_NUM
from pydlshogi.features import LABEL_NUM
from pydlshogi.layers.convolution import Convolution2D
from pydlshogi.layers.linear import Linear
from pydlshogi.network.trunk import Trunk, ch
from pydlshogi.network.value_kind import WinLogit

#: Units of the fully connected layer.
fcl = 256


class ValueNetwork(Trunk):
    """Planes of a position to the logit of a win.

    The value head on the trunk: ``l13_v``, a 1×1 convolution to 27 planes; ``l14_v``, a fully
    connected layer of 256 units; ReLU after both; ``l15_v``, the logit.
    """

    has_policy = False
    value_kind = WinLogit
    value_output = "l15_v"
    value_head = ("l13_v", "l14_v", "l15_v")

    def __init__(self, channels: int = ch) -> None:
        super().__init__(channels)
        with self.init_scope():
            self.l13_v = Convolution2D(channels, MOVE_DIRECTION_LABEL_NUM, ksize=1, relu=True)
            self.l14_v = Linear(LABEL_NUM, fcl, relu=True)
            self.l15_v = Linear(fcl, 1)

    def forward(self, x: Any) -> Any:
        """Computes the values (batch, 1) from planes (batch, 104, 9, 9)."""
        return self.value(self.trunk(x))

    def value(self, h: Any) -> Any:
        """Computes the values (batch, 1) from the output of the trunk."""
        return self.l15_v(self.l14_v(self.l13_v(h)))
