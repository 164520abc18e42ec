"""Whole games of the engine that searches, through cshogi's USI client."""

import os
import shutil
import time
from pathlib import Path

import cshogi
import numpy
import pytest
from cshogi.usi import Engine

PROGRAM = Path(__file__).resolve().parents[2] / "mcts_player_usi.py"
OPPONENT = shutil.which("fairy-stockfish", path=f"{os.environ['PATH']}{os.pathsep}/usr/games")
GAMES = 4
MOST_MOVES = 120
#: Strengths of the opponent: one that loses its way, so that games get long, and one that mates.
STRENGTHS = [(-20, 1), (20, 300)]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    from pydlshogi.model_files.model_file import save_model
    from pydlshogi.network.registry import make_network

    numpy.random.seed(3)
    path = tmp_path_factory.mktemp("a folder") / "small model"
    save_model(path, make_network("policy_value_small"))
    return path


@pytest.fixture
def ours(model, environment, monkeypatch):
    monkeypatch.setenv("PATH", environment["PATH"])
    engine = Engine(str(PROGRAM))
    engine.setoption("modelfile", model)
    engine.setoption("random_seed", 1)
    process = engine.proc
    yield engine
    engine.quit()
    assert process.returncode == 0


def alive(engine):
    """Gives a listener that raises where cshogi's client would read for ever."""

    def listener(line):
        if not line and engine.proc.poll() is not None:
            raise AssertionError(f"{engine.cmd} ended with status {engine.proc.returncode}")

    return listener


def answer_of(engine, moves, patience, **limits):
    """Returns the move and the ponder move, after checking the time."""
    engine.position(moves)
    start = time.perf_counter()
    answer = engine.go(listener=alive(engine), **limits)
    spent = time.perf_counter() - start
    assert spent < patience, f"{spent:.2f} s after {moves}"
    return answer, spent


def play(ours, opponent, ours_first, nodes):
    """Plays a game and returns its moves and how it ended."""
    board, moves, seen = cshogi.Board(), [], {}
    while len(moves) < MOST_MOVES:
        if (len(moves) % 2 == 0) == ours_first:
            answer = check(board, *answer_of(ours, moves, 10, byoyomi=10000)[0])
            if answer == "resign":
                return moves, "lost"
            if answer == "win":
                return moves, "declared"
        elif board.is_game_over():
            return moves, "won"
        else:
            answer = answer_of(opponent, moves, 60, nodes=nodes)[0][0]
            if answer == "resign":
                return moves, "won"
        board.push_usi(answer)
        moves.append(answer)
        key = board.zobrist_hash()
        seen[key] = seen.get(key, 0) + 1
        if seen[key] == 4:
            return moves, "repetition"
    return moves, "long"


def check(board, answer, ponder):
    """Checks our answer; a ponder move must be legal behind it."""
    if answer == "resign":
        assert board.is_game_over()
    elif answer == "win":
        assert board.is_nyugyoku()
    else:
        assert board.is_legal(board.move_from_usi(answer))
        if ponder:
            after = board.copy()
            after.push_usi(answer)
            assert after.is_legal(after.move_from_usi(ponder))
    return answer


@pytest.mark.skipif(OPPONENT is None, reason="fairy-stockfish is not installed")
@pytest.mark.long
def test_games_against_fairy_stockfish(ours):
    opponent = Engine(OPPONENT)
    ours.setoption("nodes", 20)
    games = []
    try:
        for game in range(GAMES):
            skill, nodes = STRENGTHS[game // 2 % 2]
            opponent.setoption("Skill Level", skill)
            for engine in (ours, opponent):
                engine.isready(listener=alive(engine))
                engine.usinewgame()
            games.append(play(ours, opponent, game % 2 == 0, nodes))
            for engine in (ours, opponent):
                engine.gameover("draw")
    finally:
        opponent.quit()
    assert all(len(moves) > 10 for moves, _ in games)
    assert "lost" in {end for _, end in games}


def overstepping(engine, moves_wanted, byoyomi, remaining, increment):
    """Plays against itself and returns the most time used beyond the clock."""
    engine.isready(listener=alive(engine))
    made, worst = 0, -float("inf")
    while made < moves_wanted:
        engine.usinewgame()
        board, moves, clocks = cshogi.Board(), [], [remaining, remaining]
        while made < moves_wanted and len(moves) < 200:
            color = len(moves) % 2
            limits = {"btime": clocks[0], "wtime": clocks[1]}
            if byoyomi:
                limits["byoyomi"] = byoyomi
            else:
                limits.update(binc=increment, winc=increment)
            (answer, _), spent = answer_of(engine, moves, 60, **limits)
            used = round(1000 * spent)
            worst = max(worst, used - clocks[color] - byoyomi)
            clocks[color] = max(0, clocks[color] - used) + increment
            made += 1
            if answer in ("resign", "win"):
                break
            board.push_usi(answer)
            moves.append(answer)
    return worst


@pytest.mark.long
@pytest.mark.parametrize(
    "byoyomi, remaining, increment", [(800, 0, 0), (0, 2000, 60)], ids=["byoyomi", "increment"]
)
def test_the_clock_is_not_overstepped(ours, byoyomi, remaining, increment):
    # Tests may have to share the processor with many other programs.
    ours.setoption("Byoyomi_Margin", 500)
    assert overstepping(ours, 25, byoyomi, remaining, increment) < 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "byoyomi, remaining, increment", [(1000, 0, 0), (0, 10000, 100)], ids=["byoyomi", "increment"]
)
def test_the_clock_is_not_overstepped_in_a_thousand_moves(ours, byoyomi, remaining, increment):
    assert overstepping(ours, 1000, byoyomi, remaining, increment) < 0
