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

#: Number of nodes that the table can hold. As the result of a search in the table, it means
#: that there is no such node, or no room for a new one.
UCT_HASH_SIZE = 4096

#: The search should end when the table holds more nodes than this.
UCT_HASH_LIMIT = UCT_HASH_SIZE * 9 // 10

#: Index of a child that has no node yet.
NOT_EXPANDED = -1


@dataclasses.dataclass
class NodeHashEntry:
    """The position of a node.

    Attributes:
        hash: Zobrist hash of the position.
        color: Side to move.
        moves: Number of the move in the game.
        flag: Whether the entry is in use.
    """

    hash: int = 0
    color: int = 0
    moves: int = 0
    flag: bool = False


@dataclasses.dataclass
class UctNode:
    """A node, with the statistics of its children.

    Attributes:
        move_count: Number of visits.
        win: Sum of the values of the visits.
        child_num: Number of legal moves.
        child_move: The legal moves.
        child_index: Index of the node after each move, or ``NOT_EXPANDED``.
        child_move_count: Number of visits of each child.
        child_win: Sum of the values of each child.
        nnrate: Probability of each move by the policy network.
        value_win: Value by the value network.
        evaled: Whether the networks have evaluated the node.
    """

    move_count: int = 0
    win: float = 0.0
    child_num: int = 0
    child_move: Any = None
    child_index: Any = None
    child_move_count: Any = None
    child_win: Any = None
    nnrate: Any = None
    value_win: float = 0.0
    evaled: bool = False


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
        """Removes all positions that the search cannot reach from a position.

        Args:
            board: The position, a ``shogi.Board``.
            uct_node: The nodes, by their indices.
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
