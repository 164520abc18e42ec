"""Elo differences from match results, with honest intervals.

The score is the mean of 1 for a win, 0.5 for a draw and 0 for a loss. The difference
is that of the logistic curve (A. E. Elo, The Rating of Chessplayers, 1978)::

    score = 1 / (1 + 10 ** (-difference / 400))

The two games of a pair start from the same opening and are not independent: what
varies freely is the pair. The variance of the score is therefore that of the pairs
(the "pentanomial" one: a pair brings 0, 0.5, 1, 1.5 or 2 points). A short or
one-sided match would seem too certain (a variance of 0 when every game is lost), so one
pair won and one pair lost are added first. In single games that is two wins and two
losses, the "plus four" interval of A. Agresti and B. A. Coull (The American
Statistician 52, 1998), whose coverage stays near 95 % for any number of games and any
score.

An end of the interval that falls outside 0..1 stands for no bound at all: of a match
in which every game was lost, only a highest difference is known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

#: Standard deviations on either side of the mean that hold 95 % of a normal distribution.
_Z = 1.959964

#: Points of the two pairs that are added to those played.
_PAIR_WON = (1.0, 1.0)
_PAIR_LOST = (0.0, 0.0)


def elo_difference(score: float) -> float:
    """Gives the rating difference at which a score is to be expected.

    Args:
        score: Share of the points, 0..1.

    Returns:
        The difference; -inf for a score of 0, inf for 1.
    """
    if score <= 0 or score >= 1:
        return math.copysign(math.inf, score - 0.5)
    return 400 * math.log10(score / (1 - score))


def score_interval(pairs: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Gives the 95 % interval of the score that an endless match would have.

    Args:
        pairs: For each opening the points (0, 0.5 or 1) of its games: two, or one
            while the pair is not finished.

    Returns:
        The lowest and the highest score; 0 where there is no lower bound, 1 where
        there is no upper one.
    """
    pairs = [*pairs, _PAIR_WON, _PAIR_LOST]
    games = sum(map(len, pairs))
    mean = sum(map(sum, pairs)) / games
    # Variance of a ratio of sums: of the points, for the games, over the pairs.
    variance = sum((sum(points) - mean * len(points)) ** 2 for points in pairs) / games**2
    margin = _Z * math.sqrt(variance)
    return max(0.0, mean - margin), min(1.0, mean + margin)
