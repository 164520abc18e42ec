"""A position as a board picture, with moves as arrows, a heat map and a value.

The board reaches from (0, 0) to (9, 9). File 9 is at x 0 … 1, rank 一 at y 8 … 9. Sizes do
not depend on the size of the figure.
"""

from __future__ import annotations

import collections
import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import shogi

from pydlshogi.drawing.canvas import (
    BLUE,
    BOARD,
    INCHES,
    INK,
    LINE,
    RED,
    WOOD,
    Box,
    Line,
    Polygon,
    Shape,
    Text,
    draw,
    svg,
)
from pydlshogi.drawing.font import japanese_figure
from pydlshogi.drawing.notation import FILES, PIECES, RANKS, SIDES
from pydlshogi.drawing.words import side_words, word
from pydlshogi.figure import save_figure


class Arrow(NamedTuple):
    """A move that a picture shows as an arrow, with its probability, 0 to 1."""

    move: shogi.Move
    probability: float


@dataclass(frozen=True)
class Diagram:
    """A position and what to draw on it; the last move on its stack is marked.

    ``arrows`` are moves, the best first. ``heat`` are probabilities by square, ``black_win`` that
    of Black's win; what is missing is not drawn. ``handicap`` says that the game has one.
    """

    board: shogi.Board
    title: str = ""
    arrows: Sequence[Arrow] = ()
    heat: Mapping[int, float] = field(default_factory=dict)
    black_win: float | None = None
    handicap: bool = False


#: Limits of the axes around the board.
_X, _TOP = (-2.5, 12.0), 10.75
#: The lower limit with and without the bar of the value.
_BOTTOM_WITH_VALUE, _BOTTOM = -1.35, -0.4

_HEAT, _LAST_MOVE = "#c8102e", "#ffe680"

#: The stands of the hands of Black and White: left and lower edge; width and height.
_STANDS, _STAND_WIDTH, _STAND_HEIGHT = ((9.95, 0.0), (-2.2, 1.8)), 1.75, 7.2
#: Half the size of a star point.
_STAR = 0.05
_HAND_ORDER = range(shogi.ROOK, 0, -1)

# A piece that points up, around its centre: x and y of the corners.
_PENTAGON = ((-0.40, -0.43), (0.40, -0.43), (0.32, 0.24), (0.0, 0.44), (-0.32, 0.24))

_Point = tuple[float, float]


def save_board(diagram: Diagram, output: str | os.PathLike[str], *, language: str = "en") -> None:
    """Writes a board picture: .png, .svg or .pdf, with words in "en" or "ja".

    Raises:
        DrawingError: the file cannot be written, or matplotlib or the font is missing.
    """
    width, height = _X[1] - _X[0], _TOP - _bottom(diagram)
    with japanese_figure(width * INCHES, height * INCHES) as figure:
        draw_board(figure.add_axes((0, 0, 1, 1)), diagram, language)
        save_figure(figure, output)


def draw_board(axes: Any, diagram: Diagram, language: str = "en") -> None:
    """Draws a board picture into empty axes, in a figure of :func:`japanese_figure`."""
    axes.set(xlim=_X, ylim=(_bottom(diagram), _TOP), aspect="equal")
    axes.set_axis_off()
    draw(axes, _shapes(diagram, language))


def board_svg(diagram: Diagram, *, language: str = "en", pixels: int = 560) -> str:
    """Returns a board picture as SVG, that many pixels wide; it needs no package."""
    return svg(_shapes(diagram, language), *_X, _bottom(diagram), _TOP, pixels)


def _shapes(diagram: Diagram, language: str) -> Iterator[Shape]:
    board, places = diagram.board, {}
    yield from _squares(diagram)
    yield from _grid()
    for square in shogi.SQUARES:
        piece = board.piece_at(square)
        if piece:
            yield from _piece(piece.piece_type, piece.color, *_center(square))
    for color, name in enumerate(side_words(diagram.handicap, language)):
        places[color] = _places_in_hand(board, color)
        yield from _hand(board, color, name, language, places[color])
    yield from _arrows(diagram, places[board.turn])
    if diagram.black_win is not None:
        yield from _value(diagram.black_win)
    if diagram.title:
        yield Text(diagram.title, 4.5, 10.3, 0.42)


def _bottom(diagram: Diagram) -> float:
    return _BOTTOM if diagram.black_win is None else _BOTTOM_WITH_VALUE


def _center(square: int) -> _Point:
    """Returns the middle of a square, 0..80."""
    return square % 9 + 0.5, 8.5 - square // 9


def _squares(diagram: Diagram) -> Iterator[Shape]:
    """Draws the board, the last move and the heat map."""
    yield Box(-0.12, -0.12, 9.24, 9.24, BOARD)
    last = list(diagram.board.move_stack)[-1:]
    marked = [square for move in last for square in (move.from_square, move.to_square)]
    fills = [(square, _LAST_MOVE, 1.0) for square in marked if square is not None]
    fills += [(n, _HEAT, 0.72 * min(1.0, p) ** 0.5) for n, p in diagram.heat.items()]
    for square, color, alpha in fills:
        x, y = _center(square)
        yield Box(x - 0.5, y - 0.5, 1, 1, color, alpha=alpha, zorder=2)


