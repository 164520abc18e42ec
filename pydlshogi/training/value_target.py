"""The target of the value head: the result of the game, mixed with the engine's evaluation."""

from __future__ import annotations

import dataclasses

import numpy

from pydlshogi.features import WINS
from pydlshogi.positions import NO_EVALUATION
from pydlshogi.training.defaults import EVAL_SCALE

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
    """

    value_lambda: float = 1.0
    eval_scale: float = EVAL_SCALE

    def __call__(self, records: numpy.ndarray) -> numpy.ndarray:
        """Computes the targets of positions.

        Args:
            records: ``POSITION`` array, (n,).

        Returns:
            (n,) float32, 0..1: probability that the side to move wins; nan if unknown.
        """
        wins = _WINS[records["result"]]
        if self.value_lambda == 1:
            return wins
        evaluations = records["evaluation"]
        # tanh does not overflow, and sigmoid(x) = (1 + tanh(x / 2)) / 2.
        expected = (1 + numpy.tanh(evaluations.astype(numpy.float32) / (2 * self.eval_scale))) / 2
        result = numpy.where(numpy.isnan(wins), expected, wins)
        mixed = self.value_lambda * result + (1 - self.value_lambda) * expected
        return numpy.where(evaluations == NO_EVALUATION, wins, mixed).astype(numpy.float32)
