"""The λ-return: the evaluations of the rest of a game, and its result, as one expectation.

The λ-return of a position is

    G = (1 − λ) · (e(0) + λ·e(1) + … + λⁿ⁻¹·e(n−1)) + λⁿ · z.

- n is the number of positions from this one to the end of the game.
- e(k) is the winning probability that the evaluation after k moves means.
- z is the result.

All values are for the side to move in this position. One evaluation is often wrong, and later
evaluations include what happened next. The result is certain, but depends on many later moves.
The λ-return averages them. A larger λ gives later positions and the result more weight. The mean
also contains the evaluations of both players' engines.

Source: R. Sutton and A. Barto, Reinforcement Learning, 2nd edition, chapter 12.
"""

from __future__ import annotations

import numpy

from pydlshogi.common import SQUARE_NUM
from pydlshogi.features import WINS
from pydlshogi.kifu.mapped_positions import AnyPositions, MappedPositions, chunks
from pydlshogi.positions import NO_EVALUATION
from pydlshogi.training.eval_scale import win_probability

# Positions that are computed at a time: 100 MB.
_ROWS = 1 << 20


def lambda_returns(
    positions: AnyPositions, td_lambda: float, eval_scale: float, rows: int = _ROWS
) -> numpy.ndarray:
    """Computes the λ-returns of positions.

    A position without an evaluation is left out of the sum. Where the result is unknown, the
    game's last evaluation takes its place. The result also follows the last known position: after
    each position of an HCPE file, and in an HCPE3 file before a move that was not searched.

    Args:
        positions: n positions. Those of a game are in the order of its moves.
        td_lambda: λ, from 0 to 1.
        eval_scale: Centipawns at which the winning probability is sigmoid(1) = 0.73.
        rows: Positions that are copied at a time, if they are in shards.

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
    """Computes the λ-returns of ``size`` positions.

    Args:
        part: The positions, and the one after them if there is one: ``POSITION`` array.
        size: Number of the positions.
        following: λ-return of the one after them.
        td_lambda: λ.
        eval_scale: As in :func:`lambda_returns`.
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
    """Says which positions are followed by their successors in the same game.

    Position files may hold single positions in any order. So the number of the move is not
    enough: the last move must also end on the square of the move before.

    Args:
        positions: ``POSITION`` array, (n,).

    Returns:
        (n − 1,) bool.
    """
    before, after = positions[:-1], positions[1:]
    # Each square is seen from the side to move, so the same square has two numbers.
    to_square = SQUARE_NUM - 1 - before["label"] % SQUARE_NUM
    follow = (before["ply"] > 0) & (after["ply"] == before["ply"] + 1)
    return follow & (after["recent"][:, 0] == 1 + to_square)
