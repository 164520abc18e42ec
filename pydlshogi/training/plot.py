"""Pictures of training logs: loss and accuracy over iterations."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydlshogi.errors import UserError
from pydlshogi.files import write_beside
from pydlshogi.text import decode
from pydlshogi.training.log import Curve, read_log


class PlotError(UserError):
    """Nothing can be drawn, or the picture cannot be written."""


_NO_MATPLOTLIB = "matplotlib is not installed. Install it: python -m pip install matplotlib"


def read_curves(paths: Sequence[str]) -> dict[str, Curve]:
    """Reads the curves of logs, by their names in the legend.

    Raises:
        PlotError: a log cannot be read or has no points.
    """
    curves = {}
    for path in paths:
        try:
            found = read_log(decode(Path(path).read_bytes()).splitlines())
        except OSError as error:
            raise PlotError(
                f"log {path} cannot be read ({error.strerror}). Check its path."
            ) from None
        if not found:
            raise PlotError(
                f"log {path} has no line with loss and accuracy. "
                "Choose the log of a training that reached its first evaluation."
            )
        name = path if len(paths) > 1 else Path(path).name
        for number, curve in enumerate(found, start=1):
            curves[name if len(found) == 1 else f"{name}, run {number}"] = curve
    return curves


# What is drawn, from top to bottom: the title of the axis; the attributes of the points
# during an epoch, of the mean training loss of an epoch, and of the test set.
_AXES = (
    ("loss", "loss", "train_loss", "test_loss"),
    ("accuracy", "accuracy", None, "test_accuracy"),
)
_VALUE_AXES = (
    ("value loss", "value_loss", "train_value_loss", "test_value_loss"),
    ("value accuracy", "value_accuracy", None, "test_value_accuracy"),
)

# A line with at most so many points gets a dot at each.
_FEW = 10


def draw(figure: Any, curves: Mapping[str, Curve]) -> None:
    """Draws curves: the loss above, the accuracy below, iterations to the right.

    Results during an epoch are a line. Validations are marks: a dot for the test set, a
    cross for the mean training loss of the epoch. If the log has a second accuracy or
    value losses of networks with two heads, they get axes of their own.

    Args:
        figure: Empty ``matplotlib.figure.Figure``.
        curves: Curves by their names in the legend.
    """
    rows = [*_AXES, *(row for row in _VALUE_AXES if _has_points(curves, row))]
    for axes, row in zip(figure.subplots(len(rows), 1, sharex=True), rows):
        for index, (name, curve) in enumerate(curves.items()):
            _draw_curve(axes, row, curve, f"{name}: " if len(curves) > 1 else "", f"C{index % 10}")
        axes.set_ylabel(row[0])
        axes.grid(alpha=0.3)
        # The legend of several curves is long; inside the axes it would hide them.
        place = {"loc": "upper left", "bbox_to_anchor": (1, 1)} if len(curves) > 1 else {}
        axes.legend(fontsize="small", **place)
    axes.set_xlabel("iteration")
    axes.xaxis.get_major_locator().set_params(integer=True)


def _has_points(curves: Mapping[str, Curve], row: tuple[str, str, str | None, str]) -> bool:
    """Checks whether any curve has points for an axis."""
    _, progress, _, tested = row
    return any(
        _pairs(curve.progress, progress) or _pairs(curve.epochs, tested)
        for curve in curves.values()
    )


def _draw_curve(
    axes: Any, row: tuple[str, str, str | None, str], curve: Curve, prefix: str, color: str
) -> None:
    """Draws one curve in one of the axes."""
    quantity, progress, mean, tested = row
    during = "training" if quantity.endswith("loss") else "some test positions"
    for points, attribute, style, label in (
        (curve.progress, progress, "-", during),
        (curve.epochs, mean, "x", "training, mean of the epoch"),
        (curve.epochs, tested, "o", "test set"),
    ):
        pairs = _pairs(points, attribute) if attribute else []
        if pairs:
            if style == "-" and len(pairs) <= _FEW:
                style = ".-"  # a single point makes no line
            axes.plot(*zip(*pairs), style, color=color, label=_literal(prefix + label))


def _pairs(points: Sequence[Any], attribute: str) -> list[tuple[int, float]]:
    """Lists iterations and values of the points that have the attribute."""
    values = [(point.iteration, getattr(point, attribute)) for point in points]
    return [pair for pair in values if pair[1] is not None]


def _literal(label: str) -> str:
    """Escapes a label, so that matplotlib shows it unchanged.

    Matplotlib hides labels that begin with an underscore, and takes text between dollar
    signs as a formula.
    """
    return (" " if label.startswith("_") else "") + label.replace("$", r"\$")


def _size(curves: Mapping[str, Curve]) -> tuple[float, float]:
    """Returns width and height in inches; the legend of several curves needs more width."""
    return (9, 8) if len(curves) == 1 else (13, 8)


def save(curves: Mapping[str, Curve], output: str | os.PathLike[str]) -> None:
    """Writes a picture atomically; needs no display.

    Args:
        curves: Curves by their names in the legend.
        output: The picture. Its suffix determines the format; PNG without one.

    Raises:
        PlotError: the picture cannot be written, or matplotlib is missing.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise PlotError(_NO_MATPLOTLIB) from None
    output = Path(output)
    figure = Figure(figsize=_size(curves), layout="constrained")
    draw(figure, curves)
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with write_beside(output) as file:
            figure.savefig(file, format=output.suffix[1:] or "png")
    except (OSError, ValueError, RuntimeError) as error:
        # ValueError: unknown format. RuntimeError: a format that needs TeX.
        raise PlotError(
            f"picture {output} cannot be written ({error}). Choose another --output."
        ) from None


def show(curves: Mapping[str, Curve]) -> None:
    """Opens a window and waits until it is closed.

    Raises:
        PlotError: there is no display, or matplotlib is missing.
    """
    try:
        from matplotlib import get_backend, pyplot
    except ImportError:
        raise PlotError(_NO_MATPLOTLIB) from None
    figure = pyplot.figure(figsize=_size(curves), layout="constrained")
    if get_backend().lower() == "agg":  # matplotlib's fallback without a display
        raise PlotError("there is no display to open a window on. Give --output FILE.")
    draw(figure, curves)
    pyplot.show()
