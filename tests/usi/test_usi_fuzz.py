"""Twenty thousand random lines, then a normal game."""

import json
import random
from pathlib import Path

import cshogi

LINES = 20000
LABELS = Path(__file__).resolve().parents[1] / "data" / "labels.json"

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
GO = ["go infinite", "go ponder btime 0 wtime 0 byoyomi 100", "go btime 1000 wtime 1000", "go mate"]


def random_line(chance, sfens):
    """Makes a line: sensible, cut, reordered, damaged or random bytes."""
    kind = chance.randrange(10)
    if kind == 0:
        return bytes(chance.randrange(256) for _ in range(chance.randrange(60)))
    # Few lines are go, because each takes one pass through the network.
    sensible = SENSIBLE + [f"position sfen {chance.choice(sfens)}"] * 3
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


def test_twenty_thousand_random_lines(ready):
    chance = random.Random(1)
    sfens = [entry["sfen"] for entry in json.loads(LABELS.read_text())]
    lines = [random_line(chance, sfens) for _ in range(LINES)]
    lines = [line for line in lines if line.strip()[:4] != b"quit"]
    ready.send(b"\n".join(lines) + b"\n")
    ready.send("setoption name strategy value greedy", "isready", "usinewgame")
    ready.send("setoption name nearly value over")
    ready.until("info string option 'nearly'")
    board, moves = cshogi.Board(), []
    for _ in range(20):
        ready.send(f"position startpos moves {' '.join(moves)}")
        answers = ready.ask("go btime 0 wtime 0 byoyomi 1000", "bestmove")
        assert not [answer for answer in answers if "cannot" in answer]
        moves.append(answers[-1].split()[1])
        move = board.move_from_usi(moves[-1])
        assert board.is_legal(move)
        board.push(move)
    assert ready.leave("quit") == 0
    assert b"Traceback" not in ready.stderr
