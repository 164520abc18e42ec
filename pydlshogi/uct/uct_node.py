"""The nodes of the book's tree search, under the names that players of readers import.

The search of this package does not use them: its tree is :mod:`pydlshogi.uct.tree`.

Source of the names: 「将棋AIで学ぶディープラーニング」.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

__all__ = [
    "NOT_EXPANDED",
    "UCT_HASH_LIMIT",
    "UCT_HASH_SIZE",
    "NodeHash",
    "NodeHashEntry",
    "UctNode",
]

#: Number of nodes that the table can hold. As an index: there is no such node, or no room for it.
UCT_HASH_SIZE = 4096

#: The search should end when the table holds more nodes than this.
UCT_HASH_LIMIT = UCT_HASH_SIZE * 9 // 10

#: Index of a child that has no node yet.
NOT_EXPANDED = -1


@dataclasses.dataclass
class NodeHashEntry:
    """The position of a node; ``flag`` says whether the entry is in use."""

    hash: int = 0  # of the position
    color: int = 0  # the side to move
    moves: int = 0  # number of the move in the game
    flag: bool = False


@dataclasses.dataclass
class UctNode:
    """A node, with the statistics of its children."""

    move_count: int = 0  # number of visits
    win: float = 0.0  # sum of their values
    child_num: int = 0  # number of legal moves
    child_move: Any = None  # the legal moves
    child_index: Any = None  # index of the node after each move, or NOT_EXPANDED
    child_move_count: Any = None  # number of visits of each child
    child_win: Any = None  # sum of the values of each child
    nnrate: Any = None  # probability of each move by the policy
    value_win: float = 0.0  # value by the network
    evaled: bool = False  # whether the network has evaluated the node


class NodeHash:
    """A table of positions. ``table[index]`` is the entry of the node with that index."""

    def __init__(self) -> None:
        self.initialize()

    def initialize(self) -> None:
        """Empties the table."""
        self._entries = [NodeHashEntry() for _ in range(UCT_HASH_SIZE)]
        self._index: dict[tuple[int, int, int], int] = {}
        self._free = list(reversed(range(UCT_HASH_SIZE)))

    def __getitem__(self, index: int) -> NodeHashEntry:
        return self._entries[index]

    @property
    def used(self) -> int:
        """Number of entries in use."""
        return len(self._index)

    @property
    def enough_size(self) -> bool:
        """Whether the search may add nodes."""
        return self.used <= UCT_HASH_LIMIT

    def get_usage_rate(self) -> float:
        """Returns the used share of the table, 0 to 1."""
        return self.used / UCT_HASH_SIZE

    def find_same_hash_index(self, hash: int, color: int, moves: int) -> int:
        """Returns the index of a position; ``UCT_HASH_SIZE`` if it has no entry."""
        return self._index.get((hash, color, moves), UCT_HASH_SIZE)

    def search_empty_index(self, hash: int, color: int, moves: int) -> int:
        """Adds a position and returns its index; ``UCT_HASH_SIZE`` if the table is full."""
        if not self._free:
            return UCT_HASH_SIZE
        index = self._free.pop()
        self._entries[index] = NodeHashEntry(hash, color, moves, True)
        self._index[hash, color, moves] = index
        return index

    def delete_old_hash(self, board: Any, uct_node: Sequence[UctNode]) -> None:
        """Removes all positions that the search cannot reach from a ``shogi.Board``.

        ``uct_node`` has the nodes by their indices.
        """
        root = self.find_same_hash_index(board.zobrist_hash(), board.turn, board.move_number)
        kept: set[int] = set()
        waiting = [] if root == UCT_HASH_SIZE else [root]
        while waiting:
            index = waiting.pop()
            kept.add(index)
            node = uct_node[index]
            children = set(node.child_index[: node.child_num] if node.child_num else ())
            waiting += children - kept - {NOT_EXPANDED}
        for key, index in list(self._index.items()):
            if index not in kept:
                del self._index[key]
                self._entries[index].flag = False
                self._free.append(index)
