"""The target of the policy head: the move played, or the visits of a search.

A move that a search visited n times of N in all has the probability n / N. The policy then
learns the whole distribution, with the cross entropy -Σ p log q for the network's
probabilities q. A position without visits has the move played as its target.

Source of the idea: D. Silver et al., Mastering Chess and Shogi by Self-Play with a General
Reinforcement Learning Algorithm, arXiv:1712.01815 (2017).
"""

from __future__ import annotations

from typing import Any

import numpy

from pydlshogi.features import LABEL_NUM
from pydlshogi.kifu.visits import Visits
from pydlshogi.training.recipe import VISITS


def shares_of_visits(played: numpy.ndarray, visits: Visits) -> numpy.ndarray:
    """Computes the probabilities of all moves from their visits.

    Args:
        played: Label of the move played in each position, (n,).
        visits: Visits of the positions.

    Returns:
        (n, ``LABEL_NUM``) float32; the sum of each row is 1.
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
    """Makes the targets of positions.

    Args:
        kind: ``PLAYED`` or ``VISITS``.
        positions: All positions; with ``VISITS``, of a class with ``visits_of``.
        rows: Numbers of the positions, (n,).
        records: ``POSITION`` array of these positions.

    Returns:
        ``PLAYED``: labels, (n,) int32. ``VISITS``: as :func:`shares_of_visits`.
    """
    if kind == VISITS:
        return shares_of_visits(records["label"], positions.visits_of(rows))
    return records["label"].astype(numpy.int32)
