"""The moves that led to a position, in the game and in the tree, and its repetitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy

from pydlshogi.features import make_history_planes
from pydlshogi.positions import RECENT_NUM
from pydlshogi.uct.board import SearchBoard
from pydlshogi.uct.move import network_square
from pydlshogi.uct.proof import DRAW, LOSS, WIN

#: The occurrence of a position that ends the game.
LAST_OCCURRENCE = 4


class Repetition(NamedTuple):
    """A position that occurs again.

    Attributes:
        outcome: For the side to move: who gave check with every move has lost.
        is_final: Whether the rules end the game here; else it is a forecast.
    """

    outcome: int
    is_final: bool


class Game:
    """A board with the moves that led to its position.

    Args:
        board: The start position; it is played on.
        moves: The moves of the game, as in :mod:`pydlshogi.uct.move`.
        ply: Number of plies before the start position.

    Attributes:
        board: The board.
        ply: Number of plies played.
    """

    def __init__(self, board: SearchBoard, moves: Sequence[int] = (), ply: int = 0) -> None:
        self.board = board
        self.ply = ply
        self._moves: list[int] = []
        self._keys = [board.key()]
        for move in moves:
            self.push(move)
        self._root = len(self._keys)
        self._before_root = frozenset(self._keys)

    def push(self, move: int) -> None:
        """Plays a legal move."""
        self.board.push(move)
        self._moves.append(move)
        self._keys.append(self.board.key())
        self.ply += 1

    def pop(self) -> None:
        """Takes back a move, at most as many as :meth:`push` has played since the start."""
        self.board.pop()
        self._moves.pop()
        self._keys.pop()
        self.ply -= 1

    def recent_squares(self) -> list[int]:
        """Returns the destinations of the last two moves, the last one first.

        They are seen from the side to move. At the start of the game there are fewer.
        """
        turn = self.board.turn
        return [network_square(move, turn) for move in self._moves[: -RECENT_NUM - 1 : -1]]

    def history_planes(self) -> numpy.ndarray:
        """Makes the planes of the last two moves, (2, 9, 9) float32."""
        return make_history_planes(self.recent_squares())

    def repetition(self, occurrences: int) -> Repetition | None:
        """Judges the position where it occurs again.

        Args:
            occurrences: The occurrence, 2 to 4, from which on it counts.
        """
        key = self._keys[-1]
        if key not in self._before_root and key not in self._keys[self._root : -1]:
            return None
        places = [place for place, other in enumerate(self._keys) if other == key]
        if len(places) < occurrences:
            return None
        is_final = len(places) >= LAST_OCCURRENCE
        earlier = places[-LAST_OCCURRENCE if is_final else -occurrences]
        return Repetition(self._outcome(len(self._moves) - earlier), is_final)

    def _outcome(self, plies: int) -> int:
        """Judges a repetition by who gave check in the last plies."""
        last_mover_checks, other_checks = self._only_checks(plies)
        if last_mover_checks:
            return WIN
        return LOSS if other_checks else DRAW

    def _only_checks(self, plies: int) -> list[bool]:
        """Whether the side that moved last, and the other, gave check with every move."""
        only_checks = [True, True]
        for ply in range(plies):
            only_checks[ply % 2] &= self.board.in_check()
            self.board.pop()
        for move in self._moves[len(self._moves) - plies :]:
            self.board.push(move)
        return only_checks
