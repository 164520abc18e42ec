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
from pydlshogi.layers.gpu.recording import can_record
from pydlshogi.training import log
from pydlshogi.training.batches import EpochIterator, PlanesConverter
from pydlshogi.training.checkpoint import PairWriter
from pydlshogi.training.end import Interruption, RunEnd
from pydlshogi.training.extensions import Progress, Validation
from pydlshogi.training.loss import Loss, LossMeans, loss_names
from pydlshogi.training.optimizer import make_schedule
from pydlshogi.training.parallel import ALONE, Ranks, synchronize
from pydlshogi.training.progress import ProgressBar, bar_stream
from pydlshogi.training.recipe import VISITS, Settings
from pydlshogi.training.resume import LiveState
from pydlshogi.training.state import COMPLETE, VALIDATION, State
from pydlshogi.training.targets import ValueTarget
from pydlshogi.training.updater import RecordedUpdater

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Task:
    """What is trained, on what, and how.

    Attributes:
        network: The ``Network`` that is saved; it is moved to the device.
        optimizer: A ``chainer.Optimizer``, made of the recipe. It is set up with the network, or
            with its ``ValueHead``: that is what is trained.
        train_positions: At least one position, in memory or in shards; with visits if the
            recipe has them as the policy's target.
        test_positions: At least one position, likewise.
        settings: What the run has to do.
        device: The ``chainer.backend.Device`` that computes.
        resumed: What ``load_pair`` returned; None for a new run.
        ranks: The processes that train together; the first one logs and saves. The optimizer
            must be made for them.
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

    A new run that is interrupted before its first iteration saves nothing.

    Args:
        task: What to train.
        interruption: Receives a signal, also one that comes too late to end this run, and what
            is left to do.

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
    """Makes the trainer of :func:`train`.

    Args:
        task: What to train.
        interruption: May end the run early.

    Returns:
        A ``chainer.training.Trainer``. Its extension ``snapshot`` saves model and state.

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

    measured = task.optimizer.target, task.test_positions, settings.test_batchsize
    seed = updater.get_iterator("main").seed
    progress = Progress(*measured, seed, task.device, means, task.ranks)
    stream = bar_stream()
    validation = Validation(*measured, task.device, means, end, stream, task.ranks)
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
