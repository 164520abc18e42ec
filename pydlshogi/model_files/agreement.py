"""Compares what computes a network in play, or its ONNX file, with the network itself."""

from __future__ import annotations

import random

import numpy
import shogi

from pydlshogi.compat import chainer
from pydlshogi.features import make_input_features_from_board
from pydlshogi.network.network import Network, split_output
from pydlshogi.rules import legal_moves

#: Moves of the longest random game.
_MOST_MOVES = 150


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
    """Plays random legal moves, and makes the planes of the positions.

    The games are the same each time.

    Args:
        count: Number of positions.
        plane_num: Number of planes of the network's input.
        every: Moves from one position to the next; 1 takes all positions.

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
