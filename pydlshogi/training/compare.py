"""The program compare_networks: several networks trained alike, their table and curves.

Everything of a network is in a folder of its own name: its model, state and log. A
network whose state says that it has all its epochs is not trained again; one that was
interrupted, or killed, goes on from its last save. :mod:`.compare_recipes` compares one
network's recipes in the same way.
"""

from __future__ import annotations

import argparse
import json
import logging
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydlshogi.commands.program import out_of_memory, signal_of, terminable
from pydlshogi.commands.train_options import build_comparison_parser
from pydlshogi.files import write_beside
from pydlshogi.training import log
from pydlshogi.training.outputs import prepare_outputs

if TYPE_CHECKING:
    import numpy

    from pydlshogi.training.compare_table import Row
    from pydlshogi.training.end import Interruption

logger = logging.getLogger(__name__)

#: Options that change what comes out, beside the recipe, and must not change when a
#: comparison goes on.
SETTINGS = ("batchsize", "test_batchsize", "epoch", "lr", "eval_interval", "seed")


class CompareError(Exception):
    """The comparison cannot go on; the text says why and what to do."""


def main(argv: Sequence[str] | None = None) -> int:
    """Compares networks as the command line says.

    Args:
        argv: The arguments; those of the process where it is None.

    Returns:
        Exit status, as :func:`call`.
    """
    args = build_comparison_parser().parse_args(argv)
    return call("compare_networks", lambda: compare(args))


def call(program: str, comparison: Callable[[], int | None]) -> int:
    """Calls a comparison; what a user can cause becomes one sentence on standard error.

    Args:
        program: Its name.
        comparison: Returns and raises as :func:`compare`.

    Returns:
        Exit status: 0 when all is done; 1 when it cannot go on; 128 and the signal's
        number when it was interrupted.
    """
    try:
        # It imports Chainer, so it comes after the options have been found right.
        from pydlshogi.training.run import ERRORS
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    signal_number: int | None
    try:
        with terminable():
            signal_number = comparison()
    except KeyboardInterrupt as interrupt:
        signal_number = signal_of(interrupt)
    except MemoryError as error:
        print(f"{program}: error: {out_of_memory(error)}", file=sys.stderr)
        return 1
    except (CompareError, *ERRORS) as error:
        print(f"{program}: error: {error}", file=sys.stderr)
        return 1
    if signal_number:
        print(f"{program}: interrupted. The same command goes on from here.", file=sys.stderr)
        return 128 + signal_number
    return 0


def compare(args: argparse.Namespace) -> int | None:
    """Trains what is missing, and writes table and curves after each network.

    Args:
        args: What ``build_comparison_parser`` parsed.

    Returns:
        None when all is done, else the number of the signal that interrupted it.

    Raises:
        Exception: ``CompareError`` or one of ``training.run.ERRORS``.
    """
    from pydlshogi.device import in_words
    from pydlshogi.training.recipe import Recipe

    variants = {
        name: argparse.Namespace(**{**vars(args), "network": name}) for name in args.networks
    }
    device = prepare(args, variants)
    train_set = first(read_positions(args.kifulist_train), args.positions, args.kifulist_train)
    test_set = first(read_positions(args.kifulist_test), args.test_positions, args.kifulist_test)
    output = Path(args.output)
    check_settings(output / "settings.json", args, SETTINGS, train_set, test_set)
    caption = (
        f"{len(train_set)} training and {len(test_set)} test positions, {epochs(args.epoch)}, "
        f"batch {args.batchsize}, {Recipe.of(args)}, seed {args.seed}, "
        f"on the {in_words(device)}."
    )
    return train_all("network", variants, output, train_set, test_set, device, caption)


def epochs(number: int) -> str:
    """Says a number of epochs in words."""
    return "1 epoch" if number == 1 else f"{number} epochs"


def prepare(args: argparse.Namespace, variants: Mapping[str, argparse.Namespace]) -> Any:
    """Sees whether all variants can begin, and makes ready for them.

    Args:
        args: The options of the comparison: threads, output and GPU.
        variants: The options of each variant, by name.

    Returns:
        The ``chainer.backend.Device`` to compute on.

    Raises:
        Exception: as :func:`compare`.
    """
    from pydlshogi.device import select_device
    from pydlshogi.training.run import choose_threads, make_first_network

    device = select_device(args.gpu)
    choose_threads(args.threads)
    # What cannot begin is told before anything is read, written or trained.
    for options in variants.values():
        make_first_network(options, options.seed)
    prepare_outputs({"--output": str(Path(args.output) / "table.md")}, {})
    return device


