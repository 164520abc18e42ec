"""The small two-headed network of a published 9×9 Go program, with our planes and labels.

Its planes of earlier positions are dropped.
"""

from __future__ import annotations

from typing import Any

from pydlshogi.common import SQUARE_NUM
from pydlshogi.compat import chainer
from pydlshogi.features import LABEL_NUM, PLANE_NUM
from pydlshogi.network.cpu.convolution import Convolution2D, check_convolution
from pydlshogi.network.cpu.linear import Linear
from pydlshogi.network.network import Network
from pydlshogi.network.value_kind import ExpectedResult

F = chainer.functions

# Planes of the 1×1 convolutions that the heads begin with.
_POLICY_PLANES, _VALUE_PLANES = 8, 4


class PolicyValueSmallNetwork(Network):
    """Three 3×3 layers of 32, 64 and 128 filters, and two fully connected heads.

    The policy head: a 1×1 convolution to 8 planes, 256 units, the logits. The value head:
    a 1×1 convolution to 4 planes, 128 and 64 units, tanh. ReLU stands between all layers.

    Args:
        convolution: How the layers are computed, one of
            :data:`pydlshogi.network.cpu.convolution.CONVOLUTIONS`.

    Raises:
        ValueError: ``convolution`` is not known.
    """

    value_kind = ExpectedResult

    def __init__(self, convolution: str = "auto") -> None:
        super().__init__()
        how: dict[str, Any] = {"relu": True, "convolution": check_convolution(convolution)}
        with self.init_scope():
            self.l1 = Convolution2D(PLANE_NUM, 32, ksize=3, pad=1, **how)
            self.l2 = Convolution2D(32, 64, ksize=3, pad=1, **how)
            self.l3 = Convolution2D(64, 128, ksize=3, pad=1, **how)
            self.policy1 = Convolution2D(128, _POLICY_PLANES, ksize=1, **how)
            self.policy2 = Linear(_POLICY_PLANES * SQUARE_NUM, 256, **how)
            self.policy3 = Linear(256, LABEL_NUM, convolution=convolution)
            self.value1 = Convolution2D(128, _VALUE_PLANES, ksize=1, **how)
            self.value2 = Linear(_VALUE_PLANES * SQUARE_NUM, 128, **how)
            self.value3 = Linear(128, 64, **how)
            self.value4 = Linear(64, 1, convolution=convolution)

    def forward(self, x: Any) -> Any:
        """Computes logits and values.

        Args:
            x: (batch, 104, 9, 9) float32, numpy or cupy as the parameters are.

        Returns:
            Variables of shapes (batch, 2187) and (batch,).
        """
        h = self.l3(self.l2(self.l1(x)))
        return self.policy(h), self.value(h)

    def policy(self, h: Any) -> Any:
        """Computes the logits (batch, 2187) from what the trunk gives."""
        return self.policy3(self.policy2(self.policy1(h)))

    def value(self, h: Any) -> Any:
        """Computes the values (batch,), −1 … 1, from what the trunk gives."""
        h = self.value3(self.value2(self.value1(h)))
        return F.flatten(F.tanh(self.value4(h)))
