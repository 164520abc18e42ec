"""A USI engine that plays any legal move: the weakest opponent that keeps the rules."""

from __future__ import annotations

import random
from typing import NoReturn

from pydlshogi.player.engine_player import EnginePlayer
from pydlshogi.rules import legal_moves
from pydlshogi.usi.engine import run_engine
from pydlshogi.usi.options import Filename, Options, Spin
from pydlshogi.usi.protocol import Go


class RandomPlayer(EnginePlayer):
    """Draws one of the legal moves, each with the same probability."""

    name = "random_player"

    _generator = random.Random()

    def new_game(self) -> None:
        """Resets the generator if the option ``random_seed`` names a seed."""
        seed = self.options["random_seed"]
        self._generator = random.Random(None if seed < 0 else seed)

    def choose(self, go: Go) -> str:
        """Returns a move, or ``resign`` if there is no legal move."""
        moves = legal_moves(self.board)
        return self._generator.choice(moves).usi() if moves else "resign"


def main() -> NoReturn:
    """Runs the engine on standard input and output, and ends the process."""
    # The engine itself obeys debug_log.
    options = Options(Spin("random_seed", -1, low=-1, high=2**31 - 1), Filename("debug_log"))
    run_engine(RandomPlayer.name, options, lambda send: RandomPlayer(options, send))


if __name__ == "__main__":
    main()
