"""Asks the network in a thread, so that the search can be stopped at any time."""

from __future__ import annotations

import concurrent.futures
import queue
import threading
from typing import Callable, Optional

import numpy

#: Logits (n, 2187) and probabilities that the side to move wins (n,), both float32. Without
#: probabilities every position is worth 0.5.
Answer = tuple[numpy.ndarray, Optional[numpy.ndarray]]

#: Evaluates planes (n, plane_num, 9, 9) float32. It is called in a thread, one call at a time.
Evaluate = Callable[[numpy.ndarray], Answer]

_Future = concurrent.futures.Future[Answer]

#: Seconds between two checks for a stop.
_POLL = 0.01


class Evaluations:
    """The pending evaluations.

    The thread runs until the process ends.

    Args:
        evaluate: The function that computes them.
    """

    def __init__(self, evaluate: Evaluate) -> None:
        self._evaluate = evaluate
        self._waiting: queue.SimpleQueue[tuple[numpy.ndarray, _Future]] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="evaluation", daemon=True).start()

    def begin(self, planes: numpy.ndarray) -> _Future:
        """Begins an evaluation; it waits until those before it have ended."""
        future: _Future = concurrent.futures.Future()
        self._waiting.put((planes, future))
        return future

    def wait(self, future: _Future, is_stopped: Callable[[], bool]) -> Answer | None:
        """Waits for an evaluation.

        Args:
            future: What :meth:`begin` returned.
            is_stopped: Says whether to wait no longer; asked a hundred times a second.

        Returns:
            The answer; None where the wait was stopped.

        Raises:
            Exception: what the function raised.
        """
        while True:
            try:
                return future.result(_POLL)
            except concurrent.futures.TimeoutError:
                if is_stopped():
                    future.cancel()
                    return None

    def _work(self) -> None:
        while True:
            planes, future = self._waiting.get()
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(self._evaluate(planes))
                except Exception as error:
                    future.set_exception(error)
