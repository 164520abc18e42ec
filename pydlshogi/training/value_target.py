"""The target of the value head: the result of the game, mixed with the engines' evaluations."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy

from pydlshogi.features import WINS
from pydlshogi.kifu.eval_scale import win_probability
from pydlshogi.kifu.mapped_positions import AnyPositions
from pydlshogi.positions import NO_EVALUATION
from pydlshogi.training.lambda_return import lambda_returns
from pydlshogi.training.recipe import EVAL_SCALE

# In the precision of the training.
_WINS = WINS.astype(numpy.float32)


@dataclasses.dataclass(frozen=True)
class ValueTarget:
    """Computes value_lambda · result + (1 − value_lambda) · sigmoid(evaluation / eval_scale).

    A position without an evaluation has the result as its target. A position whose result is
    unknown has the evaluation alone, unless ``value_lambda`` is 1.

    Attributes:
        value_lambda: Weight of the result, 0..1. With 1 the evaluations are not used.
        eval_scale: Centipawns at which the winning probability is sigmoid(1) = 0.73.
        td_lambda: λ of the λ-return (:mod:`pydlshogi.training.lambda_return`), which takes the
            place of the evaluation in :meth:`of`; 0 for the evaluation alone.
    """

    value_lambda: float = 1.0
    eval_scale: float = EVAL_SCALE
    td_lambda: float = 0.0

    def of(
        self, positions: AnyPositions
    ) -> Callable[[numpy.ndarray, numpy.ndarray], numpy.ndarray]:
        """Prepares the targets of the positions of games.

        The λ-returns of all positions are computed now, and take 4 bytes each.

        Args:
            positions: n positions. Those of a game are in the order of its moves.

        Returns:
            Function of the numbers of some positions, (b,) integers 0..n-1, and of these
            positions, ``POSITION`` array (b,), that computes their targets as :meth:`__call__`.
        """
        if not self.td_lambda or self.value_lambda == 1:
            return lambda rows, records: self(records)
        returns = lambda_returns(positions, self.td_lambda, self.eval_scale)
        return lambda rows, records: self._mix(_WINS[records["result"]], returns[rows])

    def __call__(self, records: numpy.ndarray) -> numpy.ndarray:
        """Computes the targets of single positions; ``td_lambda`` has no effect.

        Args:
            records: ``POSITION`` array, (n,).

        Returns:
            (n,) float32, 0..1: probability that the side to move wins; nan if unknown.
        """
        wins = _WINS[records["result"]]
        if self.value_lambda == 1:
            return wins
        evaluations = records["evaluation"]
        expected = win_probability(evaluations.astype(numpy.float32), self.eval_scale)
        return numpy.where(evaluations == NO_EVALUATION, wins, self._mix(wins, expected))

    def _mix(self, wins: numpy.ndarray, expected: numpy.ndarray) -> numpy.ndarray:
        """Mixes results, nan if unknown, and winning probabilities."""
        result = numpy.where(numpy.isnan(wins), expected, wins)
        mixed = self.value_lambda * result + (1 - self.value_lambda) * expected
        return mixed.astype(numpy.float32)
