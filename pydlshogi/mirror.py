"""Mirrored positions: left and right exchanged.

The rules of shogi are the same in the mirror, so a mirrored position is a second example of
the same game. Only the start position, and with it the openings, differ.
"""

from __future__ import annotations

import numpy

from pydlshogi.common import (
    DOWN_LEFT,
    DOWN_RIGHT,
    LEFT,
    MOVE_DIRECTION_LABEL_NUM,
    MOVE_DIRECTION_PROMOTED,
    RIGHT,
    SQUARE_NUM,
    UP2_LEFT,
    UP2_RIGHT,
    UP_LEFT,
    UP_RIGHT,
)

_PAIRS = ((UP_LEFT, UP_RIGHT), (LEFT, RIGHT), (DOWN_LEFT, DOWN_RIGHT), (UP2_LEFT, UP2_RIGHT))

_SQUARES = numpy.arange(SQUARE_NUM).reshape(9, 9)[:, ::-1].ravel()

# ``recent`` in a position holds square + 1, and 0 for an unknown move.
_RECENT = numpy.concatenate([[0], _SQUARES + 1]).astype(numpy.uint8)


def _mirrored_labels() -> numpy.ndarray:
    directions = numpy.arange(MOVE_DIRECTION_LABEL_NUM)
    for left, right in _PAIRS:
        directions[[left, right]] = right, left
        left, right = MOVE_DIRECTION_PROMOTED[left], MOVE_DIRECTION_PROMOTED[right]
        directions[[left, right]] = right, left
    return (SQUARE_NUM * directions[:, None] + _SQUARES).ravel()


#: ``MIRRORED_LABELS[label]`` is the label of the mirrored move, (2187,) int64. The mirror image
#: of a mirror image is the original.
MIRRORED_LABELS = _mirrored_labels()


def mirror(positions: numpy.ndarray) -> numpy.ndarray:
    """Mirrors positions together with their moves.

    Args:
        positions: ``POSITION`` array, (n,). It is not changed.

    Returns:
        ``POSITION`` array, (n,). Board, last moves and label are mirrored; the rest is the same.
    """
    mirrored = positions.copy()
    mirrored["board"] = positions["board"][:, _SQUARES]
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
