"""Cache of the network's answers, by a hash of what the network sees."""

from __future__ import annotations

from pydlshogi.uct.policy import Policy


class Cache:
    """The policies of the positions evaluated last.

    Args:
        capacity: Number of positions. The oldest is removed first.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._policies: dict[int, Policy] = {}

    def __len__(self) -> int:
        return len(self._policies)

    def get(self, key: int) -> Policy | None:
        """Finds a position by its hash."""
        return self._policies.get(key)

    def put(self, key: int, policy: Policy) -> None:
        """Adds a position."""
        if self._capacity:
            self._policies[key] = policy
            if len(self._policies) > self._capacity:
                del self._policies[next(iter(self._policies))]

    def resize(self, capacity: int) -> None:
        """Changes the number of positions."""
        self._capacity = capacity
        while len(self._policies) > capacity:
            del self._policies[next(iter(self._policies))]

    def clear(self) -> None:
        """Forgets everything."""
        self._policies.clear()
