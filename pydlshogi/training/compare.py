"""The program compare_networks: several networks trained alike, their table and curves.

Everything of a network is in a folder of its own name: its model, state and log. A
network whose state says that it has all its epochs is not trained again; one that was
interrupted, or killed, goes on from its last save.
"""

from __future__ import annotations

import argparse
import json
import logging
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydlshogi.files import write_beside
from pydlshogi.training import log
from pydlshogi.training.outputs import OutputError, prepare_outputs
from pydlshogi.training.parser import build_comparison_parser

if TYPE_CHECKING:
    import numpy

    from pydlshogi.training.compare_table import Row

logger = logging.getLogger(__name__)

#: Options that change what comes out, and must not change when a comparison goes on.
_RECIPE = ("batchsize", "test_batchsize", "epoch", "lr", "eval_interval", "seed")


class CompareError(Exception):
    """The comparison cannot go on; the text says why and what to do."""


def main(argv: Sequence[str] | None = None) -> int:
    """Compares networks as the command line says.

    Args:
        argv: The arguments; those of the process where it is None.

    Returns:
        Exit status: 0 when all is done; 1 when it cannot go on, with one sentence on
        standard error; 128 and the signal's number when it was interrupted.
    """
    args = build_comparison_parser().parse_args(argv)
    try:
        # It imports Chainer, so it comes after the options have been found right.
        from pydlshogi.training.run import ERRORS
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    try:
        signal_number = compare(args)
    except KeyboardInterrupt:
        signal_number = signal.SIGINT
    except (CompareError, OutputError, *ERRORS) as error:
        print(f"compare_networks: error: {error}", file=sys.stderr)
        return 1
    if signal_number:
        print("compare_networks: interrupted. The same command goes on from here.", file=sys.stderr)
        return 128 + signal_number
    return 0


def compare(args: argparse.Namespace) -> int | None:
    """Trains what is missing, and writes table and curves after each network.

    Args:
        args: What ``build_comparison_parser`` parsed.

    Returns:
        None when all is done, else the number of the signal that interrupted it.

    Raises:
        Exception: ``CompareError``, ``OutputError`` or one of ``training.run.ERRORS``.
    """
    from pydlshogi.device import select_device
    from pydlshogi.training.run import choose_threads

    device = select_device(args.gpu)
    choose_threads(args.threads)
    output = Path(args.output)
    prepare_outputs({"--output": str(output / "table.md")}, {})
    train_set = _positions(args.kifulist_train, args.positions)
    test_set = _positions(args.kifulist_test, args.test_positions)
    _check_settings(output / "settings.json", args, train_set, test_set)

    rows = []
    for name in dict.fromkeys(args.networks):
        print(f"{name}: {len(train_set)} positions, {args.epoch} epochs", flush=True)
        signal_number = _train(name, output / name, args, train_set, test_set, device)
        if signal_number:
            return signal_number
        rows.append(_row(name, output / name))
        caption = (
            f"{len(train_set)} training and {len(test_set)} test positions, {args.epoch} epochs, "
            f"batch {args.batchsize}, SGD {args.lr:g}, seed {args.seed}, {device}."
        )
        _write(output, rows, caption)
    print((output / "table.md").read_text(encoding="utf-8"))
    return None


def _positions(path: str, most: int | None) -> numpy.ndarray:
    """Reads the first positions of a list."""
    from pydlshogi.read_kifu import load_positions

    positions = load_positions(path).positions
    if most is not None and most > len(positions):
        raise CompareError(
            f"{path} has {len(positions)} positions, not the {most} asked for. "
            "Ask for fewer, or leave the option out to take all."
        )
    return positions[:most]


def _check_settings(
    path: Path, args: argparse.Namespace, train_set: numpy.ndarray, test_set: numpy.ndarray
) -> None:
    """Makes sure that all networks of a folder are trained alike, today's and yesterday's."""
    from pydlshogi.training.state import checksum

    settings = {name: getattr(args, name) for name in _RECIPE}
    settings["train positions"] = f"{len(train_set)}, checksum {checksum(train_set)}"
    settings["test positions"] = f"{len(test_set)}, checksum {checksum(test_set)}"
    if path.exists():
        try:
            before = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            before = {}
        for name, value in settings.items():
            if before.get(name) != value:
                raise CompareError(
                    f"{path.parent} holds a comparison with other settings ({name}: "
                    f"{before.get(name)} there, {value} now). Give --output another folder."
                )
        return
    with write_beside(path) as file:
        file.write(json.dumps(settings, indent=1).encode())


def _train(
    name: str,
    folder: Path,
    args: argparse.Namespace,
    train_set: numpy.ndarray,
    test_set: numpy.ndarray,
    device: Any,
) -> int | None:
    """Trains one network as far as it is not yet; returns as ``trainer.train`` does."""
    import numpy

    from pydlshogi.compat import chainer
    from pydlshogi.network.registry import make_network
    from pydlshogi.training.checkpoint import load_pair
    from pydlshogi.training.trainer import Settings, train

    numpy.random.seed(args.seed)  # Chainer's initializers draw from numpy's own generator.
    network = make_network(name, args.convolution)
    optimizer = chainer.optimizers.SGD(lr=args.lr).setup(network)
    model, state = folder / "model", folder / "state"
    folder.mkdir(exist_ok=True)
    with log.log_to(folder / "log.txt"):
        own = None
        if state.exists():
            own = load_pair(model, state, network, optimizer)
            if optimizer.epoch >= args.epoch:
                return None
            logger.info(log.LOAD_MODEL, model)
            logger.info(log.LOAD_STATE, state)
        logger.info(log.READ_START)
        logger.info(log.START)
        settings = Settings(
            model=model,
            state=state,
            seed=args.seed,
            batchsize=args.batchsize,
            test_batchsize=args.test_batchsize,
            epoch=args.epoch - optimizer.epoch,
            eval_interval=args.eval_interval,
        )
        return train(network, optimizer, train_set, test_set, settings, device=device, own=own)


def _row(name: str, folder: Path) -> Row:
    """Gathers what a network that is trained has left behind."""
    import numpy

    from pydlshogi.network.model_file import load_network
    from pydlshogi.training.checkpoint import OWN
    from pydlshogi.training.compare_table import Row

    with numpy.load(folder / "state") as state:
        seconds = float(state[f"{OWN}seconds"])
    curves = log.read_log((folder / "log.txt").read_text(encoding="utf-8").splitlines())
    if not curves or not curves[-1].epochs:
        raise CompareError(f"{folder / 'log.txt'} lacks the lines of its run. Delete {folder}.")
    parameters = load_network(folder / "model").count_params()
    return Row(name, parameters, seconds, curves[-1])


def _write(output: Path, rows: Sequence[Row], caption: str) -> None:
    """Writes the tables and the curves of the networks that are trained."""
    from pydlshogi.training.compare_table import format_markdown, format_tsv
    from pydlshogi.training.plot import PlotError, save

    for name, text in (
        ("table.md", format_markdown(rows, caption)),
        ("table.tsv", format_tsv(rows)),
    ):
        with write_beside(output / name) as file:
            file.write(text.encode())
    try:
        save({row.name: row.curve for row in rows}, output / "curves.png")
    except PlotError as error:
        print(f"compare_networks: no curves: {error}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
