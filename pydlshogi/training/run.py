"""A run of a training program, from its options to its files, in the order of its log."""

from __future__ import annotations

import dataclasses
import logging
import os
import shlex

import numpy

from pydlshogi.compat import chainer
from pydlshogi.device import select_device
from pydlshogi.errors import UserError
from pydlshogi.kifu.loading import Loaded, load_positions
from pydlshogi.kifu.report import Note, Report
from pydlshogi.kifu.sources import read_list
from pydlshogi.network.dirac import add_identity
from pydlshogi.network.model_file import load_model, load_network
from pydlshogi.network.network import Network
from pydlshogi.network.registry import make_network
from pydlshogi.positions import NO_EVALUATION, count_common
from pydlshogi.training import log
from pydlshogi.training.checkpoint import SaveError, finish_save, load_pair
from pydlshogi.training.outputs import keep_earlier, real_path
from pydlshogi.training.recipe import make_optimizer
from pydlshogi.training.state import State, differences
from pydlshogi.training.trainer import Settings, Task, train
from pydlshogi.training.value_target import ValueTarget

logger = logging.getLogger(__name__)


class FirstWeightsError(UserError):
    """The network has no layer for the first weights that the options ask for."""


@dataclasses.dataclass(frozen=True)
class Options:
    """What a training program is asked to do: its options of the same names.

    Attributes:
        kifulist_train: List of the training games.
        kifulist_test: List of the test games.
        settings: What the run has to do; its seed is used if ``seed`` is given.
        network: Name of the network.
        blocks: Number of residual blocks plus one; None for that of ``initmodel``, or for the
            network's default.
        initmodel: Model file to start from; empty for new weights.
        resume: State file to resume; empty for a new run.
        gpu: Number of the GPU, negative for the CPU; None for a GPU if there is one.
        seed: The seed; None for a random one.
        strict: Whether to leave out games with illegal moves.
        drop_duplicates: Whether to leave out games with the moves of an earlier game.
        report: File for the table of the records left out; empty for none.
    """

    kifulist_train: str
    kifulist_test: str
    settings: Settings
    network: str
    blocks: int | None = None
    initmodel: str = ""
    resume: str = ""
    gpu: int | None = None
    seed: int | None = None
    strict: bool = False
    drop_duplicates: bool = False
    report: str = ""

    def with_seed(self) -> Options:
        """Returns the same options with a seed in the settings: the given or a random one."""
        seed = int.from_bytes(os.urandom(4), "little") if self.seed is None else self.seed
        return dataclasses.replace(self, settings=dataclasses.replace(self.settings, seed=seed))


def run(options: Options) -> int | None:
    """Trains as the options say.

    Args:
        options: The options; the folders of the output files exist.

    Returns:
        None if the run is finished; the number of the signal if it was interrupted.

    Raises:
        UserError: the run cannot start or continue.
        OSError: a file cannot be read or written.
    """
    options = options.with_seed()
    settings = options.settings
    device = select_device(options.gpu)
    network = make_first_network(
        options.network,
        settings.seed,
        blocks=_blocks(options),
        # The first weights of a resumed run do not matter.
        dirac=settings.recipe.dirac and not options.resume,
    )
    optimizer = make_optimizer(network, settings.recipe)
    resumed = _load(options, network, optimizer)
    begun = optimizer.t, optimizer.epoch
    train_positions, test_positions = _read_positions(options)
    _warn_of_missing_targets(network, settings.recipe.value_target, train_positions)
    _keep_earlier(options)
    logger.info(log.RECIPE, options.network, settings.batchsize)
    logger.info(log.START)
    task = Task(
        network, optimizer, train_positions, test_positions, settings, device, resumed=resumed
    )
    signal_number = _train(task)
    if signal_number and (resumed or optimizer.t):
        left = _left(settings, optimizer.t - begun[0], optimizer.epoch - begun[1])
        logger.warning("to continue, %s", _how_to_continue(f"{_files(settings)}{left}"))
    return signal_number


def _warn_of_missing_targets(
    network: Network, value_target: ValueTarget, positions: numpy.ndarray
) -> None:
    """Warns if the value head has no target, or if no evaluation can be mixed into it."""
    if network.value_kind is None:
        return
    if numpy.isnan(value_target(positions)).all():
        logger.warning("no training game has a known result: the value head learns nothing")
    if value_target.value_lambda < 1 and (positions["evaluation"] == NO_EVALUATION).all():
        logger.warning("no training position has an evaluation: the results alone are the target")


def _blocks(options: Options) -> int | None:
    """Returns ``options.blocks``; if it is None, the number of ``initmodel``, if it has one."""
    if options.blocks is not None or options.network != "policy_value_resnet":
        return options.blocks
    return getattr(load_network(options.initmodel), "blocks", None) if options.initmodel else None


def _train(task: Task) -> int | None:
    """Trains; a file that cannot be written gets the advice how to continue."""
    try:
        return train(task)
    except SaveError as error:
        if os.path.exists(task.settings.state):
            files = _files(task.settings)
            raise SaveError(f"{str(error).rstrip('.')} and continue with {files}.") from None
        raise


