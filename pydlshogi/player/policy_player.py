"""The policy player: evaluates the position once and plays a move by the policy.

Source: 「将棋AIで学ぶディープラーニング」, chapter 7.
"""

from __future__ import annotations

from pydlshogi.player.engine_options import policy_options
from pydlshogi.player.shallow_player import Choice, ShallowPlayer, Task
from pydlshogi.player.strategy import boltzmann, greedy, softmax

__all__ = ["PolicyPlayer", "boltzmann", "greedy"]


class PolicyPlayer(ShallowPlayer):
    """Plays the move with the highest logit, or draws one from the softmax of the logits."""

    name = "policy_player"
    default_options = staticmethod(policy_options)

    def check_network(self) -> None:
        """Refuses a network without a policy head."""
        self.refuse_without_policy()

    def decide(self, task: Task) -> Choice:
        """Chooses by the policy. Shows probabilities over all labels, as the book does."""
        logits, win = self.evaluate(self.board)
        assert logits is not None  # by check_network
        move = task.playable[self.pick(self.logits_of(task.playable, logits))]
        probabilities = dict(zip(task.moves, self.logits_of(task.moves, softmax(logits))))
        ranking = sorted(task.moves, key=probabilities.__getitem__, reverse=True)
        wins = {} if win is None else {move: task.settled.get(move, win)}
        return Choice(move, ranking, probabilities, wins, nodes=1)
