"""Backup: carries the value or the proof of a leaf to the root.

A playout counts as a visit before its value is known. Until the value is backed up, the visit
is one without a win: a virtual loss.
"""

from __future__ import annotations

import math

from pydlshogi.uct.node import Node
from pydlshogi.uct.proof import WIN, Proof

#: From the root to a leaf: each node with the index of the child that was selected. The leaf
#: itself is not in the path.
Path = list[tuple[Node, int]]


def add_virtual_loss(path: Path, leaf: Node) -> None:
    """Counts a visit of a leaf and of all nodes above it."""
    leaf.visits += 1
    for node, index in path:
        node.visits += 1
        node.child_visits[index] += 1


def remove_virtual_loss(path: Path, leaf: Node) -> None:
    """Removes a visit whose value will not be backed up."""
    leaf.visits -= 1
    for node, index in path:
        node.visits -= 1
        node.child_visits[index] -= 1


def back_up(path: Path, leaf: Node, value: float) -> None:
    """Adds a value to a leaf and to all nodes above it, which ends the virtual loss.

    Args:
        path: The path to the leaf.
        leaf: The leaf.
        value: Probability that the side to move at the leaf wins.
    """
    leaf.total += value
    for node, index in reversed(path):
        value = 1.0 - value
        node.total += value
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
