"""A node of the tree."""

from __future__ import annotations

from collections.abc import Sequence

from pydlshogi.uct.policy import Policy
from pydlshogi.uct.proof import Proof, combine

#: Memory in bytes, about: a node without children, and its entries in its parent's lists.
NODE_BYTES = 360

#: Memory in bytes, about: the five lists of a node that has children.
LISTS_BYTES = 400


class Node:
    """A position reached by one path from the root, with the statistics of its children.

    A node is a leaf until it has a policy. Its children are added one by one, in the order of
    their prior probabilities: child k belongs to ``policy.moves[k]``. The statistics of the
    children are plain lists in the parent. Python reads them faster than attributes of many
    objects, and faster than small numpy arrays.

    Attributes:
        visits: Number of visits, without the pending ones.
        total: Sum of the values backed up, each for the side to move here.
        policy: The legal moves and their probabilities; None until the node is expanded.
        pending: Number of pending visits, which wait for the network.
        proof: The proven result; None while there is none.
        mate: The mate that a mate search found: all its moves, or only the first; else empty.
        mate_searched: Whether a long mate was searched here, as a position of the best line.
        children: Nodes of the moves with a visit, pending or not; None before the second visit.
        child_visits: Number of visits of each child, without the pending ones.
        child_pending: Number of pending visits of each child.
        child_totals: Sum of the values of each child, for the side to move at *this* node.
        child_priors: Prior probability of each child; −∞ where the move is proven to lose.
        prior_sum: Sum of the prior probabilities of the children.
    """

    __slots__ = (
        "child_pending",
        "child_priors",
        "child_totals",
        "child_visits",
        "children",
        "mate",
        "mate_searched",
        "pending",
        "policy",
        "prior_sum",
        "proof",
        "total",
        "visits",
    )

    def __init__(self) -> None:
        self.visits = 0
        self.total = 0.0
        self.policy: Policy | None = None
        self.pending = 0
        self.proof: Proof | None = None
        self.mate: Sequence[int] = ()
        self.mate_searched = False
        self.children: list[Node] | None = None
        self.child_visits: list[int] = _NOTHING
        self.child_pending: list[int] = _NOTHING
        self.child_totals: list[float] = _NOTHING
        self.child_priors: list[float] = _NOTHING
        self.prior_sum = 0.0

    def start_children(self, temperature: float) -> None:
        """Prepares for children, at the second visit.

        Args:
            temperature: Of the policy.
        """
        assert self.policy is not None
        self.policy.sort(temperature)
        self.children = []
        self.child_visits, self.child_pending = [], []
        self.child_totals, self.child_priors = [], []

    def add_child(self) -> Node:
        """Adds a child for the most probable move that has none."""
        assert self.policy is not None and self.children is not None
        prior = self.policy.priors.item(len(self.children))
        child = Node()
        self.children.append(child)
        self.child_visits.append(0)
        self.child_pending.append(0)
        self.child_totals.append(0.0)
        self.child_priors.append(prior)
        self.prior_sum += prior
        return child

    def move(self, index: int) -> int:
        """The move that leads to a child."""
        assert self.policy is not None
        return self.policy.moves.item(index)

    def child_after(self, move: int) -> Node | None:
        """Finds the child of a move; None where the move has not been visited."""
        for index, child in enumerate(self.children or ()):
            if self.move(index) == move:
                return child
        return None

    def most_visited(self) -> tuple[int, Node] | None:
        """Finds the most visited child without a proven result.

        Returns:
            Its index and the child; None if there is no such child. Of children with equally
            many visits, it is the one that is best for the side to move here.
        """
        unproven = [
            (visits, total, -index)
            for index, (visits, total) in enumerate(zip(self.child_visits, self.child_totals))
            if not self.children[index].proof  # type: ignore[index]
        ]
        if not unproven:
            return None
        index = -max(unproven)[2]
        return index, self.children[index]  # type: ignore[index]

    def value(self) -> float:
        """Mean of the values backed up: the probability that the side to move wins."""
        return self.total / self.visits if self.visits else 0.5

    def derive_proof(self) -> Proof | None:
        """Derives the proven result from those of the children; None while it is unknown."""
        assert self.policy is not None and self.children is not None
        return combine(
            [child.proof for child in self.children],
            all_moves=len(self.children) == len(self.policy.moves),
        )


#: Shared by all nodes without children; it stays empty.
_NOTHING: list = []
