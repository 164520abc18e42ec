"""Progress bars of a training run, for a terminal that can redraw a line."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, TextIO

from tqdm import tqdm

from pydlshogi.bar import is_terminal
from pydlshogi.compat import chainer
from pydlshogi.training.loss import LossMeans

#: Seconds between two updates of a bar.
INTERVAL = 0.5


def bar_stream() -> TextIO | None:
    """Returns the stream for progress bars, standard error or output; None without a terminal.

    A bar redraws its line. In a file, a pipe or a notebook it would fill the output.
    """
    # Jupyter and Colab run a command of a cell in a terminal, and set this variable.
    if os.environ.get("TERM") == "dumb" or "JPY_PARENT_PID" in os.environ:
        return None
    return next(filter(is_terminal, (sys.stderr, sys.stdout)), None)


class ProgressBar(chainer.training.Extension):
    """Trainer extension that shows the iterations of a run and the training loss.

    The loss is the mean since the last line of the log; of a network with two heads the sum.

    Args:
        last: The last iteration of the run, counted over all runs.
        means: The training losses, by the names of ``loss_names``.
        stream: The terminal.
    """

    trigger = 1, "iteration"
    # After the extensions that log: they then replace the bar, not the other way round.
    priority = chainer.training.PRIORITY_READER - 1

    def __init__(self, last: int, means: Mapping[str, LossMeans], stream: TextIO) -> None:
        self._last = last
        self._means = means
        self._stream = stream
        self._bar: Any = None
        self._shown = 0.0

    def initialize(self, trainer: Any) -> None:
        """Starts the clock; the bar appears when there is something to show."""
        self._shown = time.monotonic()

    def __call__(self, trainer: Any) -> None:
        """Updates the bar twice a second at most."""
        now = time.monotonic()
        if now - self._shown < INTERVAL:
            return
        self._shown = now
        iteration = trainer.updater.iteration
        if self._bar is None:
            self._bar = self._make_bar(iteration)
        # The means wait for a GPU, therefore not in every iteration.
        losses = [means.since_line_so_far() for means in self._means.values()]
        known = [loss for loss in losses if not math.isnan(loss)]
        if known:  # right after a line there is none; the bar keeps the last one
            self._bar.set_postfix_str(f"loss {sum(known):.4f}", refresh=False)
        self._bar.update(iteration - self._bar.n)

    def _make_bar(self, iteration: int) -> Any:
        return tqdm(
            desc="training",
            total=self._last,
            initial=iteration,
            file=self._stream,
            dynamic_ncols=True,
            leave=False,
            mininterval=0,
            delay=1e-9,  # the first update shows the bar, with the loss
        )

    def finalize(self) -> None:
        """Removes the bar."""
        if self._bar is not None:
            self._bar.close()


class ShownIterator(chainer.iterators.SerialIterator):
    """Iterator over a data set, once and in order, with a progress bar.

    Args:
        size: Number of items, at least 1; the iterator yields their numbers.
        batch_size: Items in a batch.
        stream: The terminal; None for no bar.
        check: Called before each batch; may raise an exception.
    """

    def __init__(
        self,
        size: int,
        batch_size: int,
        stream: TextIO | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(range(size), batch_size, repeat=False, shuffle=False)
        self._check = check
        self._stream = stream
        self._bar: Any = None

    def __next__(self) -> Any:
        """Returns the next batch. The bar counts the batches before it."""
        done = self.current_position
        try:
            self._check()
            batch = super().__next__()
        except Exception:
            self._close()
            raise
        if self._stream is not None:
            self._show(done)
        return batch

    def _show(self, done: int) -> None:
        if not done:
            self._close()
            self._bar = self._make_bar()
        else:
            self._bar.update(done - self._bar.n)

    def _make_bar(self) -> Any:
        return tqdm(
            desc="test set",
            total=len(self.dataset),
            unit="position",
            file=self._stream,
            dynamic_ncols=True,
            leave=False,
            position=0,  # in the place of the bar of the training, which stands still meanwhile
            mininterval=INTERVAL,
            delay=INTERVAL,  # a speed is known then
        )

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
