"""Cache of the network's evaluations, by a hash of the network's input."""

from __future__ import annotations

from pydlshogi.uct.policy import Policy


class Cache:
    """The policies and values of the positions that were evaluated last.

    Args:
        capacity: Number of positions. The oldest is removed first.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._policies: dict[int, Policy] = {}

    def __len__(self) -> int:
        return len(self._policies)

    def get(self, key: int) -> Policy | None:
        """Returns the policy of a position, by its hash; None if it is not in the cache."""
        return self._policies.get(key)

    def put(self, key: int, policy: Policy) -> None:
        """Adds a position."""
        if self._capacity:
            self._policies[key] = policy
            if len(self._policies) > self._capacity:
                del self._policies[next(iter(self._policies))]

    def resize(self, capacity: int) -> None:
        """Changes the capacity."""
        self._capacity = capacity
        while len(self._policies) > capacity:
            del self._policies[next(iter(self._policies))]

    def clear(self) -> None:
        """Removes all positions."""
        self._policies.clear()
