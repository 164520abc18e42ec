"""Calibration of a value head: how often the side to move won at each prediction; its correction.

The positions are grouped by the predicted probability. In a calibrated group, the part of the
games that the side to move won equals the mean prediction.

A network that sees the same games in several epochs remembers their results. Its values are then
too near to a certain win or loss. On games that it has not seen, one number corrects this:

    corrected logit = factor · logit

It is fitted by logistic regression. A value of one half stays, and the order of the values does
not change. A constant beside the factor would favour one side: in a game, Black and White are to
move in turns. The value would then jump from move to move, even in a quiet opening.

Source: C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger, On calibration of modern neural networks
("temperature scaling"), arXiv:1706.04599 (2017).
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy

from pydlshogi.errors import UserError
from pydlshogi.features import WINS
from pydlshogi.figure import new_figure, save_figure
from pydlshogi.network.network import Network
from pydlshogi.network.value_kind import WinLogit
from pydlshogi.positions import NO_EVALUATION
from pydlshogi.training.eval_scale import make_axes, minimum, win_probability

#: Number of groups, all of the same width.
BINS = 20

#: Predictions are kept this far from 0 and 1, because float32 rounds them to these numbers.
_MARGIN = 1e-7

#: Logarithm of the largest factor that is tried; the smallest one is its inverse.
_LOG_MOST = math.log(1000)


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
    evaluations = positions["evaluation"]
    evaluated = win_probability(evaluations.astype(numpy.float64), scale)
    evaluated[evaluations == NO_EVALUATION] = numpy.nan
    columns = wins[known], result[known], evaluated[known]
    group = numpy.clip((BINS * columns[0]).astype(int), 0, BINS - 1)
    bins = [
        _bin(number / BINS, (number + 1) / BINS, columns, group == number)
        for number in numpy.unique(group).tolist()
    ]
    error = sum(row.error * row.positions for row in bins) / len(group)
    return [*bins, _bin(0.0, 1.0, columns, group >= 0)._replace(error=error)]


def _bin(low: float, high: float, columns: tuple[numpy.ndarray, ...], inside: Any) -> Bin:
    """Makes the group of some of the positions; the columns are predicted, won and evaluated."""
    predicted, won, evaluated = (column[inside] for column in columns)
    evaluated = evaluated[~numpy.isnan(evaluated)]
    return Bin(
        low,
        high,
        len(predicted),
        float(predicted.mean()),
        float(won.mean()),
        abs(float(predicted.mean()) - float(won.mean())),
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
    above, below = make_axes(figure, "predicted probability that the side to move wins")
    above.plot([0, 1], [0, 1], ":", color="gray", label="calibrated")
    above.plot(predicted, [row.won for row in groups], "o-", label="won")
    if _has_evaluations(bins):
        label = "engines' evaluations"
        above.plot(predicted, [row.evaluated for row in groups], "x--", label=label)
    above.set_title(f"{whole.positions:,} positions, calibration error {whole.error:.4f}")
    above.legend()
    centers = [(row.low + row.high) / 2 for row in groups]
    below.bar(centers, [row.positions for row in groups], width=0.9 / BINS)
    below.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    below.set_xlim(0, 1)


def save(bins: Sequence[Bin], output: str | os.PathLike[str]) -> None:
    """Writes the picture of groups, not empty; raises ``DrawingError`` if that fails."""
    figure = new_figure(7, 7)
    draw(figure, bins)
    save_figure(figure, output)


class ValueScaleError(UserError):
    """The values cannot be corrected."""


class ValueScale(NamedTuple):
    """The factor of the logit, and the mean value loss of the positions before and after."""

    factor: float
    positions: int
    before: float
    after: float


def check_network(network: Network) -> None:
    """Checks that the values of a network can be corrected.

    Raises:
        ValueScaleError: it has no value head, or one without a logit.
    """
    if network.value_kind is None:
        raise ValueScaleError("it has no value head. Name a model with a value head.")
    link = getattr(network, network.value_output, None) if network.value_output else None
    is_logit = issubclass(network.value_kind, WinLogit)
    if not (is_logit and all(getattr(link, name, None) is not None for name in "Wb")):
        raise ValueScaleError(
            f"the class {type(network).__name__} does not say which link computes the logit of "
            "the value (value_kind = WinLogit, value_output = the name of a link with W and b). "
            "Only such values can be corrected."
        )


def fit_value_scale(predicted: numpy.ndarray, wins: numpy.ndarray) -> ValueScale:
    """Fits the correction of (n,) predicted probabilities to the results of the side to move.

    Raises:
        ValueScaleError: there are too few results, or the predictions do not fit them.
    """
    known = ~numpy.isnan(wins)
    wins = wins[known]
    if len(set(wins)) < 2:
        raise ValueScaleError("its games need wins and losses. Name a list of more games.")
    inside = numpy.clip(predicted[known].astype(float), _MARGIN, 1 - _MARGIN)
    logits = numpy.log(inside / (1 - inside))
    if (logits * (wins - 0.5)).sum() <= 0:  # the slope of the loss at the factor 0
        raise ValueScaleError(
            "the values do not predict the results of its games. Name more games, or train on."
        )
    if (logits * (2 * wins - 1) == numpy.abs(logits)).all():
        raise ValueScaleError(
            "the values predict every result of its games, so there is no best factor. "
            "Name more games."
        )

    def loss(log_factor: float) -> float:
        corrected = math.exp(log_factor) * logits
        return float((numpy.logaddexp(0, corrected) - wins * corrected).mean())

    factor = math.exp(minimum(loss, -_LOG_MOST, _LOG_MOST))
    return ValueScale(factor, len(wins), loss(0), loss(math.log(factor)))


def apply_value_scale(network: Any, scale: ValueScale) -> None:
    """Changes the last layer of the value head so that it computes the corrected logit."""
    link = network[network.value_output]
    link.W.array *= scale.factor
    link.b.array *= scale.factor
