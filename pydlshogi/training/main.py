"""The program train_policy."""

from __future__ import annotations

import argparse
import dataclasses
import logging
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

from pydlshogi.training import log
from pydlshogi.training.outputs import OutputError, prepare_outputs
from pydlshogi.training.parser import build_parser

logger = logging.getLogger(__name__)


class RunError(Exception):
    """A run cannot go on; the text says why and what to do."""


def main(argv: Sequence[str] | None = None) -> int:
    """Trains the policy network as the command line says.

    Args:
        argv: The arguments; those of the process where it is None.

    Returns:
        Exit status: 0 when the run is done; 1 when it cannot go on, with one sentence on
        standard error; 128 and the signal's number when it was interrupted.

    Raises:
        SystemExit: status 2, by argparse: a value or an option that does not exist.
    """
    parser = build_parser()
    args = parser.parse_args(argv)
    if args.resume and not args.initmodel:
        parser.error("--resume needs the model of that run: give it as --initmodel")
    try:
        prepare_outputs(
            {
                "--model": args.model,
                "--state": args.state,
                "--log": args.log,
                "--report": args.report,
            },
            {"kifulist_train": args.kifulist_train, "kifulist_test": args.kifulist_test},
        )
    except OutputError as error:
        print(f"train_policy: error: {error}", file=sys.stderr)
        return 1
    with log.log_to(args.log):
        return _run(args)


def _run(args: argparse.Namespace) -> int:
    """Runs with the log open: errors that a user can cause become one sentence."""
    # Heavy imports come after the options have been found right.
    from pydlshogi.device import DeviceError
    from pydlshogi.network.model_file import ModelFileError
    from pydlshogi.read_kifu import KifuError
    from pydlshogi.training.checkpoint import StateFileError

    try:
        signal_number = _train(args)
    except KeyboardInterrupt:
        logger.warning("interrupted; the files are those of the last save")
        signal_number = int(signal.SIGINT)
    except (
        DeviceError,
        KifuError,
        ModelFileError,
        OSError,
        RunError,
        StateFileError,
    ) as error:
        logger.error("%s", error)
        return 1
    return 128 + signal_number if signal_number else 0


def _train(args: argparse.Namespace) -> int | None:
    """Does what the options say, in the order of the log lines."""
    from pydlshogi.compat import chainer
    from pydlshogi.device import select_device
    from pydlshogi.network.model_file import load_model
    from pydlshogi.training.checkpoint import load_pair
    from pydlshogi.training.trainer import Settings, train

    device = select_device(args.gpu)
    seed = int.from_bytes(os.urandom(4), "little") if args.seed is None else args.seed
    network = _make_network(args, seed)
    optimizer = chainer.optimizers.SGD(lr=args.lr)
    optimizer.setup(network)

    own = None
    if args.initmodel:
        logger.info(log.LOAD_MODEL, args.initmodel)
    if args.resume:
        logger.info(log.LOAD_STATE, args.resume)
        own = load_pair(args.initmodel, args.resume, network, optimizer)
        if args.seed is not None and int(own.get("place/seed", seed)) != seed:
            logger.warning("--seed %d is passed over: the run resumed has its own", seed)
    elif args.initmodel:
        load_model(args.initmodel, network)

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
    )
    logger.info("start training")
    return train(
        network, optimizer, train_positions, test_positions, settings, device=device, own=own
    )


def _make_network(args: argparse.Namespace, seed: int) -> Any:
    """Makes the network with weights that follow from the seed."""
    import numpy

    from pydlshogi.network.policy import PolicyNetwork
    from pydlshogi.network.threads import get_threads, set_threads

    set_threads(args.threads)
    try:
        get_threads()
    except ValueError as error:  # the environment variable that it reads
        raise RunError(f"{error}.") from None
    numpy.random.seed(seed)  # Chainer's initializers draw from numpy's own generator.
    return PolicyNetwork(convolution=args.convolution)


def _read_positions(args: argparse.Namespace) -> tuple[Any, Any]:
    """Reads both lists and logs what they hold and what was left out."""
    from pydlshogi.positions import count_common
    from pydlshogi.read_kifu import load_positions

    logger.info(log.READ_START)
    loaded = {}
    for name, path in (("train", args.kifulist_train), ("test", args.kifulist_test)):
        loaded[name] = load_positions(
            path, strict=args.strict, drop_duplicates=args.drop_duplicates
        )
        if loaded[name].from_cache:
            logger.info("load %s pickle", name)
        elif loaded[name].saved:
            logger.info("save %s pickle", name)
    logger.info(log.READ_END)
    for name, item in loaded.items():
        logger.info("%s position num = %d", name, len(item.positions))
    for name, item in loaded.items():
        for line in item.report.lines():
            logger.info("%s: %s", name, line)
    if args.report:
        _merge([item.report for item in loaded.values()]).write_tsv(args.report)
    train, test = loaded["train"].positions, loaded["test"].positions
    for path, positions in ((args.kifulist_train, train), (args.kifulist_test, test)):
        if not len(positions):
            raise RunError(f"{path}: no move in any of its games. Add games to the list.")
    common = count_common(train, test)
    logger.info("training positions that also stand in the test set = %d", common)
    return train, test


def _merge(reports: list[Any]) -> Any:
    """Makes one report of the training and the test set's; the file names tell them apart."""
    merged = reports[0]
    for report in reports[1:]:
        merged = dataclasses.replace(
            merged,
            excluded=merged.excluded + report.excluded,
            duplicates=merged.duplicates + report.duplicates,
            contradictions=merged.contradictions + report.contradictions,
        )
    return merged


if __name__ == "__main__":
    sys.exit(main())
