"""Elo differences and their 95 % intervals from match results.

The score is the mean of 1 for a win, 0.5 for a draw and 0 for a loss. The Elo difference
follows from the logistic curve (A. E. Elo, The Rating of Chessplayers, 1978)::

    score = 1 / (1 + 10 ** (-difference / 400))

The two games of a pair start from the same opening and are not independent. So the variance of
the score is computed over pairs, the "pentanomial" variance. In a short or one-sided match it is
too small, and 0 if every game is lost. So one won pair and one lost pair are added, in the manner
of the "plus four" interval of A. Agresti and B. A. Coull (The American Statistician 52, 1998).

An end of the interval outside 0..1 means that there is no bound. If every game was lost, only the
highest possible difference is known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

#: 95 % of a normal distribution lie within so many standard deviations of the mean.
_Z = 1.959964

#: Points of the two pairs that are added.
_PAIR_WON = (1.0, 1.0)
_PAIR_LOST = (0.0, 0.0)


def elo_difference(score: float) -> float:
    """Returns the Elo difference that a score (0..1) corresponds to; infinite for 0 and 1."""
    if score <= 0 or score >= 1:
        return math.copysign(math.inf, score - 0.5)
    return 400 * math.log10(score / (1 - score))


def score_interval(pairs: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Computes the 95 % interval of the expected score: 0 to 1 without a bound.

    Args:
        pairs: Points (0, 0.5 or 1) of the games of each pair: two, or one if the pair
            is not finished.
    """
    pairs = [*pairs, _PAIR_WON, _PAIR_LOST]
    games = sum(map(len, pairs))
    mean = sum(map(sum, pairs)) / games
    # Variance of a ratio of two sums over the pairs: points divided by games.
    variance = sum((sum(points) - mean * len(points)) ** 2 for points in pairs) / games**2
    margin = _Z * math.sqrt(variance)
    return max(0.0, mean - margin), min(1.0, mean + margin)
