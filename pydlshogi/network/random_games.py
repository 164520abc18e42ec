"""Positions of random games: planes that a network can be tried on, without any file."""

from __future__ import annotations

import random

import numpy
import shogi

from pydlshogi.features import make_input_features_from_board
from pydlshogi.rules import legal_moves

#: Moves of the longest game.
_MOST_MOVES = 150


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
