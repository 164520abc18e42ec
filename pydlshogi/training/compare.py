"""Comparison of recipes: each trains on the same positions; then a table and curves.

Every recipe has a folder of its own for its model, state, log and settings. A recipe that
has all its epochs is not trained again. One that was interrupted or killed continues from
its last save.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy

from pydlshogi import table
from pydlshogi.errors import UserError
from pydlshogi.figure import DrawingError
from pydlshogi.files import write_beside
from pydlshogi.model_files.model_file import ModelFileError, load_network
from pydlshogi.text import counted
from pydlshogi.training import log
from pydlshogi.training.checkpoint import NotFiniteError
from pydlshogi.training.end import Interruption
from pydlshogi.training.log_file import log_to
from pydlshogi.training.plot import save
from pydlshogi.training.recipe import Options
from pydlshogi.training.run import load_start, make_task
from pydlshogi.training.state import StateFileError, checksum, load_state
from pydlshogi.training.trainer import train

#: Number of log points at the end of training whose mean is compared, as published.
LAST_POINTS = 20

# Head of each column in Markdown.
_HEADS = {
    "train_loss": "train loss",
    "test_accuracy": "test accuracy",
    "whole_test_loss": "test loss",
    "whole_test_accuracy": "accuracy, whole test set",
    "whole_test_value_loss": "value loss",
    "whole_test_value_accuracy": "value accuracy",
}


#: Games that are held out of a long list.
HELD_OUT = 200

#: Fewest positions of a game on average in a list of whole games.
_SHORTEST = 2.2


class CompareError(UserError):
    """The comparison cannot start or continue."""


@dataclasses.dataclass(frozen=True)
class Variant:
    """One of the recipes that are compared.

    Attributes:
        words: Its options, as the user wrote them.
        options: What its run has to do, without lists; the files are in its folder.
    """

    name: str
    words: str
    options: Options

    @property
    def folder(self) -> Path:
        """The folder of its files."""
        return Path(self.options.settings.model).parent

    def determinants(self) -> dict[str, Any]:
        """Returns everything that determines the result beside the positions, by name."""
        settings = self.options.settings
        names = ("batchsize", "test_batchsize", "epoch", "eval_interval", "seed")
        values = {name: getattr(settings, name) for name in names}
        values.update(settings.recipe.changes())
        values.update(network=self.options.network, lr=settings.recipe.lr)
        return {**values, **self.options.sizes}


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The recipes, the (n,) arrays of ``POSITION``, the device, and a text below the table."""

    variants: Sequence[Variant]
    output: Path
    train_set: numpy.ndarray
    test_set: numpy.ndarray
    device: Any
    caption: str


def first(positions: numpy.ndarray, most: int | None, source: str) -> numpy.ndarray:
    """Returns the first ``most`` positions, all if it is None; errors name the ``source``.

    Raises:
        CompareError: there are fewer.
    """
    if most is not None and most > len(positions):
        raise CompareError(
            f"{source}: {counted(len(positions), 'position')}, fewer than {most}. "
            "Ask for fewer, or leave the option out to use all."
        )
    return positions[:most]


def game_starts(positions: numpy.ndarray) -> numpy.ndarray:
    """Returns where the games of a list start; positions of HCPE3 may be missing in a game."""
    ply = positions["ply"].astype(numpy.int64)
    return numpy.flatnonzero(numpy.diff(ply, prepend=ply[:1]) <= 0)


