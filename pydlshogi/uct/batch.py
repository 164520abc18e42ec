"""A batch: the playouts that wait for one answer of the network."""

from __future__ import annotations

from typing import NamedTuple

import numpy

from pydlshogi.uct.backup import Path, remove_virtual_loss
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
            value, but its virtual loss sends later playouts of the batch elsewhere.
        planes: (size, plane_num, 9, 9) float32, the network's input; a row for each leaf.
        evaluation: The evaluation of the leaves; None until the batch is complete.
    """

    def __init__(self, size: int, plane_num: int) -> None:
        self.leaves: list[Leaf] = []
        self.collisions: list[tuple[Path, Node]] = []
        self.planes = numpy.empty((size, plane_num, 9, 9), numpy.float32)
        self.evaluation: PendingEvaluation | None = None

    def is_full(self) -> bool:
        """Says whether the batch has no room for another leaf."""
        return len(self.leaves) == len(self.planes)

    def visits(self) -> int:
        """Number of playouts."""
        return len(self.leaves) + len(self.collisions)

    def paths(self) -> list[Path]:
        """Returns the path of each playout."""
        return [*(leaf.path for leaf in self.leaves), *(path for path, _ in self.collisions)]

    def add(self, leaf: Leaf) -> None:
        """Adds a leaf, whose planes have been written into the next row."""
        leaf.node.pending = True
        self.leaves.append(leaf)

    def input(self) -> numpy.ndarray:
        """Returns the planes of all leaves, (n, plane_num, 9, 9) float32."""
        return self.planes[: len(self.leaves)]

    def remove_collisions(self) -> None:
        """Removes the virtual losses of the collisions."""
        for path, node in self.collisions:
            remove_virtual_loss(path, node)

    def give_up(self) -> None:
        """Removes all virtual losses; the network's answer will not be used."""
        self.remove_collisions()
        for leaf in self.leaves:
            leaf.node.pending = False
            remove_virtual_loss(leaf.path, leaf.node)
