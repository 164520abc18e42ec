"""What the value of a network means, and its loss.

In both kinds, the target of a drawn game is the mean of the targets of a win and a loss.
"""

from __future__ import annotations

from typing import Any

from pydlshogi.compat import chainer

F = chainer.functions


class ValueKind:
    """Base class of the kinds of values."""

    @staticmethod
    def losses(values: Any, wins: Any) -> Any:
        """Computes the losses (batch,) of values (batch, 1) and targets (batch,) from 0 to 1."""
        raise NotImplementedError

    @staticmethod
    def win_probabilities(values: Any) -> Any:
        """Converts values (batch, 1) to probabilities (batch,) that the side to move wins."""
        raise NotImplementedError


class WinLogit(ValueKind):
    """The logit of the probability that the side to move wins; the loss is cross entropy.

    Source: 「将棋AIで学ぶディープラーニング」.
    """

    @staticmethod
    def losses(values: Any, wins: Any) -> Any:
        """Computes −w·log σ(v) − (1−w)·log(1−σ(v)) for values v and targets w."""
        values = F.flatten(values)
        # F.sigmoid_cross_entropy accepts no target between 0 and 1.
        return F.softplus(values) - values * wins

    @staticmethod
    def win_probabilities(values: Any) -> Any:
        """Computes σ(v)."""
        return F.sigmoid(F.flatten(values)).array


class ExpectedResult(ValueKind):
    """The expected result from −1 (loss) to 1 (win); the loss is the squared error.

    Source: D. Silver et al., Mastering the game of Go without human knowledge, Nature 550 (2017).
    """

    @staticmethod
    def losses(values: Any, wins: Any) -> Any:
        """Computes (v − (2w − 1))² for values v and targets w."""
        return F.squared_error(F.flatten(values), 2 * wins - 1)

    @staticmethod
    def win_probabilities(values: Any) -> Any:
        """Computes (v + 1) / 2."""
        return (F.flatten(values).array + 1) / 2
