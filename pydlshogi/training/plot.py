"""Pictures of training logs: loss and accuracy over positions or iterations."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydlshogi.drawing.font import family_of, font_path
from pydlshogi.errors import UserError
from pydlshogi.figure import new_figure, no_matplotlib, save_figure
from pydlshogi.files import plain_file
from pydlshogi.text import decode
from pydlshogi.training.log import Curve, read_log


class PlotError(UserError):
    """Nothing can be drawn, or there is no display."""


def read_curves(paths: Sequence[str]) -> dict[str, Curve]:
    """Reads the curves of logs, by their names in the legend.

    Raises:
        PlotError: a log cannot be read or has no points.
    """
    curves = {}
    for path in paths:
        try:
            found = read_log(decode(plain_file(path, pipe=True).read_bytes()).splitlines())
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


class Row(NamedTuple):
    """What is drawn into one of the axes: attributes of the points; ``mean`` may be missing."""

    title: str
    progress: str
    mean: str | None
    tested: str


# From top to bottom.
_AXES = (
    Row("loss", "loss", "train_loss", "test_loss"),
    Row("accuracy", "accuracy", None, "test_accuracy"),
)
_VALUE_AXES = (
    Row("value loss", "value_loss", "train_value_loss", "test_value_loss"),
    Row("value accuracy", "value_accuracy", None, "test_value_accuracy"),
)

# A line with at most so many points gets a dot at each.
_FEW = 10

# What crosses and dots show.
_MEAN, _TEST_SET = "training, mean of the epoch", "test set"

# Kinds of points that the legend of several curves explains, and their style.
_KINDS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("during the training (accuracy: some test positions)", {}),
    (_MEAN, {"linestyle": "", "marker": "x"}),
    (_TEST_SET, {"linestyle": "", "marker": "o"}),
)

# Longest name in a legend and in a title, in characters.
_LONGEST_NAME, _LONGEST_IN_TITLE = 90, 40

# What an accuracy of the moves means: level, text, place of the text from left to right.
# The first is the mean of 1 / legal moves in the 30 games of kifu/test. The others are results in
# README.md and model/README.md.
_LEVELS = (
    (0.05, "5 %: a random legal move", "right"),
    (0.29, "29 %: the book's recipe, one pass over 1.9 million positions", "left"),
    (0.41, "41 %: the recipe of make train, one pass over 1.9 million positions", "left"),
)

# Networks whose only accuracy is that of the winner.
_VALUE_NETWORKS = ("value",)


def draw(figure: Any, curves: Mapping[str, Curve]) -> None:
    """Draws curves: the loss above, the accuracy below, training positions to the right.

    If a log does not tell the batch size, iterations are to the right. If all logs are of
    policies, dotted lines show known levels of accuracy. Results during an epoch are a line;
    validations are marks. Second accuracies and value losses get axes of their own.
    """
    rows = _rows(curves)
    place = "positions" if all(map(_tells_positions, curves.values())) else "iteration"
    figure.suptitle(_title(curves), fontfamily=_families(curves))
    all_axes = figure.subplots(len(rows), 1, sharex=True)
    for axes, row in zip(all_axes, rows):
        for index, (name, curve) in enumerate(curves.items()):
            prefix = f"{name}: " if len(curves) > 1 else ""
            drawn = _row_of(curve, row, rows)
            if drawn is not None:
                _draw_curve(axes, drawn, place, curve, prefix, f"C{index % 10}")
        axes.set_ylabel(row.title)
        if row.title.endswith("accuracy"):
            axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
        if row.title == "accuracy" and all(map(_is_policy, curves.values())):
            _draw_levels(axes)
        axes.grid(alpha=0.3)
        if len(curves) == 1:
            axes.legend(fontsize="small")
    if len(curves) > 1:
        _draw_legend(all_axes[0], curves)
    axes.set_xlabel("training positions" if place == "positions" else "iteration")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")


def _rows(curves: Mapping[str, Curve]) -> list[Row]:
    """Returns the rows of axes that curves need, from top to bottom."""
    return [*_AXES, *(row for row in _VALUE_AXES if _has_points(curves, row))]


def _draw_legend(axes: Any, curves: Mapping[str, Curve]) -> None:
    """Draws the legend of several curves above the first axes: inside, it would hide them.

    Each color and each kind of point is explained once, for all axes.
    """
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=f"C{index % 10}", label=_literal(_shortened(name)))
        for index, name in enumerate(curves)
    ]
    handles += [Line2D([], [], color="gray", label=label, **style) for label, style in _KINDS]
    axes.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncol=_legend_columns(curves),
        frameon=False,
        prop={"family": _families(curves), "size": "small"},
    )


def _legend_columns(curves: Mapping[str, Curve]) -> int:
    """Returns the number of columns of the legend; long names need the whole width."""
    return 2 if max(map(len, curves)) <= _LONGEST_NAME // 2 else 1


def _shortened(name: str, most: int = _LONGEST_NAME) -> str:
    """Leaves out the middle of a long name: its ends tell files and runs apart."""
    return name if len(name) <= most else f"{name[: most // 2]}…{name[-most // 2 + 1 :]}"


def _families(names: Iterable[str]) -> list[str]:
    """Returns the fonts of names: with other characters than ASCII, also the Japanese font."""
    path = None if all(map(str.isascii, names)) else font_path()
    return ["DejaVu Sans", *([family_of(path)] if path else [])]


def _row_of(curve: Curve, row: Row, rows: Sequence[Row]) -> Row | None:
    """Returns what a curve draws into the axes of a row; None for nothing.

    The log of a run that trains a value alone has its numbers in the places of the moves.
    """
    if not (curve.value_head_only or curve.network in _VALUE_NETWORKS):
        return row
    for of_moves, of_value in zip(_AXES, _VALUE_AXES):
        if of_value in rows and row in (of_moves, of_value):
            return of_moves._replace(title=row.title) if row is of_value else None
    return row


def _title(curves: Mapping[str, Curve]) -> str:
    """Names what was trained, as far as the logs tell it."""
    first, *others = {curve.network for curve in curves.values()}
    of = f" of {first}" if first and not others else ""
    name = _literal(_shortened(next(iter(curves)), _LONGEST_IN_TITLE))
    where = f" ({name})" if len(curves) == 1 else ""
    return f"Training{of}: loss and accuracy{where}"


def _tells_positions(curve: Curve) -> bool:
    """Checks whether the log told the batch size of all its runs."""
    points: list[Any] = [*curve.progress, *curve.epochs]
    return all(point.positions is not None for point in points)


def _is_policy(curve: Curve) -> bool:
    """Checks whether the accuracy is known to be that of the moves."""
    if curve.value_head_only:
        return False
    if ":" in curve.network:  # of a user: only a second accuracy tells that it has a policy
        return _has_points({"": curve}, _VALUE_AXES[1])
    return bool(curve.network) and curve.network not in _VALUE_NETWORKS


def _draw_levels(axes: Any) -> None:
    """Draws known levels of accuracy as dotted lines with texts."""
    axes.set_ylim(0, max(0.45, axes.get_ylim()[1]))
    across = axes.get_yaxis_transform()  # x from 0 to 1, y in the units of the data
    for level, text, side in _LEVELS:
        axes.hlines(level, 0, 1, colors="gray", linestyles="dotted", transform=across)
        axes.text(
            0.99 if side == "right" else 0.01,
            level,
            text,
            color="gray",
            fontsize="small",
            ha=side,
            va="bottom",
            transform=across,
        )


def _has_points(curves: Mapping[str, Curve], row: Row) -> bool:
    """Checks whether any curve has points for an axis."""
    return any(
        _pairs(curve.progress, row.progress) or _pairs(curve.epochs, row.tested)
        for curve in curves.values()
    )


def _draw_curve(
    axes: Any,
    row: Row,
    place: str,
    curve: Curve,
    prefix: str,
    color: str,
) -> None:
    """Draws one curve in one of the axes."""
    during = "training" if row.title.endswith("loss") else "some test positions"
    for points, attribute, style, label in (
        (curve.progress, row.progress, "-", during),
        (curve.epochs, row.mean, "x", _MEAN),
        (curve.epochs, row.tested, "o", _TEST_SET),
    ):
        pairs = _pairs(points, attribute, place) if attribute else []
        if pairs:
            if style == "-" and len(pairs) <= _FEW:
                style = ".-"  # a single point makes no line
            axes.plot(*zip(*pairs), style, color=color, label=_literal(prefix + label))


def _pairs(
    points: Sequence[Any], attribute: str, place: str = "iteration"
) -> list[tuple[int, float]]:
    """Lists places and values of the points that have the attribute."""
    values = [(getattr(point, place), getattr(point, attribute)) for point in points]
    return [pair for pair in values if pair[1] is not None]


def _literal(label: str) -> str:
    """Escapes a label, which matplotlib would else hide (``_``) or take as a formula (``$``)."""
    label = label.encode("utf-8", "replace").decode("utf-8")
    return (" " if label.startswith("_") else "") + label.replace("$", r"\$")


def _size(curves: Mapping[str, Curve]) -> tuple[float, float]:
    """Returns width and height in inches; the legend of several curves needs more height."""
    if len(curves) == 1:
        return 9, 8
    lines = -(-(len(curves) + len(_KINDS)) // _legend_columns(curves))
    return 10, max(8, 0.5 + 2.2 * len(_rows(curves))) + 0.2 * lines


def save(curves: Mapping[str, Curve], output: str | os.PathLike[str]) -> None:
    """Writes a picture of curves; needs no display. Raises ``DrawingError`` if that fails."""
    figure = new_figure(*_size(curves))
    draw(figure, curves)
    save_figure(figure, output)


def show(curves: Mapping[str, Curve]) -> None:
    """Opens a window and waits until it is closed; raises ``PlotError`` without a display."""
    try:
        from matplotlib import get_backend, pyplot
    except ImportError:
        raise no_matplotlib() from None
    figure = pyplot.figure(figsize=_size(curves), layout="constrained")
    if get_backend().lower() == "agg":  # matplotlib's fallback without a display
        raise PlotError("there is no display to open a window on. Name a file for the picture.")
    draw(figure, curves)
    pyplot.show()
