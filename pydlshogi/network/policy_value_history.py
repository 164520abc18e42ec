"""Networks with two heads that also see the last two moves.

Source of the idea: the networks for Go take earlier positions or moves as planes; D. Silver et
al., Mastering the game of Go without human knowledge, Nature 550 (2017).
"""

from __future__ import annotations

from typing import Any

from pydlshogi.features import HISTORY_PLANE_NUM
from pydlshogi.layers.blocks import PiecesHandsAndRecent
from pydlshogi.network.policy_hand1x1 import PolicyValueHand1x1BNNetwork
from pydlshogi.network.policy_value_resnet import PolicyValueHand1x1Resnet


class PolicyValueHistoryBNNetwork(PolicyValueHand1x1BNNetwork):
    """PolicyValueHand1x1BNNetwork with the planes of the last two moves."""

    plane_num = HISTORY_PLANE_NUM

    def first_layer(self) -> Any:
        """Makes a normalized first layer, also for the planes of the last two moves."""
        return PiecesHandsAndRecent(self.channels)


class PolicyValueHistoryResnet(PolicyValueHand1x1Resnet):
    """PolicyValueHand1x1Resnet with the planes of the last two moves."""

    plane_num = HISTORY_PLANE_NUM

    def first_layer(self) -> Any:
        """Makes a normalized first layer, also for the planes of the last two moves."""
        return PiecesHandsAndRecent(self.channels)
