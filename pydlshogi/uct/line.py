"""The best moves of a node and the lines that follow them."""

from __future__ import annotations

from typing import NamedTuple

from pydlshogi.uct.board import SearchBoard
from pydlshogi.uct.node import Node
from pydlshogi.uct.proof import DRAW, Proof


class Candidate(NamedTuple):
    """A move at the root.

    Attributes:
        move: The move.
        visits: Number of visits.
        value: Probability that the side that makes it wins.
        proof: Its proven result for that side, from the position before the move; or None.
        prior: Probability of the policy.
        node: The position behind it; None where it was not visited.
    """

    move: int
    visits: int
    value: float
    proof: Proof | None
    prior: float
    node: Node | None


def candidates(node: Node) -> list[Candidate]:
    """Lists all moves of a node that the network has answered for, the best first.

    Proven wins come first, the shortest before the others; proven losses last, the longest
    before the others; between them the most visited moves.
    """
    if node.policy is None:
        return []
    visited = node.children or []
    others = [
        Candidate(node.move(index), 0, node.value(), None, node.policy.priors.item(index), None)
        for index in range(len(visited), len(node.policy.moves))
    ]
    return sorted(_visited(node) + others, key=_rank, reverse=True)


def line_of(node: Node) -> tuple[list[int], Node]:
    """Follows the best moves of a node.

    Returns:
        The moves, and the node behind the last of them.
    """
    moves = []
    while node.children:
        best = max(_visited(node), key=_rank)
        moves.append(best.move)
        assert best.node is not None
        node = best.node
    return moves, node


def mate_line(board: SearchBoard, plies: int) -> list[int]:
    """Lists the moves of a mate that the board's mate search finds: the longest defence.

    Args:
        board: The position; the side to move mates.
        plies: Most plies of the mate.
    """
    mate = board.mate(plies)
    if mate is None:
        return []
    board.push(mate.move)
    line = [mate.move]
    defences = []
    for move in board.moves().tolist():
        board.push(move)
        defences.append([move, *mate_line(board, mate.plies - 2)])
        board.pop()
    board.pop()
    return line + max(defences, key=len, default=[])


def _visited(node: Node) -> list[Candidate]:
    """Lists the moves of a node that have been visited."""
    return [
        Candidate(
            move=node.move(index),
            visits=node.child_visits[index],
            value=node.child_totals[index] / max(1, node.child_visits[index]),
            proof=_before(child.proof),
            prior=node.policy.priors.item(index),  # type: ignore[union-attr]
            node=child,
        )
        for index, child in enumerate(node.children or ())
    ]


def _before(proof: Proof | None) -> Proof | None:
    """Turns a result behind a move into one of the side that makes the move."""
    return Proof(-proof.outcome, 1 + proof.plies) if proof else None


def _rank(candidate: Candidate) -> tuple[int, float, float]:
    """Orders the moves of a node; the best has the highest rank."""
    proof = candidate.proof
    if proof and proof.outcome != DRAW:
        return (proof.outcome, -proof.outcome * proof.plies, 0)
    # Outcomes are -1 and 1: 0 stands between them.
    return (0, candidate.visits, candidate.value if candidate.visits else candidate.prior)
