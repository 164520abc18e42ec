"""A position as a board picture, with moves as arrows, a heat map and a value."""

from __future__ import annotations

import collections
import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import shogi

from pydlshogi.drawing.canvas import (
    BLUE,
    BOARD,
    INCHES,
    INK,
    LINE,
    Canvas,
    FigureCanvas,
    SvgCanvas,
)
from pydlshogi.drawing.font import japanese_figure
from pydlshogi.drawing.notation import FILES, RANKS, SIDES
from pydlshogi.drawing.shapes import draw_arrow, draw_piece
from pydlshogi.drawing.words import word
from pydlshogi.figure import save_figure


class Arrow(NamedTuple):
    """A move that a picture shows as an arrow, with its probability, 0 to 1."""

    move: shogi.Move
    probability: float


@dataclass(frozen=True)
class Diagram:
    """A position and what to draw on it; the last move on its stack is marked.

    Attributes:
        arrows: Moves of the side to move, the best first.
        heat: Probability by square; squares that are left out stay plain.
        black_win: Probability that Black wins; None to leave it out.
    """

    board: shogi.Board
    title: str = ""
    arrows: Sequence[Arrow] = ()
    heat: Mapping[int, float] = field(default_factory=dict)
    black_win: float | None = None


#: Limits of the axes around the board.
_X, _TOP = (-2.5, 12.0), 10.75
#: The lower limit with and without the bar of the value.
_BOTTOM_WITH_VALUE, _BOTTOM = -1.35, -0.4

_HEAT, _LAST_MOVE = "#c8102e", "#ffe680"

#: The stands of the hands of Black and White: left and lower edge; width and height.
_STANDS, _STAND_WIDTH, _STAND_HEIGHT = ((9.95, 0.0), (-2.2, 1.8)), 1.75, 7.2
#: Half the size of a star point.
_STAR = 0.05
_IN_HAND = (shogi.ROOK, shogi.BISHOP, shogi.GOLD, shogi.SILVER, shogi.KNIGHT, shogi.LANCE)
_HAND_ORDER = (*_IN_HAND, shogi.PAWN)

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
    _draw(FigureCanvas(axes), diagram, language)


def board_svg(diagram: Diagram, *, language: str = "en", pixels: int = 560) -> str:
    """Returns a board picture as SVG, that many pixels wide; it needs no package."""
    canvas = SvgCanvas()
    _draw(canvas, diagram, language)
    return canvas.picture(*_X, _bottom(diagram), _TOP, pixels)


def _draw(canvas: Canvas, diagram: Diagram, language: str) -> None:
    _draw_squares(canvas, diagram)
    _draw_grid(canvas)
    _draw_pieces(canvas, diagram.board)
    places = {color: _draw_hand(canvas, diagram.board, color, language) for color in shogi.COLORS}
    _draw_arrows(canvas, diagram, places[diagram.board.turn])
    if diagram.black_win is not None:
        _draw_value(canvas, diagram.black_win)
    if diagram.title:
        canvas.text(diagram.title, 4.5, 10.3, 0.42)


def _bottom(diagram: Diagram) -> float:
    return _BOTTOM if diagram.black_win is None else _BOTTOM_WITH_VALUE


def _center(square: int) -> _Point:
    """Returns the middle of a square, 0..80."""
    return square % 9 + 0.5, 8.5 - square // 9


def _fill(canvas: Canvas, square: int, color: str, alpha: float) -> None:
    x, y = _center(square)
    canvas.box(x - 0.5, y - 0.5, 1, 1, color, alpha=alpha, zorder=2)


def _draw_squares(canvas: Canvas, diagram: Diagram) -> None:
    """Draws the board, the last move and the heat map."""
    canvas.box(-0.12, -0.12, 9.24, 9.24, BOARD)
    if diagram.board.move_stack:
        last = diagram.board.move_stack[-1]
        for square in (last.from_square, last.to_square):
            if square is not None:
                _fill(canvas, square, _LAST_MOVE, 1.0)
    for square, probability in diagram.heat.items():
        _fill(canvas, square, _HEAT, 0.72 * min(1.0, probability) ** 0.5)


def _draw_grid(canvas: Canvas) -> None:
    """Draws lines, star points, and the names of files and ranks."""
    for n in range(10):
        width = 1.6 if n in (0, 9) else 0.7
        canvas.line([(n, 0), (n, 9)], LINE, width, zorder=3)
        canvas.line([(0, n), (9, n)], LINE, width, zorder=3)
    for x, y in itertools.product((3, 6), repeat=2):
        canvas.box(x - _STAR, y - _STAR, 2 * _STAR, 2 * _STAR, LINE, radius=_STAR, zorder=3)
    for n in range(9):
        canvas.text(FILES[8 - n], n + 0.5, 9.42, 0.36)
        canvas.text(RANKS[n], 9.45, 8.5 - n, 0.36)


