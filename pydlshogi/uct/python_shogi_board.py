"""The board of python-shogi, which runs everywhere."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy
import shogi

from pydlshogi import rules
from pydlshogi.features import make_input_features_from_board
from pydlshogi.uct.board import Mate
from pydlshogi.uct.move import from_usi, to_usi

#: What this board is called in messages.
LIBRARY = "python-shogi"


class PythonShogiBoard:
    """A :class:`pydlshogi.uct.board.SearchBoard` on top of python-shogi.

    Args:
        sfen: The start position; None for the usual one.
        moves: Legal moves from there, in USI's notation.
    """

    def __init__(self, sfen: str | None = None, moves: Sequence[str] = ()) -> None:
        board = shogi.Board(sfen)
        self._board = board
        self.pop = board.pop
        self.key = board.zobrist_hash
        self.in_check = board.is_check
        for move in moves:
            board.push(shogi.Move.from_usi(move))

    @property
    def turn(self) -> int:
        """The side to move."""
        return self._board.turn

    def push(self, move: int) -> None:
        """Plays a legal move."""
        self._board.push(_shogi_move(move))

    def moves(self) -> numpy.ndarray:
        """Lists the legal moves."""
        return numpy.array(
            [_number(move.usi()) for move in rules.legal_moves(self._board)], numpy.uint16
        )

    def checks(self) -> list[int]:
        """Lists the legal moves that give check."""
        return [move for move in self.moves().tolist() if self._gives_check(move)]

    def can_declare(self) -> bool:
        """Says whether the side to move wins by the 27-point declaration."""
        return rules.can_declare_win(self._board)

    def mate(self, plies: int) -> Mate | None:
        """Finds a mate in one; longer ones would take too long."""
        if plies < 1:
            return None
        move = rules.mate_in_one(self._board, rules.legal_moves(self._board))
        return Mate(_number(move.usi()), 1) if move else None

    def search_mate(self, nodes: int, plies: int) -> tuple[list[int], bool]:
        """Finds nothing: python-shogi has no mate search."""
        return [], False

    def write_planes(self, out: numpy.ndarray) -> None:
        """Writes the network's input."""
        out[...] = make_input_features_from_board(self._board)

    def _gives_check(self, move: int) -> bool:
        self.push(move)
        try:
            return self._board.is_check()
        finally:
            self.pop()


@functools.cache
def _shogi_move(move: int) -> shogi.Move:
    return shogi.Move.from_usi(to_usi(move))


@functools.cache
def _number(usi: str) -> int:
    return from_usi(usi)
