"""The base class of the players without a tree. They look at most one move ahead."""

from __future__ import annotations

import dataclasses
import time
from typing import Callable

import numpy
import shogi

from pydlshogi import rules
from pydlshogi.features import make_output_label
from pydlshogi.player.clock import half_of_the_time
from pydlshogi.player.network_player import NetworkPlayer
from pydlshogi.player.strategy import boltzmann, greedy, score
from pydlshogi.rules import Repetition
from pydlshogi.usi.protocol import Go, end_info, info

#: Probability of winning by a move that ends the game by repetition. A win, by the opponent's
#: perpetual check, counts as certain, although not every referee notices it.
_WINS = {Repetition.WIN: 1.0, Repetition.DRAW: 0.5}


@dataclasses.dataclass(frozen=True)
class Task:
    """A choice to make; ``is_over`` says whether the move is wanted now."""

    moves: list[shogi.Move]  # the legal moves that go allows
    playable: list[shogi.Move]  # those with the best result by repetition
    settled: dict[shogi.Move, float]  # probability of winning by those that end the game
    is_over: Callable[[], bool]


@dataclasses.dataclass(frozen=True)
class Choice:
    """A move, and what the player thinks of the candidates."""

    move: shogi.Move
    ranking: list[shogi.Move]  # the candidates, best first, with the move
    probabilities: dict[shogi.Move, float]  # the numbers that info string shows
    wins: dict[shogi.Move, float]  # probability of winning, as far as the network knows
    nodes: int  # positions that the network has evaluated


class ShallowPlayer(NetworkPlayer):
    """A player that chooses a move without a tree. A subclass implements :meth:`decide`."""

    def decide(self, task: Task) -> Choice:
        """Chooses one of ``task.playable``."""
        raise NotImplementedError

    def choose(self, go: Go) -> str:
        """Chooses a move: declares, mates, asks :meth:`decide`, or resigns."""
        start = time.perf_counter() if go.time is None else go.time
        board = self.board
        declares = self.options["declaration_win"] and rules.can_declare_win(board)
        legal = rules.legal_moves(board)
        if declares:
            self.send(end_info("mate 1"))
            self.send("info string the 27-point declaration holds")
        elif not legal:
            self.send(end_info("mate -0"))
        if not legal or (declares and not go.infinite):
            return "win" if declares else "resign"
        moves = self._allowed(legal, go.searchmoves)
        mate = rules.mate_in_one(board, moves) if self.options["mate_in_one"] else None
        if mate:
            self.send(info([mate.usi()], "mate 1", time_ms=_milliseconds_since(start), nodes=0))
            return "win" if declares else mate.usi()
        if not self._loaded:  # a GUI without isready
            self.prepare()
        choice = self.decide(self._task(moves, go, start))
        self._show(choice, start)
        if declares:
            return "win"
        return "resign" if self._resigns(choice) else choice.move.usi()

    def _task(self, moves: list[shogi.Move], go: Go, start: float) -> Task:
        """Describes the choice to make."""
        seconds = half_of_the_time(go, self.board.turn)
        looks = [time.perf_counter()]

        def is_over() -> bool:
            looks.append(time.perf_counter())
            # On a busy computer, the next step may not fit into half of the other half.
            step = max(after - before for before, after in zip(looks, looks[1:]))
            spent = looks[-1] - start
            late = seconds is not None and (spent >= seconds or spent + step > 1.5 * seconds)
            is_hit = go.ponder and not go.infinite and go.ponderhit.is_set()
            return late or go.stop.is_set() or is_hit

        return Task(moves, *self._without_bad_repetitions(moves), is_over)

    def _resigns(self, choice: Choice) -> bool:
        win = choice.wins.get(choice.move)
        return win is not None and win < self.options["resign_threshold"] / 100

    def logits_of(self, moves: list[shogi.Move], logits: numpy.ndarray) -> numpy.ndarray:
        """Returns the logits of moves on the board, in their order, out of those of all labels."""
        return logits[[make_output_label(move, self.board.turn) for move in moves]]

    def pick(self, logits: numpy.ndarray) -> int:
        """Returns the index of a logit, as the options of the choice say."""
        if not self._is_random():
            return greedy(logits)
        return boltzmann(logits, self.options["temperature"] / 100, self.random())

    def _is_random(self) -> bool:
        """Says whether this move is random: in the first ``random_plies`` moves of the game."""
        plies = self.options["random_plies"]
        if plies:
            return self.board.move_number <= plies
        return self.options["strategy"] == "boltzmann"

    def _without_bad_repetitions(
        self, moves: list[shogi.Move]
    ) -> tuple[list[shogi.Move], dict[shogi.Move, float]]:
        """Removes moves that end the game by repetition if there are better ones.

        A perpetual check, which loses, is always removed. A repetition that wins is always
        taken. The option ``repetition`` decides about draws. The second result is the probability
        of winning by each move that ends the game.
        """
        if not rules.may_repeat(self.board):
            return moves, {}
        outcomes = {move: rules.repetition_after(self.board, move) for move in moves}
        settled = {move: _WINS[outcome] for move, outcome in outcomes.items() if outcome in _WINS}
        if self.options["repetition"] == "allow":
            for move, outcome in outcomes.items():
                outcomes[move] = Repetition.NONE if outcome == Repetition.DRAW else outcome
        best = min(outcomes.values())
        return [move for move, outcome in outcomes.items() if outcome == best], settled

    def _show(self, choice: Choice, start: float) -> None:
        """Shows as many candidates as the option ``MultiPV`` says.

        ``info string`` lines come best first. ``multipv 1`` is the move played, and the last line:
        some programs look for that number, others take the last line with a score.
        """
        count = self.options["MultiPV"]
        shown = choice.ranking[:count]
        if choice.move not in shown:
            shown[-1] = choice.move
        for move in shown:
            self.send(f"info string {move.usi():5} : {choice.probabilities[move]:.5f}")
        time_ms = _milliseconds_since(start)
        lines = [choice.move, *(move for move in shown if move != choice.move)]
        for rank in range(len(lines), 0, -1):
            move = lines[rank - 1]
            cp = f"cp {score(choice.wins[move])}" if move in choice.wins else None
            self.send(info([move.usi()], cp, time_ms=time_ms, nodes=choice.nodes, multipv=rank))


def _milliseconds_since(start: float) -> int:
    return int(1000 * (time.perf_counter() - start))