def _draw_pieces(canvas: Canvas, board: shogi.Board) -> None:
    for square in shogi.SQUARES:
        piece = board.piece_at(square)
        if piece:
            draw_piece(canvas, piece.piece_type, piece.color, *_center(square))


def _draw_hand(canvas: Canvas, board: shogi.Board, color: int, language: str) -> dict[int, _Point]:
    """Draws the pieces in hand of a side; returns the place of each piece type."""
    x, top = _STANDS[color][0], _STANDS[color][1] + _STAND_HEIGHT
    held = [kind for kind in _HAND_ORDER if board.pieces_in_hand[color][kind]]
    _draw_stand(canvas, color, language, is_empty=not held)
    places = {kind: (x + 0.62, top - 0.62 - row) for row, kind in enumerate(held)}
    for kind, place in places.items():
        draw_piece(canvas, kind, color, *place)
        count = board.pieces_in_hand[color][kind]
        if count > 1:
            canvas.text(str(count), place[0] + 0.68, place[1], 0.40)
    return places


def _draw_stand(canvas: Canvas, color: int, language: str, is_empty: bool) -> None:
    """Draws the stand of a side's pieces in hand, and the name of the side above it."""
    x, y = _STANDS[color]
    canvas.box(
        x, y, _STAND_WIDTH, _STAND_HEIGHT, BOARD, edge=LINE, line=0.8, alpha=0.55, radius=0.15
    )
    middle, top = x + _STAND_WIDTH / 2, y + _STAND_HEIGHT
    name = f"{SIDES[color]} {word(('black', 'white')[color], language)}"
    canvas.text(name, middle, top + 0.35, 0.30)
    if is_empty:
        canvas.text(word("none", language), middle, top - 0.6, 0.30)


def _draw_arrows(canvas: Canvas, diagram: Diagram, hand: dict[int, _Point]) -> None:
    """Draws the moves; the best is above the others."""
    most = max((arrow.probability for arrow in diagram.arrows), default=1.0)
    for arrow in reversed(diagram.arrows):
        start = _start(arrow.move, hand)
        strength = (arrow.probability / most) ** 0.5
        end = _center(arrow.move.to_square)
        draw_arrow(canvas, start, end, 0.06 + 0.16 * strength, 0.35 + 0.5 * strength)
    stacked: collections.Counter[int] = collections.Counter()
    for arrow in diagram.arrows:
        _draw_label(canvas, arrow, stacked[arrow.move.to_square])
        stacked[arrow.move.to_square] += 1


def _start(move: shogi.Move, hand: dict[int, _Point]) -> _Point:
    return hand[move.drop_piece_type] if move.drop_piece_type else _center(move.from_square)


def _draw_label(canvas: Canvas, arrow: Arrow, row: int) -> None:
    """Writes the probability of a move on its target, below the labels of other moves there."""
    x, y = _center(arrow.move.to_square)
    y += 0.34 - 0.34 * row
    percent = 100 * arrow.probability
    text = f"{percent:.0f}%" if percent >= 0.95 else "<1%"
    text += "成" if arrow.move.promotion else ""
    half = 0.10 + 0.085 * len(text) + (0.09 if arrow.move.promotion else 0)
    canvas.box(
        x - half, y - 0.15, 2 * half, 0.30, "white", edge=BLUE, line=0.9, radius=0.1, zorder=7
    )
    canvas.text(text, x, y, 0.26, color=BLUE, zorder=8)


def _draw_value(canvas: Canvas, black_win: float) -> None:
    """Draws the probability of winning as a bar, Black's part on the left."""
    y, height, part = -0.95, 0.45, 9 * black_win
    canvas.box(0, y, 9, height, "#f2f2f2", zorder=2)
    canvas.box(0, y, part, height, "#3a3a3a", zorder=3)
    canvas.box(0, y, 9, height, "none", edge=INK, line=1, zorder=4)
    canvas.line([(4.5, y), (4.5, y + height)], "#999999", 0.8, zorder=4)
    percent = f"{100 * black_win:.0f}%", f"{100 - round(100 * black_win):.0f}%"
    canvas.text(f"{SIDES[0]} {percent[0]}", -0.85, y + height / 2, 0.36)
    canvas.text(f"{SIDES[1]} {percent[1]}", 9.85, y + height / 2, 0.36)
