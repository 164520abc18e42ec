"""The player that looks one move ahead with a value network.

Source: 「将棋AIで学ぶディープラーニング」, the chapter on the value network.
"""

from __future__ import annotations

from typing import Callable

import numpy
import shogi

from pydlshogi.player.engine_options import POLICY_VALUE_MODEL, search1_options
from pydlshogi.player.shallow_player import Choice, ShallowPlayer, Task
from pydlshogi.player.strategy import boltzmann, greedy, logit
from pydlshogi.usi.protocol import FatalError

__all__ = ["Search1Player", "boltzmann", "greedy"]

#: Moves evaluated at once, between two looks at ``stop`` and the clock. This is enough for
#: the full speed of the network, and takes about a tenth of a second on one core.
CHUNK = 32


class Search1Player(ShallowPlayer):
    """Plays the move after which the opponent's probability of winning is lowest."""

    name = "search1_player"
    default_options = staticmethod(search1_options)
    # The default model is not shipped.
    model_hint = f"The option modelfile chooses it, for example {POLICY_VALUE_MODEL}."

    def check_network(self) -> None:
        """Refuses a network without a value head."""
        if not self._evaluator.has_value:
            raise FatalError(
                f"model file {self.model_path()} has no value head. Choose a file trained with "
                f"the network value or policy_value. {self.model_hint}"
            )

    def decide(self, task: Task) -> Choice:
        """Chooses by the values after the moves, as far as there is time for them.

        The moves that the policy prefers come first. If time is short, the choice is among
        them; without any time it is the first.
        """
        logits, win = self.evaluate(self.board)
        assert win is not None  # by check_network
        moves = self._in_order(task.playable, logits)
        ahead = self.look_ahead(moves, task.is_over)
        wins = dict(zip(moves, ahead)) or {moves[0]: win}
        wins.update((move, task.settled[move]) for move in wins.keys() & task.settled.keys())
        ranking = sorted(wins, key=wins.__getitem__, reverse=True)
        move = ranking[self.pick(numpy.array([logit(wins[move]) for move in ranking]))]
        return Choice(move, ranking, wins, wins, nodes=1 + len(ahead))

    def _in_order(self, moves: list[shogi.Move], logits: numpy.ndarray | None) -> list[shogi.Move]:
        """Sorts moves by the policy, best first; leaves them without a policy."""
        if logits is None:
            return moves
        order = numpy.argsort(-self.logits_of(moves, logits), kind="stable")
        return [moves[index] for index in order]

    def look_ahead(
        self, moves: list[shogi.Move], is_over: Callable[[], bool] = lambda: False
    ) -> list[float]:
        """Returns for each move the probability that its side wins.

        They are fewer than the moves if ``is_over``, asked before each :data:`CHUNK`, says so.
        """
        wins: list[float] = []
        while len(wins) < len(moves) and not is_over():
            planes = []
            for move in moves[len(wins) : len(wins) + CHUNK]:
                self.board.push(move)
                planes.append(self._evaluator.planes(self.board))
                self.board.pop()
            opponents = self.evaluate_planes(planes).wins
            assert opponents is not None  # by check_network
            wins += [1 - float(win) for win in opponents]
        return wins
