"""Policy networks whose hand planes go through 1×1 filters; the layers 2–13 are the book's."""

from __future__ import annotations

from typing import Any

from pydlshogi.network.layers import PiecesAndHands, PiecesAndStretchedHands
from pydlshogi.network.policy import PolicyNetwork, ch
from pydlshogi.network.policy_bn import PolicyBNNetwork


class PolicyHand1x1Network(PolicyNetwork):
    """Hand planes as boards of 9×9 through 1×1 filters: form (b) of the publication."""

    def first_layer(self) -> Any:
        """See :class:`PolicyNetwork`."""
        return PiecesAndHands(ch, self.convolution)


class PolicyHand1x1UnpoolNetwork(PolicyNetwork):
    """Hand planes as one square each through 1×1 filters, then stretched: form (a).

    It computes what :class:`PolicyHand1x1Network` does, from the same parameters.
    """

    def first_layer(self) -> Any:
        """See :class:`PolicyNetwork`."""
        return PiecesAndStretchedHands(ch, self.convolution)


class PolicyHand1x1BNNetwork(PolicyBNNetwork):
    """PolicyHand1x1Network with a batch normalization before each ReLU."""

    def first_layer(self) -> Any:
        """See :class:`PolicyNetwork`."""
        return PiecesAndHands(ch, self.convolution, normalize=True)


class PolicyHand1x1PlyNetwork(PolicyNetwork):
    """Hand planes and planes of the move number through 1×1 filters.

    The move number in eight ranges is what the publication proposes at its close.
    """

    ply = True

    def first_layer(self) -> Any:
        """See :class:`PolicyNetwork`."""
        return PiecesAndHands(ch, self.convolution, ply=True)
