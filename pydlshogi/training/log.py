"""The log of a training run: its lines, written and read in one place.

A line is ``%Y/%m/%d %H:%M:%S``, level and message, separated by tabs. The plotter
reads with :func:`read_log` what the trainer writes with the ``format_`` functions,
and the logs of the book's program too.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import numpy

LOAD_MODEL = "Load model from %s"
LOAD_STATE = "Load optimizer state from %s"
READ_START = "read kifu start"
READ_END = "read kifu end"
START = "start training"
VALIDATE = "validate test data"
SAVE_MODEL = "save the model"
SAVE_STATE = "save the optimizer"

_FORMAT = "%(asctime)s\t%(levelname)s\t%(message)s"
_DATE_FORMAT = "%Y/%m/%d %H:%M:%S"


@dataclasses.dataclass(frozen=True)
class ProgressPoint:
    """What an evaluation during an epoch found.

    Attributes:
        epoch: Number of the epoch, from 1.
        iteration: Number of updates done.
        loss: Mean training loss since the last such point.
        accuracy: Share of a few test positions whose move was the network's first choice.
        value_loss: Mean training loss of the values since the last such point; None of a
            network without a value head.
        value_accuracy: Share of the same test positions, as far as somebody won the game,
            in which the network held the winner to be the winner.
    """

    epoch: int
    iteration: int
    loss: float
    accuracy: float
    value_loss: float | None = None
    value_accuracy: float | None = None


@dataclasses.dataclass(frozen=True)
class EpochPoint:
    """What the validation at the end of an epoch, or of a run, found.

    Attributes:
        epoch: Number of the epoch, from 1.
        iteration: Number of updates done.
        train_loss: Mean training loss over the epoch so far.
        test_accuracy: Accuracy on the whole test set.
        test_loss: Loss on the whole test set; None in logs of the book's program.
        train_value_loss: Mean training loss of the values over the epoch so far; this and
            the next two are None of a network without a value head.
        test_value_loss: Loss of the values on the whole test set.
        test_value_accuracy: Value accuracy on the whole test set.
    """

    epoch: int
    iteration: int
    train_loss: float
    test_accuracy: float
    test_loss: float | None = None
    train_value_loss: float | None = None
    test_value_loss: float | None = None
    test_value_accuracy: float | None = None


@dataclasses.dataclass
class Curve:
    """The points of one run and of the runs that resumed it, by rising iteration."""

    progress: list[ProgressPoint] = dataclasses.field(default_factory=list)
    epochs: list[EpochPoint] = dataclasses.field(default_factory=list)


def format_progress(point: ProgressPoint) -> list[str]:
    """Formats the lines of an evaluation during an epoch: the agreed one and ours."""
    lines = [_line(point, loss=point.loss, accuracy=point.accuracy)]
    if point.value_loss is not None:
        lines.append(_line(point, value_loss=point.value_loss, value_accuracy=point.value_accuracy))
    return lines


def format_epoch(point: EpochPoint) -> list[str]:
    """Formats the lines of a validation: the agreed one and ours."""
    lines = [_line(point, train_loss_avr=point.train_loss, test_accuracy=point.test_accuracy)]
    if point.test_loss is not None:
        lines.append(_line(point, test_loss=point.test_loss))
    if point.test_value_loss is not None:
        lines.append(
            _line(
                point,
                train_value_loss_avr=point.train_value_loss,
                test_value_loss=point.test_value_loss,
                test_value_accuracy=point.test_value_accuracy,
            )
        )
    return lines


def _line(point: ProgressPoint | EpochPoint, **values: float | None) -> str:
    """Formats one line; the names of the values are written with spaces."""
    parts = [f"epoch = {point.epoch}", f"iteration = {point.iteration}"]
    parts += [f"{name.replace('_', ' ')} = {_number(value)}" for name, value in values.items()]
    return ", ".join(parts)


def _number(value: float | None) -> str:
    """Writes a number as the published logs do: the shortest text that is this float32."""
    return str(numpy.float32(value))


_POINT = re.compile(
    r"epoch = (?P<epoch>\d+), iteration = (?P<iteration>\d+), (?P<values>\w[\w ]* = .*)"
)


def read_log(lines: Iterable[str]) -> list[Curve]:
    """Reads the curves out of a log.

    A run that starts from nothing begins a new curve; one that resumes continues the
    curve before it, from the iteration it resumed at: what a killed run had logged
    beyond that is logged again and replaces the older points. A run that never started
    training does neither.

    Args:
        lines: A log, with or without time and level before the messages. Lines of
            other kinds are passed over.

    Returns:
        The curves that have points, in the order of the log.
    """
    curves = [Curve()]
    loaded = resumes = False
    for line in lines:
        message = line.rstrip("\r\n").split("\t")[-1]
        if message.startswith(LOAD_STATE % ""):
            loaded = True
        elif message == READ_START:
            # The state that was loaded is this run's, whether it will start or not.
            resumes, loaded = loaded, False
        elif message == START:
            if not resumes:
                curves.append(Curve())
        else:
            _add_point(curves[-1], message)
    return [curve for curve in curves if curve.progress or curve.epochs]


def _add_point(curve: Curve, message: str) -> None:
    match = _POINT.fullmatch(message)
    if not match:
        return
    epoch, iteration = int(match["epoch"]), int(match["iteration"])
    try:
        pairs = (part.split(" = ") for part in match["values"].split(", "))
        values = {name: float(number) for name, number in pairs}
    except ValueError:  # a line cut short, or of another program
        return
    if values.keys() == {"loss", "accuracy"}:
        _cut(curve.progress, iteration)
        _cut(curve.epochs, iteration)
        curve.progress.append(ProgressPoint(epoch, iteration, values["loss"], values["accuracy"]))
    elif values.keys() == {"train loss avr", "test accuracy"}:
        _cut(curve.epochs, iteration)
        curve.epochs.append(
            EpochPoint(epoch, iteration, values["train loss avr"], values["test accuracy"])
        )
    else:
        _complete(curve, epoch, iteration, values)


# Lines that complete a point: the names in them, and the attributes that they are.
_VALUE_PROGRESS = {"value loss": "value_loss", "value accuracy": "value_accuracy"}
_TEST_LOSS = {"test loss": "test_loss"}
_VALUE_EPOCH = {
    "train value loss avr": "train_value_loss",
    "test value loss": "test_value_loss",
    "test value accuracy": "test_value_accuracy",
}


def _complete(curve: Curve, epoch: int, iteration: int, values: dict[str, float]) -> None:
    """Adds the values of a line of ours to the point of the line before it."""
    kinds: list[tuple[list[Any], dict[str, str]]] = [
        (curve.progress, _VALUE_PROGRESS),
        (curve.epochs, _TEST_LOSS),
        (curve.epochs, _VALUE_EPOCH),
    ]
    for points, names in kinds:
        same_place = points and (points[-1].epoch, points[-1].iteration) == (epoch, iteration)
        if same_place and values.keys() == names.keys():
            changes = {names[name]: value for name, value in values.items()}
            points[-1] = dataclasses.replace(points[-1], **changes)


def _cut(points: list[Any], iteration: int) -> None:
    """Drops the points from an iteration on: the last ones, since iterations rise."""
    while points and points[-1].iteration >= iteration:
        points.pop()


class _TerminalHandler(logging.StreamHandler):
    """Handler for standard error that writes over a progress bar and not into it."""

    def emit(self, record: logging.LogRecord) -> None:
        # The bar leaves the cursor at its own first line; a Windows console may not
        # know the sequence "erase from here on".
        if self.stream.isatty() and os.name != "nt":
            self.stream.write("\033[J")
        super().emit(record)


class _FileHandler(logging.FileHandler):
    """Handler for a file that tells once that it cannot be written, and lets the run go on."""

    _told = False

    def handleError(self, record: logging.LogRecord) -> None:
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            super().handleError(record)
        elif not self._told:
            self._told = True
            print(f"{self.baseFilename} cannot be written: {error.strerror}.", file=sys.stderr)

    def close(self) -> None:
        with contextlib.suppress(OSError):  # lines that could not be written stay unwritten
            super().close()


@contextlib.contextmanager
def log_to(path: str | os.PathLike[str] | None) -> Iterator[None]:
    """Sends what the package logs to a file or to standard error, for a while.

    Args:
        path: The file that lines are appended to, so that a resumed run continues its
            log; warnings and errors then go to standard error too. None for standard
            error alone.

    Raises:
        OSError: the file cannot be written.
    """
    terminal = _TerminalHandler()
    handlers: list[logging.Handler] = [terminal]
    if path:
        # A file name of a kifu list need not be text; its other bytes are written as \udcXX.
        handlers.append(_FileHandler(path, encoding="utf-8", errors="backslashreplace"))
        terminal.setLevel(logging.WARNING)
    package = logging.getLogger("pydlshogi")
    level = package.level
    package.setLevel(logging.INFO)
    for handler in handlers:
        handler.setFormatter(logging.Formatter(_FORMAT, _DATE_FORMAT))
        package.addHandler(handler)
    try:
        yield
    finally:
        package.setLevel(level)
        for handler in handlers:
            package.removeHandler(handler)
            handler.close()
