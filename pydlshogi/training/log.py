"""The log of a training run: the format of its lines, for writing and for reading.

A line has the time ``%Y/%m/%d %H:%M:%S``, the level and the message, separated by tabs.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy

LOAD_MODEL = "Load model from %s"
LOAD_STATE = "Load optimizer state from %s"
READ_START = "read kifu start"
READ_END = "read kifu end"
RESUME = "resume after iteration %d"
RECIPE = "network = %s, batch size = %d"
VALUE_HEAD_ONLY = "only the value head is trained"
START = "start training"
VALIDATE = "validate test data"
SAVE_MODEL = "save the model"
SAVE_STATE = "save the optimizer"

_Lines = tuple[tuple[str, ...], ...]


@dataclasses.dataclass(frozen=True)
class ProgressPoint:
    """The result of an evaluation during an epoch.

    Attributes:
        loss: Mean training loss since the last such point; of a network with two heads
            the sum of its two losses.
        accuracy: Share of some test positions whose move the network predicted. For a value
            network: share of the won and lost games whose winner it predicted.
        policy_loss, value_loss, value_accuracy: The same of each head; None with one head.
        positions: Number of positions trained on, counted with full batches; None if the log
            does not tell it.
        LINES: The numbers in its lines, by their names there: the book's line, then ours.
    """

    epoch: int
    iteration: int
    loss: float
    accuracy: float
    policy_loss: float | None = None
    value_loss: float | None = None
    value_accuracy: float | None = None
    positions: int | None = None

    LINES: ClassVar[_Lines] = (("loss", "accuracy"), ("policy loss", "value loss"))


@dataclasses.dataclass(frozen=True)
class EpochPoint:
    """The result of the validation at the end of an epoch or of a run.

    The training losses are means over the epoch so far, and the others are of the whole test set.
    Those of each head are None for networks with one head, and ``test_loss`` in the book's logs.
    """

    epoch: int
    iteration: int
    train_loss: float
    test_accuracy: float
    test_loss: float | None = None
    train_policy_loss: float | None = None
    train_value_loss: float | None = None
    test_policy_loss: float | None = None
    test_value_loss: float | None = None
    test_value_accuracy: float | None = None
    positions: int | None = None

    LINES: ClassVar[_Lines] = (
        ("train loss avr", "test accuracy"),
        ("test loss",),
        ("train policy loss avr", "train value loss avr", "test policy loss", "test value loss"),
    )


@dataclasses.dataclass
class Curve:
    """The points of a run and of the runs that resumed it, by rising iteration.

    Attributes:
        network: Name of the network; empty in logs of the book.
        value_head_only: Whether only the value head was trained: all figures are the values'.
        start: Iteration at which the last run began or resumed, and the number of positions up
            to it; None for an unknown number.
    """

    progress: list[ProgressPoint] = dataclasses.field(default_factory=list)
    epochs: list[EpochPoint] = dataclasses.field(default_factory=list)
    network: str = ""
    value_head_only: bool = False
    start: tuple[int, int | None] = dataclasses.field(default=(0, 0), compare=False)


def total(policy: float | None, value: float | None) -> float:
    """Adds the losses of two heads; None for a missing head, nan for a value without results."""
    if policy is None:
        return math.nan if value is None else value
    return policy if value is None or math.isnan(value) else policy + value


def format_point(point: ProgressPoint | EpochPoint) -> list[str]:
    """Formats the lines of a point: the book's, then ours, as far as it has their numbers."""
    lines = []
    for names in point.LINES:
        if getattr(point, _attribute(names[0])) is None:
            continue
        parts = [f"epoch = {point.epoch}", f"iteration = {point.iteration}"]
        for name in names:
            values = [getattr(point, attribute) for attribute in _attributes(name)]
            shown = ", ".join(_number(value) for value in values if value is not None)
            parts.append(f"{name} = {shown}")
        lines.append(", ".join(parts))
    return lines


def _attributes(name: str) -> list[str]:
    """Returns the attributes of a point whose numbers follow a name in a line.

    An accuracy of the moves may be followed by that of the values.
    """
    names = [name, name.replace("accuracy", "value accuracy")]
    return [_attribute(name) for name in dict.fromkeys(names)]


def _attribute(name: str) -> str:
    return name.removesuffix(" avr").replace(" ", "_")


def _number(value: float) -> str:
    """Writes a number as the published logs do: the shortest text of this float32."""
    return str(numpy.float32(value))


# The file name of an own network may have blanks.
_RECIPE = re.compile(r"network = (?P<network>.+), batch size = (?P<size>\d+)")
_RESUME = re.compile(r"resume after iteration (\d+)")
#: A line with the results of an evaluation or a validation.
POINT = re.compile(
    r"epoch = (?P<epoch>\d+), iteration = (?P<iteration>\d+), (?P<values>\w[\w ]* = .*)"
)


