"""The input planes of a position, as small boards with labels."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy

from pydlshogi.drawing.canvas import BLUE, BOARD, INK, LINE, Text, draw
from pydlshogi.drawing.font import japanese_figure
from pydlshogi.drawing.notation import PIECES
from pydlshogi.drawing.words import word
from pydlshogi.features import HAND_MAX, PIECE_TYPE_NUM, SIDE_PLANE_NUM
from pydlshogi.figure import save_figure

#: Distance of two planes, in squares: to the right and down; width of a group's title.
_RIGHT, _DOWN, _TITLE = 11.0, 14.6, 17.0

#: Pieces in hand (0 pawn … 6 rook) in the rows of a side, below the row of the board pieces.
_HAND_ROWS = ((0,), (1, 2, 3, 4), (5, 6))

_INCHES = 0.088


class Cell(NamedTuple):
    """A plane's place in the picture, and its label: the piece, and in hand a number: ``歩 3``."""

    plane: int
    row: int
    column: int
    label: str


def cells() -> list[Cell]:
    """Places all planes: four rows for the side to move, then four for the opponent."""
    return [*_side_cells(0, 0), *_side_cells(SIDE_PLANE_NUM, len(_HAND_ROWS) + 1)]


def _side_cells(plane: int, row: int) -> Iterator[Cell]:
    """Places the planes of a side, from its first plane and row on."""
    for kind in range(1, PIECE_TYPE_NUM + 1):
        yield Cell(plane + kind - 1, row, kind - 1, PIECES[kind])
    for offset, kinds in enumerate(_HAND_ROWS, 1):
        column = 0
        for kind in kinds:
            first = plane + PIECE_TYPE_NUM + sum(HAND_MAX[:kind])
            for number in range(HAND_MAX[kind]):
                label = f"{PIECES[kind + 1]} {number + 1}"
                yield Cell(first + number, row + offset, column, label)
                column += 1


def save_planes(
    planes: numpy.ndarray, output: str | os.PathLike[str], *, language: str = "en"
) -> None:
    """Writes a picture of all input planes, (104, 9, 9): a .png, .svg or .pdf file.

    Raises:
        DrawingError: the file cannot be written, or matplotlib or the font is missing.
    """
    places = cells()
    width = _TITLE + _RIGHT * (1 + max(cell.column for cell in places))
    height = _DOWN * (1 + max(cell.row for cell in places)) + 16
    with japanese_figure(width * _INCHES, height * _INCHES) as figure:
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, width), ylim=(-height, 0), aspect="equal")
        axes.set_axis_off()
        for cell in places:
            _draw_plane(axes, planes[cell.plane], cell)
        titles = [
            Text(word("planes", language), width / 2, -3.2, 3.2),
            Text(word("hand note", language), width * 0.62, _y(3) - 4.5, 2.2, color=BLUE),
        ]
        draw(axes, [*titles, *_titles(language)])
        save_figure(figure, output)


def _y(row: int) -> float:
    """Returns the upper edge of the planes of a row; the opponent's stand lower."""
    return -8.6 - _DOWN * row - (4.0 if row > len(_HAND_ROWS) else 0)


def _draw_plane(axes: Any, plane: numpy.ndarray, cell: Cell) -> None:
    """Draws a plane with its label above and its number below."""
    from matplotlib.colors import LinearSegmentedColormap

    x, y = _TITLE + _RIGHT * cell.column, _y(cell.row)
    colors = LinearSegmentedColormap.from_list("planes", [BOARD, INK])
    # Squares as an image of 9×9 pixels: 8,424 shapes would take seconds.
    axes.imshow(
        plane, cmap=colors, vmin=0, vmax=1, extent=(x, x + 9, y - 9, y), zorder=2,
        interpolation="nearest", aspect="equal",
    )  # fmt: skip
    for n in range(10):
        width = 0.8 if n in (0, 9) else 0.15
        axes.plot((x + n, x + n), (y - 9, y), color=LINE, linewidth=width, zorder=3)
        axes.plot((x, x + 9), (y - n, y - n), color=LINE, linewidth=width, zorder=3)
    label = Text(cell.label, x + 4.5, y + 1.5, 2.1)
    draw(axes, [label, Text(str(cell.plane), x + 4.5, y - 10.3, 1.5, color="#777777")])


def _titles(language: str) -> Iterator[Text]:
    """Names the sides and the groups of their planes."""
    rows, x = len(_HAND_ROWS) + 1, _TITLE / 2 - 0.5
    for side, key in enumerate(("own", "opponent")):
        first = side * rows
        yield Text(word(key, language), x, _y(first) - 2.5, 2.2, color=BLUE)
        yield Text(word("pieces", language), x, _y(first) - 6.0, 1.6)
        for row in range(first + 1, first + rows):
            yield Text(word("hand", language), x, _y(row) - 4.5, 1.6)
