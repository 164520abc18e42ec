"""Comparison of recipes: each trains on the same positions; then a table and curves.

Every recipe has a folder of its own for its model, state, log and settings. A recipe that
has all its epochs is not trained again. One that was interrupted or killed continues from
its last save.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy

from pydlshogi.errors import UserError
from pydlshogi.figure import DrawingError
from pydlshogi.files import write_beside
from pydlshogi.network.model_file import ModelFileError, load_network
from pydlshogi.outputs import prepare_outputs
from pydlshogi.text import counted
from pydlshogi.training import log
from pydlshogi.training.checkpoint import NotFiniteError, load_pair
from pydlshogi.training.compare_table import Row, format_markdown, format_tsv
from pydlshogi.training.datasets import warn_of_missing_targets
from pydlshogi.training.end import Interruption
from pydlshogi.training.log_file import log_to
from pydlshogi.training.plot import save
from pydlshogi.training.recipe import make_optimizer
from pydlshogi.training.run import make_first_network
from pydlshogi.training.state import StateFileError, checksum, load_state
from pydlshogi.training.trainer import Settings, Task, train

logger = logging.getLogger(__name__)


class CompareError(UserError):
    """The comparison cannot start or continue."""


@dataclasses.dataclass(frozen=True)
class Variant:
    """One of the recipes that are compared.

    Attributes:
        name: Its name, also of its folder.
        words: Its options, as the user wrote them.
        network: Name of the network.
        sizes: Sizes of the network other than its defaults, by name.
        settings: What its run has to do; the files are in its folder.
    """

    name: str
    words: str
    network: str
    sizes: Mapping[str, int]
    settings: Settings

    @property
    def folder(self) -> Path:
        """The folder of its files."""
        return Path(self.settings.model).parent

    def make_network(self) -> Any:
        """Makes the network with its first weights.

        Raises:
            FirstWeightsError: no layer is fit for ``--dirac``.
        """
        return make_first_network(
            self.network,
            self.settings.seed,
            sizes=self.sizes,
            dirac=self.settings.recipe.dirac,
        )

    def determinants(self) -> dict[str, Any]:
        """Returns everything that determines the result beside the positions, by name."""
        names = ("batchsize", "test_batchsize", "epoch", "eval_interval", "seed")
        values = {name: getattr(self.settings, name) for name in names}
        values.update(self.settings.recipe.changes())
        values.update(network=self.network, lr=self.settings.recipe.lr)
        return {**values, **self.sizes}


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What is compared, and on what.

    Attributes:
        variants: The recipes.
        output: Folder of the table, the curves and the folders of the recipes.
        train_set: (n,) array of ``POSITION``.
        test_set: (m,) array of ``POSITION``.
        device: The ``chainer.backend.Device`` that computes.
        caption: Text below the table.
    """

    variants: Sequence[Variant]
    output: Path
    train_set: numpy.ndarray
    test_set: numpy.ndarray
    device: Any
    caption: str


def check_variants(variants: Sequence[Variant], output: Path) -> None:
    """Checks that all recipes can start, before anything is read or trained.

    Raises:
        UserError: a network has no layer for ``--dirac``, or the folder cannot be used.
    """
    for variant in variants:
        variant.make_network()
    prepare_outputs({"--output": str(output / "table.md")}, {})


def first(positions: numpy.ndarray, most: int | None, source: str) -> numpy.ndarray:
    """Returns the first positions of an array.

    Args:
        positions: (n,) array of ``POSITION``.
        most: How many; None for all.
        source: Where they come from, for the error message.

    Raises:
        CompareError: there are fewer.
    """
    if most is not None and most > len(positions):
        raise CompareError(
            f"{source}: {counted(len(positions), 'position')}, fewer than {most}. "
            "Ask for fewer, or leave the option out to use all."
        )
    return positions[:most]


