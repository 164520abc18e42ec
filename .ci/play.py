"""Plays one move with an engine, as a GUI does: play.py MODEL ENGINE [ARGUMENT ...]."""

import subprocess
import sys

# UTF-8, because the encoding of the system may lack a character of the model's path.
engine = subprocess.Popen(
    sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
)


def ask(command: str, answer: str) -> str:
    """Sends a command and returns the first line that starts with the answer."""
    engine.stdin.write(command + "\n")
    engine.stdin.flush()
    for line in engine.stdout:
        print(line, end="")
        if line.startswith(answer):
            return line
    sys.exit(f"The engine ended without {answer}.")


ask("usi", "usiok")
ask(f"setoption name modelfile value {sys.argv[1]}\nisready", "readyok")
move = ask("position startpos moves 7g7f\ngo btime 0 wtime 0 byoyomi 1000", "bestmove").split()[1]
engine.stdin.write("quit\n")
engine.stdin.flush()
if engine.wait(10) or move in ("resign", "win"):
    sys.exit(f"The engine answered bestmove {move} and ended with status {engine.returncode}.")
