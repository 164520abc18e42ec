"""Corrects the values of a network that is too sure of the winner, or not sure enough.

A network that sees the same games in several epochs remembers their results. Its values are then
too near to a certain win or loss. On games that it has not seen, two numbers correct this:

    corrected logit = factor · logit + offset

They are fitted by logistic regression. The order of the values does not change.

Source: J. Platt, Probabilistic outputs for support vector machines, in Advances in Large Margin
Classifiers (1999).
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
    """The correction of the values.

    Attributes:
        factor: Factor of the logit, above 0.
        offset: Number that is added afterwards.
        positions: Number of positions that they were fitted to.
        before: Mean value loss of these positions without the correction.
        after: The same with it.
    """

    factor: float
    offset: float
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
    """Fits the correction to results.

    Args:
        predicted: (n,) predicted probabilities that the side to move wins.
        wins: (n,) results: 1 won, 0 lost, 0.5 drawn, nan unknown.

    Raises:
        ValueScaleError: there are too few results, or the predictions do not fit them.
    """
    known = ~numpy.isnan(wins)
    wins = wins[known]
    if len(set(wins)) < 2:
        raise ValueScaleError("its games need wins and losses. Name a list of more games.")
    inside = numpy.clip(predicted[known].astype(float), _MARGIN, 1 - _MARGIN)
    logits = numpy.log(inside / (1 - inside))
    fitted = _fit(logits, wins)
    if fitted is None or fitted[0] <= 0:
        raise ValueScaleError(
            "the values do not predict the results of its games. Name more games, or train on."
        )
    factor, offset = fitted
    after = _mean_loss(factor * logits + offset, wins)
    return ValueScale(factor, offset, len(wins), _mean_loss(logits, wins), after)


def _fit(logits: numpy.ndarray, wins: numpy.ndarray) -> tuple[float, float] | None:
    """Minimizes the loss by Newton's method; None if it has no minimum."""
    terms = numpy.stack([logits, numpy.ones_like(logits)])
    fitted = numpy.array([1.0, 0.0])
    loss = _mean_loss(fitted @ terms, wins)
    for _ in range(_STEPS):
        probabilities = (1 + numpy.tanh(fitted @ terms / 2)) / 2
        curvature = (terms * (probabilities * (1 - probabilities))) @ terms.T
        try:
            step = numpy.linalg.solve(curvature, terms @ (wins - probabilities))
        except numpy.linalg.LinAlgError:
            return None
        # A whole step may be too far.
        while _mean_loss((fitted + step) @ terms, wins) > loss and abs(step).max() > _SMALL:
            step /= 2
        fitted += step
        loss = _mean_loss(fitted @ terms, wins)
        if abs(step).max() <= _SMALL:
            return float(fitted[0]), float(fitted[1])
    return None


def _mean_loss(logits: numpy.ndarray, wins: numpy.ndarray) -> float:
    return float((numpy.logaddexp(0, logits) - wins * logits).mean())


def apply_value_scale(network: Any, scale: ValueScale) -> None:
    """Changes the last layer of the value head so that it computes the corrected logit."""
    link = network[network.value_output]
    link.W.array *= scale.factor
    link.b.array *= scale.factor
    link.b.array += scale.offset
