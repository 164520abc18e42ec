"""The targets of the two heads.

**Policy:** the move played, or the visits of a search. A move that a search visited n times of N
has the probability n / N. The loss is the cross entropy -Σ p log q for the network's probabilities
q. Source: D. Silver et al., arXiv:1712.01815 (2017).

**Value:** the result of the game, mixed with the evaluations of the engines that played it, or
with their λ-return: the evaluations of the rest of a game, and its result, as one expectation.

    G = (1 − λ) · (e(0) + λ·e(1) + … + λⁿ⁻¹·e(n−1)) + λⁿ · z

The game has n more positions, this one included; e(k) is the winning probability that the
evaluation after k moves means, and z is the result, all for the side to move in this position.
Source: R. Sutton and A. Barto, Reinforcement Learning, 2nd edition, chapter 12.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy

from pydlshogi.common import SQUARE_NUM
from pydlshogi.features import LABEL_NUM, WINS
from pydlshogi.kifu.mapped_positions import AnyPositions, MappedPositions, chunks
from pydlshogi.positions import NO_EVALUATION, Visits
from pydlshogi.training.eval_scale import win_probability
from pydlshogi.training.recipe import EVAL_SCALE, VISITS, Recipe

# In the precision of the training.
_WINS = WINS.astype(numpy.float32)

# Positions whose λ-returns are computed at a time: 100 MB.
_ROWS = 1 << 20


def shares_of_visits(played: numpy.ndarray, visits: Visits) -> numpy.ndarray:
    """Computes the probabilities of all moves from their visits: (n, ``LABEL_NUM``) float32.

    A position without visits has its move played, one of the (n,) labels, alone.
    """
    targets = numpy.zeros((len(played), LABEL_NUM), numpy.float32)
    rows = numpy.repeat(numpy.arange(len(played)), numpy.diff(visits.starts))
    # A label may occur twice; += would count it once.
    numpy.add.at(targets, (rows, visits.labels), visits.counts)
    totals = targets.sum(axis=1, keepdims=True)
    searched = totals[:, 0] > 0
    numpy.divide(targets, totals, out=targets, where=searched[:, None])
    targets[~searched, played[~searched]] = 1
    return targets


def targets_of(kind: str, positions: Any, rows: numpy.ndarray, records: numpy.ndarray) -> Any:
    """Makes the targets of ``rows``: (n,) int32 labels, or as :func:`shares_of_visits`."""
    if kind == VISITS:
        return shares_of_visits(records["label"], positions.visits_of(rows))
    return records["label"].astype(numpy.int32)


@dataclasses.dataclass(frozen=True)
class ValueTarget:
    """Computes value_lambda · result + (1 − value_lambda) · sigmoid(evaluation / eval_scale).

    A position without an evaluation has the result as its target. A position whose result is
    unknown has the evaluation alone, unless ``value_lambda`` is 1. With ``td_lambda``, the λ-return
    takes the place of the evaluation in :meth:`of`.
    """

    value_lambda: float = 1.0
    eval_scale: float = EVAL_SCALE
    td_lambda: float = 0.0

    @classmethod
    def of_recipe(cls, recipe: Recipe) -> ValueTarget:
        """Returns the target that a recipe asks for."""
        return cls(recipe.value_lambda, recipe.eval_scale, recipe.td_lambda)

    def of(
        self, positions: AnyPositions
    ) -> Callable[[numpy.ndarray, numpy.ndarray], numpy.ndarray]:
        """Prepares the targets of the positions of games, in the order of the moves.

        The function returned takes numbers of positions, and these positions. The λ-returns are
        computed now, and take 4 bytes each.
        """
        if not self.td_lambda or self.value_lambda == 1:
            return lambda rows, records: self(records)
        returns = lambda_returns(positions, self.td_lambda, self.eval_scale)
        return lambda rows, records: self._mix(_WINS[records["result"]], returns[rows])

    def __call__(self, records: numpy.ndarray) -> numpy.ndarray:
        """Computes the targets of single positions, (n,) float32; ``td_lambda`` has no effect.

        They are probabilities that the side to move wins; nan if unknown.
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


def lambda_returns(
    positions: AnyPositions, td_lambda: float, eval_scale: float, rows: int = _ROWS
) -> numpy.ndarray:
    """Computes the λ-returns of positions; those of a game are in the order of its moves.

    A position without an evaluation is left out of the sum. Where the result is unknown, the
    game's last evaluation takes its place. The result also follows the last known position: after
    each position of an HCPE file, and in an HCPE3 file before a move that was not searched.

    Returns:
        (n,) float32, 0..1: probability that the side to move wins; nan where neither the result
        nor an evaluation of this or a later position is known.
    """
    returns = numpy.empty(len(positions), numpy.float32)
    # From the end: the return of a position follows from that of its successor.
    for start in reversed(range(0, len(positions), rows)):
        stop = min(start + rows, len(positions))
        # One position more: a game may go on in the part after this one.
        if isinstance(positions, MappedPositions):
            positions.prefetch(numpy.arange(start, min(stop + 1, len(positions))))
        part = positions[start : stop + 1]
        last = returns[stop] if stop < len(positions) else numpy.nan
        returns[start:stop] = _of_part(part, stop - start, last, td_lambda, eval_scale)
    return returns


def has_successors(positions: AnyPositions) -> bool:
    """Says whether a position is followed by its successor in the same game."""
    return any(_follow(chunk).any() for chunk in chunks(positions))


def _of_part(
    part: numpy.ndarray, size: int, following: float, td_lambda: float, eval_scale: float
) -> numpy.ndarray:
    """Computes the λ-returns of the first ``size`` positions of a part.

    The part has one position more, if there is one; ``following`` is its λ-return.
    """
    wins = WINS[part["result"][:size]]
    known = part["evaluation"][:size] != NO_EVALUATION
    expected = win_probability(part["evaluation"][:size], eval_scale)
    goes_on = numpy.zeros(size, bool)
    goes_on[: len(part) - 1] = _follow(part)
    ends = numpy.flatnonzero(~goes_on | (numpy.arange(size) == size - 1))
    lengths = numpy.diff(ends, prepend=-1)
    returns = numpy.where(goes_on, 1 - following, wins)[ends]  # of what comes after the position
    all_returns = numpy.empty(size)
    # One step for all games at once: their last positions, then those before.
    for distance in range(lengths.max(initial=0)):
        longer = lengths > distance
        if distance:
            returns = 1 - returns
        if not longer.all():
            ends, lengths, returns = ends[longer], lengths[longer], returns[longer]
        at = ends - distance
        mixed = (1 - td_lambda) * expected[at] + td_lambda * returns
        mixed = numpy.where(numpy.isnan(returns), expected[at], mixed)
        returns = numpy.where(known[at], mixed, returns)
        all_returns[at] = returns
    return all_returns


def _follow(positions: numpy.ndarray) -> numpy.ndarray:
    """Says which positions, (n − 1,) bool, are followed by their successors in the same game.

    In position files in any order, the number of the move is not enough: the last move must also
    end on the square of the move before.
    """
    before, after = positions[:-1], positions[1:]
    # Each square is seen from the side to move, so the same square has two numbers.
    to_square = SQUARE_NUM - 1 - before["label"] % SQUARE_NUM
    follow = (before["ply"] > 0) & (after["ply"] == before["ply"] + 1)
    return follow & (after["recent"][:, 0] == 1 + to_square)
