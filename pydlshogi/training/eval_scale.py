"""The relation between engine evaluations and results: how often each evaluation won.

The probability that the side to move wins is modelled as ``sigmoid(evaluation / scale)``, with the
evaluation in centipawns. The value head uses it as a training target.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any, Callable, NamedTuple

import numpy

from pydlshogi.errors import UserError
from pydlshogi.features import WINS
from pydlshogi.figure import new_figure, save_figure
from pydlshogi.positions import EVALUATION_MAX, NO_EVALUATION, UNKNOWN

# Smallest evaluation of each row of the table, for positive evaluations.
_ROWS = (1, 100, 200, 300, 400, 500, 700, 1000, 1500, 2000, 3000, 5000, 10000)

# Scales outside these limits are not searched. They also mean that the fit is meaningless.
_SCALE_MIN, _SCALE_MAX = 10.0, 100_000.0
# The picture shows this range of evaluations, in steps.
_PLOT_MAX, _PLOT_STEP = 3000, 100


class Counts(NamedTuple):
    """Positions with a known evaluation and result, counted by evaluation: (n,) float64 each.

    They are sorted by the evaluation in centipawns; ``won`` is the sum of their results for the
    side to move (1 won, 0.5 drawn).
    """

    evaluation: numpy.ndarray
    positions: numpy.ndarray
    won: numpy.ndarray


class Row(NamedTuple):
    """One row of the table: positions with evaluations from ``low`` to ``high``.

    Attributes:
        won: Proportion that the side to move won; draws count one half.
        fitted: The same proportion according to the sigmoid.
    """

    low: int
    high: int
    positions: int
    won: float
    fitted: float


def count_evaluations(positions: numpy.ndarray) -> Counts:
    """Counts a ``POSITION`` array, (n,), by evaluation, as far as evaluation and result are known.

    Raises:
        UserError: no position has both.
    """
    known = (positions["evaluation"] != NO_EVALUATION) & (positions["result"] != UNKNOWN)
    if not known.any():
        raise UserError(
            "no position has an evaluation and a result. Give games with the engines' evaluations, "
            "for example CSA records of floodgate with their '** comments."
        )
    index = positions["evaluation"][known].astype(numpy.int64) + EVALUATION_MAX
    count = numpy.bincount(index)
    won = numpy.bincount(index, weights=WINS[positions["result"][known]])
    present = numpy.flatnonzero(count)
    return Counts(
        (present - EVALUATION_MAX).astype(numpy.float64),
        count[present].astype(numpy.float64),
        won[present],
    )


def fit_scale(counts: Counts) -> float:
    """Fits the scale, in centipawns, of ``sigmoid(evaluation / scale)`` to results.

    The squared error is bounded. The cross entropy is not: a few lost games with a mate score
    would decide the scale.

    Raises:
        UserError: no scale fits.
    """
    if not counts.evaluation.any():
        raise UserError(
            "every position has the evaluation 0, as in files that were converted from records "
            "without evaluations. Give games with the engines' evaluations."
        )

    def error(log_scale: float) -> float:
        predicted = win_probability(counts.evaluation, math.exp(log_scale))
        # Up to a constant, the sum of (result - predicted)² over all positions.
        squares = predicted * (counts.positions * predicted - 2 * counts.won)
        return float(squares.sum())

    low, high = math.log(_SCALE_MIN), math.log(_SCALE_MAX)
    grid = numpy.linspace(low, high, 60).tolist()
    best = min(range(len(grid)), key=lambda index: error(grid[index]))
    if best == 0:  # the steepest sigmoid
        winners = numpy.where(counts.evaluation > 0, counts.won, counts.positions - counts.won)
        if (winners == counts.positions)[counts.evaluation != 0].all():
            raise UserError(
                "every evaluation predicted its result, so that no scale fits. Give more games."
            )
        raise UserError(
            f"no scale of at least {_SCALE_MIN:g} fits. Check that the evaluations are in "
            "centipawns."
        )
    if best == len(grid) - 1:
        raise UserError(
            "the evaluations do not predict the results, so that no scale fits. "
            "Check that they are in centipawns and have the right sign."
        )
    return math.exp(minimum(error, grid[best - 1], grid[best + 1]))


def minimum(function: Callable[[float], float], low: float, high: float) -> float:
    """Finds where a function is least between two points, by golden section search."""
    ratio = (math.sqrt(5) - 1) / 2
    for _ in range(40):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if function(left) < function(right):
            high = right
        else:
            low = left
    return (low + high) / 2


def win_probability(evaluation: Any, scale: float) -> Any:
    """Returns ``sigmoid(evaluation / scale)``, without overflow."""
    with numpy.errstate(over="ignore"):  # a tiny scale: infinity becomes 0 or 1
        return 0.5 + 0.5 * numpy.tanh(evaluation / (2 * scale))


def tabulate(counts: Counts, scale: float) -> list[Row]:
    """Groups positions by their evaluation; ranges without positions are left out."""
    fitted = counts.positions * win_probability(counts.evaluation, scale)
    rows = []
    positive = list(zip(_ROWS, (*(low - 1 for low in _ROWS[1:]), EVALUATION_MAX)))
    negative = [(-high, -low) for low, high in reversed(positive)]
    for low, high in [*negative, (0, 0), *positive]:
        inside = (counts.evaluation >= low) & (counts.evaluation <= high)
        total = counts.positions[inside].sum()
        if total:
            shares = [float(part[inside].sum() / total) for part in (counts.won, fitted)]
            rows.append(Row(low, high, int(total), *shares))
    return rows


def as_table(rows: Sequence[Row]) -> tuple[list[str], list[list[Any]]]:
    """Returns the titles and the cells of a table."""
    cells: list[list[Any]] = [
        [str(row.low) if row.low == row.high else f"{row.low} to {row.high}", *row[2:]]
        for row in rows
    ]
    return ["evaluation", "positions", "won", "sigmoid"], cells


def make_axes(figure: Any, label: str) -> tuple[Any, Any]:
    """Divides an empty figure into axes for the share of wins, and below for the positions."""
    above, below = figure.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": (3, 1)})
    above.set_ylabel("won by the side to move")
    below.set_ylabel("positions")
    below.set_xlabel(label)
    for axes in (above, below):
        axes.grid(alpha=0.3)
    return above, below


def _draw(figure: Any, counts: Counts, scale: float) -> None:
    """Draws into an empty figure how often each evaluation won, and the fitted sigmoid."""
    above, below = make_axes(figure, "evaluation of the side to move (centipawns)")
    shown = numpy.abs(counts.evaluation) <= _PLOT_MAX
    if shown.any():
        _draw_games(above, below, Counts(*(column[shown] for column in counts)))
    line = numpy.linspace(-_PLOT_MAX, _PLOT_MAX, 301)
    label = f"sigmoid(evaluation / {scale:.0f})"
    above.plot(line, win_probability(line, scale), label=label)
    above.legend()


def _draw_games(above: Any, below: Any, counts: Counts) -> None:
    """Draws the share of wins and the number of positions, in steps of the evaluation."""
    step = numpy.rint(counts.evaluation / _PLOT_STEP).astype(int)
    step -= step.min()
    total, won, sums = (
        numpy.bincount(step, weights=weights)
        for weights in (counts.positions, counts.won, counts.positions * counts.evaluation)
    )
    some = total > 0
    mean = sums[some] / total[some]
    above.plot(mean, won[some] / total[some], "o", label="games")
    below.bar(mean, total[some], width=0.8 * _PLOT_STEP)


def save_picture(output: str | os.PathLike[str], counts: Counts, scale: float) -> None:
    """Writes the picture; raises ``DrawingError`` if that fails."""
    figure = new_figure(7, 6)
    _draw(figure, counts, scale)
    save_figure(figure, output)
