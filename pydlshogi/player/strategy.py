"""Choosing among moves by their logits, as pure functions.

Source: 「将棋AIで学ぶディープラーニング」, chapter 7.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy

#: Centipawns of a chance of e to 1: the constant by which programs since Ponanza turn
#: evaluations into chances of winning and back.
PONANZA_CONSTANT = 600

#: Largest score; a sure thing would have an infinite one.
_SCORE_MAX = 9999


def softmax(logits: Sequence[float] | numpy.ndarray, temperature: float = 1.0) -> numpy.ndarray:
    """Turns logits into probabilities.

    Args:
        logits: (n,) finite numbers; not changed.
        temperature: Above 0; near 0 the largest takes all, large ones make all equal.

    Returns:
        (n,) float64 that add up to 1.

    Raises:
        ValueError: the temperature is not above 0.
    """
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0, not {temperature}")
    values = numpy.asarray(logits, dtype=numpy.float64)
    # The largest becomes 0 before the division: no exponential overflows.
    with numpy.errstate(over="ignore"):
        powers = numpy.exp((values - values.max()) / temperature)
    return powers / powers.sum()


def greedy(logits: Sequence[float] | numpy.ndarray) -> int:
    """Gives the index of the largest logit, the first of several.

    Args:
        logits: (n,) numbers; not changed.
    """
    return int(numpy.argmax(logits))


def boltzmann(
    logits: Sequence[float] | numpy.ndarray, temperature: float, rng: Any = numpy.random
) -> int:
    """Draws an index with the probabilities of a softmax.

    Args:
        logits: (n,) finite numbers; not changed.
        temperature: Above 0; see :func:`softmax`.
        rng: Where chance comes from: anything with numpy's ``choice``, numpy's own
            state where none is given.

    Raises:
        ValueError: the temperature is not above 0.
    """
    probabilities = softmax(logits, temperature)
    return int(rng.choice(len(probabilities), p=probabilities))


def score(probability: float) -> int:
    """Writes a probability on the scale of an evaluation: 600·ln(p/(1−p)).

    Of the probability that the side to move wins it is an evaluation; of that of a move
    among the legal ones a measure of how sure the network is of it.

    Args:
        probability: 0 to 1.

    Returns:
        Centipawns, −9999 to 9999.
    """
    if probability <= 0:
        return -_SCORE_MAX
    if probability >= 1:
        return _SCORE_MAX
    centipawns = round(PONANZA_CONSTANT * math.log(probability / (1 - probability)))
    return max(-_SCORE_MAX, min(_SCORE_MAX, centipawns))
