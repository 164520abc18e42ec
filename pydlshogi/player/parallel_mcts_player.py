"""The player with the name that the book gives to its parallel search."""

from __future__ import annotations

from pydlshogi.player.mcts_player import MCTSPlayer

__all__ = ["ParallelMCTSPlayer"]


class ParallelMCTSPlayer(MCTSPlayer):
    """An :class:`MCTSPlayer`, which evaluates many positions at once.

    The book's player does so with four threads, ours with batches.
    """

    name = "parallel_mcts_player"
