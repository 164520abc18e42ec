"""Shapes in the coordinates of a board: pieces, characters, arrows.

The board reaches from (0, 0) to (9, 9). File 9 is at x 0 … 1, rank 一 at y 8 … 9. Sizes do
not depend on the size of the figure.
"""

from __future__ import annotations

import functools
from typing import Any

import shogi

from pydlshogi.drawing.font import required_font
from pydlshogi.drawing.notation import PIECES

#: Colours.
INK, RED = "#221a12", "#b3201c"
WOOD, BOARD, LINE = "#fbe9c3", "#f4d69c", "#5b4630"
BLUE = "#174a8b"

# A piece that points up, around its centre: x and y of the corners.
_PENTAGON = ((-0.40, -0.43), (0.40, -0.43), (0.32, 0.24), (0.0, 0.44), (-0.32, 0.24))


@functools.lru_cache(maxsize=512)
def _outline(text: str) -> Any:
    """Makes the outline of a text of height 1, its middle at (0, 0)."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.path import Path
    from matplotlib.textpath import TextPath

    path = TextPath((0, 0), text, size=1, prop=FontProperties(fname=str(required_font())))
    box = path.get_extents()
    return Path(path.vertices - [(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2], path.codes)


def draw_text(
    axes: Any,
    text: str,
    x: float,
    y: float,
    size: float,
    *,
    color: str = INK,
    turned: bool = False,
    zorder: int = 5,
) -> None:
    """Draws a line of text around a point; matplotlib draws pieces at 4 and 5, arrows at 6."""
    from matplotlib.patches import PathPatch
    from matplotlib.transforms import Affine2D

    scale = -size if turned else size
    place = Affine2D().scale(scale).translate(x, y)
    path = place.transform_path(_outline(text))
    axes.add_patch(PathPatch(path, facecolor=color, linewidth=0, zorder=zorder))


def draw_piece(
    axes: Any, piece_type: int, color: int, x: float, y: float, size: float = 1.0
) -> None:
    """Draws a piece (python-shogi's types and colours) around a point; White's point down."""
    from matplotlib.patches import Polygon

    turn = -size if color == shogi.WHITE else size
    corners = [(x + turn * dx, y + turn * dy) for dx, dy in _PENTAGON]
    axes.add_patch(Polygon(corners, facecolor=WOOD, edgecolor=LINE, linewidth=0.8, zorder=4))
    is_kings = piece_type == shogi.KING and color == shogi.WHITE
    draw_text(
        axes,
        "王" if is_kings else PIECES[piece_type],
        x,
        y - 0.06 * turn,
        0.60 * size,
        color=RED if piece_type >= shogi.PROM_PAWN else INK,
        turned=color == shogi.WHITE,
    )


def draw_arrow(
    axes: Any, start: tuple[float, float], end: tuple[float, float], width: float, alpha: float
) -> None:
    """Draws an arrow; its width is in squares."""
    from matplotlib.patches import Polygon

    corners = _arrow_corners(start, end, width)
    axes.add_patch(
        Polygon(corners, facecolor=BLUE, edgecolor="white", linewidth=0.7, alpha=alpha, zorder=6)
    )


def _arrow_corners(
    start: tuple[float, float], end: tuple[float, float], width: float
) -> list[tuple[float, float]]:
    """Returns the corners of an arrow."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = max((dx * dx + dy * dy) ** 0.5, 1e-6)
    dx, dy = dx / length, dy / length
    head, half = 0.16 + 1.3 * width, width / 2
    along_and_aside = (
        (0.0, half),
        (length - head, half),
        (length - head, half + 0.08 + width / 2),
        (length, 0.0),
        (length - head, -half - 0.08 - width / 2),
        (length - head, -half),
        (0.0, -half),
    )
    return [
        (start[0] + along * dx - aside * dy, start[1] + along * dy + aside * dx)
        for along, aside in along_and_aside
    ]
