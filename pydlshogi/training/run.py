"""A run of a training program, from its options to its files, in the order of its log."""

from __future__ import annotations

import dataclasses
import logging
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.device import select_device
from pydlshogi.errors import UserError
from pydlshogi.kifu.cache import CacheError, map_cache
from pydlshogi.kifu.loading import Loaded, load_positions
from pydlshogi.kifu.report import Note, Report
from pydlshogi.kifu.shards import AnyPositions, MappedPositions, chunks, with_shards
from pydlshogi.kifu.sources import read_list
from pydlshogi.kifu.visits import Visits
from pydlshogi.network.dirac import add_identity
from pydlshogi.network.model_file import load_model, sizes_in_file
from pydlshogi.network.network import Network
from pydlshogi.network.registry import make_network
from pydlshogi.positions import NO_EVALUATION, count_common
from pydlshogi.training import log
from pydlshogi.training.checkpoint import SaveError, finish_save, load_pair
from pydlshogi.training.order import make_order, random_of
from pydlshogi.training.outputs import keep_earlier, real_path
from pydlshogi.training.parallel import ALONE, Alone
from pydlshogi.training.policy_target import VISITS
from pydlshogi.training.recipe import Recipe, make_optimizer
from pydlshogi.training.state import State, differences
from pydlshogi.training.trainer import Settings, Task, train

logger = logging.getLogger(__name__)

# Most positions in shards that are compared with the test set one by one; more are sampled.
_MOST_COUNTED = 1 << 21
_SAMPLE = 10_000


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
        sizes: Sizes of the network by name (``registry.sizes_of``). Missing ones are those of
            ``initmodel``, or the network's defaults.
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
    sizes: Mapping[str, int] = dataclasses.field(default_factory=dict)
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


def run(options: Options, ranks: Alone = ALONE) -> int | None:
    """Trains as the options say.

    Args:
        options: The options; the folders of the output files exist.
        ranks: The processes that train together. The options of the first one count.

    Returns:
        None if the run is finished; the number of the signal if it was interrupted.

    Raises:
        UserError: the run cannot start or continue.
        OSError: a file cannot be read or written.
        FirstRankFailed: the first rank has raised such an error.
    """
    options = ranks.on_first(options.with_seed)
    settings = options.settings
    device = select_device(ranks.gpu(options.gpu))
    network = make_first_network(
        options.network,
        settings.seed,
        sizes=ranks.on_first(lambda: _sizes(options)),
        # The first weights of a resumed run do not matter.
        dirac=settings.recipe.dirac and not options.resume,
    )
    optimizer = make_optimizer(network, settings.recipe, ranks)
    resumed = _load_together(options, network, optimizer, ranks)
    begun = optimizer.t, optimizer.epoch
    train_positions, test_positions = _read_together(options, ranks)
    _warn_of_missing_targets(network, settings.recipe, train_positions)
    ranks.on_first(lambda: _keep_earlier(options))
    logger.info(log.RECIPE, options.network, settings.batchsize)
    logger.info(log.START)
    task = Task(
        network,
        optimizer,
        train_positions,
        test_positions,
        settings,
        device,
        resumed=resumed,
        ranks=ranks,
    )
    signal_number = _train(task)
    if signal_number and (resumed or optimizer.t):
        left = _left(settings, optimizer.t - begun[0], optimizer.epoch - begun[1])
        logger.warning("to continue, %s", _how_to_continue(f"{_files(settings)}{left}"))
    return signal_number


def _warn_of_missing_targets(network: Network, recipe: Recipe, positions: AnyPositions) -> None:
    """Warns if no position has the visits or evaluations of the recipe, or a known result."""
    if recipe.policy_target == VISITS and not getattr(positions, "has_visits", False):
        logger.warning("no training position has visits: the moves played are the target")
    value_target = recipe.value_target
    if network.value_kind is None:
        return
    if all(numpy.isnan(value_target(chunk)).all() for chunk in chunks(positions)):
        logger.warning("no training game has a known result: the value head learns nothing")
    if value_target.value_lambda < 1 and all(
        (chunk["evaluation"] == NO_EVALUATION).all() for chunk in chunks(positions)
    ):
        logger.warning("no training position has an evaluation: the results alone are the target")


