"""A run of a training program, from its options to its files, in the order of its log."""

from __future__ import annotations

import dataclasses
import logging
import os
from collections.abc import Mapping
from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.device import select_device
from pydlshogi.errors import UserError
from pydlshogi.files import next_to
from pydlshogi.kifu.mapped_positions import AnyPositions
from pydlshogi.layers.dirac import add_identity
from pydlshogi.model_files.model_file import load_model, sizes_in_file
from pydlshogi.network.network import Network
from pydlshogi.network.registry import make_network
from pydlshogi.outputs import keep_earlier, real_path
from pydlshogi.training import log
from pydlshogi.training.checkpoint import finish_save, has_other_positions, load_pair
from pydlshogi.training.datasets import read_sets, warn_of_missing_targets
from pydlshogi.training.end import Interruption
from pydlshogi.training.optimizer import make_optimizer, trained_part
from pydlshogi.training.parallel import ALONE, Ranks
from pydlshogi.training.recipe import Options
from pydlshogi.training.state import COMPLETE, State, differences
from pydlshogi.training.trainer import Task, train

logger = logging.getLogger(__name__)

#: Variable with the command that continues a run until its end.
CONTINUE = "PYDLSHOGI_CONTINUE"


class FirstWeightsError(UserError):
    """The network cannot have the first weights that the options ask for."""


def run(
    options: Options,
    ranks: Ranks = ALONE,
    interruption: Interruption | None = None,
    *,
    once: bool = False,
) -> int | None:
    """Trains as the options say; the folders of the output files exist.

    With ``once``, or with the variable CONTINUE set, a complete run is not trained further.

    Returns:
        None if the run is finished; the number of the signal if it was interrupted.

    Raises:
        UserError: the run cannot start or continue.
        OSError: a file cannot be read or written.
        FirstRankFailed: the first rank has raised such an error.
    """
    options = ranks.on_first(options.with_seed)
    device = select_device(ranks.gpu(options.gpu))
    start = load_start(options, ranks)
    if start.is_complete and (once or os.environ.get(CONTINUE)) and continues(options):
        _log_start(options, start)
        logger.info("the run is complete")  # its process was killed after the last save
        return None
    task = make_task(options, start, device, ranks)
    return train(task, interruption)


@dataclasses.dataclass(frozen=True)
class Start:
    """What a run starts from: the network with its weights, its optimizer, the resumed state."""

    network: Network
    optimizer: Any
    resumed: State | None

    @property
    def is_complete(self) -> bool:
        """Whether the resumed run had done all its epochs and iterations."""
        place = self.resumed.place if self.resumed else None
        return place is not None and place.stage == COMPLETE


def load_start(options: Options, ranks: Ranks = ALONE) -> Start:
    """Makes the network and the optimizer, and loads the files to start from.

    UserError: a file cannot be used, or the network cannot have such weights.
    """
    settings = options.settings
    network = make_first_network(
        options.network,
        settings.seed,
        sizes=ranks.on_first(lambda: _sizes(options)),
        # The first weights of a resumed run do not matter.
        dirac=settings.recipe.dirac and not options.resume,
    )
    optimizer = make_optimizer(trained_part(network, settings.recipe), settings.recipe, ranks)
    return Start(network, optimizer, _load_together(options, network, optimizer, ranks))


def make_task(
    options: Options,
    start: Start,
    device: Any,
    ranks: Ranks = ALONE,
    sets: tuple[AnyPositions, AnyPositions] | None = None,
) -> Task:
    """Reads the positions, logs what will be trained, and keeps files that would be replaced.

    ``sets`` are the training and the test positions; None to read the lists.
    """
    settings, network = options.settings, start.network
    _log_start(options, start)
    if sets is None:
        train_positions, test_positions = read_sets(options, ranks)
    else:
        logger.info(log.READ_START)
        train_positions, test_positions = sets
    warn_of_missing_targets(network, settings.recipe, train_positions)
    ranks.on_first(lambda: _keep_earlier(options, start.resumed, train_positions))
    if start.is_complete:
        logger.warning("the resumed run was complete; it is trained further")
    logger.info(log.RECIPE, options.network, settings.batchsize)
    if settings.recipe.value_head_only:
        logger.info(log.VALUE_HEAD_ONLY)
    logger.info(log.START)
    return Task(
        network,
        start.optimizer,
        train_positions,
        test_positions,
        settings,
        device,
        resumed=start.resumed,
        ranks=ranks,
    )


