"""What the engine asks of a player of ours."""

from __future__ import annotations

from typing import Callable, Protocol

from pydlshogi.usi.options import Options
from pydlshogi.usi.protocol import Go


class Player(Protocol):
    """A player that the engine can drive.

    The engine calls the methods one at a time, all from one thread. A player that thinks
    for long must look at ``go.stop`` and at the clock meanwhile.

    Attributes:
        name: Name of the engine, for ``id name``.
        options: What the GUI can set. The player reads the values at each call.
        send: Sends one line to the GUI.
    """

    name: str
    options: Options
    send: Callable[[str], None]

    def prepare(self) -> None:
        """Loads what the player needs. The engine calls it before every game.

        Raises:
            UserError: The player cannot play. The engine shows the text and ends.
        """

    def new_game(self) -> None:
        """Starts a game."""

    def set_position(self, sfen: str | None, moves: list[str]) -> None:
        """Sets up the position.

        Args:
            sfen: Start position as in USI; None for the start position of an even game.
            moves: Moves from there, in USI notation.

        Raises:
            CommandError: The position or a move is impossible.
        """

    def choose(self, go: Go) -> str:
        """Chooses a move in the current position.

        The engine decides when the answer is sent.

        Returns:
            The text behind ``bestmove``: a move, a move with ``ponder`` and another move,
            ``resign`` or ``win``.

        Raises:
            UserError: The player cannot play. The engine shows the text and ends.
        """

    def is_endless(self, go: Go) -> bool:
        """Says whether only ``stop`` ends the search."""

    def find_mate(self, go: Go) -> str:
        """Searches a mate in the current position.

        Returns:
            The text behind ``checkmate``: the moves of the mate, ``nomate``, ``timeout`` or
            ``notimplemented``.
        """

    def close(self) -> None:
        """Ends what the player has started. The engine calls it once, at the end."""
