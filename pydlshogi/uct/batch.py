"""A batch: the playouts that wait for one answer of the network."""

from __future__ import annotations

from typing import NamedTuple

import numpy

from pydlshogi.uct.backup import Path, add_pending, remove_pending
from pydlshogi.uct.evaluation import PendingEvaluation
from pydlshogi.uct.node import Node


class Leaf(NamedTuple):
    """A position that the network evaluates.

    Attributes:
        path: The path to it.
        node: Its node.
        key: Its hash in the cache.
        turn: Its side to move.
        moves: Its legal moves, (n,) uint16.
    """

    path: Path
    node: Node
    key: int
    turn: int
    moves: numpy.ndarray


class Batch:
    """Pending playouts.

    Args:
        size: Largest number of leaves.
        plane_num: Number of planes of the network's input.

    Attributes:
        leaves: The leaves of the playouts.
        collisions: Path and leaf of each playout whose leaf was pending already. It brings no
            value, but it is pending, too, and sends later playouts of the batch elsewhere.
        planes: (size, plane_num, 9, 9) float32, the network's input; a row for each leaf.
        evaluation: The evaluation of the leaves; None until it begins.
    """

    def __init__(self, size: int, plane_num: int) -> None:
        self.leaves: list[Leaf] = []
        self.collisions: list[tuple[Path, Node]] = []
        self.planes = numpy.empty((size, plane_num, 9, 9), numpy.float32)
        self.evaluation: PendingEvaluation | None = None

    def is_full(self) -> bool:
        """Says whether the batch has no room for another leaf."""
        return len(self.leaves) == len(self.planes)

    def add(self, leaf: Leaf) -> None:
        """Adds a leaf, whose planes have been written into the next row."""
        self.leaves.append(leaf)
        add_pending(leaf.path, leaf.node)

    def add_collision(self, path: Path, leaf: Node) -> None:
        """Adds a playout whose leaf is pending already."""
        self.collisions.append((path, leaf))
        add_pending(path, leaf)

    def input(self) -> numpy.ndarray:
        """Returns the planes of all leaves, (n, plane_num, 9, 9) float32."""
        return self.planes[: len(self.leaves)]

    def end(self) -> None:
        """Removes all pending visits: the network has answered, or its answer will not be used."""
        for path, node in self.collisions:
            remove_pending(path, node)
        for leaf in self.leaves:
            remove_pending(leaf.path, leaf.node)