def _sizes(options: Options) -> dict[str, int]:
    """Returns the sizes that the options give; missing ones are those of ``initmodel``."""
    if options.resume:  # the sizes are those of the state's model
        finish_save(options.initmodel, options.resume)
    found = sizes_in_file(options.initmodel, options.network) if options.initmodel else {}
    for name, size in options.sizes.items():
        if found.get(name, size) != size:
            raise FirstWeightsError(
                f"model file {options.initmodel} has {found[name]} {name}, not {size}. "
                f"Give the same {name}, or none."
            )
    return {**found, **options.sizes}


def _keep_earlier(options: Options, resumed: State | None, positions: AnyPositions) -> None:
    """Copies the model and the state that this run replaces, unless it continues them.

    With other training positions, the run starts its epoch again. If the files belong to a place
    inside the epoch, they are copied, too. Perhaps the list is wrong, or a disk is away.
    """
    place = resumed.place if resumed else None
    goes_back = place and place.position and has_other_positions(place, positions)
    if continues(options) and not goes_back:
        return
    model, state = (os.fspath(path) for path in (options.settings.model, options.settings.state))
    finish_save(model, state)  # after a killed save the files would be no pair
    # A killed save of another state may have left a finished model beside this one.
    for path in (model, state, os.fspath(next_to(model))):
        copy = keep_earlier(path)
        if copy:
            logger.warning("%s exists already; its content is kept as %s", path, copy)


def continues(options: Options) -> bool:
    """Checks whether a run resumes the files that it writes."""
    settings = options.settings
    return bool(options.resume) and (
        real_path(options.initmodel) == real_path(os.fspath(settings.model))
        and real_path(options.resume) == real_path(os.fspath(settings.state))
    )


def make_first_network(
    name: str, seed: int, *, sizes: Mapping[str, int] | None = None, dirac: bool = False
) -> Network:
    """Makes a network whose first weights are determined by a seed (0..2**32-1).

    ``dirac``: whether the identity is added to them. FirstWeightsError: no layer is fit for it.
    """
    numpy.random.seed(seed)  # Chainer's initializers use numpy's global generator.
    network = make_network(name, **(sizes or {}))
    if dirac and not add_identity(network):
        raise FirstWeightsError(
            "dirac is for residual blocks, and for 3x3 convolutions with as many planes out as "
            f"in outside of residual blocks, and {name} has none. Leave it out."
        )
    return network


def _load_together(
    options: Options, network: Network, optimizer: chainer.Optimizer, ranks: Ranks
) -> State | None:
    """Loads the files on the first rank, and sends their content to the others."""
    if ranks.size == 1:
        return _load(options, network, optimizer)

    def load() -> tuple[State | None, Mapping[str, Any]]:
        return _load(options, network, optimizer), chainer.serializers.npz.serialize(network)

    resumed, weights = ranks.on_first(load)
    if not ranks.is_first:
        chainer.serializers.NpzDeserializer(weights).load(network)
        if resumed is not None:
            chainer.serializers.NpzDeserializer(resumed.optimizer).load(optimizer)
    return resumed


def _load(options: Options, network: Network, optimizer: chainer.Optimizer) -> State | None:
    """Loads the files to start from; returns the state to resume."""
    if options.resume:
        return load_pair(options.initmodel, options.resume, network, optimizer)
    if options.initmodel:
        load_model(options.initmodel, network)
    return None


def _log_start(options: Options, start: Start) -> None:
    """Logs the files that were loaded, not earlier: a reader takes it as the start of a run."""
    if options.initmodel:
        logger.info(log.LOAD_MODEL, options.initmodel)
    if start.resumed is None:
        return
    logger.info(log.LOAD_STATE, options.resume)
    logger.info(log.RESUME, start.optimizer.t)
    place = start.resumed.place
    if place is not None:
        for difference in differences(place.options, options.settings.options):
            logger.warning("another option than in the resumed run: %s", difference)
        if options.seed is not None and place.seed != options.seed:
            logger.warning("seed %d is ignored: a resumed run keeps its own", options.seed)
