"""Openings for matches: a few random moves from the start, the same for both games of a pair."""

from __future__ import annotations

import random

import cshogi


def random_opening(seed: int, pair: int, plies: int) -> list[str]:
    """Draws an opening.

    Each depends on its own number alone, so that a match can be resumed or
    lengthened, and meets every opponent from the same positions.

    Args:
        seed: Seed of the match.
        pair: Number of the pair of games, from 0.
        plies: Number of moves.

    Returns:
        The moves in USI's notation, each drawn from all legal ones. The side to move
        has a legal move at the end: openings that mate are passed over.
    """
    # A text as seed is hashed to the same number by every Python and on every system.
    generator = random.Random(f"{seed} {pair}")
    while True:
        board = cshogi.Board()
        moves: list[str] = []
        while len(moves) < plies and not board.is_game_over():
            # Sorted: no order of cshogi's own decides which opening this is.
            moves.append(generator.choice(sorted(map(cshogi.move_to_usi, board.legal_moves))))
            board.push_usi(moves[-1])
        if not board.is_game_over():
            return moves
