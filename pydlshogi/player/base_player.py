"""The base class of players in the book: one method for each USI command.

Source of the names: 「将棋AIで学ぶディープラーニング」.
"""

from __future__ import annotations

from collections.abc import Sequence

import shogi

from pydlshogi.player.position import make_board
from pydlshogi.usi.protocol import parse_position

__all__ = ["BasePlayer", "shogi"]


class BasePlayer:
    """A player that answers USI commands by ``print``.

    A subclass overrides at least :meth:`go`. ``usi(player)`` of :mod:`pydlshogi.usi.usi`
    runs it.

    Attributes:
        board: The position, with the moves that led to it on its stack.
    """

    def __init__(self) -> None:
        self.board = shogi.Board()

    def usi(self) -> None:
        """Prints the name of the engine, its options and ``usiok``."""
        print(f"id name {type(self).__name__}")
        print("usiok", flush=True)

    def setoption(self, words: Sequence[str]) -> None:
        """Sets an option; ``words`` are ``name``, a name, ``value`` and the value as one word."""

    def isready(self) -> None:
        """Loads what the player needs and prints ``readyok``."""
        print("readyok", flush=True)

    def usinewgame(self) -> None:
        """Starts a game."""

    def position(self, words: Sequence[str]) -> None:
        """Sets up the board. ``words`` are those of the command, with or without ``position``.

        If the position or a move is impossible, it raises CommandError, and the board is unchanged.
        """
        self.board = make_board(*parse_position(" ".join(without("position", words))))

    def go(self) -> None:
        """Prints ``bestmove`` and a move. This one resigns."""
        print("bestmove resign", flush=True)

    def quit(self) -> None:
        """Ends what the player has started."""


def without(command: str, words: Sequence[str]) -> Sequence[str]:
    """Removes the command from the front of its words, if it is there."""
    return words[1:] if list(words[:1]) == [command] else words
