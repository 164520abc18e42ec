"""What all players share: a board, and the commands of USI that concern a player."""

from __future__ import annotations

from typing import Callable

from pydlshogi.player.position import change_moves, make_board
from pydlshogi.usi.options import Options
from pydlshogi.usi.protocol import Go


class BasePlayer:
    """A player as the book has it: one method a USI command.

    ``usi``, ``setoption``, ``stop`` and ``quit`` are answered by
    :class:`pydlshogi.usi.engine.Engine`, which calls the methods here one at a time,
    all from one thread. A player that thinks for longer than an instant looks at
    ``go.stop`` meanwhile, and at the clock.

    Args:
        options: What the GUI can set; read anew at each ``isready`` and ``go``.
        send: Sends a line to the GUI.

    Attributes:
        board: The position, with the moves that led to it on its stack.
    """

    def __init__(self, options: Options, send: Callable[[str], None] = print) -> None:
        self.options = options
        self.send = send
        self._sfen: str | None = None
        self._moves: list[str] = []
        self.board = make_board(None, [])

    def isready(self) -> None:
        """Gets ready to play; called again before every game.

        Raises:
            FatalError: it cannot be done; the text says why.
        """

    def usinewgame(self) -> None:
        """Begins a game."""

    def position(self, sfen: str | None, moves: list[str]) -> None:
        """Sets the board up.

        Args:
            sfen: As in USI; None for the usual start.
            moves: The moves played from there, in USI's notation.

        Raises:
            CommandError: it cannot be; the board stays as it was.
        """
        # In a game each list of moves is the one before and two more.
        if sfen == self._sfen:
            change_moves(self.board, self._moves, moves)
        else:
            self.board = make_board(sfen, moves)
        self._sfen, self._moves = sfen, moves

    def go(self, go: Go) -> str:
        """Chooses a move in the position on the board.

        Args:
            go: Limits; when the answer may be told is not the player's business.

        Returns:
            What belongs behind ``bestmove``: a move and perhaps ``ponder`` and
            another, ``resign`` or ``win``.

        Raises:
            FatalError: it cannot be done; the text says why.
        """
        raise NotImplementedError
