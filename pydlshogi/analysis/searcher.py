"""Opinions by a Monte-Carlo tree search."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Iterator

import numpy
import shogi

from pydlshogi.analysis.opinion import Candidate, Network, Opinion
from pydlshogi.analysis.record import AnalysisError, GameRecord
from pydlshogi.player.batch_sizes import default_batch_size, default_batches
from pydlshogi.uct.boards import make_search_board
from pydlshogi.uct.evaluation import Answer
from pydlshogi.uct.game import LAST_OCCURRENCE, Game
from pydlshogi.uct.line import best_lines, candidates
from pydlshogi.uct.move import from_usi, label_table, to_usi
from pydlshogi.uct.search import Search, compile_search
from pydlshogi.uct.settings import Settings

_MOST_VISITS = 10**9


class Searcher:
    """Searches each position for some seconds.

    Raises:
        AnalysisError: the network has no policy or no value.
    """

    def __init__(self, network: Network, seconds: float) -> None:
        if not (network.evaluator.has_policy and network.evaluator.has_value):
            raise AnalysisError(
                f"model {network.name} cannot search: that needs a policy and a value. Choose "
                "a model of the network policy_value, or let it judge without a search."
            )
        self._network = network
        self._seconds = seconds
        evaluator = network.evaluator
        plane_num = evaluator.plane_num
        settings = Settings(
            batch_size=default_batch_size(evaluator.device, evaluator.backend),
            batches=default_batches(evaluator.device, evaluator.backend),
            # In an analysis, only the rules' number of repetitions ends the game.
            occurrences=LAST_OCCURRENCE,
        )
        self._search = Search(self._evaluate, settings)
        self._search.plane_num = plane_num
        # The first evaluation and the first labels must not cost the first position's time.
        self._search.warm_up(numpy.zeros((settings.batch_size, plane_num, 9, 9), numpy.float32))
        label_table()
        compile_search()

    def opinions(self, record: GameRecord) -> Iterator[Opinion]:
        """Gives an opinion on each position of a game, from the start to the end."""
        plain = self._network.opinions(record.boards())
        for board, opinion in zip(record.boards(), plain):
            yield self._searched(record, board, opinion) if opinion.candidates else opinion

    def _evaluate(self, planes: numpy.ndarray) -> Answer:
        logits, wins = self._network.evaluator.evaluate(planes)
        return logits, wins

    def _searched(self, record: GameRecord, board: shogi.Board, opinion: Opinion) -> Opinion:
        """Searches a position; the probabilities stay those of the policy."""
        moves = [from_usi(move.usi()) for move in board.move_stack]
        search = self._search
        search.tree.clear()
        search.begin(Game(make_search_board(record.start.sfen(), board), moves))
        end = time.monotonic() + self._seconds
        try:
            while not (self._is_done() or time.monotonic() >= end):
                search.step(_MOST_VISITS, lambda: time.monotonic() >= end)
        except BaseException:
            search.give_up()
            raise
        search.finish()
        lines = best_lines(search, 1)
        if not lines:  # too little time for a single evaluation
            return opinion
        order = [to_usi(lines[0].moves[0])] + [to_usi(row.move) for row in candidates(search.root)]
        return dataclasses.replace(
            opinion,
            candidates=_sorted(opinion.candidates, order),
            win=lines[0].expected(),
            line=[shogi.Move.from_usi(to_usi(move)) for move in lines[0].moves],
            nodes=search.root.visits,
        )

    def _is_done(self) -> bool:
        return bool(self._search.root.proof) or self._search.is_full()


def _sorted(rows: Iterable[Candidate], order: list[str]) -> list[Candidate]:
    """Sorts candidates as the search does; moves that it does not name come last."""
    places = {move: place for place, move in reversed(list(enumerate(order)))}
    return sorted(rows, key=lambda row: places.get(row.move.usi(), len(order)))
