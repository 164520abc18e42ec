"""A run of Chainer's Trainer, with its extensions and ours."""

from __future__ import annotations

import dataclasses
import functools
import logging
import os
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.kifu.mapped_positions import AnyPositions, MappedPositions
from pydlshogi.layers.convolution import get_convolution
from pydlshogi.layers.gpu.recording import Memory, Recording, can_record
from pydlshogi.training import log
from pydlshogi.training.batches import EpochIterator, PlanesConverter
from pydlshogi.training.checkpoint import LiveState, PairWriter
from pydlshogi.training.end import Interruption, RunEnd
from pydlshogi.training.extensions import Progress, ProgressBar, Validation, bar_stream
from pydlshogi.training.loss import Loss, LossMeans, Mean, loss_names, measure
from pydlshogi.training.optimizer import make_schedule
from pydlshogi.training.parallel import ALONE, Ranks, synchronize
from pydlshogi.training.recipe import VISITS, Settings
from pydlshogi.training.state import COMPLETE, VALIDATION, State
from pydlshogi.training.targets import ValueTarget

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Task:
    """What is trained, on what, and how.

    Attributes:
        network: The ``Network`` that is saved; it is moved to the device.
        optimizer: A ``chainer.Optimizer``, made of the recipe and for the ranks. It is set up with
            the network, or with its ``ValueHead``: that is what is trained.
        train_positions, test_positions: At least one position each.
        device: The ``chainer.backend.Device`` that computes.
        resumed: What ``load_pair`` returned; None for a new run.
        ranks: The processes that train together; the first one logs and saves.
    """

    network: Any
    optimizer: Any
    train_positions: AnyPositions
    test_positions: AnyPositions
    settings: Settings
    device: Any
    resumed: State | None = None
    ranks: Ranks = ALONE


def train(task: Task, interruption: Interruption | None = None) -> int | None:
    """Trains a network, logs, and saves the model and the state.

    A new run that is interrupted before its first iteration saves nothing. ``interruption``
    receives a signal, also one that comes too late to end this run, and what is left to do.

    Returns:
        None if the run is finished; the number of the signal if it was interrupted and
        its files were saved.

    Raises:
        StateFileError: the run cannot continue from ``task.resumed``.
        NotFiniteError: the training diverged; the last save stays.
        SaveError: a file cannot be written.
        KeyboardInterrupt: a second signal came; the last save stays.
    """
    interruption = interruption or Interruption(speaks=task.ranks.is_first)
    trainer = make_trainer(task, interruption)
    end = trainer.stop_trigger
    with interruption.catch(), warnings.catch_warnings():
        # The save reports a training that diverged. numpy.errstate would not reach the
        # threads of the Winograd convolution.
        warnings.filterwarnings("ignore", ".* encountered in ", RuntimeWarning)
        trainer.run(show_loop_exception_msg=False)
        finished = end.reached(trainer) and not end.due
        if finished:
            logger.info(log.SAVE_MODEL)
            logger.info(log.SAVE_STATE)
        # Before its first update an optimizer lacks arrays that it expects in a state file.
        saves = task.resumed is not None or trainer.updater.iteration > 0
        if saves and task.ranks.is_first:
            trainer.get_extension("snapshot")(trainer)
    if finished:
        return None
    if saves:
        interruption.left = end.left(trainer.updater)
        logger.warning("interrupted after iteration %d; saved", trainer.updater.iteration)
    else:
        logger.warning("interrupted before the first iteration; nothing was saved")
    return interruption.signal_number