def hold_out(positions: numpy.ndarray, games: int | None) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Returns the positions of a list without the last games, and those of the last games.

    Without a number these are 200 games, but at most a fifth.

    Raises:
        CompareError: the list has no other games, or single positions instead of games.
    """
    starts = game_starts(positions)
    # HCPE has no move numbers. In a shuffled file, they rise for two positions on average.
    if (positions["ply"] == 0).any() or len(positions) < _SHORTEST * len(starts):
        raise CompareError(
            "held_out needs whole games, as in CSA and KIF records, and the list has single "
            "positions. Give the test games as kifulist_test."
        )
    games = games or max(1, min(HELD_OUT, len(starts) // 5))
    if games >= len(starts):
        raise CompareError(
            f"held_out {games} leaves no game for training, because the list has "
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
        raise CompareError(
            "every training diverged. Lower the learning rate, and choose another output folder."
        )
    print((comparison.output / "table.md").read_text(encoding="utf-8"))
    return None


def _check_settings(variant: Variant, comparison: Comparison) -> None:
    """Checks that earlier results of a recipe were trained with today's settings, or notes these.

    Raises:
        CompareError: the settings in its folder differ.
    """
    settings, run = variant.determinants(), variant.options.settings
    for name, positions in (("train", comparison.train_set), ("test", comparison.test_set)):
        check = checksum(positions, run.recipe.value_lambda < 1)
        settings[f"{name} positions"] = f"{len(positions)}, checksum {check}"
    text = json.dumps(settings, indent=1)
    variant.folder.mkdir(exist_ok=True)
    path = variant.folder / "settings.json"
    if not (Path(run.state).exists() and path.exists()):
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
                "or choose another output folder."
            )


def _train(variant: Variant, comparison: Comparison, interruption: Interruption) -> int | None:
    """Trains a recipe as far as it is not trained yet; returns as ``trainer.train``."""
    options, settings = variant.options, variant.options.settings
    if Path(settings.state).exists():
        model, state = os.fspath(settings.model), os.fspath(settings.state)
        options = dataclasses.replace(options, initmodel=model, resume=state)
    with log_to(variant.folder / "log.txt"), _remedies_of(variant):
        start = load_start(options)
        place = start.resumed.place if start.resumed else None
        done = place.validated_epochs if place else start.optimizer.epoch
        if done >= settings.epoch:
            return None
        left = dataclasses.replace(settings, epoch=settings.epoch - done)
        sets = comparison.train_set, comparison.test_set
        options = dataclasses.replace(options, settings=left)
        return train(make_task(options, start, comparison.device, sets=sets), interruption)


@contextlib.contextmanager
def _remedies_of(variant: Variant) -> Iterator[None]:
    """Replaces the remedies of errors, which are options of other programs."""
    try:
        yield
    except StateFileError as error:
        raise _cannot_continue(variant, error.problem) from None
    except ModelFileError:
        problem = f"model file {variant.options.settings.model} cannot be used"
        raise _cannot_continue(variant, problem) from None


def _cannot_continue(variant: Variant, problem: str) -> CompareError:
    return CompareError(f"{problem}. Delete {variant.folder} to train it again.")


def _row(variant: Variant) -> Row:
    """Collects the results of a recipe that is trained."""
    path = variant.folder / "log.txt"
    curves = log.read_log(path.read_text(encoding="utf-8").splitlines())
    if not curves or not curves[-1].epochs:
        raise _cannot_continue(variant, f"{path} lacks the lines of the training")
    with _remedies_of(variant):
        place = load_state(variant.options.settings.state).place
        network = load_network(variant.options.settings.model)
    seconds = place.seconds if place else 0.0
    return Row(variant.name, network.count_params(), seconds, curves[-1], network.has_policy)


def _write(comparison: Comparison, rows: Sequence[Row], diverged: Sequence[str]) -> None:
    """Writes the tables and the curves of the recipes that are trained."""
    told = [f" The training of {name} diverged: it is not in the table." for name in diverged]
    caption = comparison.caption + "".join(told)
    tables = {"table.md": format_markdown(rows, caption), "table.tsv": format_tsv(rows)}
    for name, text in tables.items():
        with write_beside(comparison.output / name) as file:
            file.write(text.encode("utf-8", "backslashreplace"))
    try:
        save({row.name: row.curve for row in rows}, comparison.output / "curves.png")
    except DrawingError as error:
        print(f"no curves: {error}", file=sys.stderr)


@dataclasses.dataclass(frozen=True)
class Row:
    """The results of a recipe: seconds of training, with evaluations and saves, and its log."""

    name: str
    parameters: int
    seconds: float
    curve: log.Curve
    has_policy: bool = True

    @property
    def columns(self) -> dict[str, float | None]:
        """The figures by column name; None for a figure that the network does not have."""
        last, end = self.curve.progress[-LAST_POINTS:], self.curve.epochs[-1]
        losses = [p.loss if p.policy_loss is None else p.policy_loss for p in last]
        figures: tuple[float | None, ...] = (
            statistics.fmean(losses) if last else None,
            statistics.fmean(p.accuracy for p in last) if last else None,
            end.test_loss if end.test_policy_loss is None else end.test_policy_loss,
            end.test_accuracy,
            end.test_value_loss,
            end.test_value_accuracy,
        )
        if not self.has_policy:
            figures = (*[None] * 4, end.test_loss, end.test_accuracy)
        return {
            "parameters": self.parameters,
            "seconds": self.seconds,
            **dict(zip(_HEADS, figures)),
        }


def format_markdown(rows: Sequence[Row], caption: str) -> str:
    """Formats a Markdown table with a caption below; columns without figures are left out."""
    shown = {
        name: head
        for name, head in _HEADS.items()
        if "value" not in name or any(row.columns[name] is not None for row in rows)
    }
    cells = (
        [row.name, row.parameters, _hours(row.seconds), *(row.columns[name] for name in shown)]
        for row in rows
    )
    lines = table.markdown(["recipe", "parameters", "time", *shown.values()], cells)
    explanation = (
        f"Train loss and test accuracy: means of the last {LAST_POINTS} log points. Test loss "
        "and the columns after it: the whole test set at the end."
    )
    return f"{lines}\n{caption} {explanation}\n"


def format_tsv(rows: Sequence[Row]) -> str:
    """Formats tab-separated values with all decimals; a missing figure is empty."""
    titles = ["recipe", *rows[0].columns] if rows else []
    return table.tsv(titles, ([row.name, *row.columns.values()] for row in rows))


def _hours(seconds: float) -> str:
    """Formats a time as 0:37:48."""
    minutes, second = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{second:02}"
