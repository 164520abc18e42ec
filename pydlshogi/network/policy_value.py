"""The book's network with two heads on one trunk: the next move and the winner.

Source: 「将棋AIで学ぶディープラーニング」.
"""

from __future__ import annotations

from typing import Any

from pydlshogi.network.policy import PolicyNetwork
from pydlshogi.network.value import ValueNetwork


class PolicyValueNetwork(ValueNetwork, PolicyNetwork):
    """The heads of PolicyNetwork and of ValueNetwork on one trunk."""

    # The order of the bases decides the order of the initial random weights: policy head first.
    has_policy = True

    def forward(self, x: Any) -> Any:
        """Computes logits (batch, 2187) and values (batch, 1) from (batch, plane_num, 9, 9)."""
        h = self.trunk(x)
        return self.policy(h), self.value(h)
