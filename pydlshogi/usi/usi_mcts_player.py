"""Runs the engine as the book's .bat file does: ``python -m pydlshogi.usi.usi_mcts_player``."""

import os

from pydlshogi.launch import ROOT, launch

if __name__ == "__main__":
    launch(os.path.join(ROOT, "mcts_player_usi.py"))
