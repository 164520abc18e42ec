"""Shapes in the coordinates of a board: pieces and arrows.

The board reaches from (0, 0) to (9, 9). File 9 is at x 0 … 1, rank 一 at y 8 … 9. Sizes do
not depend on the size of the figure.
"""

from __future__ import annotations

import shogi

from pydlshogi.drawing.canvas import BLUE, INK, LINE, RED, WOOD, Canvas
from pydlshogi.drawing.notation import PIECES

# A piece that points up, around its centre: x and y of the corners.
_PENTAGON = ((-0.40, -0.43), (0.40, -0.43), (0.32, 0.24), (0.0, 0.44), (-0.32, 0.24))


def draw_piece(canvas: Canvas, piece_type: int, color: int, x: float, y: float) -> None:
    """Draws a piece (python-shogi's types and colours) around a point; White's point down."""
    turn = -1 if color == shogi.WHITE else 1
    corners = [(x + turn * dx, y + turn * dy) for dx, dy in _PENTAGON]
    canvas.polygon(corners, WOOD, edge=LINE, width=0.8, zorder=4)
    is_kings = piece_type == shogi.KING and color == shogi.WHITE
    canvas.text(
        "王" if is_kings else PIECES[piece_type],
        x,
        y - 0.06 * turn,
        0.60,
        color=RED if piece_type >= shogi.PROM_PAWN else INK,
        turned=color == shogi.WHITE,
    )


def draw_arrow(
    canvas: Canvas, start: tuple[float, float], end: tuple[float, float], width: float, alpha: float
) -> None:
    """Draws an arrow; its width is in squares."""
    corners = _arrow_corners(start, end, width)
    canvas.polygon(corners, BLUE, edge="white", width=0.7, alpha=alpha, zorder=6)


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
