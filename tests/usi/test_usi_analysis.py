"""The analysis of a GUI, through cshogi's USI client: every position of a game, until stop."""

import time
from pathlib import Path

import cshogi.CSA
import pytest
from cshogi.usi import Engine
from network_helpers import narrow

from pydlshogi.model_files.model_file import save_model
from pydlshogi.network.registry import make_network

REPOSITORY = Path(__file__).resolve().parents[2]
GAME = REPOSITORY / "kifu" / "test" / "01076.csa"
#: Positions that are analyzed, from the start of the game.
POSITIONS = 12


def analyze(engine, moves, seconds=0.0):
    """Sends ``go infinite``, waits for candidates, sends ``stop``; returns all lines."""
    engine.position(moves)
    engine.proc.stdin.write(b"go infinite\n")
    engine.proc.stdin.flush()
    lines = []
    while not lines or " pv " not in lines[-1]:
        assert engine.proc.poll() is None
        lines.append(engine.proc.stdout.readline().decode("ascii").strip())
    time.sleep(seconds)
    engine.stop()
    while not lines[-1].startswith("bestmove"):
        assert engine.proc.poll() is None
        lines.append(engine.proc.stdout.readline().decode("ascii").strip())
    return lines


def analyze_game(program, model, positions=POSITIONS, seconds=0.0):
    """Returns the lines of each position of the game."""
    (record,) = cshogi.CSA.Parser.parse_file(str(GAME))
    moves = [cshogi.move_to_usi(move) for move in record.moves]
    engine = Engine(str(REPOSITORY / program), connect=True)
    try:
        engine.setoption("modelfile", str(model))
        engine.isready()
        engine.usinewgame()
        return [
            analyze(engine, moves[:count], seconds) for count in range(min(positions, len(moves)))
        ]
    finally:
        engine.quit()


@pytest.mark.parametrize(
    "program", ["policy_player_usi.py", "mcts_player_usi.py"], ids=["policy", "mcts"]
)
@pytest.mark.parametrize(
    "network, scores", [("policy_bn", False), ("policy_value_small", True)], ids=["policy", "two"]
)
def test_an_analysis_has_scores_only_with_a_value_head(tmp_path, program, network, scores):
    save_model(tmp_path / "model", make_network(network, **narrow(network)))
    for lines in analyze_game(program, tmp_path / "model"):
        infos = [line for line in lines if line.startswith("info ")]
        assert infos and lines[-1].startswith("bestmove ")
        scored = [line for line in infos if " score " in line]
        # A mate that was found is no opinion of a network.
        opinions = [line for line in scored if " score mate " not in line]
        assert bool(opinions) == scores, lines
