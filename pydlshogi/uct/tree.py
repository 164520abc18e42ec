"""The tree: it grows, its root follows the game, and dropped nodes are freed in slices."""

from __future__ import annotations

from collections.abc import Sequence

from pydlshogi.uct.node import LISTS_BYTES, NODE_BYTES, Node
from pydlshogi.uct.policy import Policy
from pydlshogi.uct.proof import WIN, Proof


class Tree:
    """All nodes.

    The anchor is the node from which the tree hangs. It is the root, except while the engine
    ponders. Then it is the last position of the game, and the root is the expected one below it::

        start position ──_moves──> anchor ──_below──> root
                                     └── other replies, if the expected one is not played

    The ponder search visits the root and what is below it, but not the anchor. So the anchor lacks
    the visits of this search, and never becomes the root again.

    Attributes:
        root: The position to search.
        size: Memory in bytes, about, including dropped nodes that are not freed yet.
    """

    def __init__(self) -> None:
        self.size = NODE_BYTES
        self._anchor = self.root = Node()
        self._start: object = None
        self._moves: list[int] = []  # to the anchor
        self._below: list[int] = []  # from the anchor to the root
        self._garbage: list[Node] = []

    @property
    def can_shrink(self) -> bool:
        """Whether there are nodes that are not below the root."""
        return bool(self._garbage or self._below)

    def move_to(self, start: object, moves: Sequence[int], keep: bool = False) -> None:
        """Moves the root to a position and keeps the part of the tree below it.

        If the moves are those of a mate that was found, the new root keeps the rest of the mate.

        Args:
            start: Start position and settings. If they differ from the last call's, the whole
                tree is dropped.
            moves: The moves from there, as in :mod:`pydlshogi.uct.move`.
            keep: Whether to keep the other replies of the opponent until the next call, because
                the last move is only expected (ponder). Of a position that is not in the tree,
                nothing is kept.
        """
        moves = list(moves)
        known = len(self._moves)
        below = moves[known:]
        goes_on = start == self._start and moves[:known] == self._moves
        path = self._nodes(below) if goes_on else []
        mate = _rest_of_mate(path, below)
        if len(path) == len(below) + 1 and not self._is_above_root(below):
            self.root, self._below = path[-1], below
            # Of the moves, only the last one can be an expected one.
            self._advance(len(below) - (1 if keep and below else 0))
        else:
            self.clear()
            self._start, self._moves = start, moves
        if mate and not self.root.proof:
            self.root.mate, self.root.proof = mate, Proof(WIN, len(mate))

    def drop_unreachable(self) -> None:
        """Drops the nodes that are not below the root: those that :meth:`move_to` has kept."""
        self._advance(len(self._below))

    def _advance(self, count: int) -> None:
        """Moves the anchor towards the root, and drops what does not hang from it any more.

        Args:
            count: Number of moves.
        """
        for move in self._below[:count]:
            kept = self._anchor.child_after(move)
            assert kept is not None
            self._discard(self._anchor, kept)
            self._anchor = kept
        self._moves = self._moves + self._below[:count]
        self._below = self._below[count:]

    def _nodes(self, moves: Sequence[int]) -> list[Node]:
        """Lists the anchor and the nodes after moves from there, as far as the tree has them."""
        nodes = [self._anchor]
        for move in moves:
            child = nodes[-1].child_after(move)
            if child is None:
                break
            nodes.append(child)
        return nodes

    def _is_above_root(self, moves: list[int]) -> bool:
        """Says whether a position lies between the anchor and the root of a ponder search.

        This search has added visits and proofs below the position, but not to it.
        """
        return len(moves) < len(self._below) and moves == self._below[: len(moves)]

    def start_children(self, node: Node, temperature: float) -> None:
        """Prepares a node for children (:meth:`pydlshogi.uct.node.Node.start_children`)."""
        node.start_children(temperature)
        self.size += LISTS_BYTES

    def child(self, node: Node, index: int) -> Node:
        """Returns a child of a node; adds it if the index is that of the next new child."""
        children = node.children
        assert children is not None
        if index < len(children):
            return children[index]
        self.size += NODE_BYTES
        return node.add_child()

    def expand(self, node: Node, policy: Policy) -> None:
        """Stores the legal moves of a leaf with their probabilities."""
        node.policy = policy
        self.size += policy.size()

    def clear(self) -> None:
        """Drops all nodes."""
        self._garbage.append(self._anchor)
        self._anchor = self.root = Node()
        self.size += NODE_BYTES
        self._start, self._moves, self._below = None, [], []

    def free(self, nodes: int) -> None:
        """Frees some of the dropped nodes: 60,000 at once would take 0.4 s.

        Args:
            nodes: Largest number of nodes to free.
        """
        garbage = self._garbage
        while garbage and nodes > 0:
            node = garbage.pop()
            garbage.extend(node.children or ())
            self.size -= size_of(node)
            nodes -= 1

    def _discard(self, node: Node, kept: Node) -> None:
        """Drops a node and all its children but one."""
        self.size -= size_of(node)
        self._garbage += [child for child in node.children or () if child is not kept]


def _rest_of_mate(path: Sequence[Node], moves: Sequence[int]) -> Sequence[int]:
    """Returns the rest of a mate after moves that belong to it; empty if there is none.

    Args:
        path: The anchor and the nodes after the first moves, as far as the tree has them.
        moves: The moves, from the anchor.
    """
    for played, node in enumerate(path):
        rest = len(moves) - played
        # After an odd number of moves, the other side is to move.
        if rest > 0 and rest % 2 == 0 and [*node.mate[:rest]] == [*moves[played:]]:
            return node.mate[rest:]
    return ()


def size_of(node: Node) -> int:
    """Memory of a node without its children, in bytes, about."""
    size = NODE_BYTES
    if node.policy:
        size += node.policy.size()
    if node.children is not None:
        size += LISTS_BYTES
    return size
