"""Backup: carries the value or the proof of a leaf to the root."""

from __future__ import annotations

import math

from pydlshogi.uct.node import Node
from pydlshogi.uct.proof import WIN, Proof

#: From the root to a leaf: each node with the number of the child that was chosen.
Path = list[tuple[Node, int]]


def back_up(path: Path, leaf: Node, value: float) -> None:
    """Adds a value to a leaf and to all nodes above it.

    Their visits were counted on the way down.

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


def give_back(path: Path, leaf: Node | None) -> None:
    """Undoes a visit that brings no value: takes back its virtual loss.

    Args:
        path: The path of the visit.
        leaf: Its leaf; None if the visit did not reach one.
    """
    if leaf is not None:
        leaf.visits -= 1
    for node, index in path:
        node.visits -= 1
        node.child_visits[index] -= 1


def prove(path: Path, leaf: Node, proof: Proof) -> None:
    """Notes a leaf's proven result, and those that follow for the nodes above it."""
    leaf.proof = proof
    for node, index in reversed(path):
        if proof.outcome == WIN:  # of the opponent: the move is not to be visited again
            node.child_priors[index] = -math.inf
        result = node.derive_proof()
        if result is None or result == node.proof:
            return
        node.proof = proof = result
