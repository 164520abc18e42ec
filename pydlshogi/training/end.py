"""The end of a run: after its epochs or iterations, or after a signal."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

from pydlshogi.signals import ENDINGS, HANG_UP
from pydlshogi.training.parallel import ALONE, Ranks

_ENDING = b"\nending after this iteration; a second signal ends at once\n"


class Interrupted(Exception):
    """A signal ends a validation."""


class Interruption:
    """A signal (such as Ctrl-C) that ends a run after the current iteration.

    Args:
        speaks: Whether it is told that the run ends.
        end: Time, as by ``time.monotonic``, that ends the run like Ctrl-C.

    Attributes:
        signal_number: Number of the signal that came, or None.
        left: Epochs and iterations that the saved run would still have to do; None for no
            limit. None if nothing was saved.
    """

    def __init__(self, speaks: bool = True, end: float = math.inf) -> None:
        self.signal_number: int | None = None
        self.left: tuple[int, int | None] | None = None
        self._speaks, self._end = speaks, end
        self._at_once = False

    @contextlib.contextmanager
    def at_once(self) -> Iterator[None]:
        """Lets a signal end a block at once: a batch of a large network takes many seconds.

        Raises:
            Interrupted: a signal came.
        """
        self._at_once = True
        try:
            yield
        finally:
            self._at_once = False

    @contextlib.contextmanager
    def catch(self) -> Iterator[None]:
        """Records the first signal while a block runs; a second one, but SIGHUP, ends it at once.

        A signal that the process ignores, for example under nohup, stays ignored. Only
        the main thread can handle signals; in other threads this does nothing.

        Raises:
            KeyboardInterrupt: a second signal came.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {
            number: handler
            for number in (signal.SIGINT, *ENDINGS)
            if (handler := signal.getsignal(number)) not in (None, signal.SIG_IGN)
        }
        for number in before:
            signal.signal(number, self._record)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def number(self) -> int:
        """Returns the number of the signal that ends the run, 0 for none."""
        if self.signal_number is None and time.monotonic() >= self._end:
            return signal.SIGINT
        return self.signal_number or 0

    def _record(self, number: int, frame: FrameType | None) -> None:
        if self.signal_number is not None:
            if number == HANG_UP:
                return
            raise KeyboardInterrupt
        self.signal_number = number
        # Not through the log: the signal may have come while a log line was written.
        with contextlib.suppress(OSError):
            if self._speaks:
                os.write(2, _ENDING)
        if self._at_once:
            raise Interrupted


class RunEnd:
    """Stop trigger of the trainer.

    Args:
        epochs, iterations: The last ones of the run, counted over all runs; None for no limit.
        ranks: The processes of the run; a signal to one of them ends all.

    Attributes:
        due: Whether the validation of the last iteration is not done: a signal ended it.
    """

    def __init__(
        self,
        epochs: int,
        iterations: int | None,
        interruption: Interruption,
        ranks: Ranks = ALONE,
    ) -> None:
        self._ranks = ranks
        self._epochs = epochs
        self._iterations = iterations
        self._interruption = interruption
        self.due = False

    def __call__(self, trainer: Any) -> bool:
        """Returns whether the loop must stop."""
        return self.interrupted() or self.reached(trainer)

    def interrupted(self) -> bool:
        """Returns whether a rank has received a signal. All ranks must call this together."""
        signal_number = self._ranks.highest(self._interruption.number())
        if signal_number:  # a signal that came since the line above counts next time
            self._interruption.signal_number = signal_number
        return signal_number > 0

    def breakable(self) -> contextlib.AbstractContextManager[None]:
        """Lets a signal end a validation at once, unless other ranks wait for this one."""
        return self._interruption.at_once() if self._ranks.size == 1 else contextlib.nullcontext()

    def reached(self, trainer: Any) -> bool:
        """Returns whether the run has done all its epochs or iterations."""
        updater = trainer.updater
        return updater.epoch >= self._epochs or (
            self._iterations is not None and updater.iteration >= self._iterations
        )

    def left(self, updater: Any) -> tuple[int, int | None]:
        """Returns the epochs and iterations to do; one whose validation is due counts."""
        epochs = self._epochs - updater.epoch + (self.due and updater.is_new_epoch)
        if self._iterations is None:
            return epochs, None
        return epochs, self._iterations - updater.iteration + self.due
