"""When a run is over: by its epochs or iterations, or because someone wants it to end."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any


class Interruption:
    """A wish to end, by Ctrl-C or SIGTERM, that waits until it does no harm.

    Attributes:
        signal_number: The signal that came, or None.
    """

    def __init__(self) -> None:
        self.signal_number: int | None = None

    @contextlib.contextmanager
    def catch(self) -> Iterator[None]:
        """Remembers the first signal in place of ending; a second one ends at once.

        A signal that the process was started to ignore, as behind nohup, stays ignored.
        Only the main thread can catch signals; elsewhere this does nothing.

        Raises:
            KeyboardInterrupt: at the second signal.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {
            number: handler
            for number in (signal.SIGINT, signal.SIGTERM)
            if (handler := signal.getsignal(number)) not in (None, signal.SIG_IGN)
        }
        for number in before:
            signal.signal(number, self._remember)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _remember(self, number: int, frame: FrameType | None) -> None:
        if self.signal_number is not None:
            raise KeyboardInterrupt
        self.signal_number = number
        # Not by the log: the signal may have come while a line of it was being written.
        with contextlib.suppress(OSError):
            os.write(2, b"\nending after this iteration; once more ends at once\n")


class RunEnd:
    """Stop trigger of the trainer.

    Args:
        epochs: Number of the epoch, counted over all runs, at whose end the run is over.
        iterations: Number of the iteration, counted over all runs, after which the run
            is over; None for no limit.
        interruption: Ends the run after the iteration at hand.
    """

    def __init__(self, epochs: int, iterations: int | None, interruption: Interruption) -> None:
        self._epochs = epochs
        self._iterations = iterations
        self._interruption = interruption

    def __call__(self, trainer: Any) -> bool:
        """Says whether the loop has to stop."""
        return self.reached(trainer) or self._interruption.signal_number is not None

    def reached(self, trainer: Any) -> bool:
        """Says whether the run has done all it was asked for."""
        updater = trainer.updater
        return updater.epoch >= self._epochs or (
            self._iterations is not None and updater.iteration >= self._iterations
        )

    def get_training_length(self) -> tuple[int, str]:
        """Tells Chainer's progress bar how long the run is."""
        if self._iterations is not None:
            return self._iterations, "iteration"
        return self._epochs, "epoch"
