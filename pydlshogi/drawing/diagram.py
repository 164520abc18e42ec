"""What a board picture shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import shogi


class Arrow(NamedTuple):
    """A move that a picture shows as an arrow, with its probability, 0 to 1."""

    move: shogi.Move
    probability: float


@dataclass(frozen=True)
class Diagram:
    """A position and what to draw on it.

    Attributes:
        board: The position. The last move on its stack is marked.
        title: Text above the board.
        arrows: Moves of the side to move, the best first.
        heat: Probability by square; squares that are left out stay plain.
        black_win: Probability that Black wins; None to leave it out.
    """

    board: shogi.Board
    title: str = ""
    arrows: Sequence[Arrow] = ()
    heat: Mapping[int, float] = field(default_factory=dict)
    black_win: float | None = None
