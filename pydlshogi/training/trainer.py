"""A whole run: Chainer's Trainer, its extensions and ours, put together."""

from __future__ import annotations

import dataclasses
import logging
import os
import sys
import warnings
from collections.abc import Mapping
from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.training import log
from pydlshogi.training.average import Average, Statistics
from pydlshogi.training.batches import EpochIterator, PlanesConverter
from pydlshogi.training.checkpoint import PairWriter, StateFileError
from pydlshogi.training.end import Interruption, RunEnd
from pydlshogi.training.evaluation import Progress, Validation
from pydlshogi.training.loss import Loss, LossMeans
from pydlshogi.training.recipe import Options, Recipe, make_schedule
from pydlshogi.training.state import RunState, Stopwatch

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Settings:
    """What a run is asked to do; the options of train_policy of the same names.

    Attributes:
        model: File to save the network in; its folder exists.
        state: File to save the optimizer and the place in; its folder exists.
        seed: 0..2**32-1: order of the training positions and draw of test positions.
            A run that is resumed keeps the seed it was started with.
        batchsize: Positions in a training batch.
        test_batchsize: Random test positions for each evaluation, and positions in a
            batch of the validation.
        epoch: Epochs of this run; one that is finished counts as one.
        iterations: Iterations of this run at most; None for no limit.
        eval_interval: Iterations from one evaluation, and save, to the next.
        recipe: How the network learns; the optimizer has been made of it.
    """

    model: str | os.PathLike[str]
    state: str | os.PathLike[str]
    seed: int
    batchsize: int = 32
    test_batchsize: int = 512
    epoch: int = 10
    iterations: int | None = None
    eval_interval: int = 1000
    recipe: Recipe = Recipe()


def train(
    network: Any,
    optimizer: Any,
    train_positions: numpy.ndarray,
    test_positions: numpy.ndarray,
    settings: Settings,
    *,
    device: Any,
    own: Mapping[str, numpy.ndarray] | None = None,
    interruption: Interruption | None = None,
) -> int | None:
    """Trains a network, logs, and leaves model and state files.

    A run that is interrupted before its first iteration leaves none, unless it resumes one.

    Args:
        network: A ``Network``.
        optimizer: A ``chainer.Optimizer`` set up with ``network``.
        train_positions: (n,) array of ``POSITION``, n at least 1.
        test_positions: (m,) array of ``POSITION``, m at least 1.
        settings: What to do.
        device: The ``chainer.backend.Device`` to compute on; the network is moved there.
        own: To resume, what ``load_pair`` returned when it read network and optimizer.
        interruption: Remembers a signal for whoever has more to do after this run, also one
            that came too late to change it.

    Returns:
        None when the run has done all it was asked for; the number of the signal when
        it was interrupted, after its files were saved.

    Raises:
        StateFileError: the run cannot go on from ``own``.
        NotFiniteError: the training diverged; what was saved last stands.
        SaveError: a file cannot be written.
        KeyboardInterrupt: a second signal came; what was saved last stands.
    """
    interruption = interruption or Interruption()
    trainer = make_trainer(
        network,
        optimizer,
        train_positions,
        test_positions,
        settings,
        device=device,
        own=own,
        interruption=interruption,
    )
    end = trainer.stop_trigger
    snapshot = trainer.get_extension("snapshot")
    with interruption.catch(), warnings.catch_warnings():
        # A training that diverges is told by the save, in one sentence. numpy.errstate would
        # not reach the threads of the Winograd convolution.
        warnings.filterwarnings("ignore", ".* encountered in ", RuntimeWarning)
        trainer.run(show_loop_exception_msg=False)
        # Without a first update there is nothing to go on from, and Chainer's optimizers have
        # not yet made all that they look for in a state.
        begun = own is not None or trainer.updater.iteration > 0
        if end.reached(trainer):
            logger.info(log.SAVE_MODEL)
            logger.info(log.SAVE_STATE)
        elif begun and settings.recipe.average is not None:
            trainer.get_extension("statistics")(trainer)
        if begun:
            snapshot(trainer)
    if end.reached(trainer):
        return None
    if begun:
        logger.warning("interrupted after iteration %d; saved", trainer.updater.iteration)
    else:
        logger.warning("interrupted before the first iteration; nothing was saved")
    return interruption.signal_number


