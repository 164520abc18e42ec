"""The referee: says which moves count and when a game is over, and why.

Rules of the Japan Shogi Association, as cshogi knows them: the side without a legal
move has lost; the fourth occurrence of a position is a draw, or lost for a side that
gave check with every move since the first; a declaration of victory needs what the
27-point rule of the Computer Shogi Association asks for. A game that reaches the limit
of moves is drawn.
"""

from __future__ import annotations

from typing import NamedTuple

import cshogi

#: End marks of games lost by a fault of the program, not of its play.
FAULT_MARKS = ("%ILLEGAL_MOVE", "%TIME_UP")


class Verdict(NamedTuple):
    """How a game ended.

    Attributes:
        winner: ``cshogi.BLACK``, ``cshogi.WHITE``, or None for a draw.
        end_mark: CSA's word for it (V2.2).
        reason: A clause in words.
    """

    winner: int | None
    end_mark: str
    reason: str

    @property
    def is_fault(self) -> bool:
        """Whether an illegal move, a crash or silence has lost it, not play."""
        return self.end_mark in FAULT_MARKS


class Referee:
    """Follows a game.

    Args:
        max_plies: The game is drawn when it has this many moves.
        sfen: The position before the first move.

    Attributes:
        board: The position; ``board.turn`` is the side to move.
        moves: The moves so far, in USI's notation.
        csa_moves: The same in CSA's, with the signs of the sides.
    """

    def __init__(self, max_plies: int, sfen: str = cshogi.STARTING_SFEN) -> None:
        self.board = cshogi.Board(sfen)
        self.moves: list[str] = []
        self.csa_moves: list[str] = []
        self._max_plies = max_plies
        self._positions = [self._position()]
        self._checks = [False]

    def hear(self, answer: str) -> Verdict | None:
        """Takes what the side to move answers.

        Args:
            answer: What stands behind ``bestmove``: a move, ``resign`` or ``win``.

        Returns:
            How the game ended, None if it goes on.
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
        """Gives the verdict that the side to move has lost."""
        return Verdict(cshogi.opponent(self.board.turn), end_mark, reason)

    def _push(self, usi: str, move: int) -> None:
        sign = "+" if self.board.turn == cshogi.BLACK else "-"
        self.moves.append(usi)
        self.csa_moves.append(sign + cshogi.move_to_csa(move))
        self.board.push(move)
        self._positions.append(self._position())
        self._checks.append(self.board.is_check())

    def _position(self) -> str:
        """The position as text, without the number of the move."""
        return str(self.board.sfen().rpartition(" ")[0])

    def _judge(self) -> Verdict | None:
        """Judges the position after a move."""
        if self.board.is_game_over():
            # Not %TSUMI: readers, cshogi among them, take that for a game without a winner.
            return self.loss("%TORYO", "no legal move")
        here = self._positions[-1]
        if self._positions.count(here) >= 4:
            return self._repetition(self._positions.index(here))
        if len(self.moves) >= self._max_plies:
            return Verdict(None, "%JISHOGI", f"drawn after {self._max_plies} moves")
        return None

    def _repetition(self, first: int) -> Verdict:
        """Judges a position that has come again, the first time after ``first`` moves."""
        # In every second position from here backwards the side to move is that of now.
        in_check = all(self._checks[:first:-2])
        gave_check = all(self._checks[-2:first:-2])
        if in_check == gave_check:
            return Verdict(None, "%SENNICHITE", "fourfold repetition")
        turn = self.board.turn
        winner = turn if in_check else cshogi.opponent(turn)
        mark = "%-ILLEGAL_ACTION" if winner == cshogi.BLACK else "%+ILLEGAL_ACTION"
        return Verdict(winner, mark, "perpetual check")