def _sizes(options: Options) -> dict[str, int]:
    """Returns the sizes that the options give; missing ones are those of ``initmodel``."""
    found = sizes_in_file(options.initmodel, options.network) if options.initmodel else {}
    return {**found, **options.sizes}


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
    name: str, seed: int, *, sizes: Mapping[str, int] | None = None, dirac: bool = False
) -> Network:
    """Makes a network whose first weights are determined by a seed.

    Args:
        name: Name of the network.
        seed: 0..2**32-1.
        sizes: Sizes other than the network's defaults, by name.
        dirac: Whether the identity is added to the first weights.

    Raises:
        FirstWeightsError: ``dirac``, and no layer of the network is fit for it.
    """
    numpy.random.seed(seed)  # Chainer's initializers use numpy's global generator.
    network = make_network(name, **(sizes or {}))
    if dirac and not add_identity(network):
        raise FirstWeightsError(
            "--dirac is for residual blocks, and for 3x3 convolutions with as many planes out as "
            f"in outside of residual blocks, and {name} has none. Leave it out."
        )
    return network


def _load_together(
    options: Options, network: Network, optimizer: chainer.Optimizer, ranks: Alone
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


def _read_together(options: Options, ranks: Alone) -> tuple[AnyPositions, AnyPositions]:
    """Reads both lists on the first rank. The others map the caches, or receive the positions.

    Visits are in no cache: the others receive them.
    """
    loaded: list[Loaded] = []

    def read() -> list[tuple[Path, str, tuple[str, ...], bool]]:
        loaded.extend(_read_positions(options))
        return [(item.cache, item.mark, item.shards, item.visits is not None) for item in loaded]

    sets = []
    for number, (cache, mark, shards, searched) in enumerate(ranks.on_first(read)):
        records = loaded[number].records if ranks.is_first else _map(cache, mark)
        records = _share(ranks, records)
        visits = _share_visits(ranks, loaded[number:]) if searched else None
        sets.append(with_shards(records, shards, visits))
    return sets[0], sets[1]


def _share_visits(ranks: Alone, loaded: list[Loaded]) -> Visits:
    """Sends the visits of the first item to the ranks that have no item."""
    mine = loaded[0].visits if loaded else None
    starts = ranks.broadcast_array(None if mine is None else mine.starts)
    candidates = ranks.broadcast_array(None if mine is None else mine.candidates)
    return Visits(starts, candidates)


def _share(ranks: Alone, positions: numpy.ndarray | None) -> numpy.ndarray:
    """Returns positions; all ranks receive them from the first one if a rank has None."""
    missing = ranks.highest(positions is None)
    return ranks.broadcast_array(positions) if missing or positions is None else positions


def _map(cache: Path, mark: str) -> numpy.ndarray | None:
    """Maps the cache of a list that another process has read; None if that is not possible."""
    try:
        return map_cache(cache, mark)
    except (OSError, CacheError):
        return None


def _read_positions(options: Options) -> tuple[Loaded, Loaded]:
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
    sets = {name: item.mapped for name, item in loaded.items()}
    for name, positions in sets.items():
        logger.info("%s position num = %d", name, len(positions))
    for name, item in loaded.items():
        if item.shards:
            in_shards = len(sets[name]) - len(item.records)
            logger.info("%s: %d positions in %d shards", name, in_shards, len(item.shards))
        for line in item.report.lines() if item.report.records else ():
            logger.info("%s: %s", name, line)
    train_set, test_set = loaded["train"], loaded["test"]
    if options.report:
        _merge(train_set.report, test_set.report).write_tsv(options.report)
    common = _count_common(sets["train"], sets["test"])
    logger.info("training positions that are also in the test set = %s", common)
    return train_set, test_set


def _count_common(train: AnyPositions, test: AnyPositions) -> str:
    """Counts the training positions that are also in the test set.

    Of many positions in shards, some are drawn: reading all would delay the start.
    """
    if isinstance(test, MappedPositions):
        if len(test) > _MOST_COUNTED:
            return f"not counted, because the test set has more than {_MOST_COUNTED} positions"
        test = test[:]
    if not isinstance(train, MappedPositions):
        return str(count_common(train, test))
    if len(train) <= _MOST_COUNTED:
        return str(sum(count_common(chunk, test) for chunk in chunks(train, _MOST_COUNTED // 4)))
    rows = make_order(len(train), random_of(0))[:_SAMPLE]
    train.prefetch(rows)
    drawn = train[rows]
    share = count_common(drawn, test) / len(drawn)
    return f"about {share * len(train):.0f} ({share:.2%} of a sample of {len(drawn)})"


def _load_list(name: str, path: str, options: Options) -> Loaded:
    """Reads a list, and logs whether its cache was read or written."""
    loaded = load_positions(
        path,
        strict=options.strict,
        drop_duplicates=options.drop_duplicates,
        visits=name == "train" and options.settings.recipe.policy_target == VISITS,
    )
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
