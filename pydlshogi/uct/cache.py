"""Cache of the network's evaluations, by a hash of the network's input."""

from __future__ import annotations

import collections

from pydlshogi.uct.policy import Policy


class Cache:
    """The policies and values of the positions that were evaluated last.

    Args:
        capacity: Number of positions. The oldest is removed first.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        # The first key of a plain dict is slow to find after many first keys were removed.
        self._policies: collections.OrderedDict[int, Policy] = collections.OrderedDict()

    def __len__(self) -> int:
        return len(self._policies)

    def get(self, key: int) -> Policy | None:
        """Returns the policy of a position, by its hash; None if it is not in the cache."""
        return self._policies.get(key)

    def put(self, key: int, policy: Policy) -> None:
        """Adds a position."""
        if self._capacity:
            self._policies[key] = policy
            self.trim(1)

    def resize(self, capacity: int) -> None:
        """Changes the capacity; :meth:`trim` must remove the positions beyond it."""
        self._capacity = capacity

    def trim(self, most: int) -> None:
        """Removes the oldest positions beyond the capacity: 100,000 at once would take 0.1 s.

        Args:
            most: Largest number of positions to remove.
        """
        for _ in range(min(most, len(self._policies) - self._capacity)):
            self._policies.popitem(last=False)

    def clear(self) -> None:
        """Removes all positions."""
        self._policies.clear()
