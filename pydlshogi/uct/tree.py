"""The tree: it grows, its root follows the game, and dropped nodes make room for new ones.

The tree itself is arrays (:mod:`pydlshogi.uct.core`). A :class:`Node` is a view of one position.
"""

from __future__ import annotations

import dataclasses
import sys
import threading
import time
import types
from collections.abc import Iterator, Sequence
from typing import Any

import numpy

from pydlshogi.uct import core
from pydlshogi.uct.compiler import IS_COMPILED
from pydlshogi.uct.core import BLOCK, EDGE, MOVES_IN_BLOCK, NODE, UNKNOWN, WIN, Proof

#: Memory of a node without its edges, with its places in the table, and of a block of edges.
NODE_BYTES = NODE.itemsize + 16
BLOCK_BYTES = BLOCK * EDGE.itemsize

#: Least and largest number of nodes and blocks by which an array grows, and the part by which it
#: grows between them. To prepare the memory of the largest number takes some milliseconds.
#: Windows copies the whole array, so that it must not grow often.
_GROWTH, _GROWTH_PART = 1024, 4
_MOST_GROWTH = 1 << (30 if sys.platform == "win32" else 16)

#: Elements of an array that are given back at a time, and the seconds between.
_GIVEN_BACK, _PAUSE = 1 << 19, 0.002

#: Nodes that a slice of :meth:`Tree.sweep` goes through: about a millisecond.
_SLICE = 5000


