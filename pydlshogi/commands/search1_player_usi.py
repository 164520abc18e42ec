"""The program ``search1_player_usi``: a USI engine that looks one move ahead by values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Callable, NoReturn

from pydlshogi.commands.engine import default_model
from pydlshogi.commands.program import program
from pydlshogi.player.engine_options import search1_options
from pydlshogi.usi.process import run_engine

if TYPE_CHECKING:
    from pydlshogi.player.search1_player import Search1Player

NAME = "search1_player"


@program("search1_player_usi")
def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Runs the engine on standard input and output, and ends the process."""
    model = default_model("search1_player_usi", "looks one move ahead with a value network", argv)
    options = search1_options()

    def make_player(send: Callable[[str], None]) -> Search1Player:
        from pydlshogi.player.search1_player import Search1Player

        return Search1Player(options, send, model=model)

    run_engine(NAME, options, make_player)
