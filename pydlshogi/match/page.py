"""Pages of the games of a match."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from pydlshogi.analysis.page import page_of_record
from pydlshogi.analysis.record import checked_game
from pydlshogi.drawing.page import write_page
from pydlshogi.kifu.csa import parse_game
from pydlshogi.player.strategy import PONANZA_CONSTANT


def write_match_page(
    path: Path,
    record: bytes,
    seconds: Sequence[float],
    evaluations: Sequence[int | None],
    notes: Sequence[str],
) -> None:
    """Writes the page of a game.

    Args:
        path: The page.
        record: The game as a CSA file, with at least one move.
        seconds: The time of each move.
        evaluations: Evaluation of each position, from the start, in centipawns for Black; None
            if it is unknown.
        notes: Lines to show.

    Raises:
        UserError: the page cannot be written.
    """
    wins = [None if value is None else _probability(value) for value in evaluations]
    page = page_of_record(checked_game(parse_game(record)), seconds, wins, notes, "en")
    write_page(page, path)


def _probability(evaluation: int) -> float:
    """Converts centipawns into the probability of winning, on the scale of our engines."""
    return 1 / (1 + math.exp(-evaluation / PONANZA_CONSTANT))
