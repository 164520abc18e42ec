"""The course of a game: winning probability and the probabilities of the moves played."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydlshogi.drawing.canvas import BLUE
from pydlshogi.drawing.font import japanese_figure
from pydlshogi.drawing.words import word
from pydlshogi.figure import save_figure

#: Width of the graph in inches.
_WIDTH = 9.5

#: Largest and smallest size of the title in points; and the widths of a Japanese and of another
#: character, in parts of this size.
_LARGEST, _SMALLEST, _WIDE, _NARROW = 12, 7, 1.0, 0.65

#: Width of the number of a marked move, as a part of the graph's.
_NUMBER_WIDTH = 0.03

_OTHER, _LOSS = "#c9c2b4", "#c8102e"


@dataclass(frozen=True)
class Course:
    """What a graph shows; None where a figure is unknown.

    Attributes:
        black_wins: Probability that Black wins in each position, from the start.
        probabilities: Probability of each move played.
        ranks: Place of each move among the legal moves, from 1.
        marked: Numbers of the moves, from 1, to mark in the upper graph.
        searched: Whether the probabilities are shares of a search's visits.
        is_handicap: Whether Black is 下手.
    """

    title: str
    black_wins: Sequence[float | None]
    probabilities: Sequence[float | None]
    ranks: Sequence[int | None]
    marked: Sequence[int] = ()
    searched: bool = False
    is_handicap: bool = False


def save_graph(course: Course, output: str | os.PathLike[str], *, language: str = "en") -> None:
    """Writes the graph of a game: winning probabilities above, moves below.

    A graph without any value is left out. The file is a .png, .svg or .pdf.

    Raises:
        DrawingError: the file cannot be written, or matplotlib or the font is missing.
    """
    drawers = [
        draw
        for draw, values in ((_draw_wins, course.black_wins), (_draw_moves, course.probabilities))
        if any(value is not None for value in values)
    ]
    with japanese_figure(_WIDTH, 1.0 + 2.7 * max(1, len(drawers))) as figure:
        figure.set_layout_engine("constrained")
        title, size = _fitting(course.title)
        figure.suptitle(title, fontsize=size)
        rows = figure.subplots(max(1, len(drawers)), 1, sharex=True, squeeze=False)[:, 0]
        for axes, draw in zip(rows, drawers):
            draw(axes, course, language)
            axes.set(xlim=(0, max(1, len(course.black_wins) - 1)), ylim=(0, 100))
            axes.spines[["top", "right"]].set_visible(False)
        rows[-1].xaxis.get_major_locator().set_params(integer=True)
        rows[-1].set_xlabel(word("move number", language))
        save_figure(figure, output)


def _fitting(title: str) -> tuple[str, float]:
    """Returns a title that is not wider than the graph, and its size in points."""
    widths = [_WIDE if unicodedata.east_asian_width(sign) in "WFA" else _NARROW for sign in title]
    most = 72 * (_WIDTH - 0.5) / sum(widths, _NARROW)
    if most >= _SMALLEST:
        return title, min(most, _LARGEST)
    kept = int(len(title) * most / _SMALLEST) // 2
    return f"{title[:kept]}…{title[-kept:]}", _SMALLEST


def _draw_wins(axes: Any, course: Course, language: str) -> None:
    """Draws Black's winning probability, and marks moves."""
    points = [(ply, 100 * win) for ply, win in enumerate(course.black_wins) if win is not None]
    plies, wins = zip(*points)
    axes.axhline(50, color="#888888", linewidth=0.8)
    axes.fill_between(plies, wins, 50, where=[w >= 50 for w in wins], color="#3a3a3a",
                      alpha=0.25, interpolate=True, linewidth=0)  # fmt: skip
    axes.fill_between(plies, wins, 50, where=[w <= 50 for w in wins], color=BLUE,
                      alpha=0.12, interpolate=True, linewidth=0)  # fmt: skip
    axes.plot(plies, wins, color="#222222", linewidth=1.3)
    known = dict(points)
    room = _NUMBER_WIDTH * max(1, len(course.black_wins) - 1)
    last = {True: -room, False: -room}  # the last number above and below the line
    for ply in course.marked:
        above = ply > 0 and known[ply] > known.get(ply - 1, 50)
        axes.plot(ply, known[ply], "o", color=_LOSS, markersize=4.5)
        distance = 5 if ply - last[above] >= room else 14  # a number beside it is in its way
        last[above] = ply if distance == 5 else -room
        axes.annotate(str(ply), (ply, known[ply]), xytext=(0, distance if above else -distance),
                      textcoords="offset points", ha="center", color=_LOSS, fontsize=8,
                      va="bottom" if above else "top")  # fmt: skip
    axes.set_ylabel(word("win of lower" if course.is_handicap else "win of black", language))


def _draw_moves(axes: Any, course: Course, language: str) -> None:
    """Draws the probability of each move as a bar."""
    for key, color, is_first in (("best", BLUE, True), ("other", _OTHER, False)):
        bars = [
            (ply, 100 * probability)
            for ply, (probability, rank) in enumerate(zip(course.probabilities, course.ranks), 1)
            if probability is not None and (rank == 1) == is_first
        ]
        if bars:
            plies, heights = zip(*bars)
            axes.bar([ply - 0.5 for ply in plies], heights, width=0.85, color=color,
                     label=word(key, language))  # fmt: skip
    axes.set_ylabel(word("share of move" if course.searched else "probability", language))
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, fontsize=8, frameon=False)
