"""Trainer extensions that measure the network on test positions and log the results.

Also the progress bars, for a terminal that can redraw a line.
"""

from __future__ import annotations

import logging
import math
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TextIO

import numpy
from tqdm import tqdm

from pydlshogi.bar import is_terminal
from pydlshogi.compat import chainer
from pydlshogi.training import log
from pydlshogi.training.batches import PlanesConverter, draw
from pydlshogi.training.end import Interrupted, RunEnd
from pydlshogi.training.loss import Loss, LossMeans, measure

if TYPE_CHECKING:
    from pydlshogi.training.trainer import Task

#: Seconds between two updates of a bar.
INTERVAL = 0.5

logger = logging.getLogger(__name__)


def epoch_number(updater: Any) -> int:
    """Returns the number, from 1, of the epoch that the last iteration belongs to."""
    return updater.epoch + (0 if updater.is_new_epoch else 1)


def _converter(task: Task) -> PlanesConverter:
    """Makes the converter of the test positions."""
    plane_num = task.optimizer.target.plane_num
    return PlanesConverter(task.test_positions, ranks=task.ranks, plane_num=plane_num)


class Progress(chainer.training.Extension):
    """Logs the training loss since the last line and the accuracy on some test positions.

    Args:
        task: What is trained. As many of its test positions as ``test_batchsize`` are drawn anew
            each time; all if there are fewer. The draw depends on the seed of the run and on the
            iteration only.
        means: The training losses, by the names of ``loss_names``.
    """

    def __init__(self, task: Task, means: Mapping[str, LossMeans]) -> None:
        self._network = task.optimizer.target
        self._convert = _converter(task)
        self._task = task
        self._means = means

    def __call__(self, trainer: Any) -> None:
        """Measures and logs."""
        updater = trainer.updater
        seed, size = updater.get_iterator("main").seed, len(self._task.test_positions)
        batch = draw(seed, updater.iteration, size, self._task.settings.test_batchsize)
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            _, share = measure(self._network, *self._convert(batch, self._task.device))
        measured = self._task.ranks.means(share)
        policy_loss, value_loss = _pair(
            {name: means.take_since_line() for name, means in self._means.items()}, "loss"
        )
        # An accuracy over no position is unknown.
        known = {name: mean if number else math.nan for name, (mean, number) in measured.items()}
        policy, value = _pair(known, "accuracy")
        point = log.ProgressPoint(
            epoch=epoch_number(updater),
            iteration=updater.iteration,
            loss=log.total(policy_loss, value_loss),
            accuracy=_first(policy, value),
            **_of_two_heads(
                policy_loss=policy_loss,
                value_loss=value_loss,
                value_accuracy=None if policy is None else value,
            ),
        )
        for line in log.format_point(point):
            logger.info(line)


class Validation(chainer.training.extensions.Evaluator):
    """Chainer's Evaluator over the whole test set, with its log lines.

    Every position counts once, also in a last, shorter batch. No graph is built. A signal ends
    it at once; the resumed run begins with it.

    Args:
        task: What is trained, on which test positions, in which batches.
        means: The training losses, by the names of ``loss_names``.
        end: Knows of signals, and whether a validation is due.
        stream: Terminal for the progress bar, or None.
    """

    def __init__(
        self, task: Task, means: Mapping[str, LossMeans], end: RunEnd, stream: TextIO | None
    ) -> None:
        network = task.optimizer.target
        size, batch_size = len(task.test_positions), task.settings.test_batchsize
        super().__init__(
            ShownIterator(size, batch_size, stream, self._check),
            network,
            converter=_converter(task),
            device=task.device,
            eval_func=Loss(network, ranks=task.ranks),
        )
        self._means = means
        self._end = end

    def initialize(self, trainer: Any) -> None:
        """Does the validation that a signal has ended in the resumed run."""
        if self._end.due:
            self(trainer)

    def _check(self) -> None:
        if self._end.interrupted():
            raise Interrupted

    def __call__(self, trainer: Any = None) -> Any:
        """Measures and logs; returns the observation of Chainer's Evaluator."""
        logger.info(log.VALIDATE)
        self._end.due = True
        try:
            # A test set without a known result has no value loss: 0 / 0.
            with numpy.errstate(invalid="ignore"), self._end.breakable():
                measured = super().__call__(trainer)
        except Interrupted:
            return {}
        self._end.due = False
        for line in log.format_point(self._point(trainer.updater, measured)):
            logger.info(line)
        return measured

    def _point(self, updater: Any, measured: Mapping[str, Any]) -> log.EpochPoint:
        prefix = f"{self.name}/main/"
        tested = {
            key[len(prefix) :]: mean for key, mean in measured.items() if key.startswith(prefix)
        }
        is_new_epoch = updater.is_new_epoch
        trained = {name: means.take_in_epoch(is_new_epoch) for name, means in self._means.items()}
        train_policy, train_value = _pair(trained, "loss")
        test_policy, test_value = _pair(tested, "loss")
        policy, value = _pair(tested, "accuracy")
        return log.EpochPoint(
            epoch=epoch_number(updater),
            iteration=updater.iteration,
            train_loss=log.total(train_policy, train_value),
            test_accuracy=_first(policy, value),
            test_loss=log.total(test_policy, test_value),
            **_of_two_heads(
                train_policy_loss=train_policy,
                train_value_loss=train_value,
                test_policy_loss=test_policy,
                test_value_loss=test_value,
                test_value_accuracy=None if policy is None else value,
            ),
        )


