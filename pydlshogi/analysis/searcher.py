"""Opinions by a Monte-Carlo tree search."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence

import numpy
import shogi

from pydlshogi.analysis.opinion import Candidate, Network, Opinion
from pydlshogi.analysis.record import AnalysisError, GameRecord
from pydlshogi.player.batch_sizes import default_batch_size, default_batches
from pydlshogi.uct import line
from pydlshogi.uct.boards import make_search_board
from pydlshogi.uct.core import DRAW, Proof
from pydlshogi.uct.game import LAST_OCCURRENCE, Game
from pydlshogi.uct.line import best_lines, candidates
from pydlshogi.uct.move import from_usi, label_table, to_usi
from pydlshogi.uct.search import Search, compile_search
from pydlshogi.uct.settings import Settings

_MOST_VISITS = 10**9

#: Moves of a position whose lines are given.
_LINES = 10


class Searcher:
    """Searches positions, each for some seconds or some visits, whichever ends first.

    Raises:
        AnalysisError: the network has no policy or no value.
    """

    def __init__(
        self, network: Network, seconds: float | None = None, nodes: int | None = None
    ) -> None:
        if not network.can_search():
            raise AnalysisError(
                f"model {network.name} cannot search: that needs a policy and a value. Choose "
                "a model of the network policy_value, or let it judge without a search."
            )
        self._network = network
        self.limit(seconds, nodes)
        evaluator = network.evaluator
        plane_num = evaluator.plane_num
        settings = Settings(
            batch_size=default_batch_size(evaluator.device, evaluator.backend),
            batches=default_batches(evaluator.device, evaluator.backend),
            # In an analysis, only the rules' number of repetitions ends the game.
            occurrences=LAST_OCCURRENCE,
        )
        self._search = Search(network.evaluate, settings)
        self._search.plane_num = plane_num
        # The first evaluation and the first labels must not cost the first position's time.
        self._search.warm_up(numpy.zeros((settings.batch_size, plane_num, 9, 9), numpy.float32))
        label_table()
        compile_search()

    def limit(self, seconds: float | None, nodes: int | None) -> None:
        """Changes the limits of the next searches; None for no limit."""
        self._seconds = math.inf if seconds is None else seconds
        self._nodes = _MOST_VISITS if nodes is None else nodes

    def opinions(self, record: GameRecord) -> Iterator[Opinion]:
        """Gives an opinion on each position of a game, from the start to the end."""
        plain = self._network.opinions(record.boards())
        for board, opinion in zip(record.boards(), plain):
            yield from self._better(record, board, opinion)

    def opinion(self, record: GameRecord) -> Opinion:
        """Gives an opinion on the last position of a game."""
        *_, opinion = self.better_opinions(record)
        return opinion

    def better_opinions(self, record: GameRecord, pause: float = math.inf) -> Iterator[Opinion]:
        """Yields better and better opinions on the last position of a game, up to the limits.

        ``pause``: seconds between two opinions; by default there is only the last one.
        """
        board = record.board()
        (opinion,) = self._network.opinions([board])
        return self._better(record, board, opinion, pause)

    def _better(
        self, record: GameRecord, board: shogi.Board, opinion: Opinion, pause: float = math.inf
    ) -> Iterator[Opinion]:
        """Searches a position, on which the network alone has an opinion."""
        if not opinion.candidates:
            yield opinion
            return
        moves = [from_usi(move.usi()) for move in board.move_stack]
        search = self._search
        search.tree.clear()
        search.begin(Game(make_search_board(record.start.sfen(), board), moves))
        now = time.monotonic()
        end, told = now + self._seconds, now
        try:
            while not (self._is_done() or now >= end):
                search.step(self._nodes, lambda: time.monotonic() >= end)
                now = time.monotonic()
                if now >= told + pause:
                    told = now
                    yield self._found(opinion)
            search.finish()
        finally:
            search.give_up()
        yield self._found(opinion)

    def _found(self, opinion: Opinion) -> Opinion:
        """Returns the opinion of the search; in place of that of the network alone."""
        root, lines = self._search.root, best_lines(self._search, _LINES)
        if not lines or (root.visits < 2 and not root.proof):  # too little time to try a move
            return opinion
        rows = _rows(candidates(root), lines)
        # The search leaves out moves that are never better; they come last.
        named = {row.move for row in rows}
        rest = [Candidate(row.move, 0.0) for row in opinion.candidates if row.move not in named]
        return Opinion([*rows, *rest], lines[0].expected(), root.visits)

    def _is_done(self) -> bool:
        root = self._search.root
        return bool(root.proof) or self._search.is_full() or root.visits >= self._nodes


def opinions_of(network: Network, record: GameRecord, seconds: float) -> Iterable[Opinion]:
    """Gives an opinion on each position of a game, by a search; with 0 seconds without one."""
    if not seconds:
        return network.opinions(record.boards())
    return Searcher(network, seconds).opinions(record)


def _rows(found: Sequence[line.Candidate], lines: Sequence[line.Line]) -> list[Candidate]:
    """Makes the candidates of a searched position, the best first."""
    best = lines[0]
    found = sorted(found, key=lambda row: row.move != best.moves[0])
    if not found or found[0].move != best.moves[0]:  # a mate that the tree has not met
        found = [line.Candidate(best.moves[0], 0, 1.0, best.proof, 0.0, None), *found]
    weights = _weights(found, best.proof)
    by_move = {one.moves[0]: one for one in lines}
    rows = []
    for row, weight in zip(found, weights):
        one, value, moves = by_move.get(row.move), None, ()
        if row.visits or row.proof or row.move == best.moves[0]:
            value = one.expected() if one else row.value
            moves = tuple(map(_move, one.moves)) if one else ()
        share = weight / (sum(weights) or 1)
        rows.append(Candidate(_move(row.move), share, row.visits, value, moves))
    return rows


def _weights(found: Sequence[line.Candidate], proof: Proof | None) -> list[int]:
    """Returns the visits of the moves; the best move, with the proof, has the most.

    Proven losses have none, and a move that wins has them all, because it was not chosen by visits.
    """
    if proof and proof.outcome != DRAW:
        return [int(row is found[0]) for row in found]
    return [0 if row.proof and row.proof.outcome != DRAW else row.visits for row in found]


def _move(move: int) -> shogi.Move:
    return shogi.Move.from_usi(to_usi(move))
