"""Proven results."""

from __future__ import annotations

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