def make_trainer(task: Task, interruption: Interruption | None = None) -> Any:
    """Makes the ``chainer.training.Trainer`` of :func:`train`; its ``snapshot`` saves the files.

    Raises:
        StateFileError: the run cannot continue from ``task.resumed``.
    """
    settings, optimizer = task.settings, task.optimizer
    iterator = EpochIterator(
        len(task.train_positions), settings.batchsize, settings.seed, settings.recipe.mirror
    )
    iterator.announce = _make_announce(task)
    means = {name: LossMeans(name, task.ranks) for name in loss_names(optimizer.target)}
    live = LiveState(
        task.network, optimizer, iterator, means, task.train_positions, settings.options
    )
    due = task.resumed is not None and live.resume(task.resumed)
    if due:  # the iteration whose validation was interrupted counts as one of this run
        left = None if settings.iterations is None else settings.iterations - 1
        settings = dataclasses.replace(
            settings, epoch=settings.epoch - iterator.is_new_epoch, iterations=left
        )
        task = dataclasses.replace(task, settings=settings)
    task.device.use()
    task.network.to_device(task.device)
    synchronize(task.network, task.ranks)
    updater = _make_updater(task, iterator)
    live.schedule_end = _add_schedule(task, iterator)
    end = RunEnd(
        iterator.epoch + settings.epoch,
        None if settings.iterations is None else updater.iteration + settings.iterations,
        interruption or Interruption(),
        task.ranks,
    )
    end.due = due
    # Chainer creates the folder ``out``; our folders exist already.
    trainer = chainer.training.Trainer(updater, end, out=os.curdir)
    live.stage = lambda: VALIDATION if end.due else COMPLETE if end.reached(trainer) else ""
    _extend(trainer, task, live, means)
    return trainer


def _make_announce(task: Task) -> Callable[[numpy.ndarray], None] | None:
    """Makes the function that reads this rank's part of the next batch ahead, from shards."""
    positions, visits = task.train_positions, task.settings.recipe.policy_target == VISITS
    if not isinstance(positions, MappedPositions):
        return None
    return lambda batch: positions.prefetch(task.ranks.part(batch), visits)


def _make_updater(task: Task, iterator: EpochIterator) -> Any:
    """Makes Chainer's updater, at the iteration of the optimizer."""
    recipe = task.settings.recipe
    # A training set smaller than a batch is a full batch.
    batchsize = min(task.settings.batchsize, len(task.train_positions))
    loss = Loss(task.optimizer.target, batchsize=batchsize, ranks=task.ranks)

    def seeded_loss(*batch: Any) -> Any:
        # Some networks draw random numbers, as for dropout. On a CPU, a resumed run draws the
        # same ones.
        numpy.random.seed([iterator.seed, task.optimizer.t, task.ranks.rank])
        return loss(*batch)

    converter = PlanesConverter(
        task.train_positions,
        ValueTarget.of_recipe(recipe),
        task.ranks,
        recipe.policy_target,
        task.network.plane_num,
    )
    kind: Any = chainer.training.updaters.StandardUpdater
    if (
        task.ranks.size == 1
        and can_record(task.network, task.device)
        and get_convolution() != "chainer"
    ):
        kind = functools.partial(RecordedUpdater, batchsize=batchsize)
    updater = kind(
        iterator, task.optimizer, converter=converter, device=task.device, loss_func=seeded_loss
    )
    updater.iteration = task.optimizer.t
    return updater


def _add_schedule(task: Task, iterator: EpochIterator) -> int | None:
    """Adds a changing learning rate to the optimizer; returns the end of a cosine."""
    recipe, place = task.settings.recipe, task.resumed.place if task.resumed else None
    if not recipe.changes_rate:
        return None
    last = _last_iteration(task.settings, iterator, task.optimizer.t)
    schedule = make_schedule(recipe, last, place.schedule_end if place else None)
    task.optimizer.add_hook(schedule)
    return schedule.end


