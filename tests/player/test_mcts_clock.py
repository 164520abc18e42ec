"""The clock in whole games: the search never oversteps its time."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]

#: Moves of each process. A process mostly sleeps, as with a network on a GPU, so that many of
#: them play at once.
_MOVES, _PROCESSES = 100, 10

_LONGEST_GAME = 160


def play(byoyomi, increment, remaining, moves):
    """Plays games against itself, and keeps the clocks as a referee does.

    Args:
        byoyomi: Seconds of every move.
        increment: Seconds added after every move.
        remaining: Seconds of each side at the start of a game.
        moves: Number of moves to play.

    Returns:
        For each move the seconds it took beyond its limit; negative numbers keep the time.
    """
    import cshogi
    from test_mcts_player import make_player

    from pydlshogi.usi.protocol import Clock, Go

    late = []
    while len(late) < moves:
        board, played = cshogi.Board(), []
        clocks = [remaining, remaining]
        player = make_player(fake={"seconds": 0.02}, PV_Interval=500)
        while len(late) < moves and len(played) < _LONGEST_GAME:
            player.set_position(None, list(played))
            color = board.turn
            sides = [Clock(*(round(1000 * n) for n in (c, increment, byoyomi))) for c in clocks]
            start = time.perf_counter()
            move = player.choose(Go(black=sides[0], white=sides[1])).split()[0]
            spent = time.perf_counter() - start
            late.append(spent - byoyomi - clocks[color])
            clocks[color] -= max(0, spent - byoyomi)
            clocks[color] += increment
            if move in ("resign", "win"):
                break
            board.push_usi(move)
            played.append(move)
    return late


@pytest.mark.slow
@pytest.mark.parametrize(
    ("byoyomi", "increment", "remaining"), [(1, 0, 0), (0, 0.1, 10)], ids=["byoyomi", "increment"]
)
def test_no_move_of_a_thousand_oversteps(byoyomi, increment, remaining):
    folders = [TESTS.parent, TESTS, TESTS / "player"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    arguments = [json.dumps([byoyomi, increment, remaining, _MOVES])]
    processes = [
        subprocess.Popen(
            [sys.executable, __file__, *arguments],
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )
        for _ in range(_PROCESSES)
    ]
    late = [number for process in processes for number in json.loads(process.communicate()[0])]
    assert len(late) == _MOVES * _PROCESSES
    print(f"closest: {-1000 * max(late):.0f} ms before the limit")
    assert max(late) < 0


if __name__ == "__main__":
    print(json.dumps(play(*json.loads(sys.argv[1]))))
