"""The moves of a position with the network's probabilities."""

from __future__ import annotations

import numpy

#: Memory of the objects around the numbers, in bytes: two arrays, the policy, a cache entry.
_OVERHEAD = 480
_BYTES_PER_MOVE = 6


class Policy:
    """The legal moves of a position, their probabilities, and the value of the position.

    :meth:`sort` computes the probabilities at the second visit, because most leaves are visited
    only once. Nodes with the same input of the network share a policy. Sorting it for one node
    changes it for all of them. That is safe: a node refers to moves by their place only once it
    has children. It sorts its policy before it gets any.

    Args:
        moves: (n,) uint16, the legal moves.
        logits: (n,) float32, their logits.
        value: Probability that the side to move wins.

    Attributes:
        moves: As above; after :meth:`sort` the most probable first.
        priors: (n,) float32: logits, and after :meth:`sort` probabilities.
        value: As above.
    """

    __slots__ = ("_is_sorted", "moves", "priors", "value")

    def __init__(self, moves: numpy.ndarray, logits: numpy.ndarray, value: float) -> None:
        self.moves = moves
        self.priors = logits
        self.value = value
        self._is_sorted = False

    def sort(self, temperature: float) -> None:
        """Converts logits to probabilities and sorts the moves by them, at the first call."""
        if self._is_sorted:
            return
        powers = numpy.exp((self.priors - self.priors.max()) / temperature)
        # Equal probabilities keep the order of the moves' numbers: both boards agree on it.
        order = numpy.lexsort((self.moves, -powers))
        self.priors = powers[order] / powers.sum()
        self.moves = self.moves[order]
        self._is_sorted = True

    def restrict(self, moves: frozenset[int]) -> Policy:
        """Makes a policy of some of the moves, at least one; this one must be sorted."""
        kept = numpy.isin(self.moves, list(moves))
        priors = self.priors[kept]
        total = priors.sum()
        # At a low temperature the probabilities of all these moves may have become 0.
        priors = priors / total if total else numpy.full_like(priors, 1 / len(priors))
        policy = Policy(self.moves[kept], priors, self.value)
        policy._is_sorted = True
        return policy

    def size(self) -> int:
        """Memory in bytes, about."""
        return _OVERHEAD + _BYTES_PER_MOVE * len(self.moves)
