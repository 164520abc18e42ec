"""The root of a Gumbel search: which moves to try, how often, and the policy that follows.

The logits of the moves are those of the network, and g a noise drawn from the Gumbel distribution.
The m moves with the highest logit + g are a sample of the policy without replacement. Sequential
halving visits all of them equally often, keeps the better half, and repeats this. Better means a
higher logit + g + σ(q), where q is the value of a move and σ(q) = (c_visit + N) · c_scale · q for
the N visits of the most visited move.

Source: I. Danihelka, A. Guez, J. Schrittwieser and D. Silver, Policy improvement by planning with
Gumbel, ICLR 2022.
"""

from __future__ import annotations

import math

import numpy


def softmax(logits: numpy.ndarray) -> numpy.ndarray:
    """Returns the probabilities of logits (n,)."""
    powers = numpy.exp(logits - logits.max())
    return powers / powers.sum()


def visits_each(visits: int, considered: int, left: int) -> int:
    """Returns how often a round of sequential halving visits each move.

    Args:
        visits: Visits of the whole search.
        considered: Moves of the first round.
        left: Moves of this round.
    """
    rounds = max(1, math.ceil(math.log2(considered)))
    return max(1, visits // (rounds * left))


def completed(
    logits: numpy.ndarray, values: numpy.ndarray, visits: numpy.ndarray, network_value: float
) -> numpy.ndarray:
    """Completes the values of the moves: those without a visit receive a mixed value.

    This is the mean of the network's value of the position, which counts once, and of the visited
    moves' values, weighted by their probabilities, which counts once a visit.

    Args:
        logits: (n,) the logits of all moves.
        values: (n,) values for the side to move; those without a visit are not used.
        visits: (n,) visits.
        network_value: Value of the position by the network.

    Returns:
        (n,) values.
    """
    is_visited, whole = visits > 0, visits.sum()
    if not whole:
        return numpy.full(len(logits), network_value)
    weights = softmax(logits) * is_visited
    if not weights.sum():  # the visited moves were all improbable
        weights = is_visited.astype(float)
    mean = float(weights @ values) / weights.sum()
    mixed = (network_value + whole * mean) / (1 + whole)
    return numpy.where(is_visited, values, mixed)


def weighed(
    values: numpy.ndarray, visits: numpy.ndarray, c_visit: float, c_scale: float
) -> numpy.ndarray:
    """Returns σ(q) of values (n,): what they add to the logits."""
    return (c_visit + visits.max(initial=0)) * c_scale * values


def counts_of(policy: numpy.ndarray, whole: int = 10_000) -> numpy.ndarray:
    """Turns probabilities (n,) to whole numbers whose sum is about ``whole``, at least one."""
    counts = numpy.rint(policy * whole).astype(int)
    counts[policy.argmax()] = max(1, counts[policy.argmax()])
    return counts
