"""Compares what computes a network in play, or its ONNX file, with the network itself."""

from __future__ import annotations

import random
from typing import Any

import numpy
import shogi

from pydlshogi.compat import chainer
from pydlshogi.features import make_input_features_from_board
from pydlshogi.model_files.onnx_dlshogi import label_numbers, to_dlshogi
from pydlshogi.model_files.onnx_export import ExportError, run
from pydlshogi.network.network import Network, split_output
from pydlshogi.rules import legal_moves

#: Moves of the longest random game.
_MOST_MOVES = 150

#: Positions on which an ONNX model is compared.
_ONNX_POSITIONS = 32

#: Largest difference of an ONNX model to the network, relative to the largest number.
TOLERANCE = 1e-4


def outputs_in_play(network: Network, planes: numpy.ndarray) -> list[numpy.ndarray]:
    """Computes the outputs of a network on the CPU by Chainer, as in play: logits before values."""
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        outputs = split_output(network, network(planes))
    return [output.array for output in outputs if output is not None]


def largest_difference(results: numpy.ndarray, expected: numpy.ndarray) -> float:
    """Returns the largest difference, relative to the largest expected number.

    It is infinite if the shapes differ, or if only the expected numbers are all 0.
    """
    if results.shape != expected.shape:
        return float("inf")
    difference = float(numpy.abs(results - expected).max())
    if difference == 0:  # the values of a new network are all 0
        return 0.0
    largest = float(numpy.abs(expected).max())
    return difference / largest if largest else float("inf")


def planes_of_random_games(count: int, plane_num: int, every: int = 1) -> numpy.ndarray:
    """Makes the planes of positions of random games, which are the same each time.

    Between two of the positions are ``every`` moves.

    Returns:
        (count, plane_num, 9, 9) float32.
    """
    # All Pythons and systems turn a string seed into the same random numbers.
    generator = random.Random("planes")
    board = shogi.Board()
    planes: list[numpy.ndarray] = []
    for _ in range(count):
        for _ in range(every):
            moves = legal_moves(board)
            if not moves or board.move_number > _MOST_MOVES:
                board.reset()
                moves = legal_moves(board)
            board.push(generator.choice(moves))
        planes.append(make_input_features_from_board(board, plane_num))
    return numpy.stack(planes)


def check_onnx(model: Any, network: Network) -> dict[str, float]:
    """Compares an ``onnx.ModelProto`` with its network, on the CPU, on positions of random games.

    Returns:
        The largest difference by output, relative to the largest number of that output.

    Raises:
        ExportError: a difference is larger than :data:`TOLERANCE`, or ONNX Runtime is missing.
    """
    planes = planes_of_random_games(_ONNX_POSITIONS, network.plane_num)
    is_dlshogis = model.graph.input[0].name == "input1"
    inputs = dict(zip(("input1", "input2"), to_dlshogi(planes))) if is_dlshogis else {}
    results = run(model, inputs or {"planes": planes})
    outputs = outputs_in_play(network, planes)
    expected = {}
    if network.has_policy:
        expected["policy"] = outputs[0][:, label_numbers()] if is_dlshogis else outputs[0]
    if network.value_kind is not None:
        expected["value"] = network.value_kind.win_probabilities(outputs[-1])[:, None]
    prefix = "output_" if is_dlshogis else ""
    differences = {
        prefix + key: largest_difference(results[prefix + key], numbers)
        for key, numbers in expected.items()
    }
    for key, difference in differences.items():
        if not difference <= TOLERANCE:
            raise ExportError(
                f"the converted model computes another {key}: it differs by {difference:.2g} of "
                "the largest number. Nothing was written. Please report this with the model."
            )
    return differences
