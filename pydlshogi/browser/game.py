"""A game on the board in the browser: its position, clocks and result, and its two files.

The files are KIF and CSA. A comment of the CSA file has all that a game needs to go on after the
server was killed.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import shogi

from pydlshogi.analysis.kif import record_lines
from pydlshogi.analysis.record import GameRecord
from pydlshogi.drawing.notation import marked_move_text
from pydlshogi.errors import UserError
from pydlshogi.files import write_beside
from pydlshogi.kifu.csa_board import position_lines
from pydlshogi.kifu.formats import Details
from pydlshogi.kifu.parsed_game import DRAW, END_MARKS
from pydlshogi.match.referee import Referee, RulesBoard, Verdict
from pydlshogi.rules import legal_moves
from pydlshogi.text import one_line

#: Games are drawn after so many moves: far more than people play.
MOST_MOVES = 2000

_STATE = "'pydlshogi "

#: How CSA names a winner without an end mark: floodgate's summary.
_WITHOUT_MARK = {
    shogi.BLACK: "'summary:end:black win:white lose",
    shogi.WHITE: "'summary:end:black lose:white win",
}


class GameError(UserError):
    """What the browser asks for cannot be done in this game."""


@dataclasses.dataclass
class Clock:
    """The time of each side in seconds: main time, then either byoyomi or an increment a move."""

    main: float = 0.0
    byoyomi: float = 0.0
    increment: float = 0.0


class BoardGame:
    """A game from any position.

    Args:
        start: SFEN of the start position.
        moves: Moves in USI notation; all are possible.
        names: Names of Black and White.
        clock: None without clocks.

    Attributes:
        seconds: Time of each move; None where it is unknown.
        left: Main time left of each side.
        result: How the game ended; None while it goes on.
        positions: SFEN of each position, one more than moves.
        texts: The moves as players write them.
    """

    def __init__(
        self,
        start: str = shogi.STARTING_SFEN,
        moves: tuple[str, ...] = (),
        names: tuple[str, str] = ("", ""),
        clock: Clock | None = None,
    ) -> None:
        self.start, self.names, self.clock = start, names, clock
        self.left = [self._first_time()] * 2
        self.seconds: list[float | None] = []
        self.result: Verdict | None = None
        self._charged = 0.0  # of the turn that runs: its move is recorded with it
        self._replay(moves)

    def _first_time(self) -> float:
        """Returns the seconds with which a clock begins: without main time those of a move."""
        return self.clock.main or self.clock.increment if self.clock else 0.0

    def _replay(self, moves: tuple[str, ...]) -> None:
        self._referee = Referee(MOST_MOVES, self.start, RulesBoard)
        self.positions = [self.board.sfen()]
        self.texts: list[str] = []
        for move in moves:
            self._note(move)
            self._referee.push(move)
            self.positions.append(self.board.sfen())
        self.seconds += [None] * (len(moves) - len(self.seconds))

    @property
    def board(self) -> shogi.Board:
        """The current position, with all moves on its stack."""
        board: shogi.Board = self._referee.board.board  # type: ignore[union-attr]
        return board

    @property
    def moves(self) -> list[str]:
        """The moves so far in USI notation."""
        return self._referee.moves

    @property
    def turn(self) -> int:
        """The side to move."""
        return int(self.board.turn)

    def legal(self) -> list[str]:
        """Lists the legal moves; empty after the end of the game."""
        return [] if self.result else [move.usi() for move in legal_moves(self.board)]

    def may_declare(self) -> bool:
        """Says whether the side to move may declare victory."""
        return not self.result and self._referee.board.may_declare()

    def _note(self, usi: str) -> None:
        self.texts.append(marked_move_text(self.board, shogi.Move.from_usi(usi)))

    def play(self, usi: str, seconds: float = 0.0) -> None:
        """Plays a move and ends the game if the rules say so.

        Raises:
            GameError: the game is over, or the move is illegal.
        """
        self._refuse_after_end()
        if not self._referee.board.is_legal(usi):
            raise GameError(f"The move {usi[:8]!a} is not legal here.")
        self.charge(seconds)
        if self.clock:
            self.left[self.turn] += self.clock.increment
        self.seconds.append(round(self._charged, 1))
        self._charged = 0.0
        self._note(usi)
        self.result = self._referee.hear(usi)
        self.positions.append(self.board.sfen())

    def end(self, answer: str) -> None:
        """Ends the game by ``resign``, ``win`` (a declaration) or an engine's illegal answer."""
        self._refuse_after_end()
        self.result = self._referee.hear(answer)

    def end_by_time(self) -> None:
        """Ends the game: the side to move has no time left."""
        self._refuse_after_end()
        self.left[self.turn] = 0.0
        self.result = self._referee.loss("%TIME_UP", "lost on time")

    def _refuse_after_end(self) -> None:
        if self.result:
            raise GameError("The game is over.")

    def charge(self, seconds: float) -> None:
        """Takes time of a turn from its clock, also at an interruption: nobody gains it by one."""
        self._charged += seconds
        if self.clock:
            self.left[self.turn] = max(0.0, self.left[self.turn] - seconds)

    def allowed(self) -> float:
        """Returns the seconds that the side to move may use for this move."""
        assert self.clock
        return self.left[self.turn] + self.clock.byoyomi

    def settle(self) -> None:
        """Ends the game if the side to move has no legal move: nobody has judged its start."""
        if not self.result and not self.legal():
            self.result = self._referee.loss("%TSUMI", "no legal move")

    def take_back(self, ply: int, seconds: float = 0.0) -> None:
        """Goes back to the position after ``ply`` moves; clocks stay, but one that is over begins.

        The turn has lasted ``seconds``. GameError: there is no such position.
        """
        if not 0 <= ply <= len(self.moves):
            raise GameError("There is no move to take back.")
        self.charge(seconds)
        self._charged = 0.0
        if self.result and self.result.end_mark == "%TIME_UP":
            self.left[self.turn] = self._first_time()
        moves = tuple(self.moves[:ply])
        del self.seconds[ply:]
        self.result = None
        self._replay(moves)

    # Files

    def record(self) -> GameRecord:
        """Returns the game as a record."""
        winner, mark, _ = self.result or (None, None, "")
        if mark == "%CHUDAN" and winner is not None:
            mark = None  # with it, readers would find no winner
        return GameRecord(
            self.names,
            shogi.Board(self.start),
            tuple(self.board.move_stack),
            mark,
            winner,
            winner is None and END_MARKS.get(mark or "") == DRAW,
            Details(
                seconds={n: time for n, time in enumerate(self.seconds, 1) if time is not None}
            ),
        )

    def kif(self) -> str:
        """Returns the game in KIF."""
        return "".join(f"{line}\r\n" for line in record_lines(self.record()))

    def csa(self, state: dict[str, Any]) -> str:
        """Returns the game in CSA, with the state as a comment (:func:`read_state`)."""
        lines = ["V2.2", *(f"N{'+-'[n]}{one_line(name)}" for n, name in enumerate(self.names))]
        lines.append(_STATE + json.dumps({**self.saved(), **state}))
        lines += position_lines(shogi.Board(self.start))
        for move, seconds in zip(self._referee.csa_moves, self.seconds):
            lines += [move] if seconds is None else [move, f"T{int(seconds)}"]
        end = self.record()
        lines.append(end.end_mark or _WITHOUT_MARK.get(end.winner, "%CHUDAN"))
        return "".join(f"{line}\n" for line in lines)

    def saved(self) -> dict[str, Any]:
        """Returns all that :func:`restored` needs, for JSON."""
        return {
            "start": self.start,
            "moves": self.moves,
            "names": self.names,
            "seconds": self.seconds,
            "clock": self.clock and dataclasses.asdict(self.clock),
            "left": [round(left, 1) for left in self.left],
            "result": self.result,
        }


