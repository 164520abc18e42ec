"""The shapes of board pictures, and how matplotlib or an SVG picture shows them.

The coordinates are those of :mod:`pydlshogi.drawing.board`: squares, with y upwards. Widths of
lines are in points. What has a higher ``zorder`` is drawn later.
"""

from __future__ import annotations

import functools
import html
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Union

from pydlshogi.drawing.font import required_font
from pydlshogi.text import one_line

#: Colours.
INK, RED = "#221a12", "#b3201c"
WOOD, BOARD, LINE = "#fbe9c3", "#f4d69c", "#5b4630"
BLUE = "#174a8b"

#: Inches for each unit.
INCHES = 0.62
_POINT = 1 / (72 * INCHES)

_Corners = Sequence[tuple[float, float]]


class Polygon(NamedTuple):
    """A filled polygon."""

    corners: _Corners
    color: str
    edge: str = "none"
    line: float = 0
    alpha: float = 1
    zorder: int = 1


class Box(NamedTuple):
    """A rectangle with round corners; x and y are its left lower corner."""

    x: float
    y: float
    width: float
    height: float
    color: str
    edge: str = "none"
    line: float = 0
    alpha: float = 1
    zorder: int = 1
    radius: float = 0


class Line(NamedTuple):
    """A line."""

    ends: _Corners
    color: str
    line: float
    zorder: int


class Text(NamedTuple):
    """A line of text around a point; matplotlib draws pieces at 4 and 5, arrows at 6."""

    text: str
    x: float
    y: float
    size: float
    color: str = INK
    turned: bool = False
    zorder: int = 5


Shape = Union[Polygon, Box, Line, Text]


def draw(axes: Any, shapes: Iterable[Shape]) -> None:
    """Draws shapes on axes of matplotlib."""
    from matplotlib import patches

    for shape in shapes:
        if isinstance(shape, Text):
            _draw_text(axes, shape)
            continue
        style: Any = {"linewidth": shape.line, "zorder": shape.zorder}
        if isinstance(shape, Line):
            axes.plot(*zip(*shape.ends), color=shape.color, **style)
            continue
        style.update(facecolor=shape.color, edgecolor=shape.edge, alpha=shape.alpha)
        if isinstance(shape, Polygon):
            axes.add_patch(patches.Polygon(shape.corners, **style))
            continue
        place = (shape.x, shape.y), shape.width, shape.height
        if shape.radius:
            style["boxstyle"] = f"round,pad=0,rounding_size={shape.radius}"
            axes.add_patch(patches.FancyBboxPatch(*place, **style))
        else:
            axes.add_patch(patches.Rectangle(*place, **style))


def _draw_text(axes: Any, shape: Text) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.transforms import Affine2D

    scale = -shape.size if shape.turned else shape.size
    place = Affine2D().scale(scale).translate(shape.x, shape.y)
    path = place.transform_path(_outline(shape.text))
    axes.add_patch(PathPatch(path, facecolor=shape.color, linewidth=0, zorder=shape.zorder))


@functools.lru_cache(maxsize=512)
def _outline(text: str) -> Any:
    """Makes the outline of a text of height 1, its middle at (0, 0)."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.path import Path
    from matplotlib.textpath import TextPath

    path = TextPath((0, 0), text, size=1, prop=FontProperties(fname=str(required_font())))
    box = path.get_extents()
    return Path(path.vertices - [(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2], path.codes)


def svg(
    shapes: Iterable[Shape], left: float, right: float, bottom: float, top: float, pixels: int
) -> str:
    """Returns an SVG picture of a part of the plane; its fonts are those of the reader."""
    box = f"{left} {-top} {right - left} {top - bottom}"
    parts = "".join(map(_svg, sorted(shapes, key=lambda shape: shape.zorder)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" width="{pixels}" '
        'style="max-width:100%;height:auto;background:#fff" text-anchor="middle" '
        'dominant-baseline="central" font-family="IPAexGothic,Noto Sans CJK JP,Hiragino Sans,'
        f'Yu Gothic,sans-serif">{parts}</svg>'
    )


def _svg(shape: Shape) -> str:
    if isinstance(shape, Text):
        x, y = _number(shape.x), _number(-shape.y)
        turn = f' transform="rotate(180 {x} {y})"' if shape.turned else ""
        content = html.escape(one_line(shape.text))
        place = f'x="{x}" y="{y}" font-size="{shape.size}" fill="{shape.color}"'
        return f"<text {place}{turn}>{content}</text>"
    if isinstance(shape, Line):
        return f'<polyline points="{_points(shape.ends)}" fill="none"{_edge(shape.color, shape)}/>'
    if isinstance(shape, Polygon):
        start = f'<polygon points="{_points(shape.corners)}"'
    else:
        place = f'x="{_number(shape.x)}" y="{_number(-shape.y - shape.height)}"'
        size = f'width="{_number(shape.width)}" height="{_number(shape.height)}"'
        start = f'<rect {place} rx="{_number(shape.radius)}" {size}'
    alpha = f' opacity="{_number(shape.alpha)}"' if shape.alpha < 1 else ""
    return f'{start} fill="{shape.color}"{_edge(shape.edge, shape)}{alpha}/>'


def _points(corners: _Corners) -> str:
    return " ".join(f"{_number(x)},{_number(-y)}" for x, y in corners)


def _edge(color: str, shape: Polygon | Box | Line) -> str:
    width = _number(_POINT * shape.line)
    return f' stroke="{color}" stroke-width="{width}"' if shape.line else ""


def _number(value: float) -> str:
    return f"{round(value, 3):g}"