def hold_out(positions: numpy.ndarray, games: int) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Separates the last games of a list from the others.

    Args:
        positions: (n,) array of ``POSITION``, game by game.
        games: Number of games to hold out.

    Returns:
        The positions of the other games, and those of the last games.

    Raises:
        CompareError: the list has no other games, or single positions instead of games.
    """
    ply = positions["ply"].astype(numpy.int64)
    steps = numpy.diff(ply, prepend=ply[:1])
    # HCPE has no move numbers, and in a shuffled file few positions follow their predecessors.
    pieces = numpy.diff(numpy.flatnonzero(steps != 1), append=len(ply))
    if (ply == 0).any() or (pieces == 1).mean() > 0.5:
        raise CompareError(
            "--held_out needs whole games, as in CSA and KIF records, and the list has single "
            "positions. Give the test games as --kifulist_test."
        )
    # A game of HCPE3 may lack some positions.
    starts = numpy.flatnonzero(steps <= 0)
    if games >= len(starts):
        raise CompareError(
            f"--held_out {games} leaves no game for training, because the list has "
            f"{counted(len(starts), 'game')}. Hold out fewer games."
        )
    return positions[: starts[-games]], positions[starts[-games] :]


def compare(comparison: Comparison) -> int | None:
    """Trains what is missing, and writes the table and the curves after each recipe.

    A recipe whose training diverges is named below the table, and the others continue.

    Returns:
        None if all is done; the number of the signal if it was interrupted.

    Raises:
        UserError: a recipe cannot start or continue, or all diverged.
        OSError: a file cannot be written.
    """
    for variant in comparison.variants:
        _check_settings(variant, comparison)
    rows: list[Row] = []
    diverged: list[str] = []
    interruption = Interruption()
    for variant in comparison.variants:
        # The signal may have come in the last iteration of the recipe before.
        if interruption.signal_number:
            return interruption.signal_number
        print(f"{variant.name}: {variant.words or 'the published recipe'}", flush=True)
        try:
            signal_number = _train(variant, comparison, interruption)
        except NotFiniteError as error:
            print(f"{variant.name}: {error}", file=sys.stderr)
            diverged.append(variant.name)
        else:
            if signal_number:
                return signal_number
            rows.append(_row(variant))
        if rows:
            _write(comparison, rows, diverged)
    if not rows:
        raise CompareError("every training diverged. Lower --lr, and choose another --output.")
    print((comparison.output / "table.md").read_text(encoding="utf-8"))
    return None


def _check_settings(variant: Variant, comparison: Comparison) -> None:
    """Checks that earlier results of a recipe were trained with today's settings.

    Raises:
        CompareError: the settings in its folder differ.
    """
    settings = variant.determinants()
    for name, positions in (("train", comparison.train_set), ("test", comparison.test_set)):
        check = checksum(positions, variant.settings.recipe.value_lambda < 1)
        settings[f"{name} positions"] = f"{len(positions)}, checksum {check}"
    text = json.dumps(settings, indent=1)
    variant.folder.mkdir(exist_ok=True)
    path = variant.folder / "settings.json"
    is_trained = Path(variant.settings.state).exists()
    if not (is_trained and path.exists()):
        with write_beside(path) as file:
            file.write(text.encode())
        return
    try:
        before = dict(json.loads(path.read_text(encoding="utf-8")))
    except (TypeError, ValueError):
        raise _cannot_continue(variant, f"{path} is damaged") from None
    now = json.loads(text)
    for name in {**now, **before}:
        if before.get(name) != now.get(name):
            raise CompareError(
                f"{variant.folder} holds the results of other settings ({name} was "
                f"{before.get(name)} and is {now.get(name)} now). Give the recipe another name, "
                "or choose another --output."
            )


def _train(variant: Variant, comparison: Comparison, interruption: Interruption) -> int | None:
    """Trains a recipe as far as it is not trained yet; returns as ``trainer.train``."""
    settings = variant.settings
    network = variant.make_network()
    optimizer = make_optimizer(network, settings.recipe)
    with log_to(variant.folder / "log.txt"):
        resumed = None
        if Path(settings.state).exists():
            try:
                resumed = load_pair(settings.model, settings.state, network, optimizer)
            # The remedies of these errors are options of other programs.
            except StateFileError as error:
                raise _cannot_continue(variant, error.problem) from None
            except ModelFileError:
                raise _cannot_continue(variant, _no_model(variant)) from None
            done = optimizer.epoch if resumed.place is None else resumed.place.validated_epochs
            if done >= settings.epoch:
                return None
            settings = dataclasses.replace(settings, epoch=settings.epoch - done)
            logger.info(log.LOAD_MODEL, settings.model)
            logger.info(log.LOAD_STATE, settings.state)
            logger.info(log.RESUME, optimizer.t)
        logger.info(log.READ_START)
        warn_of_missing_targets(network, settings.recipe, comparison.train_set)
        logger.info(log.RECIPE, variant.network, settings.batchsize)
        logger.info(log.START)
        task = Task(
            network,
            optimizer,
            comparison.train_set,
            comparison.test_set,
            settings,
            comparison.device,
            resumed=resumed,
        )
        try:
            return train(task, interruption)
        except StateFileError as error:
            raise _cannot_continue(variant, error.problem) from None


def _no_model(variant: Variant) -> str:
    return f"model file {variant.settings.model} cannot be used"


def _cannot_continue(variant: Variant, problem: str) -> CompareError:
    return CompareError(f"{problem}. Delete {variant.folder} to train it again.")


def _row(variant: Variant) -> Row:
    """Collects the results of a recipe that is trained."""
    path = variant.folder / "log.txt"
    curves = log.read_log(path.read_text(encoding="utf-8").splitlines())
    if not curves or not curves[-1].epochs:
        raise _cannot_continue(variant, f"{path} lacks the lines of the training")
    place = load_state(variant.settings.state).place
    try:
        network = load_network(variant.settings.model)
    except ModelFileError:
        raise _cannot_continue(variant, _no_model(variant)) from None
    return Row(
        variant.name,
        network.count_params(),
        place.seconds if place else 0.0,
        curves[-1],
        has_policy=network.has_policy,
    )


def _write(comparison: Comparison, rows: Sequence[Row], diverged: Sequence[str]) -> None:
    """Writes the tables and the curves of the recipes that are trained."""
    told = [f" The training of {name} diverged: it is not in the table." for name in diverged]
    caption = comparison.caption + "".join(told)
    for name, text in (
        ("table.md", format_markdown(rows, caption)),
        ("table.tsv", format_tsv(rows)),
    ):
        with write_beside(comparison.output / name) as file:
            file.write(text.encode("utf-8", "backslashreplace"))
    try:
        save({row.name: row.curve for row in rows}, comparison.output / "curves.png")
    except DrawingError as error:
        print(f"no curves: {error}", file=sys.stderr)
