"""Mate search along the best line.

A mate that the tree has not found matters most there: the engine would play into it, or would
not see that it wins.

Source of the idea: dlshogi.
"""

from __future__ import annotations

from pydlshogi.uct.backup import Path, prove
from pydlshogi.uct.game import Game
from pydlshogi.uct.mate import long_mate
from pydlshogi.uct.node import Node
from pydlshogi.uct.proof import WIN, Proof
from pydlshogi.uct.settings import Settings

#: Positions that one search visits, usually in 1 ms.
_NODES = 1000

#: A position of the line is searched when it has so many visits. In 400 positions near the end
#: of games, 1 in place of 4 avoided no further mate.
_LEAST_VISITS = 4


class LineMate:
    """Searches mates after the moves of the best line, one position at a time.

    Args:
        game: The position at the root; it must be there again at each call of :meth:`step`.
        settings: The settings of the search.
    """

    def __init__(self, game: Game, settings: Settings) -> None:
        self._game = game
        self._settings = settings

    def step(self, root: Node) -> None:
        """Searches the first position of the line that has not been searched."""
        path: Path = []
        node = root
        while (best := node.most_visited()) and best[1].visits >= _LEAST_VISITS:
            index, child = best
            path.append((node, index))
            self._game.push(node.move(index))
            node = child
            if node.policy and not node.mate_searched:
                self._search(path, node)
                break
        self._game.pop(len(path))

    def _search(self, path: Path, node: Node) -> None:
        """Searches a mate in the position on the board, and stores it."""
        node.mate_searched = True
        plies_left = self._settings.plies_left(self._game.ply)
        node.mate = long_mate(self._game.board, _NODES, plies_left)
        if node.mate:
            prove(path, node, Proof(WIN, len(node.mate)))
