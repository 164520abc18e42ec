"""The board of cshogi, much faster than python-shogi's."""

from __future__ import annotations

import array
import contextlib
from collections.abc import Sequence

import cshogi
import numpy
import shogi

from pydlshogi import rules
from pydlshogi.uct.board import Mate, ends_in_mate, is_mated
from pydlshogi.uct.mate_process import MateProcess
from pydlshogi.uct.move import MOVE_NUM, from_usi, not_promoting

_MOVE_MASK = MOVE_NUM - 1
_NO_KING = 81

#: White's king may be declared on this rank and those below it, counted from 0.
_FAR_RANK = 6


class CshogiBoard:
    """A :class:`pydlshogi.uct.board.SearchBoard` on top of cshogi.

    Args:
        sfen: The start position; None for that of a game.
        moves: Legal moves from there, in USI's notation.
    """

    def __init__(self, sfen: str | None = None, moves: Sequence[str] = ()) -> None:
        board = cshogi.Board(sfen or cshogi.STARTING_SFEN)
        self._board = board
        self.push = board.push_move16
        self.pop = board.pop
        self.key = board.zobrist_hash
        self.sfen = board.sfen
        self.in_check = board.is_check
        self._missing = rules.missing_points(sfen)
        self.can_declare = self._can_declare if self._missing else board.is_nyugyoku
        for move in moves:
            self.push(from_usi(move))
        # cshogi treats a side without a king as mated.
        self._can_be_mated = [board.king_square(color) != _NO_KING for color in cshogi.COLORS]

    @property
    def turn(self) -> int:
        """The side to move."""
        return self._board.turn

    def moves(self) -> numpy.ndarray:
        """Lists the legal moves."""
        moves = array.array("I", list(self._board.legal_moves))  # faster than numpy.fromiter
        # The low 16 bits; cshogi leaves the highest of them 0.
        return numpy.frombuffer(moves, numpy.uint16)[::2]

    def checks(self) -> list[int]:
        """Lists the legal moves that give check."""
        if not self._can_be_mated[self._board.turn ^ 1]:
            return []
        # In check, cshogi lists checks that leave the king in check.
        board = self._board
        return [move & _MOVE_MASK for move in board.check_moves if board.is_legal(move)]

    def mate(self, plies: int) -> Mate | None:
        """Finds the shortest mate in at most ``plies`` plies, as far as cshogi finds one."""
        board = self._board
        plies -= 1 - plies % 2  # cshogi accepts odd numbers only
        if plies < 1 or not self._can_be_mated[board.turn ^ 1]:
            return None
        in_check = board.is_check()
        if not in_check and (move := board.mate_move_in_1ply()):
            return Mate(move & _MOVE_MASK, 1)
        # Few positions have a mate: one deep search answers for all others.
        longest = plies > 1 and not in_check and board.mate_move(plies)
        if plies > 1 and not in_check and not longest:
            return None
        # The first step is not asked in check, and it misses some mates in one. Those the search
        # for three plies finds.
        if (in_check or plies == 1) and (move := self._mate_in_one()):
            return Mate(move, 1)
        for length in range(3, plies + 1, 2):
            move = longest if longest and length == plies else board.mate_move(length)
            if move:
                if length == 3 and not in_check and (first := self._mate_in_one()):
                    return Mate(first, 1)
                if self._is_forced(move & _MOVE_MASK, length):
                    return Mate(move & _MOVE_MASK, length)
        return None

    def _is_forced(self, move: int, plies: int) -> bool:
        """Says whether a mate of cshogi's also follows the replies that cshogi leaves out.

        See :func:`pydlshogi.uct.board.ends_in_mate`.
        """
        if plies < 5:
            return True
        self.push(move)
        replies = self.moves().tolist()
        if plies == 5:  # the others have the mates in three that cshogi has found
            replies = not_promoting(replies)
        is_forced = all(is_mated(self, reply, plies - 2) for reply in replies)
        self.pop()
        return is_forced

    def search_mate(self, nodes: int, plies: int) -> tuple[list[int], bool]:
        """Searches a mate by df-pn: about 1 µs a node. No other Python code runs meanwhile."""
        board = self._board
        if not self._can_be_mated[board.turn ^ 1]:
            return [], True
        search = cshogi.DfPn(depth=plies, nodes=nodes)
        if not search.search(board):
            return [], search.searched_node < nodes
        moves = [move & _MOVE_MASK for move in search.get_pv(board)]
        # The library may have lost the end of the line from its table.
        return (moves, True) if ends_in_mate(self, moves) else ([], False)

    def start_mate_process(self, memory: int) -> MateProcess | None:
        """Starts a mate search in a process of its own."""
        if not self._can_be_mated[self._board.turn ^ 1]:
            return None
        with contextlib.suppress(OSError):  # the system may allow no further process
            return MateProcess(self._board.sfen(), memory)
        return None

    def _can_declare(self) -> bool:
        """Says in a handicap game whether the side to move may declare."""
        board = self._board
        if board.turn == cshogi.WHITE and board.king_square(cshogi.WHITE) % 9 >= _FAR_RANK:
            return rules.can_declare_win(shogi.Board(board.sfen()), self._missing)
        return bool(board.is_nyugyoku())

    def _mate_in_one(self) -> int:
        """Tries all checks. cshogi's search misses some distant ones, and fails in check."""
        for move in self.checks():
            self.push(move)
            is_mate = self._board.is_game_over()
            self.pop()
            if is_mate:
                return move
        return 0