@dataclasses.dataclass
class _Run:
    """What a log tells of a run before its first point; None for what it does not tell."""

    resumes: bool = False
    iteration: int | None = None
    network: str = ""
    batch_size: int | None = None
    value_head_only: bool = False


def read_log(lines: Iterable[str]) -> list[Curve]:
    """Reads the curves of a log, ours or one of the book's, that have points.

    A new run starts a new curve. A resumed run continues the curve before it: it replaces the
    points that a killed run logged after its last save. A run that never started training does
    neither. Other lines are ignored.
    """
    curves = [Curve()]
    run, next_run, earlier_size = _Run(), _Run(), None
    for line in lines:
        message = line.rstrip("\r\n").split("\t")[-1]
        recipe = _RECIPE.fullmatch(message)
        resumption = _RESUME.fullmatch(message)
        if message.startswith(LOAD_STATE % ""):
            next_run = _Run(resumes=True)
        elif resumption:
            next_run.iteration = int(resumption[1])
        elif message == READ_START:
            # The state that was loaded belongs to this run, even if it never starts.
            run, next_run = next_run, _Run()
        elif recipe:
            run.network, run.batch_size = recipe["network"], int(recipe["size"])
        elif message == VALUE_HEAD_ONLY:
            run.value_head_only = True
        elif message == START:
            _start(curves, run, earlier_size or run.batch_size)
            earlier_size = run.batch_size
        else:
            _add_point(curves[-1], message, run.batch_size)
    return [curve for curve in curves if curve.progress or curve.epochs]


def _start(curves: list[Curve], run: _Run, earlier_size: int | None) -> None:
    """Starts a curve, or continues the last one; ``earlier_size`` is the batch size until then."""
    if not run.resumes:
        curves.append(Curve())
    curve = curves[-1]
    if run.iteration is not None:
        # Later points are of a run that was killed after its last save.
        _cut(curve.progress, run.iteration + 1)
        _cut(curve.epochs, run.iteration + 1)
        curve.start = run.iteration, _positions(curve, run.iteration, earlier_size)
    curve.network = run.network or curve.network
    curve.value_head_only = run.value_head_only


def _add_point(curve: Curve, message: str, batch_size: int | None) -> None:
    match = POINT.fullmatch(message)
    values = _parse(match["values"]) if match else None
    if not match or not values:
        return
    epoch, iteration = int(match["epoch"]), int(match["iteration"])
    given = {
        attribute: number
        for name, numbers in values.items()
        for attribute, number in zip(_attributes(name), numbers)
    }
    kinds: Any = (ProgressPoint, curve.progress), (EpochPoint, curve.epochs)
    for kind, points in kinds:
        of_book, *ours = kind.LINES
        if _is_line(values, of_book):
            if kind is ProgressPoint:
                _cut(curve.progress, iteration)
            _cut(curve.epochs, iteration)
            positions = _positions(curve, iteration, batch_size)
            points.append(kind(epoch, iteration, positions=positions, **given))
        elif (
            points
            and (points[-1].epoch, points[-1].iteration) == (epoch, iteration)
            and any(_is_line(values, names) for names in ours)
        ):
            points[-1] = dataclasses.replace(points[-1], **given)


def _positions(curve: Curve, iteration: int, batch_size: int | None) -> int | None:
    """Counts the positions up to an iteration, from the last known number on; None if unknown."""
    points: list[Any] = [*curve.progress[-1:], *curve.epochs[-1:]]
    known = [curve.start, *((point.iteration, point.positions) for point in points)]
    iterations, positions = max(known, key=lambda place: place[0])
    if batch_size is None or positions is None:
        return None
    return positions + (iteration - iterations) * batch_size


def _parse(text: str) -> dict[str, tuple[float, ...]] | None:
    """Reads ``NAME = NUMBER, NAME = NUMBER, NUMBER``; None if it is cut short or no such text."""
    values: dict[str, tuple[float, ...]] = {}
    name = ""
    try:
        for part in text.split(", "):
            before, equals, number = part.rpartition(" = ")
            name = before if equals else name
            values[name] = (*values.get(name, ()), float(number))
    except ValueError:
        return None
    return values


def _is_line(values: dict[str, tuple[float, ...]], names: tuple[str, ...]) -> bool:
    """Checks that a line has these names, and after each as many numbers as it may have."""
    return values.keys() == set(names) and all(
        len(numbers) <= len(_attributes(name)) for name, numbers in values.items()
    )


def _cut(points: list[Any], iteration: int) -> None:
    """Removes the points from an iteration on; iterations rise within a list."""
    while points and points[-1].iteration >= iteration:
        points.pop()