def _how_to_continue(options: str) -> str:
    """Names the command that continues; the Makefile tells its own in a variable."""
    command = os.environ.get("PYDLSHOGI_CONTINUE")
    return f"run: {command}" if command else f"add {options} to the same command"


def _files(settings: Settings) -> str:
    """Formats the options that resume a run from its files."""
    model, state = (shlex.quote(os.fspath(path)) for path in (settings.model, settings.state))
    return f"--initmodel {model} --resume {state}"


def _left(settings: Settings, iterations: int, epochs: int) -> str:
    """Formats the options that must change when an interrupted run is continued.

    Args:
        settings: The settings of the interrupted run.
        iterations: Number of its updates.
        epochs: Number of epochs it finished.
    """
    options = f" --epoch {settings.epoch - epochs}" if epochs else ""
    if settings.iterations is not None and iterations:
        options += f" --iterations {settings.iterations - iterations}"
    return options


def _keep_earlier(options: Options) -> None:
    """Copies the model and the state that this run replaces, unless it continues them."""
    model, state = (os.fspath(path) for path in (options.settings.model, options.settings.state))
    continues = options.resume and (
        real_path(options.initmodel) == real_path(model)
        and real_path(options.resume) == real_path(state)
    )
    if continues:
        return
    finish_save(model, state)  # after a killed save the files would be no pair
    for path in (model, state):
        copy = keep_earlier(path)
        if copy:
            logger.warning("%s exists already; its content is kept as %s", path, copy)


def make_first_network(
    name: str, seed: int, *, blocks: int | None = None, dirac: bool = False
) -> Network:
    """Makes a network whose first weights are determined by a seed.

    Args:
        name: Name of the network.
        seed: 0..2**32-1.
        blocks: Number of residual blocks plus one; None for the network's default.
        dirac: Whether the identity is added to the first weights.

    Raises:
        FirstWeightsError: ``dirac``, and no layer of the network is fit for it.
    """
    numpy.random.seed(seed)  # Chainer's initializers use numpy's global generator.
    network = make_network(name, **({} if blocks is None else {"blocks": blocks}))
    if dirac and not add_identity(network):
        raise FirstWeightsError(
            "--dirac is for 3x3 convolutions with as many planes out as in, outside of residual "
            f"blocks, and {name} has none. Leave it out."
        )
    return network


def _load(options: Options, network: Network, optimizer: chainer.Optimizer) -> State | None:
    """Loads the files to start from; returns the state to resume."""
    # A reader of the log takes these lines as a resumed run, which continues a curve. They
    # are therefore logged after the files have been loaded.
    if not options.resume:
        if options.initmodel:
            load_model(options.initmodel, network)
            logger.info(log.LOAD_MODEL, options.initmodel)
        return None
    state = load_pair(options.initmodel, options.resume, network, optimizer)
    logger.info(log.LOAD_MODEL, options.initmodel)
    logger.info(log.LOAD_STATE, options.resume)
    if state.place is not None:
        for difference in differences(state.place.options, options.settings.options):
            logger.warning("another option than in the resumed run: %s", difference)
        if options.seed is not None and state.place.seed != options.seed:
            logger.warning("--seed %d is ignored: a resumed run keeps its own", options.seed)
    return state


def _read_positions(options: Options) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Reads both lists, and logs what they hold and what was left out."""
    logger.info(log.READ_START)
    paths = {"train": options.kifulist_train, "test": options.kifulist_test}
    for path in paths.values():
        read_list(path)  # a wrong test list is reported before the training games are read
    if real_path(paths["train"]) == real_path(paths["test"]):
        logger.warning(
            "the training list is also the test list: the accuracy says nothing about new games"
        )
    loaded = {name: _load_list(name, path, options) for name, path in paths.items()}
    logger.info(log.READ_END)
    for name, item in loaded.items():
        logger.info("%s position num = %d", name, len(item.positions))
    for name, item in loaded.items():
        for line in item.report.lines():
            logger.info("%s: %s", name, line)
    train_set, test_set = loaded["train"], loaded["test"]
    if options.report:
        _merge(train_set.report, test_set.report).write_tsv(options.report)
    common = count_common(train_set.positions, test_set.positions)
    logger.info("training positions that are also in the test set = %d", common)
    return train_set.positions, test_set.positions


def _load_list(name: str, path: str, options: Options) -> Loaded:
    """Reads a list, and logs whether its cache was read or written."""
    loaded = load_positions(path, strict=options.strict, drop_duplicates=options.drop_duplicates)
    if loaded.from_cache:
        logger.info("load %s pickle", name)
    elif loaded.saved:
        logger.info("save %s pickle", name)
    return loaded


def _merge(train: Report, test: Report) -> Report:
    """Merges the reports of both lists; each reason then names its list."""

    def both(of_train: list[Note], of_test: list[Note]) -> list[Note]:
        return [
            note._replace(reason=f"{note.reason} ({name} list)")
            for name, notes in (("train", of_train), ("test", of_test))
            for note in notes
        ]

    return dataclasses.replace(
        train,
        excluded=both(train.excluded, test.excluded),
        duplicates=both(train.duplicates, test.duplicates),
        contradictions=both(train.contradictions, test.contradictions),
    )
