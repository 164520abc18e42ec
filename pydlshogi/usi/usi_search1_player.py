"""Runs the engine: ``python -m pydlshogi.usi.usi_search1_player``, as the book's .bat file does."""

import os

from pydlshogi.launch import ROOT, launch

if __name__ == "__main__":
    launch(os.path.join(ROOT, "search1_player_usi.py"))
