"""A network with two heads and hand planes through 1×1 filters."""

from __future__ import annotations

from pydlshogi.network.policy_hand1x1 import PolicyHand1x1BNNetwork
from pydlshogi.network.policy_value import PolicyValueNetwork


class PolicyValueHand1x1BNNetwork(PolicyValueNetwork, PolicyHand1x1BNNetwork):
    """The book's two heads on the trunk of :class:`PolicyHand1x1BNNetwork`.

    Args:
        channels: Filters of each hidden layer.
    """
