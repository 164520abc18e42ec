"""ONNX models with the inputs and outputs of dlshogi.

dlshogi's program reads models with these names. Nodes before and after our network convert
the order of planes, squares and labels.

=============  =================  =========================================================
name           shape              meaning
=============  =================  =========================================================
input1         (batch, 62, 9, 9)  for each side 31 planes: 14 pieces, 14 attacks by piece, 3
                                  for at least 1, 2, 3 attackers
input2         (batch, 57, 9, 9)  for each side 28 planes: up to 8 pawns, 4 lances, knights,
                                  silvers and golds, 2 bishops and rooks in hand; then 1 if
                                  the side to move is in check
output_policy  (batch, 2187)      logits
output_value   (batch, 1)         probability that the side to move wins
=============  =================  =========================================================

Our networks do not use the planes of attacks and of check. dlshogi counts at most 8 pawns in
hand, so a ninth is not seen.

Sources: the names are those of dlshogi's converter to ONNX; the order of planes and labels
was compared with ``cshogi.dlshogi`` (see the tests).
"""

from __future__ import annotations

from typing import Any

import numpy

from pydlshogi.common import MOVE_DIRECTION, MOVE_DIRECTION_LABEL_NUM, SQUARE_NUM
from pydlshogi.features import (
    HAND_MAX,
    LABEL_NUM,
    PIECE_TYPE_NUM,
    PLANE_NUM,
    SIDE_PLANE_NUM,
)
from pydlshogi.model_files.onnx_export import ExportError, GraphBuilder, Names, add_network
from pydlshogi.network.network import Network

#: Planes of the two inputs.
PLANES_1, PLANES_2 = 62, 57

#: dlshogi's pieces, as the indices of ours: after silver come bishop, rook, gold, king.
_PIECES = (0, 1, 2, 3, 5, 6, 4, 7, 8, 9, 10, 11, 12, 13)
#: Our drops (pawn, lance, knight, silver, gold, bishop, rook) in dlshogi's order of labels.
_DROPS = (0, 1, 2, 3, 6, 4, 5)
_SIDE_1 = PLANES_1 // 2
_SIDE_2 = PLANES_2 // 2
_MOST_IN_HAND = (8, *HAND_MAX[1:])

# dlshogi counts squares down the files, from file 1 on.
_SQUARES = [9 * (8 - square % 9) + square // 9 for square in range(SQUARE_NUM)]


def plane_numbers() -> list[int]:
    """Returns for each of our planes its number in input1 and input2 together.

    −1 stands for the planes that dlshogi lacks: the ninth and further pawns in hand.
    """
    numbers = [-1] * PLANE_NUM
    for side in range(2):
        for place, piece in enumerate(_PIECES):
            numbers[SIDE_PLANE_NUM * side + piece] = _SIDE_1 * side + place
        ours, theirs = SIDE_PLANE_NUM * side + PIECE_TYPE_NUM, PLANES_1 + _SIDE_2 * side
        for own_most, most in zip(HAND_MAX, _MOST_IN_HAND):
            numbers[ours : ours + most] = range(theirs, theirs + most)
            ours, theirs = ours + own_most, theirs + most
    return numbers


def label_numbers() -> numpy.ndarray:
    """Returns for each of dlshogi's labels the number of ours, (2187,) int64."""
    moves = len(MOVE_DIRECTION)
    directions = [*range(moves), *(moves + drop for drop in _DROPS)]
    assert len(directions) == MOVE_DIRECTION_LABEL_NUM
    numbers = numpy.empty(LABEL_NUM, numpy.int64)
    for ours, theirs in enumerate(directions):
        for square, place in enumerate(_SQUARES):
            numbers[SQUARE_NUM * theirs + place] = SQUARE_NUM * ours + square
    return numbers


def to_dlshogi(planes: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Converts planes (n, 104, 9, 9) to dlshogi's (n, 62, 9, 9) and (n, 57, 9, 9).

    The planes of attacks and of check stay 0.
    """
    count = len(planes)
    both = numpy.zeros((count, PLANES_1 + PLANES_2, SQUARE_NUM), numpy.float32)
    for ours, theirs in enumerate(plane_numbers()):
        if theirs >= 0:
            both[:, theirs, _SQUARES] = planes[:, ours].reshape(count, SQUARE_NUM)
    boards = both.reshape(count, -1, 9, 9)
    return boards[:, :PLANES_1], boards[:, PLANES_1:]


def export_dlshogi(network: Network) -> Any:
    """Converts a network on the CPU to an ``onnx.ModelProto`` with dlshogi's inputs and outputs.

    ExportError: the network lacks a head or cannot be converted.
    """
    if not network.has_policy or network.value_kind is None:
        raise ExportError(
            "dlshogi needs a model with a policy and a value. Choose a model trained with "
            "the network policy_value, or export without dlshogi's names."
        )
    if network.plane_num != PLANE_NUM:
        raise ExportError(
            "dlshogi's input has no history. Choose a model of a network without history, or leave "
            "out dlshogi's names."
        )
    builder = GraphBuilder()
    names = Names(_add_inputs(builder), "our_policy", "output_value")
    outputs = add_network(builder, network, names)
    labels = builder.constant(label_numbers())
    builder.add("Gather", [names.policy, labels], "output_policy", axis=1)
    inputs = {"input1": (PLANES_1, 9, 9), "input2": (PLANES_2, 9, 9)}
    shapes = {"output_policy": outputs[names.policy], "output_value": outputs[names.value]}
    return builder.model(inputs, shapes)


def _add_inputs(builder: GraphBuilder) -> str:
    """Adds the conversion of dlshogi's inputs to our planes; returns their name."""
    # A 1×1 convolution with filters of 0 and 1 chooses planes, and leaves missing ones 0.
    filters = numpy.zeros((PLANE_NUM, PLANES_1 + PLANES_2, 1, 1), numpy.float32)
    for ours, theirs in enumerate(plane_numbers()):
        if theirs >= 0:
            filters[ours, theirs] = 1
    both = builder.add("Concat", ["input1", "input2"], axis=1)
    chosen = builder.add("Conv", [both, builder.constant(filters)])
    # (file from 1, rank) to (rank, file from 9).
    turned = builder.add("Transpose", [chosen], perm=[0, 1, 3, 2])
    files = builder.constant(numpy.arange(8, -1, -1))
    return builder.add("Gather", [turned, files], axis=3)
