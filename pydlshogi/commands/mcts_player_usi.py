"""The program ``mcts_player_usi``: a USI engine that searches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Callable, NoReturn

from pydlshogi.commands.engine import default_model
from pydlshogi.commands.program import program
from pydlshogi.player.engine_options import mcts_options
from pydlshogi.usi.process import run_engine

if TYPE_CHECKING:
    from pydlshogi.player.mcts_player import MCTSPlayer

NAME = "mcts_player"


@program("mcts_player_usi")
def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Runs the engine on standard input and output, and ends the process."""
    model = default_model("mcts_player_usi", "searches a Monte-Carlo tree", argv)
    options = mcts_options()

    def make_player(send: Callable[[str], None]) -> MCTSPlayer:
        from pydlshogi.player.mcts_player import MCTSPlayer

        return MCTSPlayer(options, send, model=model)

    run_engine(NAME, options, make_player)
