"""Pages of the games of a match, beside their records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from pydlshogi.analysis.page import page_of_record
from pydlshogi.analysis.record import read_record
from pydlshogi.drawing.page import write_page
from pydlshogi.player.strategy import PONANZA_CONSTANT


def write_match_page(
    path: Path, seconds: Sequence[float], evaluations: Sequence[int | None], notes: Sequence[str]
) -> None:
    """Writes the page of a recorded game: the record's name with ``.html``.

    Args:
        path: The record, with at least one move.
        seconds: The time of each move.
        evaluations: Evaluation of each position, from the start, in centipawns for Black; None
            if it is unknown.
        notes: Lines to show.

    Raises:
        UserError: the page cannot be written.
    """
    wins = [None if value is None else _probability(value) for value in evaluations]
    page = page_of_record(read_record(path), seconds, wins, notes, "en")
    write_page(page, path.with_suffix(".html"))


def _probability(evaluation: int) -> float:
    """Converts centipawns into the probability of winning, on the scale of our engines."""
    return 1 / (1 + math.exp(-evaluation / PONANZA_CONSTANT))
