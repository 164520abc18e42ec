"""The course of a game: winning probability and the probabilities of the moves played."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydlshogi.drawing.picture import japanese_figure
from pydlshogi.drawing.shapes import BLUE
from pydlshogi.drawing.words import word
from pydlshogi.figure import save_figure

_OTHER, _LOSS = "#c9c2b4", "#c8102e"


@dataclass(frozen=True)
class Course:
    """What a graph shows.

    Attributes:
        title: Text above it.
        black_wins: Probability that Black wins in each position, from the start; None where
            it is unknown.
        probabilities: Probability of each move played; None where it is unknown.
        ranks: Place of each move among the legal moves, from 1.
        marked: Numbers of the moves, from 1, to mark in the upper graph.
    """

    title: str
    black_wins: Sequence[float | None]
    probabilities: Sequence[float | None]
    ranks: Sequence[int | None]
    marked: Sequence[int] = ()


def save_graph(course: Course, output: str | os.PathLike[str], *, language: str = "en") -> None:
    """Writes the graph of a game: winning probabilities above, moves below.

    A graph without any value is left out.

    Args:
        course: The game.
        output: A .png, .svg or .pdf file.
        language: Language of the words, "en" or "ja".

    Raises:
        DrawingError: the file cannot be written, or matplotlib or the font is missing.
    """
    drawers = [
        draw
        for draw, values in ((_draw_wins, course.black_wins), (_draw_moves, course.probabilities))
        if any(value is not None for value in values)
    ]
    with japanese_figure(9.5, 1.0 + 2.7 * max(1, len(drawers))) as figure:
        figure.set_layout_engine("constrained")
        figure.suptitle(course.title, fontsize=12)
        rows = figure.subplots(max(1, len(drawers)), 1, sharex=True, squeeze=False)[:, 0]
        for axes, draw in zip(rows, drawers):
            draw(axes, course, language)
            axes.set(xlim=(0, max(1, len(course.black_wins) - 1)), ylim=(0, 100))
            axes.spines[["top", "right"]].set_visible(False)
        rows[-1].xaxis.get_major_locator().set_params(integer=True)
        rows[-1].set_xlabel(word("move number", language))
        save_figure(figure, output)


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
    for ply in course.marked:
        above = ply > 0 and known[ply] > known.get(ply - 1, 50)
        axes.plot(ply, known[ply], "o", color=_LOSS, markersize=4.5)
        axes.annotate(str(ply), (ply, known[ply]), xytext=(0, 5 if above else -5),
                      textcoords="offset points", ha="center", color=_LOSS, fontsize=8,
                      va="bottom" if above else "top")  # fmt: skip
    axes.set_ylabel(word("win of black", language))


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
    axes.set_ylabel(word("probability", language))
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, fontsize=8, frameon=False)
