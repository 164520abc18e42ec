"""Child process: asks an engine for moves and prints them with their times.

    python -m pydlshogi.gpu_check.moves SCRIPT DEVICE MODELFILE LIST POSITIONS GO [NAME=VALUE …]

Each answer is a line ``move<TAB>MOVE<TAB>MILLISECONDS<TAB>NPS``. NPS is empty if the engine
does not print it. The positions are from the games of LIST, every tenth move. The first
answer is not printed: it contains the compilation of kernels.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from collections.abc import Iterator

from pydlshogi.kifu.sources import read_list

_STEP = 10


class Engine:
    """A running engine; the caller limits the time of this process.

    Args:
        script: The engine's script.
    """

    def __init__(self, script: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def send(self, command: str) -> None:
        """Sends a line."""
        assert self._process.stdin is not None
        print(command, file=self._process.stdin, flush=True)

    def ask(self, command: str, answer: str) -> list[str]:
        """Sends a line and returns the output up to a line that starts with ``answer``."""
        self.send(command)
        assert self._process.stdout is not None
        lines: list[str] = []
        for line in self._process.stdout:
            lines.append(line.rstrip())
            if line.startswith(answer):
                return lines
        raise SystemExit(f"the engine ended without {answer}: {' / '.join(lines[-3:])}")

    def quit(self) -> None:
        """Ends the engine."""
        self.send("quit")
        self._process.wait()


def main() -> int:
    """Asks and prints; returns the exit status."""
    script, device, modelfile, path, number, go, *options = sys.argv[1:]
    engine = Engine(script)
    engine.ask("usi", "usiok")
    for option in (f"device={device}", f"modelfile={modelfile}", *options):
        engine.send("setoption name {} value {}".format(*option.split("=", 1)))
    engine.ask("isready", "readyok")
    engine.send("usinewgame")
    for count, position in enumerate(itertools.islice(_positions(path), int(number) + 1)):
        engine.send(f"position {position}")
        start = time.perf_counter()
        lines = engine.ask(go, "bestmove")
        milliseconds = 1000 * (time.perf_counter() - start)
        if count:
            print(f"move\t{lines[-1].split()[1]}\t{milliseconds:.2f}\t{_nps(lines)}", flush=True)
    engine.quit()
    return 0


def _positions(path: str) -> Iterator[str]:
    """Yields positions of the games of a list, as the command ``position`` takes them."""
    import shogi.CSA

    for source in read_list(path):
        game = shogi.CSA.Parser.parse_file(str(source.path))[0]
        for count in range(0, len(game["moves"]), _STEP):
            yield " ".join(["startpos", *(["moves"] if count else []), *game["moves"][:count]])


def _nps(lines: list[str]) -> str:
    """Returns the nodes a second of the last line that has them; empty without one."""
    for line in reversed(lines):
        words = line.split()
        if words[:1] == ["info"] and "nps" in words[:-1]:
            return words[words.index("nps") + 1]
    return ""


if __name__ == "__main__":
    sys.exit(main())