def train_all(
    kind: str,
    variants: Mapping[str, argparse.Namespace],
    output: Path,
    train_set: numpy.ndarray,
    test_set: numpy.ndarray,
    device: Any,
    caption: str,
) -> int | None:
    """Trains what is missing, and writes table and curves after each variant.

    A variant whose training diverges is named below the table, and the others go on.

    Args:
        kind: What they are variants of: the head of the table's first column.
        variants: The options of each, by name.
        output: The folder that table and curves, and a folder of each, go to.
        train_set: (n,) array of ``POSITION``.
        test_set: (m,) array of ``POSITION``.
        device: The ``chainer.backend.Device`` to compute on.
        caption: What stands below the table.

    Returns:
        As :func:`compare`, and it raises the same.
    """
    from pydlshogi.training.checkpoint import NotFiniteError, StateFileError
    from pydlshogi.training.end import Interruption

    rows = []
    interruption = Interruption()
    for name, options in variants.items():
        # It may have come in the last iteration of the variant before, or after that.
        if interruption.signal_number:
            return interruption.signal_number
        print(f"{name}: {len(train_set)} positions, {epochs(options.epoch)}", flush=True)
        try:
            signal_number = _train(
                options, output / name, train_set, test_set, device, interruption
            )
        except NotFiniteError as error:
            print(f"{name}: {error}", file=sys.stderr)
            caption += f" The training of {name} diverged: it is not in the table."
        except StateFileError as error:  # whose remedies are options of train_policy
            raise CompareError(
                f"{error.problem}. Delete {output / name} to train it anew."
            ) from None
        else:
            if signal_number:
                return signal_number
            rows.append(_row(name, output / name))
        if rows:
            _write(output, kind, rows, caption)
    if not rows:
        raise CompareError("every training diverged. Lower --lr, and give --output another folder.")
    print((output / "table.md").read_text(encoding="utf-8"))
    return None


def read_positions(path: str) -> numpy.ndarray:
    """Reads the positions of a list."""
    from pydlshogi.kifu.loading import load_positions

    games = load_positions(path)
    games.report.print(path)
    return games.positions


def first(positions: numpy.ndarray, most: int | None, path: str) -> numpy.ndarray:
    """Takes the first positions of a list; all where ``most`` is None.

    Raises:
        CompareError: there are fewer than that.
    """
    if most is not None and most > len(positions):
        raise CompareError(
            f"{path} has {len(positions)} positions, not the {most} asked for. "
            "Ask for fewer, or leave the option out to take all."
        )
    return positions[:most]


def check_settings(
    path: Path,
    options: argparse.Namespace,
    names: Iterable[str],
    train_set: numpy.ndarray,
    test_set: numpy.ndarray,
) -> None:
    """Makes sure that what was trained yesterday was trained as it would be today.

    Args:
        path: Where the settings stand, or will.
        options: The options of today.
        names: Which of them matter, beside those of the recipe.
        train_set: (n,) array of ``POSITION``.
        test_set: (m,) array of ``POSITION``.

    Raises:
        CompareError: other settings stand there.
    """
    from pydlshogi.training.recipe import Recipe
    from pydlshogi.training.state import checksum

    settings = {**Recipe.of(options).changes(), **{name: getattr(options, name) for name in names}}
    settings["train positions"] = f"{len(train_set)}, checksum {checksum(train_set)}"
    settings["test positions"] = f"{len(test_set)}, checksum {checksum(test_set)}"
    text = json.dumps(settings, indent=1)
    if not path.exists():
        with write_beside(path) as file:
            file.write(text.encode())
        return
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        before = {}
    now = json.loads(text)
    for name in {**now, **before}:
        if before.get(name) != now.get(name):
            raise CompareError(
                f"{path.parent} holds a comparison with other settings ({name}: "
                f"{before.get(name)} there, {now.get(name)} now). Give --output another folder."
            )


def _train(
    options: argparse.Namespace,
    folder: Path,
    train_set: numpy.ndarray,
    test_set: numpy.ndarray,
    device: Any,
    interruption: Interruption,
) -> int | None:
    """Trains one variant as far as it is not yet; returns as ``trainer.train`` does."""
    from pydlshogi.training.checkpoint import load_pair
    from pydlshogi.training.recipe import Recipe, make_optimizer
    from pydlshogi.training.run import make_first_network
    from pydlshogi.training.trainer import Settings, train

    network = make_first_network(options, options.seed)
    recipe = Recipe.of(options)
    optimizer = make_optimizer(network, recipe)
    model, state = folder / "model", folder / "state"
    folder.mkdir(exist_ok=True)
    with log.log_to(folder / "log.txt"):
        own = None
        if state.exists():
            own = load_pair(model, state, network, optimizer)
            if optimizer.epoch >= options.epoch:
                return None
            logger.info(log.LOAD_MODEL, model)
            logger.info(log.LOAD_STATE, state)
        logger.info(log.READ_START)
        logger.info(log.START)
        settings = Settings(
            model=model,
            state=state,
            seed=options.seed,
            batchsize=options.batchsize,
            test_batchsize=options.test_batchsize,
            epoch=options.epoch - optimizer.epoch,
            eval_interval=options.eval_interval,
            recipe=recipe,
        )
        return train(
            network,
            optimizer,
            train_set,
            test_set,
            settings,
            device=device,
            own=own,
            interruption=interruption,
        )


def _row(name: str, folder: Path) -> Row:
    """Gathers what a variant that is trained has left behind."""
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


def _write(output: Path, kind: str, rows: Sequence[Row], caption: str) -> None:
    """Writes the tables and the curves of the variants that are trained."""
    from pydlshogi.training.compare_table import format_markdown, format_tsv
    from pydlshogi.training.plot import PlotError, save

    for name, text in (
        ("table.md", format_markdown(rows, caption, kind)),
        ("table.tsv", format_tsv(rows, kind)),
    ):
        with write_beside(output / name) as file:
            file.write(text.encode())
    try:
        save({row.name: row.curve for row in rows}, output / "curves.png")
    except PlotError as error:
        print(f"no curves: {error}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
