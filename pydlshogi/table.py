"""Tables in Markdown and as tab-separated values.

A cell is a text, a whole number, a figure or None. Markdown shows figures with four decimals; the
tab-separated values have all their digits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any


def markdown(
    titles: Sequence[str], rows: Iterable[Sequence[Any]], texts: Collection[int] = (0,)
) -> str:
    """Formats a table in Markdown; the columns with the numbers ``texts`` are left-aligned."""
    line = "".join(":--|" if number in texts else "--:|" for number in range(len(titles)))
    return "".join([_row(titles), f"|{line}\n", *map(_row, rows)])


def _row(cells: Iterable[Any]) -> str:
    return f"| {' | '.join(map(_shown, cells))} |\n"


def _shown(cell: Any) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, str):
        return cell.replace("|", "\\|")
    return f"{cell:,}" if isinstance(cell, int) else f"{cell:.4f}"


def tsv(titles: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Formats tab-separated values; blanks in titles become underscores, None an empty cell."""
    lines = [[title.replace(" ", "_") for title in titles]]
    for row in rows:
        cells = ["" if cell is None else cell for cell in row]
        lines.append([cell if isinstance(cell, str) else repr(cell) for cell in cells])
    return "".join("\t".join(line) + "\n" for line in lines)
