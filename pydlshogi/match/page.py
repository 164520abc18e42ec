"""Pages of the games of a match, beside their records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydlshogi.analysis.page import page_of_record
from pydlshogi.analysis.record import read_record
from pydlshogi.drawing.page import write_page


def write_match_page(path: Path, seconds: Sequence[float], notes: Sequence[str]) -> None:
    """Writes the page of a recorded game: the record's name with ``.html``.

    Args:
        path: The record, with at least one move.
        seconds: The time of each move.
        notes: Lines to show.

    Raises:
        UserError: the page cannot be written.
    """
    page = page_of_record(read_record(path), seconds, notes, "en")
    write_page(page, path.with_suffix(".html"))
