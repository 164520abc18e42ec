"""Corrects the values of a network that is too sure of the winner, or not sure enough.

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

from typing import Any, NamedTuple

import numpy

from pydlshogi.errors import UserError
from pydlshogi.network.network import Network
from pydlshogi.network.value_kind import WinLogit

#: Predictions are kept this far from 0 and 1, because float32 rounds them to these numbers.
_MARGIN = 1e-7

#: Most steps of Newton's method, and the length of a step at which it ends.
_STEPS, _SMALL = 50, 1e-9


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
    factor = _fit(logits, wins)
    if factor is None and (logits * (2 * wins - 1)).sum() > 0:
        raise ValueScaleError(
            "the values predict every result of its games, so there is no best factor. "
            "Name more games."
        )
    if factor is None or factor <= 0:
        raise ValueScaleError(
            "the values do not predict the results of its games. Name more games, or train on."
        )
    before, after = _mean_loss(logits, wins), _mean_loss(factor * logits, wins)
    return ValueScale(factor, len(wins), before, after)


def _fit(logits: numpy.ndarray, wins: numpy.ndarray) -> float | None:
    """Minimizes the loss by Newton's method; None if it has no minimum."""
    factor, loss = 1.0, _mean_loss(logits, wins)
    for _ in range(_STEPS):
        probabilities = (1 + numpy.tanh(factor * logits / 2)) / 2
        curvature = float((logits * logits * probabilities * (1 - probabilities)).sum())
        if curvature == 0:
            return None
        step = float((logits * (wins - probabilities)).sum()) / curvature
        # A whole step may be too far.
        while _mean_loss((factor + step) * logits, wins) > loss and abs(step) > _SMALL:
            step /= 2
        factor += step
        loss = _mean_loss(factor * logits, wins)
        if abs(step) <= _SMALL:
            return factor
    return None


def _mean_loss(logits: numpy.ndarray, wins: numpy.ndarray) -> float:
    return float((numpy.logaddexp(0, logits) - wins * logits).mean())


def apply_value_scale(network: Any, scale: ValueScale) -> None:
    """Changes the last layer of the value head so that it computes the corrected logit."""
    link = network[network.value_output]
    link.W.array *= scale.factor
    link.b.array *= scale.factor
