"""Backup: carries the value or the proof of a leaf to the root.

A playout that waits for the network is pending. It is counted apart from the visits, and the
selection sends the next playouts elsewhere because of it (:mod:`pydlshogi.uct.selection`).
"""

from __future__ import annotations

import math

from pydlshogi.uct.node import Node
from pydlshogi.uct.proof import WIN, Proof

#: From the root to a leaf: each node with the index of the child that was selected. The leaf
#: itself is not in the path.
Path = list[tuple[Node, int]]


def add_pending(path: Path, leaf: Node) -> None:
    """Counts a pending visit of a leaf and of all nodes above it."""
    leaf.pending += 1
    for node, index in path:
        node.pending += 1
        node.child_pending[index] += 1


def remove_pending(path: Path, leaf: Node) -> None:
    """Removes a pending visit: its value is known, or will not be used."""
    leaf.pending -= 1
    for node, index in path:
        node.pending -= 1
        node.child_pending[index] -= 1


def back_up(path: Path, leaf: Node, value: float) -> None:
    """Counts a visit of a leaf and of all nodes above it, and adds its value.

    Args:
        path: The path to the leaf.
        leaf: The leaf.
        value: Probability that the side to move at the leaf wins.
    """
    leaf.visits += 1
    leaf.total += value
    for node, index in reversed(path):
        value = 1.0 - value
        node.visits += 1
        node.total += value
        node.child_visits[index] += 1
        node.child_totals[index] += value


def prove(path: Path, leaf: Node, proof: Proof) -> None:
    """Stores the proven result of a leaf, and the results that follow for the nodes above it."""
    leaf.proof = proof
    for node, index in reversed(path):
        if proof.outcome == WIN:  # the opponent wins after this move: never select it again
            node.child_priors[index] = -math.inf
        result = node.derive_proof()
        if result is None or result == node.proof:
            return
        node.proof = proof = result
