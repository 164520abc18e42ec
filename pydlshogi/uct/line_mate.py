"""Mate search along the best line.

Mates that the tree has not found matter most there. The engine would play into one, or would
not see that it wins.

Source of the idea: dlshogi.
"""

from __future__ import annotations

import time

from pydlshogi.uct.core import SEARCHED
from pydlshogi.uct.game import Game
from pydlshogi.uct.mate import long_mates
from pydlshogi.uct.node import Node
from pydlshogi.uct.settings import Settings

#: Positions that one search visits. They take 0.3 ms on average, and up to 25 ms with many
#: pieces in hand.
_NODES = 1000

#: A position of the line is searched when it has so many visits. In 300 positions near the end
#: of games, 1 in place of 4 avoided no further mate.
_LEAST_VISITS = 4

#: Number of searches that may follow one another, and the visits of the root for each further one.
#: With a fast network, a search takes as long as several evaluations.
_FIRST_SEARCHES, _VISITS_A_SEARCH = 16, 128

#: Seconds after which the check of the move to play begins no further search.
_CHECK_SECONDS = 0.01


class LineMate:
    """Searches mates after the moves of the best line, one position at a time.

    Args:
        game: The position at the root; it must be there again at each call.
        settings: The settings of the search.
    """

    def __init__(self, game: Game, settings: Settings) -> None:
        self._game = game
        self._settings = settings
        self._searches = 0

    def step(self, root: Node) -> None:
        """Searches the first position of the line that has not been, unless it is too early."""
        if self._searches >= _FIRST_SEARCHES + root.visits // _VISITS_A_SEARCH:
            return
        node, depth = root, 0
        while (best := node.most_visited()) and best[1].visits >= _LEAST_VISITS:
            move, node = best
            self._game.push(move)
            depth += 1
            if _is_new(node):
                self._search(node)
                break
        self._game.pop(depth)

    def check_move(self, root: Node) -> None:
        """Searches a mate after the move to play; if there is one, after the next best move."""
        end = time.perf_counter() + _CHECK_SECONDS
        while (best := root.most_visited()) and _is_new(best[1]) and time.perf_counter() < end:
            move, child = best
            self._game.push(move)
            self._search(child)
            self._game.pop()

    def _search(self, node: Node) -> None:
        """Searches a mate in the position on the board, and stores it."""
        node.tree.nodes.marks[node.index] |= SEARCHED
        self._searches += 1
        plies_left = self._settings.plies_left(self._game.ply)
        mates, _ = long_mates(self._game.board, _NODES, plies_left)
        if mates:
            node.tree.set_mate(node.index, mates[0])


def _is_new(node: Node) -> bool:
    """Says whether a mate can be searched at a node, and was not. A repetition has no moves."""
    return node.is_expanded and not node.mate_searched
