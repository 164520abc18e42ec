"""The program ``policy_player_usi``: a USI engine that plays the move of a policy network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Callable, NoReturn

from pydlshogi.commands.engine import default_model
from pydlshogi.commands.program import program
from pydlshogi.player.engine_options import policy_options
from pydlshogi.usi.process import run_engine

if TYPE_CHECKING:
    from pydlshogi.player.policy_player import PolicyPlayer

NAME = "policy_player"


@program("policy_player_usi")
def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Runs the engine on standard input and output, and ends the process."""
    model = default_model("policy_player_usi", "plays the move of a policy network", argv)
    options = policy_options()

    def make_player(send: Callable[[str], None]) -> PolicyPlayer:
        from pydlshogi.player.policy_player import PolicyPlayer

        return PolicyPlayer(options, send, model=model)

    run_engine(NAME, options, make_player)
