"""A table: one game, its players, its clocks and its engines. Tabs of the browser sit around it."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Callable

import shogi

from pydlshogi.browser.choices import HUMAN, Choices, Player
from pydlshogi.browser.engines import Pool, Seat
from pydlshogi.browser.game import BoardGame, GameError, restored, write_game
from pydlshogi.drawing.notation import marked_move_text
from pydlshogi.match.usi_client import EngineError
from pydlshogi.player.strategy import PONANZA_CONSTANT
from pydlshogi.rules import is_possible

#: Lines of an analysis, and the most moves of a line that are shown.
_LINES, _LINE_MOVES = 5, 8
#: Seconds after which an analysis ends by itself.
_LONGEST_ANALYSIS = 600.0
#: Seconds of an engine's move without clocks: default, least and most.
THINK, _LEAST_THINK, _MOST_THINK = 1.0, 0.1, 600.0


class Table:
    """A game that is played and saved; all methods may be called from any thread.

    Args:
        name: Its name in the address and in the folder.
        game: The game.
        players: Black's and White's.
        think: Seconds of an engine's move in a game without clocks.
        choices: What the players refer to.
        pool: Where its engines are counted.
        folder: Where the game is saved; None for an exercise, which is not saved.
        paused: Whether it waits for the user, as after a restart.

    Attributes:
        changed: Is notified after each change of the game or of the analysis.
        version: Counts the changes of the game.
        heard: Counts the changes of the analysis.
        lines: The lines of the analysis, and the number of moves before them.
    """

    def __init__(
        self,
        name: str,
        game: BoardGame,
        players: Sequence[Player],
        think: float,
        choices: Choices,
        pool: Pool,
        folder: Path | None,
        paused: bool = False,
    ) -> None:
        self.name, self.game, self.players = name, game, list(players)
        self.changed = threading.Condition(threading.RLock())
        self.version = self.heard = 0
        self.lines: dict[str, Any] = {"ply": -1, "lines": {}}
        self._think = min(max(think, _LEAST_THINK), _MOST_THINK)
        self._choices, self._pool, self._folder = choices, pool, folder
        self._paused, self._error = paused, ""
        self._is_thinking = False
        self._turn_began = time.monotonic()
        self._timer: threading.Timer | None = None
        self._seats: list[Seat | None] = [None, None]
        self._analyst: tuple[int, Seat] | None = None
        self._analysis = 0

    # What the browser sees

    def state(self) -> dict[str, Any]:
        """Returns all that the page shows of the game."""
        with self.changed:
            game, end = self.game, self.game.result
            return {
                "version": self.version,
                **game.saved(),
                **self.clock(),
                "paused": self._paused,
                "positions": game.positions,
                "texts": game.texts,
                "legal": game.legal(),
                "check": game.board.is_check(),
                "declare": game.may_declare(),
                "turn": game.turn,
                "players": [{**p._asdict(), "name": self._choices.name(p)} for p in self.players],
                "think": self._think,
                "result": end._asdict() if end else None,
                "handicap": game.handicap(),
                "thinking": self._is_thinking,
                "error": self._error,
            }

    def clock(self) -> dict[str, Any]:
        """Returns the main time ``left`` of each side, below 0 in byoyomi, and if it ``runs``."""
        with self.changed:
            left = list(self.game.left)
            if self._timer:
                left[self.game.turn] -= self._used()
            return {"left": left, "runs": bool(self._timer)}

    def news(
        self, seen: tuple[int, int], seconds: float
    ) -> tuple[tuple[int, int], list[tuple[str, Any]]]:
        """Waits for changes: of ``version`` and ``heard``, whose last values are ``seen``.

        Returns:
            The new values, and what the page is sent: names and data; nothing after ``seconds``.
        """
        with self.changed:
            self.changed.wait_for(lambda: (self.version, self.heard) != seen, seconds)
            events: list[tuple[str, Any]] = []
            if self.version != seen[0]:
                events.append(("state", self.state()))
            if self.heard != seen[1]:
                events += [("clock", self.clock()), ("lines", dict(self.lines))]
            return (self.version, self.heard), events

    # What the browser asks for

    def begin(self) -> None:
        """Starts the game, and the engines of both sides: they load their models meanwhile."""
        with self.changed:
            self._has_changed()
            for side, player in enumerate(self.players):
                if player.kind != HUMAN and not self.game.result and not self._paused:
                    arguments = (self._seat(side), lambda: not self.game.result)
                    threading.Thread(target=_prepare, args=arguments, daemon=True).start()

    def play(self, usi: str, ply: int) -> None:
        """Plays a person's move; ``ply`` is the number of moves that the browser knew.

        Raises:
            GameError: It is not a person's turn, or the move is illegal.
        """
        with self.changed:
            self._require(ply)
            self.game.play(usi, self._used())
            self._has_changed()

    def end(self, answer: str, ply: int) -> None:
        """Lets the person to move ``resign`` or declare a ``win``; raises GameError."""
        with self.changed:
            self._require(ply)
            if answer == "win" and not self.game.may_declare():
                raise GameError("The conditions of a declaration are not met.")
            self.game.end(answer)
            self._has_changed()

    def _require(self, ply: int) -> None:
        if ply != len(self.game.moves):
            raise GameError("The position has changed meanwhile.")
        if self._paused:
            raise GameError("The game is paused.")
        if self.players[self.game.turn].kind != HUMAN:
            raise GameError("It is the engine's turn.")

    def take_back(self, ply: int) -> None:
        """Goes back to the position after ``ply`` moves; raises GameError."""
        with self.changed:
            self.game.take_back(ply)
            self._has_changed()

    def pause(self, paused: bool) -> None:
        """Stops or continues clocks and engines; going on starts a new engine after a fault."""
        with self.changed:
            if paused and self._timer:
                side = self.game.turn
                self.game.left[side] = max(0.0, self.game.left[side] - self._used())
            self._paused = paused
            self._has_changed()

    def seat_players(self, players: Sequence[Player], think: float) -> None:
        """Changes the players; the game goes on."""
        with self.changed:
            self.players = list(players)
            self._think = min(max(think, _LEAST_THINK), _MOST_THINK)
            names = [self._choices.name(player) for player in players]
            self.game.names = (names[0], names[1])
            self._close_seats()
            self._has_changed()

    def close(self) -> None:
        """Ends clocks and engines; the game stays in its files."""
        with self.changed:
            self.version += 1
            self._analysis += 1
            if self._timer:
                self._timer.cancel()
            self._close_seats()
        if self._analyst:
            self._analyst[1].close()

    def _close_seats(self) -> None:
        for seat in self._seats:
            if seat:
                threading.Thread(target=seat.close, daemon=True).start()
        self._seats = [None, None]

    # The course of the game

    def _used(self) -> float:
        return time.monotonic() - self._turn_began

    def _has_changed(self) -> None:
        """Saves and shows a change, and lets the side to move think. The lock is held."""
        self.version += 1
        self._error = ""
        self._is_thinking = False
        if self._timer:
            self._timer.cancel()
            self._timer = None
        for seat in self._seats:
            if seat:
                seat.stop_if_unwanted()
        self._save()
        if not self.game.result and not self._paused:
            self._start_turn()
        self.changed.notify_all()

    def _start_turn(self) -> None:
        side = self.game.turn
        if self.players[side].kind == HUMAN:
            self._start_clock()
            return
        self._is_thinking = True
        arguments = (self.version, self._seat(side))
        threading.Thread(target=self._let_think, args=arguments, daemon=True).start()

    def _seat(self, side: int) -> Seat:
        seat = self._seats[side] or Seat(self._choices.spec(self.players[side]), self._pool)
        self._seats[side] = seat
        return seat

    def _start_clock(self) -> None:
        self._turn_began = time.monotonic()
        if self.game.clock:
            seconds = max(0.0, self.game.allowed())
            self._timer = threading.Timer(seconds, self._time_is_up, [self.version])
            self._timer.daemon = True
            self._timer.start()

    def _time_is_up(self, version: int) -> None:
        with self.changed:
            if version == self.version:
                self.game.end_by_time()
                self._has_changed()

    def _let_think(self, version: int, seat: Seat) -> None:
        """Asks an engine for its move, and plays it. Its start is not part of its time."""

        def wanted() -> bool:
            return version == self.version

        try:
            seat.prepare(wanted)
            with self.changed:
                if not wanted():
                    return
                self._start_clock()
                self.changed.notify_all()
                self.heard += 1
                position, (go, seconds) = self._position(len(self.game.moves)), self._go()
            words = seat.ask(position, go, seconds, lambda words: None, wanted)
        except EngineError as error:
            with self.changed:
                if wanted():
                    self._fail(str(error))
            return
        with self.changed:
            if words is None or not wanted():
                return
            self._take(words[0] if words else "")
            self._has_changed()

    def _take(self, answer: str) -> None:
        """Plays what an engine answered."""
        if answer in self.game.legal():
            self.game.play(answer, self._used())
        else:  # resignation, declaration, or a fault that loses
            self.game.end(answer)

    def _fail(self, sentence: str) -> None:
        """Pauses the game because an engine has failed; nothing of the game is lost."""
        self._paused = True
        self._has_changed()
        self._error = sentence
        self.changed.notify_all()

    def _position(self, ply: int) -> str:
        moves = self.game.moves[:ply]
        start = self.game.start
        words = "startpos" if start == shogi.STARTING_SFEN else f"sfen {start}"
        return " ".join([words, *(["moves"] if moves else []), *moves])

    def _go(self) -> tuple[str, float]:
        """Returns the command for the engine to move, and the seconds that it allows."""
        clock, left = self.game.clock, self.game.left
        if not clock:
            return f"go btime 0 wtime 0 byoyomi {round(1000 * self._think)}", self._think
        times = " ".join(f"{s}time {max(0, round(1000 * t))}" for s, t in zip("bw", left))
        if clock.increment:
            more = " ".join(f"{s}inc {round(1000 * clock.increment)}" for s in "bw")
        else:
            more = f"byoyomi {round(1000 * clock.byoyomi)}"
        return f"go {times} {more}", self.game.allowed()

    # Files

    def saved(self) -> dict[str, Any]:
        """Returns what :func:`restored_table` needs beside the game."""
        return {
            "players": [self._choices.saved(player) for player in self.players],
            "think": self._think,
        }

    def _save(self) -> None:
        if self._folder is None:
            return
        try:
            write_game(self._folder, self.name, self.game, self.saved())
        except OSError as error:
            self._error = f"The game cannot be saved: {self._folder}: {error.strerror}."

    # The analysis

    def analyze(self, ply: int | None, model: int = 0) -> None:
        """Shows the best lines after ``ply`` moves as they are found; None ends the analysis.

        Raises:
            GameError: There is no such position, or the model cannot search.
        """
        with self.changed:
            self._analysis += 1
            self.heard += 1
            self.lines = {"ply": -1 if ply is None else ply, "lines": {}}
            self.changed.notify_all()
            if self._analyst:
                self._analyst[1].stop_if_unwanted()
            if ply is None:
                return
            if not 0 <= ply <= len(self.game.moves):
                raise GameError("There is no such position.")
            if not self._choices.models[model].has_value:
                raise GameError("This model has no value, so it cannot search.")
            seat = self._analysis_seat(model)
            arguments = (self._analysis, seat, ply, self._position(ply))
            threading.Thread(target=self._analyze, args=arguments, daemon=True).start()

    def _analysis_seat(self, model: int) -> Seat:
        """Returns the engine that analyzes with a model."""
        if self._analyst and self._analyst[0] != model:
            threading.Thread(target=self._analyst[1].close, daemon=True).start()
            self._analyst = None
        if not self._analyst:
            spec = self._choices.spec(
                Player("mcts_player", model), ("MultiPV", str(_LINES)), ("PV_Interval", "300")
            )
            self._analyst = model, Seat(spec, self._pool)
        return self._analyst[1]

    def search(self, ply: int, seconds: float, model: int = 0) -> dict[str, Any] | None:
        """Searches a position for some seconds; ends an analysis.

        Returns:
            The best line as in ``lines``; None if there is none.

        Raises:
            GameError: as :meth:`analyze`. EngineError: the engine has failed.
        """
        self.analyze(None)
        with self.changed:
            if not 0 <= ply <= len(self.game.moves):
                raise GameError("There is no such position.")
            if not self._choices.models[model].has_value:
                raise GameError("This model has no value, so it cannot search.")
            seat, position, board = self._analysis_seat(model), self._position(ply), self.board(ply)
        found: dict[str, Any] = {}

        def hear(words: list[str]) -> None:
            line = read_line(words, board)
            if line and line["number"] == 1:
                found.update(line)

        go = f"go btime 0 wtime 0 byoyomi {round(1000 * seconds)}"
        seat.ask(position, go, seconds, hear, lambda: True)
        return found or None

    def board(self, ply: int) -> shogi.Board:
        """Sets up the position after ``ply`` moves."""
        board = shogi.Board(self.game.start)
        for move in self.game.moves[:ply]:
            board.push_usi(move)
        return board

    def _analyze(self, number: int, seat: Seat, ply: int, position: str) -> None:
        board = self.board(ply)
        end = time.monotonic() + _LONGEST_ANALYSIS

        def wanted() -> bool:
            return number == self._analysis and time.monotonic() < end

        def hear(words: list[str]) -> None:
            line = read_line(words, board)
            with self.changed:
                if line and wanted():
                    self.lines["lines"][line["number"]] = line
                    self.heard += 1
                    self.changed.notify_all()

        try:
            seat.ask(position, "go infinite", _LONGEST_ANALYSIS, hear, wanted)
        except EngineError as error:
            with self.changed:
                if wanted():
                    self.lines = {"ply": ply, "lines": {}, "error": str(error)}
                    self.heard += 1
                    self.changed.notify_all()


def _prepare(seat: Seat, wanted: Callable[[], bool]) -> None:
    with contextlib.suppress(EngineError):  # the engine's turn will tell
        seat.prepare(wanted)


def read_line(words: list[str], board: shogi.Board) -> dict[str, Any] | None:
    """Reads a line of an ``info`` line; ``board`` has the position before it.

    Returns:
        ``number``; ``win``, Black's chance, or None; ``score`` as the engine wrote it; ``nodes``;
        ``moves`` in USI notation and their ``texts``. None if there are no moves.
    """
    if "pv" not in words:
        return None
    place = words.index("pv")
    facts, moves, texts = words[1:place], words[place + 1 :], []
    pushed = []
    for usi in moves[:_LINE_MOVES]:
        try:
            move = shogi.Move.from_usi(usi)
            if not is_possible(board, move):
                break
        except (ValueError, IndexError, KeyError):
            break
        texts.append(marked_move_text(board, move))
        board.push(move)
        pushed.append(usi)
    for _ in pushed:
        board.pop()
    if not pushed:
        return None
    named = dict(zip(facts[::2], facts[1::2])) if "score" not in facts else _named(facts)
    kind, value = named.get("kind", ""), named.get("value", "")
    try:
        number, nodes = int(named.get("multipv", 1)), int(named.get("nodes", 0))
        win = _win(kind, value) if kind else None
    except ValueError:
        return None
    if win is not None and board.turn == shogi.WHITE:
        win = 1 - win
    return {
        "number": number,
        "win": win,
        "score": f"{kind} {value}".strip(),
        "nodes": nodes,
        "moves": pushed,
        "texts": texts,
    }


def _named(facts: list[str]) -> dict[str, str]:
    """Reads the names and values of an ``info`` line with a score."""
    place = facts.index("score")
    before, after = facts[:place], facts[place + 3 :]
    rest = [word for word in [*before, *after] if word not in ("lowerbound", "upperbound")]
    kind, value = [*facts[place + 1 : place + 3], "", ""][:2]
    return {**dict(zip(rest[::2], rest[1::2])), "kind": kind, "value": value}


def _win(kind: str, value: str) -> float | None:
    """Converts a score to the chance of the side to move."""
    if kind == "mate":
        return 0.0 if value.startswith("-") or value == "0" else 1.0
    if kind == "cp":
        return 1 / (1 + math.exp(-max(-9999, min(9999, int(value))) / PONANZA_CONSTANT))
    return None


def restored_table(
    name: str, state: dict[str, Any], choices: Choices, pool: Pool, folder: Path
) -> Table:
    """Makes the table of a saved game; an unfinished game is paused.

    Raises:
        KeyError, TypeError, ValueError: The state is damaged.
    """
    game = restored(state)
    players = [choices.restored(saved) for saved in state["players"]]
    think = float(state["think"])
    return Table(name, game, players, think, choices, pool, folder, paused=not game.result)
