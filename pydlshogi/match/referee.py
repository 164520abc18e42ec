"""The referee checks each move and decides when and how a game ends.

It uses cshogi and the rules of the Japan Shogi Association. A side without a legal move
loses. The fourth occurrence of a position is a draw; if one side gave check with every
move since the first occurrence, that side loses. A declaration of victory must satisfy
the 27-point rule of the Computer Shogi Association. A game that reaches the limit of
moves is drawn.
"""

from __future__ import annotations

from typing import NamedTuple

import cshogi

#: End marks of games that were lost by an illegal move, a crash or silence.
FAULT_MARKS = ("%ILLEGAL_MOVE", "%TIME_UP")


class Verdict(NamedTuple):
    """How a game ended.

    Attributes:
        winner: ``cshogi.BLACK``, ``cshogi.WHITE``, or None for a draw.
        end_mark: End mark of CSA V2.2.
        reason: The reason in words.
    """

    winner: int | None
    end_mark: str
    reason: str

    @property
    def is_fault(self) -> bool:
        """Whether the game was lost by an illegal move, a crash or silence."""
        return self.end_mark in FAULT_MARKS


class Referee:
    """Follows a game.

    Args:
        max_plies: A game of that many moves is drawn.
        sfen: Position before the first move.

    Attributes:
        board: Current position; ``board.turn`` is the side to move.
        moves: Moves so far in USI notation.
        csa_moves: The same moves in CSA notation, with the signs of the sides.
    """

    def __init__(self, max_plies: int, sfen: str = cshogi.STARTING_SFEN) -> None:
        self.board = cshogi.Board(sfen)
        self.moves: list[str] = []
        self.csa_moves: list[str] = []
        self._max_plies = max_plies
        self._positions = [self._position()]
        self._checks = [False]

    def hear(self, answer: str) -> Verdict | None:
        """Judges the answer of the side to move.

        Args:
            answer: A move, ``resign`` or ``win``, as sent after ``bestmove``.

        Returns:
            How the game ended; None if it continues.
        """
        if answer == "resign":
            return self.loss("%TORYO", "resigned")
        if answer == "win":
            if self.board.is_nyugyoku():
                return Verdict(self.board.turn, "%KACHI", "declared victory")
            return self.loss("%ILLEGAL_MOVE", "declared victory without the right to")
        legal = {cshogi.move_to_usi(move): move for move in self.board.legal_moves}
        if answer not in legal:
            return self.loss("%ILLEGAL_MOVE", f"answered with the illegal move {answer[:20]!a}")
        self._push(answer, legal[answer])
        return self._judge()

    def loss(self, end_mark: str, reason: str) -> Verdict:
        """Returns the verdict that the side to move loses."""
        return Verdict(cshogi.opponent(self.board.turn), end_mark, reason)

    def _push(self, usi: str, move: int) -> None:
        sign = "+" if self.board.turn == cshogi.BLACK else "-"
        self.moves.append(usi)
        self.csa_moves.append(sign + cshogi.move_to_csa(move))
        self.board.push(move)
        self._positions.append(self._position())
        self._checks.append(self.board.is_check())

    def _position(self) -> str:
        """Returns the position as SFEN without the move number."""
        return str(self.board.sfen().rpartition(" ")[0])

    def _judge(self) -> Verdict | None:
        """Judges the position after a move."""
        if self.board.is_game_over():
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
        winner = turn if in_check else cshogi.opponent(turn)
        mark = "%-ILLEGAL_ACTION" if winner == cshogi.BLACK else "%+ILLEGAL_ACTION"
        return Verdict(winner, mark, "perpetual check")
