"""The base class of our players: options and USI commands. The engine sends the answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Callable

from pydlshogi.player.base_player import BasePlayer, without
from pydlshogi.player.position import change_moves, make_board, start_and_moves
from pydlshogi.usi.engine import Player
from pydlshogi.usi.options import Options
from pydlshogi.usi.protocol import Go, parse_position, parse_setoption

#: The methods of the book's players.
_BOOK_METHODS = ("usi", "setoption", "isready", "usinewgame", "position", "go", "quit")


class EnginePlayer(BasePlayer, Player):
    """A player for :class:`pydlshogi.usi.engine.Engine`. A subclass implements :meth:`choose`.

    The methods of the book call those of ``Player``, so a player also works without an engine.
    """

    #: The limits of the book's ``go()``, which has no arguments.
    default_go = Go()

    def __init__(self, options: Options | None = None, send: Callable[[str], None] = print) -> None:
        super().__init__()
        self.options = Options() if options is None else options
        self.send = send
        self._sfen: str | None = None
        self._moves: list[str] = []
        self._known = self.board.sfen()

    @property
    def is_plain(self) -> bool:
        """Whether no subclass overrides a method of the book."""
        return all(getattr(type(self), m) is getattr(EnginePlayer, m) for m in _BOOK_METHODS)

    def set_position(self, sfen: str | None, moves: list[str]) -> None:
        """Sets up the board. An error leaves it unchanged."""
        self._take_over_board()
        # During a game each list of moves is the last one and two more.
        if sfen == self._sfen:
            change_moves(self.board, self._moves, moves)
        else:
            self.board = make_board(sfen, moves)
        self._sfen, self._moves, self._known = sfen, moves, self.board.sfen()

    def _take_over_board(self) -> None:
        """Learns the start position and the moves of a board that a script has changed."""
        board = self.board
        moves = [move.usi() for move in board.move_stack]
        if board.sfen() != self._known or moves != self._moves:
            self._sfen, self._moves = start_and_moves(board)
            self._known = board.sfen()

    def usi(self) -> None:
        """Sends the name of the engine, its options and ``usiok``."""
        for line in (f"id name {self.name}", *self.options.declarations(), "usiok"):
            self.send(line)

    def setoption(self, words: Sequence[str]) -> None:
        """Sets an option, given the words behind ``setoption``."""
        self.options.set(*parse_setoption(" ".join(words)))

    def isready(self) -> None:
        """Loads what the player needs and sends ``readyok``."""
        self.prepare()
        self.send("readyok")

    def usinewgame(self) -> None:
        """Starts a game."""
        self.new_game()

    def position(self, words: Sequence[str]) -> None:
        """Sets up the board; ``words`` as in :meth:`BasePlayer.position`."""
        self.set_position(*parse_position(" ".join(without("position", words))))

    def go(self) -> None:
        """Sends ``bestmove`` and a move."""
        self.send(f"bestmove {self.choose(self.default_go)}")

    def quit(self) -> None:
        """Ends what the player has started."""
        self.close()
