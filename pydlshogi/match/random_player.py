"""A USI engine that plays random legal moves, as the weakest opponent."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Callable

from pydlshogi.player.base_player import BasePlayer
from pydlshogi.rules import legal_moves
from pydlshogi.usi.engine import Engine
from pydlshogi.usi.options import Filename, Options, Spin
from pydlshogi.usi.protocol import DialogueLog, Go, Output


class RandomPlayer(BasePlayer):
    """Plays a legal move drawn with uniform probability."""

    def __init__(self, options: Options, send: Callable[[str], None] = print) -> None:
        super().__init__(options, send)
        self._generator = random.Random()

    def usinewgame(self) -> None:
        """Resets the generator if the option ``random_seed`` is set."""
        seed = self.options["random_seed"]
        self._generator = random.Random(None if seed < 0 else seed)

    def go(self, go: Go) -> str:
        """Returns a move, or ``resign`` if there is no legal one."""
        moves = legal_moves(self.board)
        return self._generator.choice(moves).usi() if moves else "resign"


def main() -> int:
    """Runs the engine on standard input and output.

    Returns:
        The exit status.
    """
    # The loop of the engine handles debug_log.
    options = Options(Spin("random_seed", -1, low=-1, high=2**31 - 1), Filename("debug_log"))
    log = DialogueLog()
    output = Output(sys.stdout.buffer, log)
    Engine(
        "random_player",
        "pydlshogi",
        options,
        lambda send: RandomPlayer(options, send),
        output,
        log,
        Path.cwd(),
    ).run(sys.stdin.buffer)
    return 0


if __name__ == "__main__":
    sys.exit(main())
