"""A batch: the playouts that wait for one answer of the network."""

from __future__ import annotations

import numpy

from pydlshogi.uct.evaluation import PendingEvaluation


class Batch:
    """Pending playouts. The tree counts a pending visit for each of them.

    Args:
        size: Largest number of leaves.
        plane_num: Number of planes of the network's input.

    Attributes:
        leaves: The leaves of the playouts, as numbers of nodes.
        keys: The hashes of their inputs.
        turns: Their sides to move.
        moves: Their legal moves, an array for each.
        collisions: The leaf of each playout whose leaf was pending already. It brings no value,
            but it is pending, too, and sends later playouts of the batch elsewhere.
        planes: (size, plane_num, 9, 9) float32, the network's input; a row for each leaf.
        evaluation: The evaluation of the leaves; None until it begins.
    """

    def __init__(self, size: int, plane_num: int) -> None:
        self.leaves: list[int] = []
        self.keys: list[int] = []
        self.turns: list[int] = []
        self.moves: list[numpy.ndarray] = []
        self.collisions: list[int] = []
        self.planes = numpy.empty((size, plane_num, 9, 9), numpy.float32)
        self.evaluation: PendingEvaluation | None = None

    def next_planes(self) -> numpy.ndarray:
        """Returns the row for the planes of the next leaf, (plane_num, 9, 9) float32."""
        return self.planes[len(self.leaves)]

    def add(self, leaf: int, key: int, turn: int, moves: numpy.ndarray) -> None:
        """Adds a leaf, whose planes have been written into the next row."""
        self.leaves.append(leaf)
        self.keys.append(key)
        self.turns.append(turn)
        self.moves.append(moves)

    def input(self) -> numpy.ndarray:
        """Returns the planes of all leaves, (n, plane_num, 9, 9) float32."""
        return self.planes[: len(self.leaves)]

    def ends(self) -> numpy.ndarray:
        """Returns the sums of the numbers of moves up to each leaf, (n,) int64."""
        return numpy.cumsum([len(moves) for moves in self.moves], dtype=numpy.int64)
