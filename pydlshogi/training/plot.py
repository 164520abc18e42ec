"""The program plot_log: loss and accuracy over iterations, from the logs of training runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydlshogi.training.log import Curve, read_log


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


def main(argv: Sequence[str] | None = None) -> int:
    """Draws logs as the command line says.

    Args:
        argv: The arguments; those of the process where it is None.

    Returns:
        Exit status: 0, or 1 with one sentence on standard error.
    """
    args = build_parser().parse_args(argv)
    try:
        curves = _read_curves(args.log)
        if args.output:
            _save(curves, Path(args.output))
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
            with open(path, encoding="utf-8", errors="replace") as lines:
                found = read_log(lines)
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


def draw(figure: Any, curves: dict[str, Curve]) -> None:
    """Draws curves: the loss above, the accuracy below, iterations to the right.

    What was logged on the way is a line; what validations found are marks: a dot for
    the test set, a cross for the mean training loss of the epoch.

    Args:
        figure: Empty ``matplotlib.figure.Figure``.
        curves: Curves by the name that the legend shows.
    """
    loss, accuracy = figure.subplots(2, 1, sharex=True)
    for index, (name, curve) in enumerate(curves.items()):
        prefix = f"{name}: " if len(curves) > 1 else ""
        tested = [point for point in curve.epochs if point.test_loss is not None]
        for axes, points, attribute, style, label in (
            (loss, curve.progress, "loss", "-", "training"),
            (loss, curve.epochs, "train_loss", "x", "training, mean of the epoch"),
            (loss, tested, "test_loss", "o", "test set"),
            (accuracy, curve.progress, "accuracy", "-", "some test positions"),
            (accuracy, curve.epochs, "test_accuracy", "o", "test set"),
        ):
            if points:
                iterations = [point.iteration for point in points]
                values = [getattr(point, attribute) for point in points]
                axes.plot(iterations, values, style, color=f"C{index % 10}", label=prefix + label)
    loss.set_ylabel("loss")
    accuracy.set_ylabel("accuracy")
    accuracy.set_xlabel("iteration")
    for axes in (loss, accuracy):
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")


_SIZE = (9, 8)
_NO_MATPLOTLIB = "matplotlib is not installed. Install it: python -m pip install matplotlib"


def _save(curves: dict[str, Curve], output: Path) -> None:
    """Writes a picture; neither a display nor a window toolkit is needed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise PlotError(_NO_MATPLOTLIB) from None
    figure = Figure(figsize=_SIZE, layout="constrained")
    draw(figure, curves)
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(output)
    except (OSError, ValueError) as error:  # ValueError: a kind of picture it does not know
        raise PlotError(f"--output {output} cannot be written ({error}).") from None


def _show(curves: dict[str, Curve]) -> None:
    """Opens a window and waits until it is closed."""
    try:
        from matplotlib import get_backend, pyplot
    except ImportError:
        raise PlotError(_NO_MATPLOTLIB) from None
    figure = pyplot.figure(figsize=_SIZE, layout="constrained")
    if get_backend().lower() == "agg":  # what matplotlib falls back to
        raise PlotError("there is no display to open a window on. Give --output FILE.")
    draw(figure, curves)
    pyplot.show()


if __name__ == "__main__":
    sys.exit(main())
