"""Calibration of a value head: how often the side to move won at each predicted probability.

The positions are grouped by the predicted probability. In a calibrated group, the part of the
games that the side to move won equals the mean prediction.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy

from pydlshogi.features import WINS
from pydlshogi.figure import new_figure, save_figure
from pydlshogi.positions import NO_EVALUATION
from pydlshogi.training.eval_scale import win_probability

#: Number of groups, all of the same width.
BINS = 20


class Bin(NamedTuple):
    """A group of positions with predictions from ``low`` to ``high``.

    Attributes:
        predicted: Mean of the predicted probabilities.
        won: Part of the games that the side to move won; draws count one half.
        error: Absolute difference of ``predicted`` and ``won``.
        evaluated: Mean probability of the engines' evaluations; nan if no position has one.
    """

    low: float
    high: float
    positions: int
    predicted: float
    won: float
    error: float
    evaluated: float


def calibrate(wins: numpy.ndarray, positions: numpy.ndarray, scale: float) -> list[Bin]:
    """Groups positions with a known result by their predicted probability.

    Args:
        wins: (n,) predicted probabilities that the side to move wins.
        positions: (n,) array of ``POSITION``.
        scale: Centipawns of the evaluation at which the probability is sigmoid(1).

    Returns:
        The groups that have positions, then all together, whose error is the mean of the groups'.
        Empty if no result is known.
    """
    result = WINS[positions["result"]]
    known = ~numpy.isnan(result)
    if not known.any():
        return []
    columns = _Columns(wins[known], result[known], _evaluated(positions[known], scale))
    group = numpy.clip((BINS * columns.predicted).astype(int), 0, BINS - 1)
    bins = [
        _bin(number / BINS, (number + 1) / BINS, columns, group == number)
        for number in numpy.unique(group).tolist()
    ]
    error = sum(row.error * row.positions for row in bins) / len(group)
    return [*bins, _bin(0.0, 1.0, columns, group >= 0)._replace(error=error)]


class _Columns(NamedTuple):
    """What is known of each position: three (n,) arrays of probabilities."""

    predicted: numpy.ndarray
    won: numpy.ndarray
    evaluated: numpy.ndarray


def _evaluated(positions: numpy.ndarray, scale: float) -> numpy.ndarray:
    """Returns the probabilities that the evaluations mean, nan without an evaluation."""
    evaluations = positions["evaluation"]
    probabilities = win_probability(evaluations.astype(numpy.float64), scale)
    return numpy.where(evaluations == NO_EVALUATION, numpy.nan, probabilities)


def _bin(low: float, high: float, columns: _Columns, inside: numpy.ndarray) -> Bin:
    predicted, won = (float(column[inside].mean()) for column in columns[:2])
    evaluated = columns.evaluated[inside]
    evaluated = evaluated[~numpy.isnan(evaluated)]
    return Bin(
        low,
        high,
        int(inside.sum()),
        predicted,
        won,
        abs(predicted - won),
        float(evaluated.mean()) if len(evaluated) else float("nan"),
    )


def _has_evaluations(bins: Sequence[Bin]) -> bool:
    return not numpy.isnan(bins[-1].evaluated)


def as_table(bins: Sequence[Bin]) -> tuple[list[str], list[list[Any]]]:
    """Returns the titles and the cells of a table; evaluations that are missing have no column."""
    titles = ["winning probability", "positions", "predicted", "won", "error", "evaluation"]
    count = len(titles) if _has_evaluations(bins) else len(titles) - 1
    ranges = [*(f"{row.low:.2f}-{row.high:.2f}" for row in bins[:-1]), "all"]
    return titles[:count], [[name, *row[2:]][:count] for name, row in zip(ranges, bins)]


def draw(figure: Any, bins: Sequence[Bin]) -> None:
    """Draws into an empty figure how often each prediction won, and the numbers of positions."""
    groups, whole = bins[:-1], bins[-1]
    predicted = [row.predicted for row in groups]
    above, below = figure.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": (3, 1)})
    above.plot([0, 1], [0, 1], ":", color="gray", label="calibrated")
    above.plot(predicted, [row.won for row in groups], "o-", label="won")
    if _has_evaluations(bins):
        label = "engines' evaluations"
        above.plot(predicted, [row.evaluated for row in groups], "x--", label=label)
    above.set_ylabel("won by the side to move")
    above.set_title(f"{whole.positions:,} positions, calibration error {whole.error:.4f}")
    above.legend()
    centers = [(row.low + row.high) / 2 for row in groups]
    below.bar(centers, [row.positions for row in groups], width=0.9 / BINS)
    below.set_ylabel("positions")
    below.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    below.set_xlabel("predicted probability that the side to move wins")
    below.set_xlim(0, 1)
    for axes in (above, below):
        axes.grid(alpha=0.3)


def save(bins: Sequence[Bin], output: str | os.PathLike[str]) -> None:
    """Writes the picture of groups, not empty; raises ``DrawingError`` if that fails."""
    figure = new_figure(7, 7)
    draw(figure, bins)
    save_figure(figure, output)
