"""Games on a busy computer: no move comes too late.

The processes that compute, the engine and the referee share two processors.
``PYDLSHOGI_CLOCK_MOVES=1000`` plays as many moves; the default is a rehearsal.
"""

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import cshogi
import pytest

REPOSITORY = Path(__file__).resolve().parents[2]

MOVES = int(os.environ.get("PYDLSHOGI_CLOCK_MOVES", "60"))
BUSY = 8
#: Seconds that the referee grants for the way of a move.
GRACE = 0.1
LONGEST_GAME = 160
MODEL = REPOSITORY / "model" / "model_policy_value"


@contextlib.contextmanager
def load(processes):
    """Keeps two processors busy, and confines this process and its children to them."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(allowed)[:2])
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()
        os.sched_setaffinity(0, allowed)


def play(engine, moves, byoyomi, increment, remaining):
    """Lets the engine play both sides, and keeps the clocks.

    Yields:
        For each move its seconds, and how many of them were beyond the limit; a negative number
        keeps the time.
    """
    count = 0
    while count < moves:
        board, played, clocks = cshogi.Board(), [], [remaining, remaining]
        engine.send("usinewgame")
        while count < moves and len(played) < LONGEST_GAME:
            color = board.turn
            btime, wtime = (round(1000 * clock) for clock in clocks)
            times = f"btime {btime} wtime {wtime}"
            times += f" byoyomi {round(1000 * byoyomi)}" if byoyomi else ""
            inc = round(1000 * increment)
            times += f" binc {inc} winc {inc}" if increment else ""
            start = time.perf_counter()
            engine.send(f"position startpos moves {' '.join(played)}", f"go {times}")
            answer = engine.until("bestmove")[-1].split()[1]
            spent = time.perf_counter() - start
            yield spent, spent - byoyomi - clocks[color]
            count += 1
            clocks[color] += increment - max(0, spent - byoyomi)
            clocks[color] = max(clocks[color], increment)
            if answer in ("resign", "win"):
                break
            board.push_usi(answer)
            played.append(answer)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cannot choose processors")
@pytest.mark.parametrize(
    ("byoyomi", "increment", "remaining"), [(1, 0, 0), (0, 1, 3)], ids=["1 s", "3 s + 1 s"]
)
def test_no_move_is_late_beside_busy_processes(start, byoyomi, increment, remaining):
    with load(BUSY):
        engine = start([sys.executable, REPOSITORY / "mcts_player_usi.py"])
        engine.send(f"setoption name modelfile value {MODEL}", "isready")
        engine.until("readyok")
        moves = list(play(engine, MOVES, byoyomi, increment, remaining))
    used, late = zip(*moves)
    print(
        f"{len(moves)} moves, mean {sum(used) / len(used):.3f} s, longest {max(used):.3f} s, "
        f"closest {-1000 * max(late):.0f} ms before the limit"
    )
    assert max(late) < GRACE
