"""A run of train_policy, from its options to its files, in the order of its log lines."""

from __future__ import annotations

import argparse
import dataclasses
import logging
import os
import shlex
from collections.abc import Mapping

import numpy

from pydlshogi.compat import chainer
from pydlshogi.device import DeviceError, select_device
from pydlshogi.kifu.loading import load_positions
from pydlshogi.kifu.report import Note, Report
from pydlshogi.kifu.sources import KifuError, read_list
from pydlshogi.network.cpu.threads import limit_blas, set_threads
from pydlshogi.network.dirac import add_identity
from pydlshogi.network.model_file import ModelFileError, load_model
from pydlshogi.network.network import Network
from pydlshogi.network.registry import make_network
from pydlshogi.positions import UNKNOWN, count_common
from pydlshogi.training import log
from pydlshogi.training.checkpoint import (
    NotFiniteError,
    SaveError,
    StateFileError,
    finish_save,
    load_pair,
)
from pydlshogi.training.outputs import OutputError, keep_earlier, real_path
from pydlshogi.training.recipe import Recipe, make_optimizer
from pydlshogi.training.trainer import Settings, check_resumed, train

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
    own = _load(args, network, optimizer, settings)
    begun = optimizer.t, optimizer.epoch
    train_positions, test_positions = _read_positions(args)
    if network.value_kind is not None and (train_positions["result"] == UNKNOWN).all():
        logger.warning("no training game has a known result: the value head learns nothing")
    _keep_earlier(args)
    logger.info(log.START)
    files = f"--initmodel {shlex.quote(args.model)} --resume {shlex.quote(args.state)}"
    try:
        signal_number = train(
            network, optimizer, train_positions, test_positions, settings, device=device, own=own
        )
    except SaveError as error:
        if os.path.exists(args.state):
            raise SaveError(f"{str(error).rstrip('.')} and go on with {files}.") from None
        raise
    if signal_number and (args.resume or optimizer.t):
        left = _left(args, optimizer.t - begun[0], optimizer.epoch - begun[1])
        logger.warning("to go on, add %s%s to the same command", files, left)
    return signal_number


def _left(args: argparse.Namespace, iterations: int, epochs: int) -> str:
    """Gives the options that are not those of the command where a run goes on to its end.

    Args:
        args: The options of the command; ``epoch`` and ``iterations`` count from its start.
        iterations: Number of updates it did.
        epochs: Number of epochs it finished.
    """
    options = f" --epoch {args.epoch - epochs}" if epochs else ""
    if args.iterations is not None and iterations:
        options += f" --iterations {args.iterations - iterations}"
    return options


def _keep_earlier(args: argparse.Namespace) -> None:
    """Keeps the pair that is going to be replaced, unless it is the one that goes on."""
    if (
        args.resume
        and real_path(args.initmodel) == real_path(args.model)
        and real_path(args.resume) == real_path(args.state)
    ):
        return
    finish_save(args.model, args.state)  # else a save that was killed is no pair to keep
    for path in (args.model, args.state):
        copy = keep_earlier(path)
        if copy:
            logger.warning("%s is there already; what it holds is kept as %s", path, copy)


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
        args: The options ``network``, ``convolution`` and ``dirac``; with ``resume`` the
            first weights do not matter.
        seed: 0..2**32-1.

    Raises:
        FirstWeightsError: ``dirac`` is asked for, and no layer of the network is fit for it.
    """
    numpy.random.seed(seed)  # Chainer's initializers draw from numpy's own generator.
    network = make_network(args.network, args.convolution)
    if args.dirac and not getattr(args, "resume", "") and not add_identity(network):
        raise FirstWeightsError(
            "--dirac is for 3x3 convolutions of as many planes out as in, outside of residual "
            f"blocks, and {args.network} has none. Leave it out."
        )
    return network


def _load(
    args: argparse.Namespace, network: Network, optimizer: chainer.Optimizer, settings: Settings
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
    differences = check_resumed(settings, own)
    logger.info(log.LOAD_MODEL, args.initmodel)
    logger.info(log.LOAD_STATE, args.resume)
    for difference in differences:
        logger.warning("not as in the run that is resumed: %s", difference)
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
