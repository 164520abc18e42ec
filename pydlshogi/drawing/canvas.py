"""What boards are drawn on: a figure of matplotlib, or an SVG picture that needs no package.

The coordinates are those of :mod:`pydlshogi.drawing.shapes`: squares, with y upwards. Widths of
lines are in points. What has a higher ``zorder`` is drawn later.
"""

from __future__ import annotations

import functools
import html
from collections.abc import Sequence
from typing import Any, Protocol

from pydlshogi.drawing.font import required_font

#: Colours.
INK, RED = "#221a12", "#b3201c"
WOOD, BOARD, LINE = "#fbe9c3", "#f4d69c", "#5b4630"
BLUE = "#174a8b"

#: Inches for each unit.
INCHES = 0.62
_POINT = 1 / (72 * INCHES)

_Corners = Sequence[tuple[float, float]]


class Canvas(Protocol):
    """Draws shapes."""

    def polygon(
        self, corners: _Corners, color: str, *, edge: str = "none", width: float = 0,
        alpha: float = 1, zorder: int = 1,
    ) -> None:  # fmt: skip
        """Draws a filled polygon."""

    def box(
        self, x: float, y: float, width: float, height: float, color: str, *, edge: str = "none",
        line: float = 0, alpha: float = 1, radius: float = 0, zorder: int = 1,
    ) -> None:  # fmt: skip
        """Draws a rectangle with round corners, given its left lower corner."""

    def line(self, ends: _Corners, color: str, width: float, zorder: int) -> None:
        """Draws a line."""

    def text(
        self, text: str, x: float, y: float, size: float, *, color: str = INK,
        turned: bool = False, zorder: int = 5,
    ) -> None:  # fmt: skip
        """Writes a line of text around a point."""


class FigureCanvas:
    """Draws on axes of matplotlib."""

    def __init__(self, axes: Any) -> None:
        self._axes = axes

    def polygon(
        self, corners: _Corners, color: str, *, edge: str = "none", width: float = 0,
        alpha: float = 1, zorder: int = 1,
    ) -> None:  # fmt: skip
        """Draws a filled polygon."""
        from matplotlib.patches import Polygon

        style: Any = {"edgecolor": edge, "linewidth": width, "alpha": alpha, "zorder": zorder}
        self._axes.add_patch(Polygon(corners, facecolor=color, **style))

    def box(
        self, x: float, y: float, width: float, height: float, color: str, *, edge: str = "none",
        line: float = 0, alpha: float = 1, radius: float = 0, zorder: int = 1,
    ) -> None:  # fmt: skip
        """Draws a rectangle with round corners, given its left lower corner."""
        from matplotlib.patches import FancyBboxPatch, Rectangle

        style: Any = {"edgecolor": edge, "linewidth": line, "alpha": alpha, "zorder": zorder}
        corner, round_ = (x, y), f"round,pad=0,rounding_size={radius}"
        if radius:
            style["boxstyle"] = round_
        shape = FancyBboxPatch if radius else Rectangle
        self._axes.add_patch(shape(corner, width, height, facecolor=color, **style))

    def line(self, ends: _Corners, color: str, width: float, zorder: int) -> None:
        """Draws a line."""
        self._axes.plot(*zip(*ends), color=color, linewidth=width, zorder=zorder)

    def text(
        self, text: str, x: float, y: float, size: float, *, color: str = INK,
        turned: bool = False, zorder: int = 5,
    ) -> None:  # fmt: skip
        """Writes a line of text around a point."""
        draw_text(self._axes, text, x, y, size, color=color, turned=turned, zorder=zorder)


class SvgCanvas:
    """Draws an SVG picture; the fonts are those of the reader."""

    def __init__(self) -> None:
        self._shapes: list[tuple[int, str]] = []

    def polygon(
        self, corners: _Corners, color: str, *, edge: str = "none", width: float = 0,
        alpha: float = 1, zorder: int = 1,
    ) -> None:  # fmt: skip
        """Draws a filled polygon."""
        points = " ".join(f"{_number(x)},{_number(-y)}" for x, y in corners)
        self._add(zorder, f'polygon points="{points}"{_style(color, edge, width, alpha)}')

    def box(
        self, x: float, y: float, width: float, height: float, color: str, *, edge: str = "none",
        line: float = 0, alpha: float = 1, radius: float = 0, zorder: int = 1,
    ) -> None:  # fmt: skip
        """Draws a rectangle with round corners, given its left lower corner."""
        place = f'x="{_number(x)}" y="{_number(-y - height)}" rx="{_number(radius)}"'
        size = f'width="{_number(width)}" height="{_number(height)}"'
        self._add(zorder, f"rect {place} {size}{_style(color, edge, line, alpha)}")

    def line(self, ends: _Corners, color: str, width: float, zorder: int) -> None:
        """Draws a line."""
        points = " ".join(f"{_number(x)},{_number(-y)}" for x, y in ends)
        self._add(zorder, f'polyline points="{points}"{_style("none", color, width, 1)}')

    def text(
        self, text: str, x: float, y: float, size: float, *, color: str = INK,
        turned: bool = False, zorder: int = 5,
    ) -> None:  # fmt: skip
        """Writes a line of text around a point."""
        place = f'x="{_number(x)}" y="{_number(-y)}" font-size="{size}" fill="{color}"'
        turn = f' transform="rotate(180 {_number(x)} {_number(-y)})"' if turned else ""
        content = html.escape("".join(c for c in text if c.isprintable()))
        self._shapes.append((zorder, f"<text {place}{turn}>{content}</text>"))

    def _add(self, zorder: int, shape: str) -> None:
        self._shapes.append((zorder, f"<{shape}/>"))

    def picture(self, left: float, right: float, bottom: float, top: float, pixels: int) -> str:
        """Returns the picture of a part of the plane, that many pixels wide."""
        box = f"{left} {-top} {right - left} {top - bottom}"
        shapes = "".join(shape for _, shape in sorted(self._shapes, key=lambda pair: pair[0]))
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" width="{pixels}" '
            'style="max-width:100%;height:auto;background:#fff" text-anchor="middle" '
            'dominant-baseline="central" font-family="IPAexGothic,Noto Sans CJK JP,Hiragino Sans,'
            f'Yu Gothic,sans-serif">{shapes}</svg>'
        )


def _number(value: float) -> str:
    return f"{round(value, 3):g}"


def _style(color: str, edge: str, width: float, alpha: float) -> str:
    line = f' stroke="{edge}" stroke-width="{_number(_POINT * width)}"' if width else ""
    return f' fill="{color}"{line}' + (f' opacity="{_number(alpha)}"' if alpha < 1 else "")


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
