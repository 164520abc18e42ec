"""A position with the moves that led to it, and its repetitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pydlshogi.features import PLANE_NUM
from pydlshogi.positions import RECENT_NUM
from pydlshogi.uct.board import SearchBoard
from pydlshogi.uct.core import DRAW, LOSS, WIN
from pydlshogi.uct.move import destination, network_square

_KEY_MASK = (1 << 63) - 1

#: The occurrence of a position that ends the game.
LAST_OCCURRENCE = 4


class Repetition(NamedTuple):
    """A position that occurs again.

    Attributes:
        outcome: For the side to move. A side that gave check with every move has lost.
        is_final: Whether the rules end the game here; else the outcome is a forecast.
    """

    outcome: int
    is_final: bool


class Game:
    """A board with the moves that led to its position.

    Args:
        board: The start position. The moves are played on it.
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
        self._length_to_root = len(self._keys)
        self._keys_to_root = frozenset(self._keys)

    def push(self, move: int) -> None:
        """Plays a legal move."""
        self.board.push(move)
        self._moves.append(move)
        self._keys.append(self.board.key())
        self.ply += 1

    def play(self, moves: Sequence[int]) -> None:
        """Plays legal moves, one after the other."""
        push, key, keys = self.board.push, self.board.key, self._keys
        for move in moves:
            push(move)
            keys.append(key())
        self._moves += moves
        self.ply += len(moves)

    def pop(self, number: int = 1) -> None:
        """Takes back moves, at most as many as were played since the start."""
        if not number:
            return
        pop = self.board.pop
        for _ in range(number):
            pop()
        del self._moves[-number:], self._keys[-number:]
        self.ply -= number

    def recent_squares(self) -> list[int]:
        """Returns the destinations of the last two moves, the last one first.

        They are seen from the side to move. At the start of the game there are fewer.
        """
        turn = self.board.turn
        return [network_square(move, turn) for move in self._moves[: -RECENT_NUM - 1 : -1]]

    def input_key(self, plane_num: int) -> int:
        """Hash of the network's input, a number of 63 bits.

        Args:
            plane_num: Number of planes of the input.
        """
        key = self._keys[-1]
        if plane_num > PLANE_NUM:
            key = hash((key, *map(destination, self._moves[-RECENT_NUM:])))
        return key & _KEY_MASK

    def repetition(self, occurrences: int) -> Repetition | None:
        """Judges a position that occurs again; returns None for any other.

        Args:
            occurrences: The occurrence that counts, 2 to 4. Later ones count too.
        """
        key = self._keys[-1]
        if key not in self._keys_to_root and key not in self._keys[self._length_to_root : -1]:
            return None
        places = [place for place, other in enumerate(self._keys) if other == key]
        if len(places) < occurrences:
            return None
        is_final = len(places) >= LAST_OCCURRENCE
        # The moves since this occurrence decide: of a fifth one, those since the second.
        earlier = places[-LAST_OCCURRENCE if is_final else -occurrences]
        return Repetition(self._outcome(len(self._moves) - earlier), is_final)

    def _outcome(self, plies: int) -> int:
        """Judges a repetition by who gave check in the last plies."""
        last_mover_checks, other_checks = self._only_checks(plies)
        if last_mover_checks == other_checks:
            return DRAW
        return WIN if last_mover_checks else LOSS

    def _only_checks(self, plies: int) -> list[bool]:
        """Whether the side that moved last, and the other, gave check with every move."""
        only_checks = [True, True]
        for ply in range(plies):
            only_checks[ply % 2] &= self.board.in_check()
            self.board.pop()
        for move in self._moves[len(self._moves) - plies :]:
            self.board.push(move)
        return only_checks
