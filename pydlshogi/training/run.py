"""A run of train_policy, from its options to its files, in the order of its log lines."""

from __future__ import annotations

import argparse
import dataclasses
import logging
import os
from collections.abc import Mapping

import numpy

from pydlshogi.compat import chainer
from pydlshogi.device import DeviceError, select_device
from pydlshogi.kifu_list import read_list
from pydlshogi.kifu_report import Note, Report
from pydlshogi.network.dirac import add_identity
from pydlshogi.network.model_file import ModelFileError, load_model
from pydlshogi.network.network import Network
from pydlshogi.network.registry import make_network
from pydlshogi.network.threads import limit_blas, set_threads
from pydlshogi.positions import UNKNOWN
from pydlshogi.read_kifu import KifuError, count_common, load_positions
from pydlshogi.training import log
from pydlshogi.training.checkpoint import NotFiniteError, StateFileError, load_pair
from pydlshogi.training.outputs import OutputError, keep_earlier
from pydlshogi.training.recipe import Recipe, make_optimizer
from pydlshogi.training.trainer import Settings, train

logger = logging.getLogger(__name__)


class ThreadsError(Exception):
    """The number of threads in the environment is none; the text says so."""


class FirstWeightsError(Exception):
    """The network cannot begin as the options ask for; the text says so."""


#: What :func:`run` raises when a run cannot go on; the text is one sentence or two.
ERRORS = (
    DeviceError,
    FirstWeightsError,
    KifuError,
    ModelFileError,
    NotFiniteError,
    OSError,
    OutputError,
    StateFileError,
    ThreadsError,
)


def run(args: argparse.Namespace) -> int | None:
    """Trains as the options say.

    Args:
        args: What ``build_parser`` parsed; the folders of its outputs exist.

    Returns:
        As :func:`pydlshogi.training.trainer.train`.

    Raises:
        Exception: one of ``ERRORS``.
    """
    device = select_device(args.gpu)
    seed = int.from_bytes(os.urandom(4), "little") if args.seed is None else args.seed
    choose_threads(args.threads)
    network = make_first_network(args, seed)
    recipe = Recipe.of(args)
    optimizer = make_optimizer(network, recipe)
    own = _load(args, network, optimizer)
    train_positions, test_positions = _read_positions(args)
    settings = Settings(
        model=args.model,
        state=args.state,
        seed=seed,
        batchsize=args.batchsize,
        test_batchsize=args.test_batchsize,
        epoch=args.epoch,
        iterations=args.iterations,
        eval_interval=args.eval_interval,
        recipe=recipe,
    )
    if network.value_kind is not None and (train_positions["result"] == UNKNOWN).all():
        logger.warning("no training game has a known result: the value head learns nothing")
    model = args.initmodel if args.resume else ""
    for path, resumed in ((args.model, model), (args.state, args.resume)):
        copy = keep_earlier(path, resumed)
        if copy:
            logger.warning("%s is there already; what it holds is kept as %s", path, copy)
    logger.info(log.START)
    return train(
        network, optimizer, train_positions, test_positions, settings, device=device, own=own
    )


def choose_threads(number: int | None) -> None:
    """Sets how many threads compute a network on the CPU.

    Args:
        number: At least 1; None for what the environment or the machine says.

    Raises:
        ThreadsError: what the environment says is not a number of threads.
    """
    set_threads(number)
    try:
        limit_blas()
    except ValueError as error:
        raise ThreadsError(f"{error}.") from None


def make_first_network(args: argparse.Namespace, seed: int) -> Network:
    """Makes the network of a run, with first weights that follow from the seed.

    Args:
        args: The options ``network``, ``convolution`` and ``dirac``.
        seed: 0..2**32-1.

    Raises:
        FirstWeightsError: ``dirac`` is asked for, and no layer of the network is fit for it.
    """
    numpy.random.seed(seed)  # Chainer's initializers draw from numpy's own generator.
    network = make_network(args.network, args.convolution)
    if args.dirac and not add_identity(network):
        raise FirstWeightsError(
            f"--dirac is for 3x3 convolutions of as many planes out as in, and {args.network} has "
            "none. Leave it out."
        )
    return network


def _load(
    args: argparse.Namespace, network: Network, optimizer: chainer.Optimizer
) -> Mapping[str, numpy.ndarray] | None:
    """Reads the files to start from; returns what a state file holds of ours."""
    # The lines come after the loading: a reader of the log takes them to say that the next run
    # continues the curve, which one that cannot load its files does not.
    if not args.resume:
        if args.initmodel:
            load_model(args.initmodel, network)
            logger.info(log.LOAD_MODEL, args.initmodel)
        return None
    own = load_pair(args.initmodel, args.resume, network, optimizer)
    logger.info(log.LOAD_MODEL, args.initmodel)
    logger.info(log.LOAD_STATE, args.resume)
    if args.seed is not None and "place/seed" in own and int(own["place/seed"]) != args.seed:
        logger.warning("--seed %d is passed over: the run resumed keeps its own", args.seed)
    return own


def _read_positions(args: argparse.Namespace) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Reads both lists and logs what they hold and what was left out."""
    logger.info(log.READ_START)
    for path in (args.kifulist_train, args.kifulist_test):
        read_list(path)  # a wrong list is told at once, not after hours of the other's games
    loaded = {}
    for name, path in (("train", args.kifulist_train), ("test", args.kifulist_test)):
        item = load_positions(path, strict=args.strict, drop_duplicates=args.drop_duplicates)
        if item.from_cache:
            logger.info("load %s pickle", name)
        elif item.saved:
            logger.info("save %s pickle", name)
        loaded[name] = item
    logger.info(log.READ_END)
    for name, item in loaded.items():
        logger.info("%s position num = %d", name, len(item.positions))
    for name, item in loaded.items():
        for line in item.report.lines():
            logger.info("%s: %s", name, line)
    train_set, test_set = loaded["train"], loaded["test"]
    if args.report:
        _merge(train_set.report, test_set.report).write_tsv(args.report)
    common = count_common(train_set.positions, test_set.positions)
    logger.info("training positions that also stand in the test set = %d", common)
    return train_set.positions, test_set.positions


def _merge(train: Report, test: Report) -> Report:
    """Puts the notes of both lists into one report; the reason of each says of which it is."""

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
