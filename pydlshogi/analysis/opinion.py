"""What a network says about a position: its moves with probabilities, and the value."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy
import shogi

from pydlshogi import rules
from pydlshogi.analysis.record import AnalysisError
from pydlshogi.features import make_output_label
from pydlshogi.player.strategy import softmax

#: Positions of a batch.
_BATCH = 64


class Candidate(NamedTuple):
    """A legal move, and what is thought of it.

    Attributes:
        probability: Its probability among the legal moves by the policy; after a search its share
            of the visits. None without both.
        visits: Number of visits of a search.
        value: Probability that its side wins with it, by a search; None if it was not visited.
        line: Best moves from it on, itself the first; empty without a search.
    """

    move: shogi.Move
    probability: float | None
    visits: int = 0
    value: float | None = None
    line: tuple[shogi.Move, ...] = ()


@dataclass(frozen=True)
class Opinion:
    """What is thought of a position.

    Attributes:
        candidates: The legal moves, the best first. Empty if the game is over, or if the
            network has no policy and nothing was searched.
        win: Probability that the side to move wins; None if unknown.
        nodes: Number of positions that a search visited; 0 without a search.
    """

    candidates: list[Candidate]
    win: float | None
    nodes: int = 0

    @property
    def line(self) -> list[shogi.Move]:
        """The best moves from here, as far as a search found them."""
        return list(self.candidates[0].line) if self.candidates else []

    def rank(self, move: shogi.Move) -> int | None:
        """Returns the place of a move among the candidates, from 1; None if it is not there."""
        moves = [candidate.move for candidate in self.candidates]
        return moves.index(move) + 1 if move in moves else None

    def probability(self, move: shogi.Move) -> float | None:
        """Returns the probability of a move; None if it is unknown."""
        return next((c.probability for c in self.candidates if c.move == move), None)

    def heat(self) -> dict[int, float]:
        """Sums the probabilities of the moves to each square."""
        heat: dict[int, float] = {}
        for candidate in self.candidates:
            if candidate.probability is not None:
                square = candidate.move.to_square
                heat[square] = heat.get(square, 0.0) + candidate.probability
        return heat


def seen_by_black(win: float | None, turn: int) -> float | None:
    """Turns the chance of the side to move into that of Black, or back; None stays None."""
    return win if win is None or turn == shogi.BLACK else 1 - win


class Network:
    """A network that gives opinions: an ``Evaluator``, and the name of the model in pictures.

    Several threads may ask it.
    """

    def __init__(self, evaluator: Any, name: str) -> None:
        self.evaluator = evaluator
        self.name = name
        self._lock = threading.Lock()

    def evaluate(self, planes: Any) -> Any:
        """Evaluates positions as ``Evaluator.evaluate``."""
        with self._lock:
            return self.evaluator.evaluate(planes)

    def can_search(self) -> bool:
        """Says whether it has what a search needs: a policy and a value."""
        return bool(self.evaluator.has_policy and self.evaluator.has_value)

    def opinions(self, boards: Iterable[shogi.Board]) -> list[Opinion]:
        """Gives an opinion on each board; it may be one board that changes from step to step.

        Raises:
            AnalysisError: the network returns numbers that are not finite.
        """
        inputs, moves, turns, declared = [], [], [], []
        for board in boards:
            inputs.append(self.evaluator.planes(board))
            moves.append(rules.legal_moves(board))
            turns.append(board.turn)
            declared.append(rules.can_declare_win(board))
        opinions: list[Opinion] = []
        for first in range(0, len(inputs), _BATCH):
            rows = slice(first, first + _BATCH)
            logits, wins = self.evaluate(inputs[rows])
            if not all(numpy.isfinite(part).all() for part in (logits, wins) if part is not None):
                raise AnalysisError(
                    f"model {self.name} answers with numbers that are not finite: its training "
                    "diverged. Choose another model."
                )
            for index, legal in enumerate(moves[rows]):
                win = None if wins is None else float(wins[index])
                if win is not None and declared[first + index]:
                    win = 1.0  # as the engines judge the position
                row = None if logits is None else logits[index]
                opinions.append(_opinion(legal, turns[first + index], row, win))
        return opinions


def _opinion(
    legal: list[shogi.Move], turn: int, logits: numpy.ndarray | None, win: float | None
) -> Opinion:
    """Makes the opinion of a network from its outputs."""
    if not legal:
        return Opinion([], None if win is None else 0.0)
    if logits is None:
        return Opinion([], win)
    probabilities = softmax(logits[[make_output_label(move, turn) for move in legal]])
    order = numpy.argsort(-probabilities, kind="stable")
    return Opinion([Candidate(legal[n], float(probabilities[n])) for n in order], win)
