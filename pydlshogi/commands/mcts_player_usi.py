"""The program ``mcts_player_usi``: a USI engine that searches."""

from pydlshogi.commands.engine import engine_program
from pydlshogi.player.engine_options import mcts_options

main = engine_program("mcts_player", "MCTSPlayer", "searches a Monte-Carlo tree", mcts_options)
