"""What the tests of the analysis share: a small model, and games."""

from pathlib import Path

import shogi
from network_helpers import make_trained

from pydlshogi.analysis.opinion import Network
from pydlshogi.analysis.record import GameRecord
from pydlshogi.device import select_device
from pydlshogi.inference.evaluator import Evaluator
from pydlshogi.model_files.model_file import save_model

ROOT = Path(__file__).resolve().parent.parent
GAME = ROOT / "kifu/test/02027.csa"

#: Black mates by 5c+ or G*5b.
MATE = "4k4/9/4P4/9/9/9/9/9/4K4 b G2r2b3g4s4n4l17p 1"


def save_small(path, name="policy_value"):
    """Saves a small network with random numbers."""
    save_model(path, make_trained(name, channels=8))
    return path


def small_network(folder, name="policy_value"):
    """Makes a small network that gives opinions."""
    path = save_small(folder / name, name)
    return Network(Evaluator(path, select_device(-1)), name)


def game_of(*moves, sfen=None):
    """Makes a game from moves in the notation of USI."""
    board = shogi.Board(sfen) if sfen else shogi.Board()
    start = shogi.Board(board.sfen())
    return GameRecord(("b", "w"), start, tuple(map(shogi.Move.from_usi, moves)))