def _last_iteration(settings: Settings, iterator: EpochIterator, iteration: int) -> int:
    """Computes the last iteration of a run that starts after ``iteration`` updates."""

    def batches(positions: int) -> int:
        return -(-positions // settings.batchsize)

    first = batches(iterator.size - iterator.current_position)
    length = first + (settings.epoch - 1) * batches(iterator.size)
    return iteration + (length if settings.iterations is None else min(length, settings.iterations))


def _extend(trainer: Any, task: Task, live: LiveState, means: Mapping[str, LossMeans]) -> None:
    """Adds the extensions that measure, log and save."""
    settings, updater, end = task.settings, trainer.updater, trainer.stop_trigger

    def at_evaluation(trainer: Any) -> bool:
        return updater.iteration % settings.eval_interval == 0

    def at_validation(trainer: Any) -> bool:
        return updater.is_new_epoch or end.reached(trainer)

    def at_save(trainer: Any) -> bool:
        # At the end of the run, train saves and logs; also if a signal has ended a validation.
        saved_later = end.reached(trainer) or end.due
        return (at_evaluation(trainer) or updater.is_new_epoch) and not saved_later

    progress = Progress(task, means)
    stream = bar_stream()
    validation = Validation(task, means, end, stream)
    writer = PairWriter(task.network, settings.model, settings.state)
    snapshot = chainer.training.extensions.snapshot(target=live, writer=writer)
    for name, extension in means.items():
        trainer.extend(extension, name=f"mean {name}")
    # Extensions of one priority run in this order. Log lines come before the save: a run
    # killed in between logs them again after it is resumed, and no line is missing.
    priority = chainer.training.PRIORITY_READER
    trainer.extend(progress, trigger=at_evaluation, priority=priority)
    trainer.extend(validation, trigger=at_validation, priority=priority)
    if task.ranks.is_first:
        trainer.extend(snapshot, name="snapshot", trigger=at_save)
    if stream is not None:
        last = _last_iteration(settings, updater.get_iterator("main"), updater.iteration)
        trainer.extend(ProgressBar(last, means, stream))


class RecordedUpdater(chainer.training.updaters.StandardUpdater):
    """Chainer's updater for one GPU. It records how the gradients of a full batch are computed.

    A recording (:mod:`pydlshogi.layers.gpu.recording`) starts the kernels without Python; the
    results are the same. Batches of other sizes than ``batchsize`` are computed by ``loss_func``.
    """

    def __init__(self, *args: Any, batchsize: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._batchsize = batchsize
        self._gradients = Gradients(self.get_optimizer("main").target)

    def update_core(self) -> None:
        """Makes one step."""
        iterator, optimizer = self.get_iterator("main"), self.get_optimizer("main")
        batch = self.converter(iterator.next(), self.input_device)
        if len(batch[0]) == self._batchsize:
            chainer.report(self._gradients(*batch), optimizer.target)
            optimizer.update()
        else:
            optimizer.update(self.loss_func, *batch)
        if self.auto_new_epoch and iterator.is_new_epoch:
            optimizer.new_epoch(auto=True)


class Gradients:
    """Computes the gradients of the training loss of batches of one size, by a recording."""

    def __init__(self, network: Any) -> None:
        self._network = network
        self._batch: tuple[Any, ...] = ()
        self._recording = Recording(self._compute, Memory())

    @property
    def is_recorded(self) -> bool:
        """Whether there is a recording."""
        return self._recording.is_recorded

    def __call__(self, *batch: Any) -> dict[str, Mean]:
        """Computes the gradients of all parameters, for the arguments of ``training.loss.measure``.

        They always have the same shapes and dtypes. What was measured is valid until the next call.
        """
        if not self._batch:
            self._batch = tuple(array.copy() for array in batch)
        for fixed, array in zip(self._batch, batch):
            fixed[...] = array
        measured, gradients = self._recording()
        for parameter, gradient in gradients:
            parameter.grad = gradient  # a batch without a recording may have replaced it
        return measured

    def _compute(self) -> tuple[dict[str, Mean], list[tuple[Any, Any]]]:
        loss, measured = measure(self._network, *self._batch)
        self._network.cleargrads()
        loss.backward()
        parameters = self._network.params()
        return measured, [(p, p.grad) for p in parameters if p.grad is not None]
