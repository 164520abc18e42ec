"""Asks the network in a thread, so that the search can be stopped at any time."""

from __future__ import annotations

import concurrent.futures
from typing import Callable, Optional

import numpy

#: Logits (n, 2187) and probabilities that the side to move wins (n,), both float32. Without
#: probabilities every position is worth 0.5.
Answer = tuple[numpy.ndarray, Optional[numpy.ndarray]]

#: Evaluates planes (n, 104, 9, 9) float32. It is called in a thread, one call at a time.
Evaluate = Callable[[numpy.ndarray], Answer]

#: Seconds between two looks at whether the search was stopped.
_POLL = 0.01


class Evaluations:
    """The evaluations under way.

    Args:
        evaluate: The function that computes them.
    """

    def __init__(self, evaluate: Evaluate) -> None:
        self._evaluate = evaluate
        self._thread = concurrent.futures.ThreadPoolExecutor(1, "pydlshogi-evaluation")

    def begin(self, planes: numpy.ndarray) -> concurrent.futures.Future[Answer]:
        """Begins an evaluation; it waits until those before it have ended."""
        return self._thread.submit(self._evaluate, planes)

    def wait(
        self, future: concurrent.futures.Future[Answer], is_stopped: Callable[[], bool]
    ) -> Answer | None:
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
                    return None
