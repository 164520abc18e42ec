"""A node of the tree, to look at: the tree itself is arrays (:mod:`pydlshogi.uct.core`)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pydlshogi.uct.core import BLOCK, MOVES_IN_BLOCK, SEARCHED, favourites, most_visited
from pydlshogi.uct.proof import Proof

if TYPE_CHECKING:
    from pydlshogi.uct.tree import Tree


@dataclasses.dataclass(frozen=True, repr=False)
class Node:
    """A position reached by one path from the root.

    It is valid until the tree drops the node.

    Attributes:
        tree: The tree.
        index: The number of the node.
    """

    tree: Tree
    index: int

    @property
    def visits(self) -> int:
        """Number of visits, without the pending ones."""
        return self.tree.nodes.visits[self.index]

    @property
    def pending(self) -> int:
        """Number of pending visits, which wait for the network."""
        return self.tree.nodes.pending[self.index]

    @property
    def total(self) -> float:
        """Sum of the values backed up, each for the side to move here."""
        return self.tree.nodes.total[self.index]

    def value(self) -> float:
        """Mean of the values backed up: the probability that the side to move wins."""
        return self.total / self.visits if self.visits else 0.5

    @property
    def network_value(self) -> float:
        """The network's value of the position, if it is expanded."""
        return self.tree.nodes.value[self.index]

    @property
    def move_num(self) -> int:
        """Number of legal moves; 0 until the node is expanded."""
        return self.tree.nodes.moves[self.index]

    @property
    def is_expanded(self) -> bool:
        """Whether the node has its moves. Until then it is a leaf."""
        return self.move_num > 0

    @property
    def moves(self) -> list[int]:
        """The legal moves, those with a child first, in the order of the first visits."""
        return [self.tree.edges.move[edge] for edge in self.edges()]

    @property
    def priors(self) -> list[float]:
        """The probability of each move."""
        return [self.tree.edges.prior[edge] for edge in self.edges()]

    @property
    def children(self) -> list[Node]:
        """The nodes after the first moves. They have been visited, or the visit is pending."""
        number = self.tree.nodes.children[self.index]
        return [Node(self.tree, self.tree.edges.child[edge]) for edge in self._edges(number)]

    @property
    def proof(self) -> Proof | None:
        """The proven result; None while there is none."""
        return self.tree.proof(self.index)

    def derive_proof(self) -> Proof | None:
        """Derives the proven result from those of the children; None while it is unknown."""
        return self.tree.derive_proof(self.index)

    @property
    def mate(self) -> Sequence[int]:
        """The mate that a mate search found: all its moves, or only the first; else empty."""
        return self.tree.mate(self.index)

    @property
    def mate_searched(self) -> bool:
        """Whether a long mate was searched here, as a position of the best line."""
        return bool(self.tree.nodes.marks[self.index] & SEARCHED)

    def favourites(self) -> tuple[list[tuple[int, float]], int]:
        """Finds the two most visited moves, without those that are proven to lose.

        Returns:
            The visits of each, and its value for the side to move here, both 0 where there is no
            such move; and the number of moves that are proven to lose.
        """
        *nodes, lost = favourites(*self.tree.arrays[:2], self.index)
        children = (Node(self.tree, node) for node in nodes if node)
        found = [(child.visits, 1 - child.value() if child.visits else 0.0) for child in children]
        return [*found, (0, 0.0), (0, 0.0)][:2], lost

    def edges(self) -> Iterator[int]:
        """Yields the numbers of the edges."""
        return self._edges(self.tree.nodes.moves[self.index])

    def child_after(self, move: int) -> Node | None:
        """Finds the child of a move; None where the move has not been visited."""
        return next((child for child, m in zip(self.children, self.moves) if m == move), None)

    def most_visited(self) -> tuple[int, Node] | None:
        """Finds the most visited child without a proven result.

        Returns:
            Its move and the child; None if there is no such child. Of children with equally
            many visits, it is the one that is best for the side to move here.
        """
        edge = most_visited(*self.tree.arrays[:2], self.index)
        if not edge:
            return None
        edges = self.tree.edges
        return edges.move[edge], Node(self.tree, edges.child[edge])

    def _edges(self, count: int) -> Iterator[int]:
        """Yields the first edges."""
        edge, links = self.tree.nodes.first[self.index], self.tree.edges.child
        for _ in range(count):
            yield edge
            edge += 1
            if edge % BLOCK == MOVES_IN_BLOCK:
                edge = links[edge]
