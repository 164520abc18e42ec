"""Batches of leaves, and their evaluation, mostly in a thread.

So the search can stop, or collect the next batch, while the network computes.
"""

from __future__ import annotations

import concurrent.futures
import time
from typing import Callable, NamedTuple, Optional

import numpy

from pydlshogi.uct.game import Game
from pydlshogi.uct.inputs import Inputs

#: Logits (n, 2187) and probabilities that the side to move wins (n,), both float32. Without
#: probabilities every position is worth 0.5.
Answer = tuple[numpy.ndarray, Optional[numpy.ndarray]]

#: Evaluates planes (n, plane_num, 9, 9) float32. One call runs at a time, in any thread.
Evaluate = Callable[[numpy.ndarray], Answer]

_Future = concurrent.futures.Future[Answer]

#: Seconds between two checks for a stop.
_POLL = 0.02

#: A shorter evaluation, in seconds, runs in the thread of the search. Another thread would cost
#: 0.1 to 0.2 ms. Nobody notices that ``stop`` waits so briefly.
_SHORT = 0.03


class PendingEvaluation(NamedTuple):
    """An evaluation that has begun.

    Attributes:
        planes: The network's input.
        future: The answer; None for a short one, which :meth:`Evaluations.wait` computes.
    """

    planes: numpy.ndarray
    future: _Future | None


class Batch:
    """Pending playouts. The tree counts a pending visit for each of them.

    Args:
        size: Largest number of leaves; kept as an attribute.
        plane_num: Number of planes of the network's input.

    Attributes:
        leaves: The leaves of the playouts, as numbers of nodes.
        inputs: The network's inputs of the leaves.
        keys: The hashes of the inputs.
        moves: Their legal moves, an array for each.
        collisions: The leaf of each playout whose leaf was pending already. It brings no value,
            but it is pending, too, and sends later playouts of the batch elsewhere.
        evaluation: The evaluation of the leaves; None until it begins.
    """

    def __init__(self, size: int, plane_num: int) -> None:
        self.leaves: list[int] = []
        self.keys: list[int] = []
        self.moves: list[numpy.ndarray] = []
        self.collisions: list[int] = []
        self.size = size
        self.inputs = Inputs(size, plane_num)
        self.evaluation: PendingEvaluation | None = None

    def add(self, leaf: int, key: int, game: Game, moves: numpy.ndarray) -> None:
        """Adds a leaf, with the position of a game."""
        self.inputs.add(game)
        self.leaves.append(leaf)
        self.keys.append(key)
        self.moves.append(moves)


class Evaluations:
    """The pending evaluations.

    Their thread begins with the first one that is long or runs in the background. It ends with
    :meth:`close`, or when nothing refers to this object any more. The end of the process waits for
    it: a thread that is killed while it runs C++ code, as OpenVINO's, would abort the process.

    Args:
        evaluate: The function that computes them.
    """

    def __init__(self, evaluate: Evaluate) -> None:
        self._evaluate = evaluate
        self.begin_search(in_background=False)
        self._given: list[_Future] = []  # to the thread, and maybe not ended yet
        self._thread: concurrent.futures.ThreadPoolExecutor | None = None

    def begin_search(self, in_background: bool) -> None:
        """Prepares for a search. The time of an evaluation is measured anew.

        Args:
            in_background: Whether every evaluation begins at once, in the thread, because the
                search has other work to do meanwhile.
        """
        self._in_background = in_background
        # Time of one position in the last evaluation. Until it is known, evaluations count as long.
        self._seconds = _SHORT

    def begin(self, planes: numpy.ndarray) -> PendingEvaluation:
        """Begins an evaluation, after those before it have ended."""
        is_short = len(planes) * self._seconds < _SHORT
        self._given = [future for future in self._given if not future.done()]
        if is_short and not self._in_background and not self._given:
            return PendingEvaluation(planes, None)
        if not self._thread:
            self._thread = concurrent.futures.ThreadPoolExecutor(1, "evaluation")
        self._given.append(self._thread.submit(self._compute, planes))
        return PendingEvaluation(planes, self._given[-1])

    def wait(self, pending: PendingEvaluation, is_stopped: Callable[[], bool]) -> Answer | None:
        """Waits for an evaluation.

        Args:
            pending: What :meth:`begin` returned.
            is_stopped: Says whether to wait no longer; asked fifty times a second.

        Returns:
            The answer; None where the wait was stopped.

        Raises:
            Exception: what the function raised.
        """
        future = pending.future
        if future is None:
            return self._compute(pending.planes)
        while True:
            try:
                return future.result(_POLL)
            except concurrent.futures.TimeoutError:
                if future.done():  # the network may raise this error, too
                    return future.result()
                if is_stopped():
                    future.cancel()
                    return None

    def close(self) -> None:
        """Ends the thread after the evaluations that have begun."""
        if self._thread:
            self._thread.shutdown(wait=False)
            self._thread = None

    def _compute(self, planes: numpy.ndarray) -> Answer:
        """Computes an evaluation, and measures the time of one position."""
        start = time.perf_counter()
        answer = self._evaluate(planes)
        self._seconds = (time.perf_counter() - start) / len(planes)
        return answer
