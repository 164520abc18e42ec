"""A small network with two heads, published for 9×9 Go, with our planes and labels.

The original's planes of earlier positions are left out.
"""

from __future__ import annotations

from typing import Any

from pydlshogi.common import SQUARE_NUM
from pydlshogi.compat import chainer
from pydlshogi.features import LABEL_NUM, PLANE_NUM
from pydlshogi.layers.convolution import Convolution2D
from pydlshogi.layers.linear import Linear
from pydlshogi.network.network import Network
from pydlshogi.network.value_kind import ExpectedResult

F = chainer.functions

# Planes of the 1×1 convolutions at the start of the heads.
_POLICY_PLANES, _VALUE_PLANES = 8, 4


class PolicyValueSmallNetwork(Network):
    """Three 3×3 layers of 32, 64 and 128 filters, and two fully connected heads.

    Policy head: 1×1 convolution to 8 planes, 256 units, the logits. Value head: 1×1
    convolution to 4 planes, 128 units, 64 units, tanh. ReLU follows every other layer.
    """

    value_kind = ExpectedResult
    value_head = ("value1", "value2", "value3", "value4")

    def __init__(self) -> None:
        super().__init__()
        with self.init_scope():
            self.l1 = Convolution2D(PLANE_NUM, 32, ksize=3, pad=1, relu=True)
            self.l2 = Convolution2D(32, 64, ksize=3, pad=1, relu=True)
            self.l3 = Convolution2D(64, 128, ksize=3, pad=1, relu=True)
            self.policy1 = Convolution2D(128, _POLICY_PLANES, ksize=1, relu=True)
            self.policy2 = Linear(_POLICY_PLANES * SQUARE_NUM, 256, relu=True)
            self.policy3 = Linear(256, LABEL_NUM)
            self.value1 = Convolution2D(128, _VALUE_PLANES, ksize=1, relu=True)
            self.value2 = Linear(_VALUE_PLANES * SQUARE_NUM, 128, relu=True)
            self.value3 = Linear(128, 64, relu=True)
            self.value4 = Linear(64, 1)

    def forward(self, x: Any) -> Any:
        """Computes logits (batch, 2187) and values (batch, 1) from −1 to 1, from the planes."""
        h = self.trunk(x)
        return self.policy3(self.policy2(self.policy1(h))), self.value(h)

    def trunk(self, x: Any) -> Any:
        """Computes the last hidden layer (batch, 128, 9, 9) from the input planes."""
        return self.l3(self.l2(self.l1(x)))

    def value(self, h: Any) -> Any:
        """Computes the values (batch, 1) from the output of the trunk."""
        return F.tanh(self.value4(self.value3(self.value2(self.value1(h)))))
