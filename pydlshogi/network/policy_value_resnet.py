"""Networks with two heads on a residual trunk: the book's, and two with hand planes 1×1.

Source: 「将棋AIで学ぶディープラーニング」.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydlshogi.common import MOVE_DIRECTION_LABEL_NUM
from pydlshogi.compat import chainer
from pydlshogi.features import HISTORY_PLANE_NUM, LABEL_NUM, PLANE_NUM
from pydlshogi.layers.batch_normalization import BatchNormalization
from pydlshogi.layers.blocks import Folds, PiecesAndHands, PiecesHandsAndRecent, ResidualBlock
from pydlshogi.layers.convolution import Convolution2D
from pydlshogi.layers.linear import Linear
from pydlshogi.network.network import Network
from pydlshogi.network.trunk import ch, channels_in
from pydlshogi.network.value import fcl
from pydlshogi.network.value_kind import WinLogit

F = chainer.functions
L = chainer.links


class PolicyValueResnet(Network):
    """A 3×3 convolution, residual blocks, a policy head and a value head.

    Trunk: ``l1``, 3×3 with bias, ReLU; residual blocks ``b1``, ``b2``, … Policy head:
    ``policy``, 1×1 to 27 planes without bias; ``policy_bias``. Value head: ``value1``, 1×1 to
    27 planes; ``value1_bn``, ReLU; ``value2``, 256 units, ReLU; ``value3``, the logit of a win.

    Args:
        blocks: Number of residual blocks plus 1, as the book counts: 5 means b1 … b4.
        channels: Filters of each hidden layer.
    """

    value_kind = WinLogit
    value_output = "value3"
    value_head = ("value1", "value1_bn", "value2", "value3")
    folds: Folds = ((("value1",), "value1_bn"),)

    def __init__(self, blocks: int = 5, channels: int = ch) -> None:
        super().__init__()
        self.blocks = blocks
        self.channels = channels
        with self.init_scope():
            self.l1 = self.first_layer()
            for n in range(1, blocks):
                setattr(self, f"b{n}", ResidualBlock(channels))
            self.policy = Convolution2D(channels, MOVE_DIRECTION_LABEL_NUM, ksize=1, nobias=True)
            self.policy_bias = L.Bias(shape=(LABEL_NUM,))
            self.value1 = Convolution2D(channels, MOVE_DIRECTION_LABEL_NUM, ksize=1)
            self.value1_bn = BatchNormalization(MOVE_DIRECTION_LABEL_NUM, relu=True)
            self.value2 = Linear(LABEL_NUM, fcl, relu=True)
            self.value3 = Linear(fcl, 1)

    @classmethod
    def sizes_in(cls, arrays: Mapping[str, Any]) -> dict[str, int]:
        """Reads ``channels`` from the first layer, and ``blocks`` from the names b1, b2, …"""
        blocks = 1
        while f"b{blocks}/conv1/W" in arrays:
            blocks += 1
        channels = channels_in(arrays, 2 * blocks - 1)
        return {} if channels is None else {"blocks": blocks, **channels}

    def first_layer(self) -> Any:
        """Makes the link from the input planes to the first hidden layer's output."""
        return Convolution2D(PLANE_NUM, self.channels, ksize=3, pad=1, relu=True)

    def forward(self, x: Any) -> Any:
        """Computes logits (batch, 2187) and values (batch, 1) from (batch, plane_num, 9, 9)."""
        h = self.trunk(x)
        logits = self.policy_bias(F.reshape(self.policy(h), (-1, LABEL_NUM)))
        return logits, self.value(h)

    def trunk(self, x: Any) -> Any:
        """Computes the last hidden layer (batch, channels, 9, 9) from the input planes."""
        h = self.l1(x)
        for n in range(1, self.blocks):
            h = self[f"b{n}"](h)
        return h

    def value(self, h: Any) -> Any:
        """Computes the values (batch, 1) from the output of the trunk."""
        return self.value3(self.value2(self.value1_bn(self.value1(h))))


class PolicyValueHand1x1Resnet(PolicyValueResnet):
    """PolicyValueResnet with hand planes through 1×1 filters and a normalized first layer."""

    def first_layer(self) -> Any:
        """Makes a normalized first layer with 1×1 filters for the hand planes."""
        return PiecesAndHands(self.channels, normalize=True)


class PolicyValueHistoryResnet(PolicyValueHand1x1Resnet):
    """PolicyValueHand1x1Resnet with the planes of the last two moves."""

    plane_num = HISTORY_PLANE_NUM

    def first_layer(self) -> Any:
        """Makes a normalized first layer, also for the planes of the last two moves."""
        return PiecesHandsAndRecent(self.channels)