def restored(state: dict[str, Any]) -> BoardGame:
    """Makes a game from :meth:`BoardGame.saved`.

    Raises:
        KeyError, TypeError, ValueError: The state is damaged.
    """
    clock = Clock(**state["clock"]) if state["clock"] else None
    black, white = state["names"]
    game = BoardGame(state["start"], tuple(state["moves"]), (black, white), clock)
    game.seconds = [None if time is None else float(time) for time in state["seconds"]]
    game.left = [float(left) for left in state["left"]]
    game.result = Verdict(*state["result"]) if state["result"] else None
    return game


def read_state(path: Path) -> dict[str, Any]:
    """Reads the state in a CSA file.

    Raises:
        OSError, ValueError: The file cannot be read, or has no state.
    """
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith(_STATE):
            state: dict[str, Any] = json.loads(line[len(_STATE) :])
            return state
    raise ValueError(f"{path.name} has no state")


def write_game(folder: Path, name: str, game: BoardGame, state: dict[str, Any]) -> None:
    """Writes NAME.kifu and NAME.csa in a folder atomically, both in UTF-8; raises OSError."""
    for suffix, text in ((".kifu", game.kif()), (".csa", game.csa(state))):
        with write_beside(folder / f"{name}{suffix}") as file:
            file.write(text.encode("utf-8", "replace"))
