"""Pure functions that choose among moves by their logits.

Source: 「将棋AIで学ぶディープラーニング」, chapter 7.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy

#: Centipawns for odds of e to 1. Programs since Ponanza convert evaluations to
#: probabilities of winning with this constant.
PONANZA_CONSTANT = 600

#: Largest score. A certain win would have an infinite one.
_SCORE_MAX = 9999


def softmax(logits: Sequence[float] | numpy.ndarray, temperature: float = 1.0) -> numpy.ndarray:
    """Turns (n,) finite logits into (n,) float64 probabilities.

    Near a temperature of 0, the largest logit takes all; a high one makes all nearly equal.
    ValueError: it is not above 0.
    """
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0, not {temperature}")
    values = numpy.asarray(logits, dtype=numpy.float64)
    # The largest value becomes 0, so that no exponential overflows.
    with numpy.errstate(over="ignore"):
        powers = numpy.exp((values - values.max()) / temperature)
    return powers / powers.sum()


def greedy(logits: Sequence[float] | numpy.ndarray) -> int:
    """Returns the index of the largest logit, the first of several."""
    return int(numpy.argmax(logits))


def boltzmann(
    logits: Sequence[float] | numpy.ndarray, temperature: float, rng: Any = numpy.random
) -> int:
    """Draws an index with the probabilities of :func:`softmax`; ``rng`` has numpy's ``choice``."""
    probabilities = softmax(logits, temperature)
    return int(rng.choice(len(probabilities), p=probabilities))


def logit(probability: float) -> float:
    """Returns ln(p/(1−p)) of a probability, at most as large as a score can be."""
    largest = _SCORE_MAX / PONANZA_CONSTANT
    if probability <= 0:
        return -largest
    if probability >= 1:
        return largest
    return max(-largest, min(largest, math.log(probability / (1 - probability))))


def score(probability: float) -> int:
    """Converts a probability of winning into centipawns, −9999 to 9999: 600·ln(p/(1−p))."""
    return round(PONANZA_CONSTANT * logit(probability))
