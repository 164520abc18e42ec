"""Tables of measures: a title, a number of positions and figures in each row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

#: Columns by title: titles of the rows, numbers of positions, then figures.
Columns = Mapping[str, Sequence[Any]]


def as_markdown(columns: Columns) -> str:
    """Formats a Markdown table, with four decimals."""
    lines = [f"| {' | '.join(columns)} |", "|:--" + "|--:" * (len(columns) - 1) + "|"]
    for title, positions, *figures in zip(*columns.values()):
        cells = [title, f"{positions:,}", *(f"{figure:.4f}" for figure in figures)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def as_tsv(columns: Columns) -> str:
    """Formats tab-separated values, with all decimals."""
    lines = [[title.replace(" ", "_") for title in columns]]
    for title, *figures in zip(*columns.values()):
        lines.append([title, *(repr(figure) for figure in figures)])
    return "".join("\t".join(line) + "\n" for line in lines)
