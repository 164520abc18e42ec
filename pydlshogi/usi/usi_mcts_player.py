"""Runs the engine as the book's .bat file does: ``python -m pydlshogi.usi.usi_mcts_player``."""

import sys

from pydlshogi.commands.mcts_player_usi import main

if __name__ == "__main__":
    sys.exit(main())
