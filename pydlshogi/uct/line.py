"""The best moves of a node and the lines that follow them."""

from __future__ import annotations

import itertools
from typing import Callable, NamedTuple

from pydlshogi.uct.board import SearchBoard, ends_in_mate
from pydlshogi.uct.core import DRAW, WIN, Proof
from pydlshogi.uct.mate import mate_line
from pydlshogi.uct.search import Search
from pydlshogi.uct.tree import Node


class Candidate(NamedTuple):
    """A move of a node.

    Attributes:
        move: The move.
        visits: Number of visits.
        value: Probability that the side that makes it wins; without a visit that of the
            position before it.
        proof: Its proven result for that side, with the plies counted from before the move;
            None while it is unknown.
        prior: Probability of the policy.
        node: The node after it; None until a visit has begun there.
    """

    move: int
    visits: int
    value: float
    proof: Proof | None
    prior: float
    node: Node | None


class Line(NamedTuple):
    """A line of best moves.

    Attributes:
        moves: At least one.
        value: Probability that the side to move wins; of a proven draw its value by the settings.
        proof: The proven result for the side to move; None while it is unknown.
    """

    moves: list[int]
    value: float
    proof: Proof | None

    def expected(self) -> float:
        """Returns the proven result: 0 lost, 0.5 drawn, 1 won; without a proof the value."""
        return (1 + self.proof.outcome) / 2 if self.proof else self.value


def candidates(node: Node) -> list[Candidate]:
    """Lists all moves of a node, the best first; none before the node is expanded.

    Proven wins come first, the shortest before the others; proven losses last, the longest
    before the others; between them the most visited moves.
    """
    return sorted(_rows(node), key=_rank, reverse=True)


def best_lines(search: Search, number: int, first: int | None = None) -> list[Line]:
    """Lists the best lines of a search.

    Args:
        search: A search whose root has been visited.
        number: Largest number of lines.
        first: A move whose line comes first, unless a mate was found.

    Returns:
        The best first. There is a single one if a mate search found a mate at the root. There
        is none without a legal move, or before the network has evaluated the root. A move
        without a visit has no value of its own. It gets the lower of two values: that of the
        root, and the lowest of the visited moves without a proven result.
    """
    root, board = search.root, search.board
    if root.proof and root.proof.outcome == WIN:
        mate = _mate_moves(board, root, search.may_choose)
        if mate:
            return [Line(mate, 1.0, root.proof)]
    lines, rows = [], candidates(root)
    lowest = min((row.value for row in rows if row.visits and not row.proof), default=1.0)
    for candidate in sorted(rows, key=lambda row: row.move != first)[:number]:
        moves = [candidate.move, *_continuation(board, candidate)]
        # The continuation may have found a shorter mate.
        proof = _before_move(candidate.node.proof) if candidate.node else None
        value = candidate.value
        if proof and proof.outcome == DRAW:
            value = search.settings.draw_value(board.turn)
        elif not (proof or candidate.visits):
            value = min(value, lowest)
        lines.append(Line(moves, value, proof))
    return lines


def _continuation(board: SearchBoard, candidate: Candidate) -> list[int]:
    """Returns the moves that follow a candidate, up to the mate if there is one."""
    if candidate.node is None:
        return []
    moves, leaf = line_of(candidate.node)
    if leaf.mate:
        line = [candidate.move, *moves]
        for move in line:
            board.push(move)
        moves += _mate_moves(board, leaf)
        for _ in line:
            board.pop()
    return moves


def _mate_moves(
    board: SearchBoard, node: Node, may_begin: Callable[[int], bool] = lambda move: True
) -> list[int]:
    """Returns the moves of the mate that a mate search found at a node; empty without one.

    Usually, the node knows only the first move. The others are searched once, and kept at the node:
    a search of seven plies can take 0.1 s. If they mate sooner, the proof becomes shorter.
    ``may_begin`` says whether a move may be the first one.
    """
    proof = node.proof
    if node.mate and proof and len(node.mate) != proof.plies:
        moves = mate_line(board, proof.plies, is_known=True)
        if moves and may_begin(moves[0]):
            node.tree.set_mate_moves(node.index, moves)
            if len(moves) < proof.plies and ends_in_mate(board, moves):
                node.tree.prove(node.index, Proof(WIN, len(moves)))
    return list(node.mate)


def line_of(node: Node) -> tuple[list[int], Node]:
    """Follows the best moves of a node.

    Returns:
        The moves, and the node after the last of them.
    """
    moves = []
    while node.children and not node.mate:
        best = max((row for row in _rows(node) if row.node), key=_rank)
        moves.append(best.move)
        assert best.node is not None
        node = best.node
    return moves, node


def _rows(node: Node) -> list[Candidate]:
    """Lists the moves of a node; none before the node is expanded."""
    value = node.value()
    return [
        Candidate(
            move=move,
            visits=child.visits if child else 0,
            value=1 - child.value() if child and child.visits else value,
            proof=_before_move(child.proof) if child else None,
            prior=prior,
            node=child,
        )
        for move, prior, child in itertools.zip_longest(node.moves, node.priors, node.children)
    ]


def _before_move(proof: Proof | None) -> Proof | None:
    """Converts the result after a move to that of the side which makes the move."""
    return Proof(-proof.outcome, 1 + proof.plies) if proof else None


def _rank(candidate: Candidate) -> tuple[int, float, float]:
    """Orders the moves of a node; the best has the highest rank."""
    proof = candidate.proof
    if proof and proof.outcome != DRAW:
        return (proof.outcome, -proof.outcome * proof.plies, 0)
    # Draws and unproven moves rank between proven wins (1) and losses (-1), by their visits.
    return (0, candidate.visits, candidate.value if candidate.visits else candidate.prior)
