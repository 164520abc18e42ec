"""Random openings; both games of a pair start from the same one."""

from __future__ import annotations

import random

import cshogi


def random_opening(seed: int, pair: int, plies: int) -> list[str]:
    """Draws an opening of random legal moves.

    An opening depends only on its seed and number. So a match can be resumed or extended,
    and all opponents play the same openings.

    Args:
        seed: Seed of the match.
        pair: Number of the pair of games, from 0.
        plies: Number of moves.

    Returns:
        The moves in USI notation. The game is not over after them.
    """
    # All Pythons and systems turn a string seed into the same random numbers.
    generator = random.Random(f"{seed} {pair}")
    while True:
        board = cshogi.Board()
        moves: list[str] = []
        while len(moves) < plies and not board.is_game_over():
            # Sorted, so that the order of cshogi's move list does not matter.
            moves.append(generator.choice(sorted(map(cshogi.move_to_usi, board.legal_moves))))
            board.push_usi(moves[-1])
        if not board.is_game_over():
            return moves