def make_trainer(
    network: Any,
    optimizer: Any,
    train_positions: numpy.ndarray,
    test_positions: numpy.ndarray,
    settings: Settings,
    *,
    device: Any,
    own: Mapping[str, numpy.ndarray] | None = None,
    interruption: Interruption | None = None,
) -> Any:
    """Makes the trainer of :func:`train`, whose arguments these are.

    Args:
        interruption: What else may end the run.

    Returns:
        ``chainer.training.Trainer``; its extension ``snapshot`` saves model and state.

    Raises:
        StateFileError: the run cannot go on from ``own``.
    """
    check_resumed(settings, own or {})
    means = {"loss": LossMeans()}
    if network.value_kind is not None:
        means["value_loss"] = LossMeans("value_loss")
    recipe = settings.recipe
    iterator = EpochIterator(
        len(train_positions), settings.batchsize, settings.seed, mirror=recipe.mirror
    )
    extras: dict[str, Any] = {"recipe": Options(recipe, settings.batchsize)}
    run_state = RunState(optimizer, iterator, means, Stopwatch(), train_positions, extras)
    if own is not None:
        run_state.resume(own)

    device.use()
    updater = chainer.training.updaters.StandardUpdater(
        iterator,
        optimizer,
        converter=PlanesConverter(train_positions),
        device=device,
        loss_func=Loss(
            network,
            label_smoothing=recipe.label_smoothing,
            # A set smaller than a batch is a whole batch.
            batchsize=min(settings.batchsize, len(train_positions)),
        ),
    )
    updater.iteration = optimizer.t
    measured = network
    if recipe.average is not None:
        average = extras["average"] = Average(network, recipe.average)
        average.resume(own or {})
        measured = average.network
    if recipe.changes_rate:
        last = _last_iteration(settings, iterator, updater.iteration)
        schedule = make_schedule(recipe, last, own or {})
        optimizer.add_hook(schedule)
        if schedule.end is not None:
            extras["schedule"] = schedule
    end = RunEnd(
        iterator.epoch + settings.epoch,
        None if settings.iterations is None else updater.iteration + settings.iterations,
        interruption or Interruption(),
    )
    # Chainer makes the folder that it thinks the snapshots go to; ours has been made.
    trainer = chainer.training.Trainer(updater, end, out=os.curdir)

    def at_evaluation(trainer: Any) -> bool:
        return updater.iteration % settings.eval_interval == 0

    def at_validation(trainer: Any) -> bool:
        return updater.is_new_epoch or end.reached(trainer)

    def at_statistics(trainer: Any) -> bool:
        return at_evaluation(trainer) or at_validation(trainer)

    def at_save(trainer: Any) -> bool:
        # The save at the end of the run is train's, which logs it.
        return (at_evaluation(trainer) or updater.is_new_epoch) and not end.reached(trainer)

    snapshot = chainer.training.extensions.snapshot(
        target=run_state, writer=PairWriter(measured, settings.model, settings.state)
    )
    on_terminal = sys.stdout.isatty()
    # Extensions of one priority run in this order; each log line comes before the save,
    # so that a run killed in between logs it again and no line is ever missing.
    priority = chainer.training.PRIORITY_READER
    if "average" in extras:
        trainer.extend(extras["average"], name="average")
        statistics = Statistics(measured, train_positions, iterator, device)
        trainer.extend(statistics, name="statistics", trigger=at_statistics)
    for name, extension in means.items():
        trainer.extend(extension, name=f"mean {name}")
    trainer.extend(
        Progress(measured, test_positions, settings.test_batchsize, iterator.seed, device, means),
        trigger=at_evaluation,
        priority=priority,
    )
    trainer.extend(
        Validation(measured, test_positions, settings.test_batchsize, device, means, on_terminal),
        trigger=at_validation,
        priority=priority,
    )
    trainer.extend(snapshot, name="snapshot", trigger=at_save)
    if on_terminal:
        trainer.extend(chainer.training.extensions.ProgressBar(update_interval=10))
    return trainer


def check_resumed(settings: Settings, own: Mapping[str, numpy.ndarray]) -> list[str]:
    """Makes sure that a run can go on from a state; it needs no position for that.

    Args:
        settings: What the run is asked to do.
        own: What ``load_pair`` returned.

    Returns:
        A clause for each option that is not as in the run that is resumed.

    Raises:
        StateFileError: the state is damaged, or something of it would be lost.
    """
    if settings.recipe.average is None and any(key.startswith("average/") for key in own):
        # The model is the average: the network that was trained is in the state alone.
        raise StateFileError(
            "the run to resume averages its weights, and its state would be lost without --average",
            "Give --average again, or leave --resume out to start from the average.",
        )
    try:
        return Options(settings.recipe, settings.batchsize).differences(own)
    except ValueError as error:
        raise StateFileError(
            f"the state file to resume from is damaged ({error})",
            "Choose another one, or leave --resume out to start from its model alone.",
        ) from None


def _last_iteration(settings: Settings, place: EpochIterator, iteration: int) -> int:
    """Numbers the iteration at which a run will be over.

    Args:
        settings: What the run is asked to do.
        place: Where it begins.
        iteration: Number of updates done before.
    """

    def batches(positions: int) -> int:
        return -(-positions // settings.batchsize)

    first = batches(place.size - place.current_position)
    length = first + (settings.epoch - 1) * batches(place.size)
    return iteration + min(length, settings.iterations or length)
