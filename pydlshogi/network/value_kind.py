"""What the number of a value head means, and how it is learned.

In both kinds the aim of a drawn game lies halfway between those of a won and a lost one.
"""

from __future__ import annotations

from typing import Any

from pydlshogi.compat import chainer

F = chainer.functions


class ValueKind:
    """What two kinds of values have in common."""

    @staticmethod
    def losses(values: Any, wins: Any) -> Any:
        """Computes what is to become small.

        Args:
            values: (batch,) Variable: what the head gave.
            wins: (batch,) float32: the part of the game won by the side to move, 0 … 1.

        Returns:
            (batch,) Variable.
        """
        raise NotImplementedError

    @staticmethod
    def win_probabilities(values: Any) -> Any:
        """Turns what the head gave into probabilities that the side to move wins.

        Args:
            values: (batch,) Variable or array.

        Returns:
            (batch,) array of 0 … 1.
        """
        raise NotImplementedError


class WinLogit(ValueKind):
    """The logit of the probability that the side to move wins; learned by cross entropy.

    Source: 「将棋AIで学ぶディープラーニング」.
    """

    @staticmethod
    def losses(values: Any, wins: Any) -> Any:
        """See :class:`ValueKind`."""
        # −w·log σ(v) − (1−w)·log(1−σ(v)); Chainer's own takes no w between 0 and 1.
        return F.softplus(values) - values * wins

    @staticmethod
    def win_probabilities(values: Any) -> Any:
        """See :class:`ValueKind`."""
        return F.sigmoid(values).array


class ExpectedResult(ValueKind):
    """The expected result, −1 … 1; learned by squared error.

    Source: D. Silver et al., Mastering the game of Go without human knowledge, Nature 550 (2017).
    """

    @staticmethod
    def losses(values: Any, wins: Any) -> Any:
        """See :class:`ValueKind`."""
        return F.squared_error(values, 2 * wins - 1)

    @staticmethod
    def win_probabilities(values: Any) -> Any:
        """See :class:`ValueKind`."""
        return (chainer.as_array(values) + 1) / 2
