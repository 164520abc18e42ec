"""What the programs of the engines have in common: their arguments."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydlshogi.commands.arguments import ArgumentParser


def default_model(prog: str, plays: str, argv: Sequence[str] | None) -> Path | None:
    """Reads the arguments of an engine.

    Args:
        prog: Name of the program.
        plays: Says in the help how the engine plays: the end of "Shogi engine that …".
        argv: Arguments; None for those of the command line.

    Returns:
        The model that replaces the default of the option ``modelfile``; None for none.
    """
    parser = ArgumentParser(
        prog=prog,
        description=f"Shogi engine that {plays}. Register it in a USI GUI (ShogiGUI, "
        "Shogidokoro, ShogiHome). It reads USI commands from standard input.",
    )
    parser.add_argument(
        "--model",
        metavar="FILE",
        type=lambda text: Path(text).absolute(),
        help="default model, for GUIs that cannot set the option modelfile (default: the "
        "environment variable PYDLSHOGI_MODEL, else the default of that option)",
    )
    model: Path | None = parser.parse_args(argv).model
    return model
