"""Thousands of random lines, then a normal game."""

import json
import random
import sys
from pathlib import Path

import cshogi
import numpy
import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
LABELS = REPOSITORY / "tests" / "data" / "labels.json"

# No option for the model, which may be missing, or for the log, which would be written.
SENSIBLE = [
    "usi",
    "isready",
    "usinewgame",
    "stop",
    "ponderhit",
    "gameover win",
    "gameover",
    "setoption name MultiPV value 3",
    "setoption name strategy value boltzmann",
    "setoption name temperature value 80",
    "setoption name reload",
    "setoption name USI_Ponder value true",
    "position startpos",
    "position startpos moves 7g7f 3c3d 8h2b+ 3a2b B*4e",
]
OF_THE_SEARCH = [
    "setoption name nodes value 40",
    "setoption name nodes value 0",
    "setoption name batch_size value 64",
    "setoption name USI_Hash value 16",
    "setoption name PV_Interval value 1",
    "setoption name mate_plies value 7",
    "setoption name random_plies value 10",
    "setoption name Draw_Ply value 20",
    "go nodes 30",
    "go mate 20",
    "go movetime 10 searchmoves 7g7f 2g2f",
]
GO = ["go infinite", "go ponder btime 0 wtime 0 byoyomi 100", "go btime 1000 wtime 1000", "go mate"]


def random_line(chance, sfens, more):
    """Makes a line: sensible, cut, reordered, damaged or random bytes."""
    kind = chance.randrange(10)
    if kind == 0:
        return bytes(chance.randrange(256) for _ in range(chance.randrange(60)))
    # Few lines are go, because each takes one pass through the network.
    sensible = [*SENSIBLE, *more] + [f"position sfen {chance.choice(sfens)}"] * 3
    line = chance.choice(GO if chance.random() < 0.03 else sensible)
    if kind <= 3:
        line = line[: chance.randrange(len(line) + 1)]
    elif kind <= 5:
        words = line.split()
        line = " ".join(chance.sample(words, len(words)))
    elif kind <= 8:
        place = chance.randrange(len(line))
        line = line[:place] + chr(chance.choice([0, 9, 42, 57, 75, 0x6B69, 0x1F600])) + line[place:]
    encoded = line.encode(chance.choice(["utf-8", "cp932"]), "replace")
    return encoded + chance.choice([b"", b"\r"])


@pytest.fixture
def with_values(start, tmp_path):
    """Starts an engine with a small network of random weights and both heads; it is ready."""
    from pydlshogi.model_files.model_file import save_model
    from pydlshogi.network.registry import make_network

    numpy.random.seed(3)
    save_model(tmp_path / "model", make_network("policy_value_small"))

    def start_ready(script):
        program = start([sys.executable, REPOSITORY / script])
        program.send(f"setoption name modelfile value {tmp_path / 'model'}", "isready")
        program.until("readyok")
        return program

    return start_ready


def random_lines(number, more=()):
    """Makes random lines; ``more`` are sensible lines of this engine alone."""
    chance = random.Random(1)
    sfens = [entry["sfen"] for entry in json.loads(LABELS.read_text())]
    lines = [random_line(chance, sfens, more) for _ in range(number)]
    return [line for line in lines if line.strip()[:4] != b"quit"]


def check_a_normal_game(program, go):
    """Plays against itself after the random lines, and leaves."""
    program.send("isready", "usinewgame", "setoption name nearly value over")
    program.until("info string option 'nearly'")
    board, moves = cshogi.Board(), []
    for _ in range(20):
        program.send(f"position startpos moves {' '.join(moves)}")
        answers = program.ask(go, "bestmove")
        assert not [answer for answer in answers if "cannot" in answer]
        moves.append(answers[-1].split()[1])
        move = board.move_from_usi(moves[-1])
        assert board.is_legal(move)
        board.push(move)
    assert program.leave("quit") == 0
    assert b"Traceback" not in program.stderr


@pytest.mark.long
def test_twenty_thousand_random_lines(ready):
    ready.send(b"\n".join(random_lines(20000)) + b"\n")
    ready.send("setoption name strategy value greedy")
    check_a_normal_game(ready, "go btime 0 wtime 0 byoyomi 1000")


def test_four_thousand_random_lines_to_the_engine_that_searches(with_values):
    searching = with_values("mcts_player_usi.py")
    searching.send(b"\n".join(random_lines(4000, OF_THE_SEARCH)) + b"\n", "stop")
    searching.send("setoption name random_plies value 0", "setoption name mate_plies value 5")
    check_a_normal_game(searching, "go nodes 50")
    said = [line for line in searching.said if "internal error" in line]
    assert not said


@pytest.mark.long
def test_four_thousand_random_lines_to_the_engine_that_looks_one_move_ahead(with_values):
    program = with_values("search1_player_usi.py")
    program.send(b"\n".join(random_lines(4000)) + b"\n", "stop")
    program.send("setoption name strategy value greedy", "setoption name random_plies value 0")
    check_a_normal_game(program, "go btime 0 wtime 0 byoyomi 1000")
    assert not [line for line in program.said if "internal error" in line]