def _pair(values: Mapping[str, Any], quantity: str) -> tuple[float | None, float | None]:
    """Takes a quantity of the policy and of the value; None for a head that is missing."""
    policy, value = values.get(quantity), values.get(f"value_{quantity}")
    return None if policy is None else float(policy), None if value is None else float(value)


def _first(policy: float | None, value: float | None) -> float:
    """Chooses the quantity of the policy, or of the value where there is no policy."""
    found = value if policy is None else policy
    return math.nan if found is None else found


def _of_two_heads(**values: float | None) -> dict[str, Any]:
    """Passes the quantities that only networks with two heads log; else none of them."""
    present = {name: value for name, value in values.items() if value is not None}
    return present if len(present) == len(values) else {}


def bar_stream() -> TextIO | None:
    """Returns the stream for progress bars, standard error or output; None without a terminal.

    A bar redraws its line. In a file, a pipe or a notebook it would fill the output.
    """
    # Jupyter and Colab run a command of a cell in a terminal, and set this variable.
    if os.environ.get("TERM") == "dumb" or "JPY_PARENT_PID" in os.environ:
        return None
    return next(filter(is_terminal, (sys.stderr, sys.stdout)), None)


def _make_bar(stream: TextIO | None, **options: Any) -> Any:
    return tqdm(file=stream, dynamic_ncols=True, leave=False, **options)


class ProgressBar(chainer.training.Extension):
    """Shows the iterations of a run and the training loss; ``last`` is the last of all its runs.

    The loss is the mean since the last line of the log; of a network with two heads the sum.
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
            self._bar = _make_bar(
                self._stream,
                desc="training",
                total=self._last,
                initial=iteration,
                mininterval=0,
                delay=1e-9,  # the first update shows the bar, with the loss
            )
        # The means wait for a GPU, therefore not in every iteration.
        losses = [means.since_line_so_far() for means in self._means.values()]
        known = [loss for loss in losses if not math.isnan(loss)]
        if known:  # right after a line there is none; the bar keeps the last one
            self._bar.set_postfix_str(f"loss {sum(known):.4f}", refresh=False)
        self._bar.update(iteration - self._bar.n)

    def finalize(self) -> None:
        """Removes the bar."""
        if self._bar is not None:
            self._bar.close()


class ShownIterator(chainer.iterators.SerialIterator):
    """Iterator over the numbers of some items, once and in order, with a bar on a terminal.

    ``check`` is called before each batch; it may raise an exception.
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
        if done:
            self._bar.update(done - self._bar.n)
            return
        self._close()
        self._bar = _make_bar(
            self._stream,
            desc="test set",
            total=len(self.dataset),
            unit="position",
            position=0,  # in the place of the bar of the training, which stands still meanwhile
            mininterval=INTERVAL,
            delay=INTERVAL,  # a speed is known then
        )

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
