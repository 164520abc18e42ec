"""Many games at once: one leaf of each in a batch of the network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Callable

import numpy

from pydlshogi.errors import UserError
from pydlshogi.selfplay.game import LiveGame
from pydlshogi.uct.evaluation import Evaluate


class NotFiniteError(UserError):
    """The network gives no usable values."""


class _Batch:
    """The leaves that wait for one network, with room for ``size`` of them."""

    def __init__(self, evaluate: Evaluate, size: int, plane_num: int) -> None:
        self.evaluate = evaluate
        self.games: list[LiveGame] = []
        self.planes = numpy.empty((size, plane_num, 9, 9), numpy.float32)

    def run(self) -> int:
        """Evaluates the leaves and completes them; returns their number."""
        number = len(self.games)
        if not number:
            return 0
        logits, wins = self.evaluate(self.planes[:number])
        assert wins is not None
        logits = numpy.require(logits, numpy.float32, ["C", "W"])
        values = numpy.array(wins, numpy.float64)
        if not (numpy.isfinite(values).all() and numpy.isfinite(logits).all()):
            raise NotFiniteError(
                "the network gives values that are not finite numbers. Choose another model, or "
                "train it again with a lower learning rate."
            )
        for row, game in enumerate(self.games):
            game.complete(logits[row : row + 1], values[row : row + 1])
        self.games.clear()
        return number


class Pool:
    """Plays games until they end.

    Args:
        networks: The networks; more than one for a match.
        size: Largest number of games.
        plane_nums: Number of planes of each network's input.
        side_of: Returns the number of the network that is to move in a game.

    Attributes:
        games: The games in flight.
    """

    def __init__(
        self,
        networks: Sequence[Evaluate],
        size: int,
        plane_nums: Sequence[int],
        side_of: Callable[[LiveGame], int] = lambda game: 0,
    ) -> None:
        self._batches = [_Batch(*pair) for pair in zip(networks, [size] * 9, plane_nums)]
        self._side_of = side_of
        self.size = size
        self.games: list[LiveGame] = []

    def replace(self, network: Evaluate) -> None:
        """Goes on with another network, of the same input, in the place of the first one."""
        self._batches[0].evaluate = network
        for game in self.games:
            game.restart_move()

    def step(self) -> tuple[list[LiveGame], int]:
        """Makes one batch of each network.

        Returns:
            The games that ended, which are no longer in flight, and the number of evaluations.
        """
        ended = []
        for game in self.games:
            while not game.end:
                batch = self._batches[self._side_of(game)]
                if game.next_leaf(batch.planes[len(batch.games)]):
                    batch.games.append(game)
                    break
            if game.end:
                ended.append(game)
        if ended:
            self.games = [game for game in self.games if not game.end]
        return ended, sum(batch.run() for batch in self._batches)
