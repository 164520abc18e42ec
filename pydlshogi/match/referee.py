"""The referee checks each move and decides when and how a game ends.

The rules are those of the Japan Shogi Association. A side without a legal move loses. The
fourth occurrence of a position is a draw; if one side gave check with every move since the
first occurrence, that side loses. A declaration of victory must satisfy the 27-point rule of
the Computer Shogi Association. A game that reaches the limit of moves is drawn.

Where cshogi is installed, it applies the rules of moves and declarations, because it shares no
code with :mod:`pydlshogi.rules`, by which our engines declare. Elsewhere that module does.
"""

from __future__ import annotations

from typing import Any, Callable, NamedTuple, Union

import shogi

from pydlshogi.kifu.csa_board import PIECE_NAMES, SQUARE_NAMES
from pydlshogi.processors import has_avx2
from pydlshogi.rules import can_declare_win, has_legal_move, is_legal, missing_points

#: End marks of games that were lost by an illegal move, a crash or silence.
FAULT_MARKS = ("%ILLEGAL_MOVE", "%TIME_UP")


class RulesBoard:
    """The rules of :mod:`pydlshogi.rules` on python-shogi's board, the attribute ``board``.

    Moves are in USI notation. ``is_check()`` says whether the side to move is in check.
    """

    def __init__(self, sfen: str) -> None:
        self.board = shogi.Board(sfen)
        self.sfen, self.is_check = self.board.sfen, self.board.is_check

    @property
    def turn(self) -> int:
        """The side to move."""
        return int(self.board.turn)

    def is_legal(self, usi: str) -> bool:
        """Says whether a text is a legal move."""
        try:
            move = shogi.Move.from_usi(usi)
        except (ValueError, IndexError, KeyError):
            return False
        # python-shogi reads some texts that are no USI, such as capitals.
        return move.usi() == usi and bool(move) and is_legal(self.board, move)

    def push(self, usi: str) -> str:
        """Plays a legal move and returns it in CSA notation, without a sign."""
        move = shogi.Move.from_usi(usi)
        self.board.push(move)
        start = "00" if move.from_square is None else SQUARE_NAMES[move.from_square]
        piece = PIECE_NAMES[self.board.piece_type_at(move.to_square) - 1]
        return f"{start}{SQUARE_NAMES[move.to_square]}{piece}"

    def is_lost(self) -> bool:
        """Says whether the side to move has no legal move."""
        return not has_legal_move(self.board)

    def may_declare(self) -> bool:
        """Says whether the side to move may declare victory."""
        return can_declare_win(self.board)


class CshogiBoard:
    """The rules of cshogi, with the same methods."""

    def __init__(self, sfen: str) -> None:
        import cshogi

        self._cshogi: Any = cshogi
        self._board = cshogi.Board(sfen)
        self.sfen, self.is_check = self._board.sfen, self._board.is_check
        self.is_lost, self.may_declare = self._board.is_game_over, self._board.is_nyugyoku

    @property
    def turn(self) -> int:
        """The side to move."""
        return int(self._board.turn)

    def is_legal(self, usi: str) -> bool:
        """Says whether a text is a legal move."""
        return usi in map(self._cshogi.move_to_usi, self._board.legal_moves)

    def push(self, usi: str) -> str:
        """Plays a legal move and returns it in CSA notation, without a sign."""
        move = self._board.move_from_usi(usi)
        self._board.push(move)
        return str(self._cshogi.move_to_csa(move))


Board = Union[RulesBoard, CshogiBoard]


def make_board(sfen: str) -> Board:
    """Makes cshogi's board where it is installed and runs, and ours elsewhere."""
    if missing_points(sfen):  # cshogi does not count the missing pieces at a declaration
        return RulesBoard(sfen)
    try:
        # cshogi ends the process on a processor without AVX2.
        return CshogiBoard(sfen) if has_avx2() else RulesBoard(sfen)
    except Exception:  # not installed, or made for another numpy
        return RulesBoard(sfen)


class Verdict(NamedTuple):
    """How a game ended: the winner (None for a draw), the end mark of CSA V2.2, the reason."""

    winner: int | None
    end_mark: str
    reason: str

    @property
    def is_fault(self) -> bool:
        """Whether the game was lost by an illegal move, a crash or silence."""
        return self.end_mark in FAULT_MARKS


class Referee:
    """Follows a game from a position; one of ``max_plies`` moves is drawn.

    ``make`` makes the board that applies the rules.
    """

    def __init__(
        self,
        max_plies: int,
        sfen: str = shogi.STARTING_SFEN,
        make: Callable[[str], Board] = make_board,
    ) -> None:
        self.board = make(sfen)
        self.moves: list[str] = []  # in USI notation
        self.csa_moves: list[str] = []  # in CSA notation, with the signs of the sides
        self._max_plies = max_plies
        self._positions = [self._position()]
        self._checks = [False]

    def hear(self, answer: str) -> Verdict | None:
        """Judges the answer of the side to move: a move, ``resign`` or ``win``.

        It returns how the game ended; None if it continues.
        """
        if answer == "resign":
            return self.loss("%TORYO", "resigned")
        if answer == "win":
            if self.board.may_declare():
                return Verdict(self.board.turn, "%KACHI", "declared victory")
            return self.loss("%ILLEGAL_MOVE", "declared victory without the right to")
        if not self.board.is_legal(answer):
            return self.loss("%ILLEGAL_MOVE", f"answered with the illegal move {answer[:20]!a}")
        self.push(answer)
        return self._judge()

    def loss(self, end_mark: str, reason: str) -> Verdict:
        """Returns the verdict that the side to move loses."""
        return Verdict(1 - self.board.turn, end_mark, reason)

    def push(self, usi: str) -> None:
        """Plays a possible move without a judgement."""
        sign = "+" if self.board.turn == shogi.BLACK else "-"
        self.moves.append(usi)
        self.csa_moves.append(sign + self.board.push(usi))
        self._positions.append(self._position())
        self._checks.append(self.board.is_check())

    def _position(self) -> str:
        """Returns the position as SFEN without the move number."""
        return self.board.sfen().rpartition(" ")[0]

    def _judge(self) -> Verdict | None:
        """Judges the position after a move."""
        if self.board.is_lost():
            # Not %TSUMI: cshogi and other readers find no winner then.
            return self.loss("%TORYO", "no legal move")
        here = self._positions[-1]
        if self._positions.count(here) >= 4:
            return self._repetition(self._positions.index(here))
        if len(self.moves) >= self._max_plies:
            return Verdict(None, "%JISHOGI", f"drawn after {self._max_plies} moves")
        return None

    def _repetition(self, first: int) -> Verdict:
        """Judges a repeated position that first occurred after ``first`` moves."""
        # Every second position, backwards from here, has the same side to move.
        in_check = all(self._checks[:first:-2])
        gave_check = all(self._checks[-2:first:-2])
        if in_check == gave_check:
            return Verdict(None, "%SENNICHITE", "fourfold repetition")
        turn = self.board.turn
        winner = turn if in_check else 1 - turn
        mark = "%-ILLEGAL_ACTION" if winner == shogi.BLACK else "%+ILLEGAL_ACTION"
        return Verdict(winner, mark, "perpetual check")