def _grid() -> Iterator[Shape]:
    """Draws lines, star points, and the names of files and ranks."""
    for n in range(10):
        width = 1.6 if n in (0, 9) else 0.7
        yield Line([(n, 0), (n, 9)], LINE, width, 3)
        yield Line([(0, n), (9, n)], LINE, width, 3)
    for x, y in itertools.product((3, 6), repeat=2):
        yield Box(x - _STAR, y - _STAR, 2 * _STAR, 2 * _STAR, LINE, radius=_STAR, zorder=3)
    for n in range(9):
        yield Text(FILES[8 - n], n + 0.5, 9.42, 0.36)
        yield Text(RANKS[n], 9.45, 8.5 - n, 0.36)


def _piece(piece_type: int, color: int, x: float, y: float) -> Iterator[Shape]:
    """Draws a piece (python-shogi's types and colours) around a point; White's point down."""
    turn = -1 if color == shogi.WHITE else 1
    corners = [(x + turn * dx, y + turn * dy) for dx, dy in _PENTAGON]
    yield Polygon(corners, WOOD, edge=LINE, line=0.8, zorder=4)
    is_kings = piece_type == shogi.KING and color == shogi.WHITE
    name = "王" if is_kings else PIECES[piece_type]
    ink = RED if piece_type >= shogi.PROM_PAWN else INK
    yield Text(name, x, y - 0.06 * turn, 0.60, ink, color == shogi.WHITE)


def _places_in_hand(board: shogi.Board, color: int) -> dict[int, _Point]:
    """Places the pieces in hand of a side, by their types."""
    x, top = _STANDS[color][0], _STANDS[color][1] + _STAND_HEIGHT
    held = [kind for kind in _HAND_ORDER if board.pieces_in_hand[color][kind]]
    return {kind: (x + 0.62, top - 0.62 - row) for row, kind in enumerate(held)}


def _hand(
    board: shogi.Board, color: int, name: str, language: str, places: dict[int, _Point]
) -> Iterator[Shape]:
    """Draws the pieces in hand of a side on their stand, and its name above it."""
    x, y = _STANDS[color]
    width, height = _STAND_WIDTH, _STAND_HEIGHT
    yield Box(x, y, width, height, BOARD, edge=LINE, line=0.8, alpha=0.55, radius=0.15)
    middle, top = x + width / 2, y + height
    yield Text(f"{SIDES[color]} {name}", middle, top + 0.35, 0.30)
    if not places:
        yield Text(word("none", language), middle, top - 0.6, 0.30)
    for kind, place in places.items():
        yield from _piece(kind, color, *place)
        count = board.pieces_in_hand[color][kind]
        if count > 1:
            yield Text(str(count), place[0] + 0.68, place[1], 0.40)


def _arrows(diagram: Diagram, hand: dict[int, _Point]) -> Iterator[Shape]:
    """Draws the moves; the best is above the others."""
    most = max((arrow.probability for arrow in diagram.arrows), default=1.0)
    for move, probability in reversed(diagram.arrows):
        drop = move.drop_piece_type
        start = hand[drop] if drop else _center(move.from_square)
        strength = (probability / most) ** 0.5
        corners = _arrow_corners(start, _center(move.to_square), 0.06 + 0.16 * strength)
        alpha = 0.35 + 0.5 * strength
        yield Polygon(corners, BLUE, edge="white", line=0.7, alpha=alpha, zorder=6)
    stacked: collections.Counter[int] = collections.Counter()
    for arrow in diagram.arrows:
        yield from _label(arrow, stacked[arrow.move.to_square])
        stacked[arrow.move.to_square] += 1


def _arrow_corners(start: _Point, end: _Point, width: float) -> list[_Point]:
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


def _label(arrow: Arrow, row: int) -> Iterator[Shape]:
    """Writes the probability of a move on its target, below the labels of other moves there."""
    x, y = _center(arrow.move.to_square)
    y += 0.34 - 0.34 * row
    percent = 100 * arrow.probability
    text = f"{percent:.0f}%" if percent >= 0.95 else "<1%"
    text += "成" if arrow.move.promotion else ""
    half = 0.10 + 0.085 * len(text) + (0.09 if arrow.move.promotion else 0)
    place = (x - half, y - 0.15, 2 * half, 0.30)
    yield Box(*place, "white", edge=BLUE, line=0.9, radius=0.1, zorder=7)
    yield Text(text, x, y, 0.26, color=BLUE, zorder=8)


def _value(black_win: float) -> Iterator[Shape]:
    """Draws the probability of winning as a bar, Black's part on the left."""
    y, height, part = -0.95, 0.45, 9 * black_win
    yield Box(0, y, 9, height, "#f2f2f2", zorder=2)
    yield Box(0, y, part, height, "#3a3a3a", zorder=3)
    yield Box(0, y, 9, height, "none", edge=INK, line=1, zorder=4)
    yield Line([(4.5, y), (4.5, y + height)], "#999999", 0.8, 4)
    percent = f"{100 * black_win:.0f}%", f"{100 - round(100 * black_win):.0f}%"
    yield Text(f"{SIDES[0]} {percent[0]}", -0.85, y + height / 2, 0.36)
    yield Text(f"{SIDES[1]} {percent[1]}", 9.85, y + height / 2, 0.36)
