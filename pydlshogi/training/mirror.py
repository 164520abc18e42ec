"""Mirrored positions: left and right exchanged.

The rules of shogi are the same in the mirror, so a mirrored position is a second example of
the same game. Only the start position, and with it the openings, differ.
"""

from __future__ import annotations

import numpy

from pydlshogi.features import MIRRORED_LABELS, MIRRORED_SQUARES

# ``recent`` in a position holds square + 1, and 0 for an unknown move.
_RECENT = numpy.concatenate([[0], MIRRORED_SQUARES + 1]).astype(numpy.uint8)


def mirror(positions: numpy.ndarray) -> numpy.ndarray:
    """Mirrors positions together with their moves.

    Args:
        positions: ``POSITION`` array, (n,). It is not changed.

    Returns:
        ``POSITION`` array, (n,). Board, last moves and label are mirrored; the rest is the same.
    """
    mirrored = positions.copy()
    mirrored["board"] = positions["board"][:, MIRRORED_SQUARES]
    mirrored["recent"] = _RECENT[positions["recent"]]
    mirrored["label"] = MIRRORED_LABELS[positions["label"]]
    return mirrored


def mirror_targets(targets: numpy.ndarray) -> numpy.ndarray:
    """Mirrors targets of the policy.

    Args:
        targets: Labels (n,), or probabilities of all moves (n, 2187).

    Returns:
        The same for the mirrored positions, with the same dtype.
    """
    if targets.ndim == 1:
        return MIRRORED_LABELS[targets].astype(targets.dtype)
    return targets[:, MIRRORED_LABELS]
