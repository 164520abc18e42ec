"""The program plot_log: loss and accuracy during a training, from its log."""

from __future__ import annotations

from collections.abc import Sequence

from pydlshogi.commands.arguments import ArgumentParser, file_name
from pydlshogi.commands.program import program
from pydlshogi.commands.written import add_picture_output, check_picture_output


def build_parser() -> ArgumentParser:
    """Makes the parser of the command line."""
    parser = ArgumentParser(
        prog="plot_log",
        description="Draws loss and accuracy during trainings, from their logs. The horizontal "
        "axis counts training positions, or iterations if a log does not tell its batch size.",
    )
    parser.add_argument(
        "log", nargs="+", type=file_name, help="log of a training; several share one picture"
    )
    add_picture_output(parser, "picture to write: .png, .svg or .pdf (default: open a window)")
    return parser


@program("plot_log")
def main(argv: Sequence[str] | None = None) -> int:
    """Draws logs as the command line says; returns the exit status."""
    args = build_parser().parse_args(argv)
    from pydlshogi.training import plot

    if args.output:
        check_picture_output(args.output, *args.log)
    curves = plot.read_curves(args.log)
    if args.output:
        plot.save(curves, args.output)
        print(f"{args.output}: picture of {', '.join(args.log)}")
    else:
        plot.show(curves)
    return 0
