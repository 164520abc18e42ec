"""Times the engine from go to bestmove, in all and by parts.

    python benchmarks/player.py [--modelfile FILE]

Without a model the weights are random; they take the same time. The figures are medians
over the positions of tests/data/labels.json, which are from real games. ``position`` with
moves is timed on the games of kifu/test. The last line is measured from outside, as by a
GUI.
"""

from __future__ import annotations

import openblas  # noqa: F401

# isort: split
import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import shogi.CSA

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from pydlshogi import rules  # noqa: E402
from pydlshogi.features import make_input_features_from_board  # noqa: E402
from pydlshogi.model_files.model_file import save_model  # noqa: E402
from pydlshogi.network.policy import PolicyNetwork  # noqa: E402
from pydlshogi.player.engine_options import policy_options  # noqa: E402
from pydlshogi.player.policy_player import PolicyPlayer  # noqa: E402
from pydlshogi.player.position import make_board  # noqa: E402
from pydlshogi.usi.protocol import Go  # noqa: E402


def main() -> int:
    """Runs all measurements and prints them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--modelfile", help="model file (default: random weights)")
    modelfile = parser.parse_args().modelfile
    with tempfile.TemporaryDirectory() as folder:
        if modelfile is None:
            modelfile = str(Path(folder) / "model")
            save_model(modelfile, PolicyNetwork())
        sfens = [
            entry["sfen"]
            for entry in json.loads((REPOSITORY / "tests" / "data" / "labels.json").read_text())
        ]
        time_parts(sfens, modelfile)
        time_positions()
        time_program(sfens, modelfile)
    return 0


def time_parts(sfens: list[str], modelfile: str) -> None:
    """Times the player and its parts."""
    options = policy_options()
    options.set("modelfile", modelfile)
    player = PolicyPlayer(options, lambda line: None)
    start = time.perf_counter()
    player.prepare()
    print(f"isready without the imports  {1000 * (time.perf_counter() - start):8.2f} ms")

    times: dict[str, list[float]] = {}

    def timed(part, work):  # type: ignore[no-untyped-def]
        start = time.perf_counter()
        result = work()
        times.setdefault(part, []).append(time.perf_counter() - start)
        return result

    for sfen in sfens:
        timed("position", lambda sfen=sfen: player.set_position(sfen, []))
        board = player.board
        timed("features", lambda board=board: make_input_features_from_board(board))
        logits = timed("features and network", lambda board=board: player.evaluate(board))
        moves = timed("legal moves", lambda board=board: rules.legal_moves(board))
        timed("mate in one", lambda board=board, moves=moves: rules.mate_in_one(board, moves))
        player.evaluate = lambda board, logits=logits: logits  # type: ignore[method-assign]
        timed("all except the network", lambda: player.choose(Go()))
        del player.evaluate  # type: ignore[method-assign]
        timed("go in all", lambda: player.choose(Go()))
    for part, seconds in times.items():
        print_row(part, seconds)


def time_positions() -> None:
    """Times ``position startpos moves …`` with all moves of a game, as GUIs send it."""
    anew, going_on = [], []
    for path in sorted((REPOSITORY / "kifu" / "test").glob("*.csa")):
        moves = shogi.CSA.Parser.parse_file(str(path))[0]["moves"]
        player = PolicyPlayer(policy_options(), lambda line: None)
        for number in range(0, len(moves), 2):
            start = time.perf_counter()
            player.set_position(None, moves[:number])
            going_on.append(time.perf_counter() - start)
            if number == 100:
                start = time.perf_counter()
                make_board(None, moves[:number])
                anew.append(time.perf_counter() - start)
    print_row("position, 100 new moves", anew)
    print_row("position, two more moves", going_on)


def time_program(sfens: list[str], modelfile: str) -> None:
    """Times the program from the outside."""
    start = time.perf_counter()
    engine = subprocess.Popen(
        [sys.executable, str(REPOSITORY / "policy_player_usi.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def ask(command: str, answer: str) -> float:
        asked = time.perf_counter()
        engine.stdin.write(f"{command}\n")  # type: ignore[union-attr]
        engine.stdin.flush()  # type: ignore[union-attr]
        for line in engine.stdout:  # type: ignore[union-attr]
            if line.startswith(answer):
                return time.perf_counter() - asked
        sys.exit(f"the engine ended without {answer}")

    ask("usi", "usiok")
    print(f"start to usiok               {1000 * (time.perf_counter() - start):8.2f} ms")
    ready = ask(f"setoption name modelfile value {modelfile}\nisready", "readyok")
    print(f"isready to readyok           {1000 * ready:8.2f} ms")
    seconds = []
    for sfen in sfens:
        # The answer to usi tells that position is finished, so that only go is timed.
        ask(f"position sfen {sfen}\nusi", "usiok")
        seconds.append(ask("go btime 0 wtime 0 byoyomi 1000", "bestmove"))
    print_row("go to bestmove", seconds)
    engine.communicate("quit\n")


def print_row(part: str, seconds: list[float]) -> None:
    """Prints median and 95th percentile in milliseconds."""
    seconds = sorted(seconds)
    late = seconds[int(0.95 * (len(seconds) - 1))]
    print(f"{part:28} {1000 * statistics.median(seconds):8.2f} ms  95%: {1000 * late:6.2f} ms")


if __name__ == "__main__":
    sys.exit(main())
