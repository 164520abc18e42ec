"""The programs of the engines."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from pydlshogi.commands.arguments import ArgumentParser
from pydlshogi.commands.program import program
from pydlshogi.usi.engine import run_engine
from pydlshogi.usi.options import Options


def engine_program(
    name: str, player: str, plays: str, make_options: Callable[[], Options]
) -> Callable[..., int]:
    """Makes the ``main(argv=None)`` of an engine, which ends the process.

    Args:
        name: Name of the engine, and of its module in ``pydlshogi.player``.
        player: Name of the class in that module; Chainer is imported with it.
        plays: Says in the help how the engine plays: the end of "Shogi engine that ...".
        make_options: Makes its options.
    """

    @program(f"{name}_usi")
    def main(argv: Sequence[str] | None) -> NoReturn:
        model, options = _default_model(f"{name}_usi", plays, argv), make_options()

        def make_player(send: Callable[[str], None]) -> Any:
            module = importlib.import_module(f"pydlshogi.player.{name}")
            return getattr(module, player)(options, send, model=model)

        run_engine(name, options, make_player)

    return main


def _default_model(prog: str, plays: str, argv: Sequence[str] | None) -> Path | None:
    """Reads the model that replaces the default of the option ``modelfile``; None for none."""
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
