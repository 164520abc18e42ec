"""The program ``policy_player_usi``: a USI engine that plays the move of a policy network."""

from pydlshogi.commands.engine import engine_program
from pydlshogi.player.engine_options import policy_options

main = engine_program(
    "policy_player", "PolicyPlayer", "plays the move of a policy network", policy_options
)
