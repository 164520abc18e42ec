"""Proven results: how that of a position follows from those of its children."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

#: Outcomes for the side to move.
LOSS, DRAW, WIN = -1, 0, 1


class Proof(NamedTuple):
    """The result of a position when both sides play their best.

    Attributes:
        outcome: :data:`LOSS`, :data:`DRAW` or :data:`WIN` for the side to move.
        plies: Number of plies to the end of the game.
    """

    outcome: int
    plies: int


def combine(proofs: Sequence[Proof | None], all_moves: bool) -> Proof | None:
    """Derives the result of a position from those of its children.

    The winner takes the shortest line, the loser the longest.

    Args:
        proofs: Of the children, each for the side to move there; None where unknown.
        all_moves: Whether there is a child for every legal move.

    Returns:
        The result for the side to move; None while it is unknown.
    """
    wins = [proof.plies for proof in proofs if proof and proof.outcome == LOSS]
    if wins:
        return Proof(WIN, 1 + min(wins))
    known = [proof for proof in proofs if proof]
    if not all_moves or len(known) < len(proofs):
        return None
    draws = [proof.plies for proof in known if proof.outcome == DRAW]
    if draws:
        return Proof(DRAW, 1 + min(draws))
    return Proof(LOSS, 1 + max((proof.plies for proof in known), default=-1))