@dataclasses.dataclass(repr=False)
class Node:
    """A position reached by one path from the root, to look at until the tree drops it.

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
        """The nodes after the first moves. A visit has begun there."""
        number = self.tree.nodes.children[self.index]
        return [Node(self.tree, self.tree.edges.child[edge]) for edge in self._edges(number)]

    @property
    def proof(self) -> Proof | None:
        """The proven result; None while there is none."""
        outcome = self.tree.nodes.outcome[self.index]
        return None if outcome == UNKNOWN else Proof(outcome, self.tree.nodes.plies[self.index])

    def derive_proof(self) -> Proof | None:
        """Derives the proven result from those of the children; None while it is unknown."""
        outcome, plies = core.derive(*self.tree.arrays[:2], self.index)
        return None if outcome == UNKNOWN else Proof(outcome, plies)

    @property
    def mate(self) -> Sequence[int]:
        """The mate that a mate search found: all its moves, or only the first; else empty."""
        move = self.tree.nodes.mate[self.index]
        return self.tree.mates.get(self.index, [move]) if move else ()

    @property
    def mate_searched(self) -> bool:
        """Whether a long mate was searched here, as a position of the best line."""
        return bool(self.tree.nodes.marks[self.index] & core.SEARCHED)

    def favourites(self) -> tuple[list[tuple[int, float]], int]:
        """Finds the two most visited moves, without those that are proven to lose.

        Returns:
            The visits of each, and its value for the side to move here, both 0 where there is no
            such move; and the number of moves that are proven to lose.
        """
        *nodes, lost = core.favourites(*self.tree.arrays[:2], self.index)
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
        edge = core.most_visited(*self.tree.arrays[:2], self.index)
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


class Tree:
    """All nodes.

    The anchor is the node from which the tree hangs. It is the root, except while the engine
    ponders. Then it is the last position of the game, and the root is the expected one below it::

        start position ──_moves──> anchor ──_below──> root
                                     └── other replies, if the expected one is not played

    The ponder search visits the root and what is below it, but not the anchor. So the anchor lacks
    the visits of this search, and never becomes the root again.

    Args:
        limit: Memory in bytes from which the evaluations of dropped nodes are given up.

    Attributes:
        nodes: The fields of the nodes, as memoryviews.
        edges: The fields of the edges, as memoryviews.
        pool: The numbers of the room, as a memoryview.
        arrays: Nodes, edges and pool for the functions of :mod:`pydlshogi.uct.core`.
        table: The table for these functions.
        mates: All moves of the mates that were found, by the number of the node.
        root_index: The number of the root.
        limit: As above.
    """

    nodes: Any
    edges: Any
    pool: Any
    arrays: tuple[Any, Any, Any]
    table: Any
    mates: dict[int, list[int]]

    def __init__(self, limit: float = 0.0) -> None:
        self.limit = limit
        self._start: object = None
        self._moves: list[int] = []  # to the anchor
        self._below: list[int] = []  # from the anchor to the root
        self._nodes, self._edges = numpy.zeros(1, NODE), numpy.zeros(BLOCK, EDGE)
        self.forget()

    @property
    def root(self) -> Node:
        """The position to search."""
        return Node(self, self.root_index)

    @property
    def size(self) -> int:
        """Memory of the nodes in use in bytes, and of dropped ones that were not swept yet."""
        pool = self.pool
        return NODE_BYTES * pool[core.USED_NODES] + BLOCK_BYTES * pool[core.USED_BLOCKS]

    @property
    def allocated(self) -> int:
        """Memory of the arrays in bytes."""
        return self._nodes.nbytes + self._edges.nbytes + self._table.nbytes

    @property
    def can_shrink(self) -> bool:
        """Whether there are nodes that are not below the root."""
        return bool(self.pool[core.GARBAGE] or self._below)

    # The root

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
        path = self._path(below) if goes_on else []
        mate = self._rest_of_mate(path, below)
        if len(path) == len(below) + 1 and not self._is_above_root(below):
            self.root_index, self._below = path[-1], below
            # Of the moves, only the last one can be an expected one.
            self._advance(len(below) - (1 if keep and below else 0))
        else:
            self.clear()
            self._start, self._moves = start, moves
        if mate and not self.root.proof:
            self.set_mate(self.root_index, mate)

    def drop_unreachable(self) -> None:
        """Drops the nodes that are not below the root: those that :meth:`move_to` has kept."""
        self._advance(len(self._below))

    def clear(self) -> None:
        """Drops all nodes. Their evaluations stay known while there is room for them."""
        core.drop(self.arrays[0], self.arrays[2], self._anchor)
        self._plant()
        self._start, self._moves = None, []

    def forget(self) -> None:
        """Drops all nodes with their evaluations, and gives their memory back."""
        self._give_back()
        self._nodes, self._edges = numpy.zeros(1, NODE), numpy.zeros(BLOCK, EDGE)
        self._pool = numpy.zeros(core.POOL_SIZE, numpy.int64)
        self._pool[[core.FRESH_NODE, core.FRESH_EDGE]] = 1, BLOCK
        self._table = numpy.zeros(1, numpy.int32)
        self._allocate(_GROWTH, _GROWTH)
        self._plant()

    def _plant(self) -> None:
        """Begins a tree of one node, the root."""
        self.reserve(1, 0)
        self._moves, self._below = self._moves + self._below, []
        self._anchor = self.root_index = core.new_node(self.arrays[0], self.arrays[2], 0)
        self.mates = {}

    def _advance(self, count: int) -> None:
        """Moves the anchor towards the root, and drops what does not hang from it any more.

        Args:
            count: Number of moves.
        """
        for node in self._path(self._below[:count])[1:]:
            for child in Node(self, self._anchor).children:
                if child.index != node:
                    core.drop(self.arrays[0], self.arrays[2], child.index)
            self.nodes.children[self._anchor] = 0
            core.drop(self.arrays[0], self.arrays[2], self._anchor)
            self._anchor = node
        self._moves = self._moves + self._below[:count]
        self._below = self._below[count:]

    def _path(self, moves: Sequence[int]) -> list[int]:
        """Lists the anchor and the nodes after moves from there, as far as the tree has them."""
        path = [self._anchor]
        for move in moves:
            child = Node(self, path[-1]).child_after(move)
            if child is None:
                break
            path.append(child.index)
        return path

    def _is_above_root(self, moves: list[int]) -> bool:
        """Says whether a position lies between the anchor and the root of a ponder search.

        This search has added visits and proofs below the position, but not to it.
        """
        return len(moves) < len(self._below) and moves == self._below[: len(moves)]

    def _rest_of_mate(self, path: Sequence[int], moves: Sequence[int]) -> Sequence[int]:
        """Returns the rest of a mate after moves that belong to it; empty if there is none.

        Args:
            path: The anchor and the nodes after the first moves, as far as the tree has them.
            moves: The moves, from the anchor.
        """
        for played, node in enumerate(path):
            rest, mate = len(moves) - played, Node(self, node).mate
            # After an odd number of moves, the other side is to move.
            if rest > 0 and rest % 2 == 0 and [*mate[:rest]] == [*moves[played:]]:
                return mate[rest:]
        return ()

    # Results of nodes

    def prove(self, node: int, proof: Proof) -> None:
        """Stores the proven result of a node, and the results that follow for those above it."""
        core.prove(*self.arrays[:2], self.root_index, node, *proof)

    def set_mate(self, node: int, moves: Sequence[int]) -> None:
        """Stores a mate that was found, all its moves, and the proof for the nodes above."""
        self.set_mate_moves(node, moves)
        self.prove(node, Proof(WIN, len(moves)))

    def set_mate_moves(self, node: int, moves: Sequence[int]) -> None:
        """Stores the moves of a mate, or only the first of them."""
        self.nodes.mate[node] = moves[0]
        if len(moves) > 1:
            self.mates[node] = list(moves)
        else:
            self.mates.pop(node, None)

    def restrict(self, node: int, moves: frozenset[int]) -> None:
        """Leaves a node some of its moves, at least one. It must not have children."""
        known = Node(self, node)
        kept = [(move, prior) for move, prior in zip(known.moves, known.priors) if move in moves]
        priors = numpy.array([prior for _, prior in kept], numpy.float32)
        # At a low temperature the probabilities of all these moves may have become 0.
        priors = priors / priors.sum() if priors.any() else numpy.full_like(priors, 1 / len(kept))
        self.pool[core.USED_BLOCKS] -= core.blocks_of(known.move_num)
        core.free_blocks_from(*self.arrays[1:], self.nodes.first[node])
        numbers = numpy.array([move for move, _ in kept], numpy.uint16)
        core.add_edges(*self.arrays, node, numbers, priors)
        self.nodes.marks[node] |= core.RESTRICTED

    # Memory

    def reserve(self, nodes: int, blocks: int) -> None:
        """Makes room for new nodes and new blocks of edges.

        At the limit of memory, dropped nodes are freed first. If this is not enough, the tree
        grows beyond the limit.
        """
        missing = self._missing(nodes, blocks)
        if max(missing) <= 0:
            return
        if self.allocated >= self.limit:
            core.reclaim(*self.arrays, nodes, blocks)
            missing = self._missing(nodes, blocks)
        self._allocate(*missing)

    def _missing(self, nodes: int, blocks: int) -> tuple[int, int]:
        """Returns how many nodes and blocks there are too few, or negative numbers."""
        pool = self.pool
        return (
            nodes - pool[core.FREE_NODES] - (len(self._nodes) - pool[core.FRESH_NODE]),
            blocks
            - pool[core.FREE_BLOCKS]
            - (pool[core.EDGE_NUM] - pool[core.FRESH_EDGE]) // BLOCK,
        )

    def _allocate(self, nodes: int, blocks: int) -> None:
        """Adds at least so many nodes and blocks to the arrays."""
        length = len(self._nodes)
        if nodes > 0:
            length += max(nodes, self._growth(length, NODE_BYTES))
        # No view of the arrays may be left when they move.
        self.nodes = self.edges = self.pool = self.table = None
        self.arrays = (None, None, None)
        try:
            if len(self._table) < 2 * length:
                self._table = numpy.zeros(1 << (2 * length).bit_length(), numpy.int32)
                self._unlisted = range(1, int(self._pool[core.FRESH_NODE]))
            # The system moves the pages, not the bytes (except Windows): no second array is needed.
            self._nodes.resize(length, refcheck=False)
            if blocks > 0:
                blocks = max(blocks, self._growth(len(self._edges) // BLOCK, BLOCK_BYTES))
                self._edges.resize(len(self._edges) + blocks * BLOCK, refcheck=False)
                self._pool[core.EDGE_NUM] = len(self._edges)
        finally:  # there may be no memory
            self._make_views()

    def _growth(self, number: int, size: int) -> int:
        """Returns the least number of elements, of some bytes, by which an array of them grows."""
        most = min(_MOST_GROWTH, int(self.limit - self.allocated) // size)
        return max(_GROWTH, min(number // _GROWTH_PART, most))

    def _make_views(self) -> None:
        """Makes what the functions of the tree take."""
        self.nodes, self.edges = (
            types.SimpleNamespace(**{name: array[name].data for name in array.dtype.names or ()})
            for array in (self._nodes, self._edges)
        )
        self.pool = self._pool.data
        self.arrays = (self._nodes, self._edges, self._pool)
        self.table = self._table
        if not IS_COMPILED:
            self.arrays = (self.nodes, self.edges, self.pool)
            self.table = self._table.data

    def _give_back(self) -> None:
        """Gives the memory of the arrays back, in another thread and in slices.

        To free 600 MB at once takes 0.1 s, in which no other code of Python runs.
        """
        arrays = [array for array in (self._nodes, self._edges) if len(array) > _GIVEN_BACK]
        if not arrays:
            return
        self.nodes = self.edges = self.pool = self.table = None
        self.arrays = (None, None, None)

        def shrink() -> None:
            while arrays:
                arrays[-1].resize(max(0, len(arrays[-1]) - _GIVEN_BACK), refcheck=False)
                if not len(arrays[-1]):
                    arrays.pop()
                time.sleep(_PAUSE)

        threading.Thread(target=shrink, name="freed tree", daemon=True).start()

    def sweep(self) -> None:
        """Does a slice of the work that would take too long at once.

        Dropped nodes do not count as used any more. Nodes come into a table that has grown.
        """
        if self.pool[core.GARBAGE]:
            core.sweep(*self.arrays, _SLICE)
        if self._unlisted:
            now, self._unlisted = self._unlisted[:_SLICE], self._unlisted[_SLICE:]
            core.remember_all(self.arrays[0], self.table, now.start, now.stop)
