"""The program plot_log: loss and accuracy over iterations, from the logs of training runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydlshogi.commands.program import program
from pydlshogi.files import write_beside
from pydlshogi.text import decode
from pydlshogi.training.log import Curve, read_log
from pydlshogi.training.outputs import real_path


def build_parser() -> argparse.ArgumentParser:
    """Makes the parser of plot_log's command line."""
    parser = argparse.ArgumentParser(
        prog="plot_log", description="Draws loss and accuracy over iterations from training logs."
    )
    parser.add_argument("log", nargs="+", help="log of train_policy; several go into one picture")
    parser.add_argument(
        "--output",
        "-o",
        metavar="FILE",
        help="picture to write (.png, .svg, .pdf); without it a window is opened",
    )
    return parser


@program("plot_log")
def main(argv: Sequence[str] | None = None) -> int:
    """Draws logs as the command line says.

    Args:
        argv: The arguments; those of the process where it is None.

    Returns:
        Exit status: 0, or 1 with one sentence on standard error.
    """
    args = build_parser().parse_args(argv)
    try:
        if args.output and real_path(args.output) in map(real_path, args.log):
            raise PlotError(f"--output {args.output} is a log. Give the picture another name.")
        curves = _read_curves(args.log)
        if args.output:
            save(curves, Path(args.output))
        else:
            _show(curves)
    except PlotError as error:
        print(f"plot_log: error: {error}", file=sys.stderr)
        return 1
    return 0


class PlotError(Exception):
    """Nothing can be drawn; the text says why and what to do."""


def _read_curves(paths: Sequence[str]) -> dict[str, Curve]:
    """Reads the curves of several logs, each under the name that the legend shows."""
    curves = {}
    for path in paths:
        try:
            found = read_log(decode(Path(path).read_bytes()).splitlines())
        except OSError as error:
            raise PlotError(f"log {path} cannot be read ({error.strerror}).") from None
        if not found:
            raise PlotError(
                f"log {path} has no line with loss and accuracy. "
                "Choose a log of train_policy that reached its first evaluation."
            )
        name = path if len(paths) > 1 else Path(path).name
        for number, curve in enumerate(found, start=1):
            curves[name if len(found) == 1 else f"{name}, run {number}"] = curve
    return curves


# What is drawn, from top to bottom: the axis, the attributes of the points on the way, of
# the mean of an epoch and of the test set.
_AXES = (
    ("loss", "loss", "train_loss", "test_loss"),
    ("accuracy", "accuracy", None, "test_accuracy"),
)
_VALUE_AXES = (
    ("value loss", "value_loss", "train_value_loss", "test_value_loss"),
    ("value accuracy", "value_accuracy", None, "test_value_accuracy"),
)


# So many points of a line, or fewer, are marked each.
_FEW = 10


def draw(figure: Any, curves: dict[str, Curve]) -> None:
    """Draws curves: the loss above, the accuracy below, iterations to the right.

    What was logged on the way is a line; what validations found are marks: a dot for
    the test set, a cross for the mean training loss of the epoch. Loss and accuracy of
    values follow where a network has them.

    Args:
        figure: Empty ``matplotlib.figure.Figure``.
        curves: Curves by the name that the legend shows.
    """
    values = any(p.value_loss is not None for curve in curves.values() for p in curve.progress)
    values |= any(p.test_value_loss is not None for c in curves.values() for p in c.epochs)
    rows = _AXES + (_VALUE_AXES if values else ())
    for axes, (quantity, progress, mean, tested) in zip(
        figure.subplots(len(rows), 1, sharex=True), rows
    ):
        on_the_way = "training" if quantity.endswith("loss") else "some test positions"
        for index, (name, curve) in enumerate(curves.items()):
            prefix = f"{name}: " if len(curves) > 1 else ""
            for points, attribute, style, label in (
                (curve.progress, progress, "-", on_the_way),
                (curve.epochs, mean, "x", "training, mean of the epoch"),
                (curve.epochs, tested, "o", "test set"),
            ):
                pairs = [(p.iteration, getattr(p, attribute)) for p in points if attribute]
                pairs = [pair for pair in pairs if pair[1] is not None]
                if pairs:
                    if style == "-" and len(pairs) <= _FEW:
                        style = ".-"  # one point makes no line
                    text = _as_it_is(prefix + label)
                    axes.plot(*zip(*pairs), style, color=f"C{index % 10}", label=text)
        axes.set_ylabel(quantity)
        axes.grid(alpha=0.3)
        # Of several curves it is so long that it would hide them.
        place = {"loc": "upper left", "bbox_to_anchor": (1, 1)} if len(curves) > 1 else {}
        axes.legend(fontsize="small", **place)
    axes.set_xlabel("iteration")
    axes.xaxis.get_major_locator().set_params(integer=True)


def _as_it_is(label: str) -> str:
    """Writes a label so that matplotlib shows what stands in it.

    It leaves out labels that begin with an underscore, and sets what stands between dollar
    signs as a formula.
    """
    return (" " if label.startswith("_") else "") + label.replace("$", r"\$")


def _size(curves: dict[str, Curve]) -> tuple[float, float]:
    """Gives width and height of a picture in inches: the legend of several stands beside them."""
    return (9, 8) if len(curves) == 1 else (13, 8)


_NO_MATPLOTLIB = "matplotlib is not installed. Install it: python -m pip install matplotlib"


def save(curves: dict[str, Curve], output: Path) -> None:
    """Writes a picture, whole or not at all; neither a display nor a window toolkit is needed.

    Args:
        curves: Curves by the name that the legend shows.
        output: The picture; its ending says of which kind, PNG without one.

    Raises:
        PlotError: it cannot be written, or matplotlib is missing.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise PlotError(_NO_MATPLOTLIB) from None
    figure = Figure(figsize=_size(curves), layout="constrained")
    draw(figure, curves)
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with write_beside(output) as file:
            figure.savefig(file, format=output.suffix[1:] or "png")
    except (OSError, ValueError, RuntimeError) as error:
        # ValueError: a kind of picture it does not know; RuntimeError: one that needs TeX.
        raise PlotError(f"--output {output} cannot be written ({error}).") from None


def _show(curves: dict[str, Curve]) -> None:
    """Opens a window and waits until it is closed."""
    try:
        from matplotlib import get_backend, pyplot
    except ImportError:
        raise PlotError(_NO_MATPLOTLIB) from None
    figure = pyplot.figure(figsize=_size(curves), layout="constrained")
    if get_backend().lower() == "agg":  # what matplotlib falls back to
        raise PlotError("there is no display to open a window on. Give --output FILE.")
    draw(figure, curves)
    pyplot.show()


if __name__ == "__main__":
    sys.exit(main())
