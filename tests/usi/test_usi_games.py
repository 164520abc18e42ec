"""Whole games through cshogi's USI client, against a real engine."""

import os
import shutil
import time
from pathlib import Path

import cshogi
import pytest
from cshogi.usi import Engine, InfoListener, MultiPVListener
from network_helpers import narrow

from pydlshogi.model_files.model_file import save_model
from pydlshogi.network.registry import make_network

PROGRAM = Path(__file__).resolve().parents[2] / "policy_player_usi.py"
OPPONENT = shutil.which("fairy-stockfish", path=f"{os.environ['PATH']}{os.pathsep}/usr/games")
GAMES = 20
#: The test stops a game after so many moves.
MOST_MOVES = 150
#: Milliseconds for a move: far more than the engines need on a busy machine.
BYOYOMI = 10000

needs_opponent = pytest.mark.skipif(
    OPPONENT is None, reason="fairy-stockfish is not installed (apt-get install fairy-stockfish)"
)


#: Strengths of the opponent: a weak one for long games, and one that mates.
STRENGTHS = [(-20, 1), (20, 300)]


def alive(engine):
    """Returns a listener that raises if the engine has ended; cshogi would read for ever."""

    def listener(line):
        if not line and engine.proc.poll() is not None:
            raise AssertionError(f"{engine.cmd} ended with status {engine.proc.returncode}")

    return listener


def ask_for_move(engine, moves, **limits):
    """Returns an engine's answer, after a check of the time it took."""
    engine.position(moves)
    start = time.perf_counter()
    answer, _ = engine.go(btime=0, wtime=0, byoyomi=BYOYOMI, listener=alive(engine), **limits)
    assert time.perf_counter() - start < BYOYOMI / 1000, f"time forfeit after {moves}"
    return answer


def play(ours, opponent, ours_first, nodes):
    """Plays a game and returns its moves and its end."""
    board, moves, seen = cshogi.Board(), [], {}
    while len(moves) < MOST_MOVES:
        our_turn = (len(moves) % 2 == 0) == ours_first
        if our_turn:
            answer = ask_for_move(ours, moves)
        elif board.is_game_over():
            return moves, "won"
        else:
            answer = ask_for_move(opponent, moves, nodes=nodes)
        if answer == "resign":
            assert board.is_game_over() or not our_turn, f"resigned after {moves}"
            return moves, "lost" if our_turn else "won"
        if answer == "win":
            assert board.is_nyugyoku() or not our_turn, f"declared after {moves}"
            return moves, "declared"
        move = board.move_from_usi(answer)
        assert board.is_legal(move), f"{answer} after {moves} is illegal"
        board.push(move)
        moves.append(answer)
        key = board.zobrist_hash()
        seen[key] = seen.get(key, 0) + 1
        if seen[key] == 4:
            return moves, "repetition"
    return moves, "long"


@pytest.mark.parametrize("network", ["policy", "policy_value_small"])
def test_a_client_finds_the_move_played_and_its_score_if_there_is_one(
    environment, monkeypatch, tmp_path, network
):
    monkeypatch.setenv("PATH", environment["PATH"])
    save_model(tmp_path / "model", make_network(network, **narrow(network)))
    engine = Engine(str(PROGRAM))
    try:
        engine.setoption("modelfile", str(tmp_path / "model"))
        engine.setoption("strategy", "boltzmann")
        engine.setoption("temperature", "1000")
        engine.isready(listener=alive(engine))
        for _ in range(5):
            lines, best, several = [], InfoListener(), MultiPVListener()

            def listen(line, lines=lines, best=best, several=several):
                for listener in (lines.append, best, several):
                    listener(line)

            answer, _ = engine.go(byoyomi=BYOYOMI, listener=listen)
            assert several.info[0]["pv"] == best.pv == [answer]
            assert len(several.info) == 5
            # cshogi's own program takes the line before bestmove.
            assert f" multipv 1 {'score cp ' if network != 'policy' else ''}" in lines[-2]
            assert (best.score is None) == (network == "policy")
            assert sum("score" in info for info in several.info) == (network != "policy")
    finally:
        engine.quit()


@needs_opponent
@pytest.mark.long
def test_twenty_games_without_illegal_move_crash_or_time_forfeit(
    environment, monkeypatch, model_file
):
    monkeypatch.setenv("PATH", environment["PATH"])
    ours, opponent = Engine(str(PROGRAM)), Engine(OPPONENT)
    try:
        ours.setoption("modelfile", model_file)
        ours.setoption("strategy", "boltzmann")
        ours.setoption("random_seed", 1)
        games = []
        for game in range(GAMES):
            skill, nodes = STRENGTHS[game // 2 % 2]
            opponent.setoption("Skill Level", skill)
            for engine in (ours, opponent):
                engine.isready(listener=alive(engine))
                engine.usinewgame()
            games.append(play(ours, opponent, ours_first=game % 2 == 0, nodes=nodes))
            for engine in (ours, opponent):
                engine.gameover("draw")
        assert ours.proc.poll() is None
    finally:
        processes = ours.proc, opponent.proc
        ours.quit()
        opponent.quit()
    assert [process.returncode for process in processes] == [0, 0]
    assert all(len(moves) > 10 for moves, _ in games)
    assert {end for _, end in games} <= {"won", "lost", "repetition", "long", "declared"}
    # The strong opponent has won, and a game with the weak one was long.
    assert "lost" in {end for _, end in games}
    assert max(len(moves) for moves, _ in games) > 100
    print(*(f"{len(moves)} moves, {end}" for moves, end in games), sep="\n")
