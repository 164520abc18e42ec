"""A game with the model's opinion on every move."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import shogi

from pydlshogi import rules
from pydlshogi.analysis.opinion import Opinion, seen_by_black
from pydlshogi.analysis.record import GameRecord
from pydlshogi.drawing.notation import marked_move_text

#: From this loss of winning probability on, a move is doubtful (疑問手) or bad (悪手).
DOUBTFUL, BAD = 0.10, 0.20


@dataclass(frozen=True)
class AnalyzedMove:
    """A move as players write it, with the mark of its side, and what the model thinks of it.

    ``rank`` is its place among the legal moves, from 1; ``before`` and ``after`` are the
    probability that its side wins. None is unknown (:class:`pydlshogi.analysis.opinion.Candidate`).
    """

    ply: int
    move: shogi.Move
    text: str
    color: int
    rank: int | None
    probability: float | None
    before: float | None
    after: float | None

    @property
    def loss(self) -> float | None:
        """How much less the side wins after the move, at least 0; None if unknown."""
        if self.before is None or self.after is None:
            return None
        return max(0.0, self.before - self.after)

    @property
    def mark(self) -> str:
        """``bad``, ``doubtful``, or empty, as for the model's own choice."""
        loss = 0.0 if self.rank == 1 else round(self.loss or 0.0, 3)  # as far as it is shown
        return "bad" if loss >= BAD else "doubtful" if loss >= DOUBTFUL else ""


@dataclass(frozen=True)
class Summary:
    """The moves of one side with a known rank: how many, how many first choices, the mean loss."""

    moves: int
    first: int
    loss: float | None


@dataclass(frozen=True)
class AnalyzedGame:
    """A game, and the model's opinion on each position: one more than moves."""

    record: GameRecord
    opinions: list[Opinion]
    moves: list[AnalyzedMove]

    def black_wins(self) -> list[float | None]:
        """Lists the probability that Black wins in each position."""
        first = self.record.start.turn
        return [
            seen_by_black(opinion.win, (first + ply) % 2)
            for ply, opinion in enumerate(self.opinions)
        ]

    def summary(self, color: int) -> Summary:
        """Sums up the moves of a side."""
        moves = [move for move in self.moves if move.color == color]
        ranks = [move.rank for move in moves if move.rank is not None]
        losses = [move.loss for move in moves if move.loss is not None]
        loss = sum(losses) / len(losses) if losses else None
        return Summary(len(ranks), ranks.count(1), loss)


def analyze(record: GameRecord, opinions: Iterable[Opinion]) -> AnalyzedGame:
    """Compares the moves of a game with the model's opinions on all positions, from the start.

    If the game ends with a fourfold repetition, the rules replace the last opinion.
    """
    *opinions, last = opinions
    opinions.append(_by_repetition(record.board(), last))
    moves = []
    for ply, (board, move) in enumerate(zip(record.boards(), record.moves)):
        before, after = opinions[ply], opinions[ply + 1]
        moves.append(
            AnalyzedMove(
                ply=ply + 1,
                move=move,
                text=marked_move_text(board, move),
                color=board.turn,
                rank=before.rank(move),
                probability=before.probability(move),
                before=before.win,
                after=None if after.win is None else 1 - after.win,
            )
        )
    return AnalyzedGame(record, opinions, moves)


def _by_repetition(end: shogi.Board, opinion: Opinion) -> Opinion:
    """Returns the result of a fourfold repetition, or the opinion if there is none."""
    result = rules.repetition(end)
    if result == rules.Repetition.NONE:
        return opinion
    # The result is that of the side that has just moved, the win that of the other side.
    wins = {rules.Repetition.WIN: 0.0, rules.Repetition.DRAW: 0.5, rules.Repetition.LOSS: 1.0}
    return Opinion([], None if opinion.win is None else wins[result])
