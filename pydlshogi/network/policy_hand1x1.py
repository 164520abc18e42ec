"""Networks with hand planes through 1×1 filters; the other layers are the book's.

Source of the planes of earlier moves: D. Silver et al., Mastering the game of Go without human
knowledge, Nature 550 (2017).
"""

from __future__ import annotations

from typing import Any

from pydlshogi.features import HISTORY_PLANE_NUM
from pydlshogi.layers.blocks import (
    NormalizedConvolution,
    PiecesAndHands,
    PiecesAndStretchedHands,
    PiecesHandsAndRecent,
)
from pydlshogi.network.policy import PolicyNetwork
from pydlshogi.network.policy_value import PolicyValueNetwork


class PolicyHand1x1Network(PolicyNetwork):
    """Hand planes as 9×9 boards through 1×1 filters: form (b) of the publication."""

    def first_layer(self) -> Any:
        """Makes a first layer with 1×1 filters for the hand planes."""
        return PiecesAndHands(self.channels)


class PolicyHand1x1UnpoolNetwork(PolicyNetwork):
    """Hand planes as one square each through 1×1 filters, then stretched: form (a).

    It computes the same function of the same parameters as :class:`PolicyHand1x1Network`.
    """

    def first_layer(self) -> Any:
        """Makes a first layer that computes one square of each hand plane."""
        return PiecesAndStretchedHands(self.channels)


class PolicyHand1x1BNNetwork(PolicyNetwork):
    """PolicyHand1x1Network with batch normalization before each ReLU, in place of biases."""

    def first_layer(self) -> Any:
        """Makes a normalized first layer with 1×1 filters for the hand planes."""
        return PiecesAndHands(self.channels, normalize=True)

    def hidden_layer(self, inputs: int) -> Any:
        """Makes a normalized 3×3 convolution."""
        return NormalizedConvolution(inputs, self.channels)


class PolicyValueHand1x1BNNetwork(PolicyValueNetwork, PolicyHand1x1BNNetwork):
    """The book's two heads on the trunk of :class:`PolicyHand1x1BNNetwork`."""


class PolicyValueHistoryBNNetwork(PolicyValueHand1x1BNNetwork):
    """PolicyValueHand1x1BNNetwork with the planes of the last two moves."""

    plane_num = HISTORY_PLANE_NUM

    def first_layer(self) -> Any:
        """Makes a normalized first layer, also for the planes of the last two moves."""
        return PiecesHandsAndRecent(self.channels)
