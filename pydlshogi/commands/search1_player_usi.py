"""The program ``search1_player_usi``: a USI engine that looks one move ahead by values."""

from pydlshogi.commands.engine import engine_program
from pydlshogi.player.engine_options import search1_options

main = engine_program(
    "search1_player", "Search1Player", "looks one move ahead with a value network", search1_options
)
