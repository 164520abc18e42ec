"""A table: one game, its players, its clocks and its engines. Tabs of the browser sit around it."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Callable

import shogi

from pydlshogi.analysis.record import GameRecord
from pydlshogi.browser.choices import HUMAN, Player
from pydlshogi.browser.engines import Seat
from pydlshogi.browser.game import BoardGame, GameError, write_game
from pydlshogi.browser.thoughts import Study
from pydlshogi.errors import UserError
from pydlshogi.kifu.kif_text import handicap_of
from pydlshogi.match.usi_client import EngineError

if TYPE_CHECKING:
    from pydlshogi.browser.hall import Hall

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
        hall: What it shares with the other tables.
        is_saved: Whether the game is saved; an exercise is not.
        paused: Whether it waits for the user, as after a restart.

    Attributes:
        changed: Is notified after each change of the game or of what is shown beside it.
        version: Counts the changes of the game.
        heard: Counts the changes of the rest.
        shown: What is shown beside the game: ``lines``, the analysis, and ``page``, the progress
            of the game's page.
    """

    def __init__(
        self,
        name: str,
        game: BoardGame,
        players: Sequence[Player],
        think: float,
        hall: Hall,
        is_saved: bool = True,
        paused: bool = False,
    ) -> None:
        self.name, self.game, self.players = name, game, list(players)
        self.changed = threading.Condition(threading.RLock())
        self.version = self.heard = 0
        self.shown: dict[str, Any] = {"lines": {"ply": -1, "model": 0, "lines": []}, "page": {}}
        self._think = min(max(think, _LEAST_THINK), _MOST_THINK)
        self._hall, self._is_saved = hall, is_saved
        self._paused, self._error, self._has_failed = paused, "", False
        self._is_thinking = False
        self._turn_began: float | None = None
        self._timer: threading.Timer | None = None
        self._seats: list[Seat | None] = [None, None]
        #: Numbers of the newest analysis and of the newest page: older ones end.
        self._newest = {"lines": 0, "page": 0}
        self._study: Study | None = None
        self._watchers = 0

    # What the browser sees

    def state(self) -> dict[str, Any]:
        """Returns all that the page shows of the game."""
        with self.changed:
            game, end, name = self.game, self.game.result, self._hall.choices.name
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
                "players": [{**player._asdict(), "name": name(player)} for player in self.players],
                "think": self._think,
                "result": end._asdict() if end else None,
                "handicap": handicap_of(game.start),
                "thinking": self._is_thinking,
                "error": self._error,
                "failed": self._has_failed,
            }

    def clock(self) -> dict[str, Any]:
        """Returns the main time ``left`` of each side, below 0 in byoyomi, and if it ``runs``."""
        with self.changed:
            left = list(self.game.left)
            if self._timer:
                left[self.game.turn] -= self._used()
            return {"left": left, "runs": bool(self._timer)}

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Counts a tab; the last one to leave ends the analysis, which nobody sees any more."""
        with self.changed:
            self._watchers += 1
        try:
            yield
        finally:
            with self.changed:
                self._watchers -= 1
                if not self._watchers:
                    self.analyze(None)

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
                events.append(("shown", {**self.clock(), **self.shown}))
            return (self.version, self.heard), events

    # What the browser asks for

    def begin(self) -> None:
        """Starts the game, and the engines of both sides: they load their models meanwhile."""
        with self.changed:
            self._has_changed()
            for side, player in enumerate(self.players):
                if player.kind != HUMAN and not self.game.result and not self._paused:
                    _in_thread(_prepare, self._seat(side), lambda: not self.game.result)

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
            self.game.take_back(ply, self._used())
            self._has_changed()

    def pause(self, paused: bool) -> None:
        """Stops or continues clocks and engines; going on starts a new engine after a fault."""
        with self.changed:
            self.game.charge(self._used())
            self._paused = paused
            self._has_changed()

    def seat_players(self, players: Sequence[Player], think: float) -> None:
        """Changes the players; the game goes on."""
        with self.changed:
            self.game.charge(self._used())
            self.players = list(players)
            self._think = min(max(think, _LEAST_THINK), _MOST_THINK)
            black, white = map(self._hall.choices.name, players)
            self.game.names = (black, white)
            self._close_seats()
            self._has_changed()

    def close(self) -> None:
        """Ends clocks and engines; the game stays in its files."""
        with self.changed:
            self.version += 1
            self._newest = {what: number + 1 for what, number in self._newest.items()}
            if self._timer:
                self._timer.cancel()
            self._close_seats()

    def _close_seats(self) -> None:
        for seat in self._seats:
            if seat:
                _in_thread(seat.close)
        self._seats = [None, None]

    # The course of the game

    def _used(self) -> float:
        """Returns the seconds of the turn; 0 while none runs."""
        return 0.0 if self._turn_began is None else time.monotonic() - self._turn_began

    def _has_changed(self) -> None:
        """Saves and shows a change, and lets the side to move think. The lock is held."""
        self.version += 1
        self._error, self._has_failed = "", False
        self._is_thinking, self._turn_began = False, None
        if self._timer:
            self._timer.cancel()
            self._timer = None
        for seat in self._seats:
            if seat:
                seat.stop_if_unwanted()
        self._show("page", {})
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
        _in_thread(self._let_think, self.version, self._seat(side))

    def _seat(self, side: int) -> Seat:
        hall = self._hall
        seat = self._seats[side] or Seat(hall.choices.spec(self.players[side]), hall.pool)
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
                self.heard += 1
                self.changed.notify_all()
                position, (go, seconds) = self._position(), self._go()
            answer = seat.ask(position, go, seconds, wanted)
        except EngineError as error:
            with self.changed:
                if wanted():  # the game waits; nothing of it is lost
                    self._paused = True
                    self._has_changed()
                    self._error, self._has_failed = str(error), True
            return
        with self.changed:
            if answer is None or not wanted():
                return
            if answer in self.game.legal():
                self.game.play(answer, self._used())
            else:  # resignation, declaration, or a fault that loses
                self.game.end(answer)
            self._has_changed()

    def _position(self) -> str:
        moves, start = self.game.moves, self.game.start
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
        """Returns what finds the players again, beside the game."""
        players = [self._hall.choices.saved(player) for player in self.players]
        return {"players": players, "think": self._think}

    def _save(self) -> None:
        if not self._is_saved:
            return
        try:
            write_game(self._hall.folder, self.name, self.game, self.saved())
        except OSError as error:
            self._error = f"The game cannot be saved: {self._hall.folder}: {error.strerror}."

    # What is shown beside the game

    def record(self, ply: int | None = None) -> GameRecord:
        """Returns the game up to a move, or all of it; raises GameError."""
        with self.changed:
            record = self.game.record()
        if ply is None:
            return record
        if not 0 <= ply <= len(record.moves):
            raise GameError("There is no such position.")
        return dataclasses.replace(record, moves=record.moves[:ply])

    def analyze(self, ply: int | None, model: int = 0) -> None:
        """Shows the best lines after ``ply`` moves as they are found; None ends the analysis.

        Raises:
            GameError: There is no such position, or the model cannot search.
        """
        steps: Iterable[dict[str, Any]] = ()
        if ply is not None:
            found = self._hall.thoughts.lines(model, self.record(ply), _LONGEST_ANALYSIS)
            steps = ({"lines": lines} for lines in found)
        content = {"ply": -1 if ply is None else ply, "model": model, "lines": []}
        self._show("lines", content, steps)

    def search(self, ply: int, seconds: float, model: int = 0) -> dict[str, Any] | None:
        """Searches the position after ``ply`` moves for some seconds.

        Returns the best line (:meth:`Thoughts.lines`), None if there is none. It raises what
        :meth:`analyze` raises.
        """
        *_, lines = self._hall.thoughts.lines(model, self.record(ply), seconds)
        return lines[0] if lines else None

    def make_page(self, model: int = 0) -> None:
        """Begins to analyze the whole game, for its page."""
        study = self._hall.thoughts.study(model, self.record())
        with self.changed:
            self._study = study
            self._show("page", {"ready": False}, study.steps())

    def page(self, language: str) -> str:
        """Returns the page of the game as HTML; raises GameError if it is not ready."""
        with self.changed:
            study = self._study
            if study is None or not self.shown["page"].get("ready"):
                raise GameError("The page of the game is not ready.")
        return study.page(language)

    def _show(
        self, what: str, content: dict[str, Any], steps: Iterable[dict[str, Any]] = ()
    ) -> None:
        """Shows new content, then in a thread its changes, until something newer is shown there."""

        def follow() -> None:
            for step in _with_error(steps):
                with self.changed:
                    if number != self._newest[what]:
                        return
                    self.shown[what] = {**content, **step}
                    self.heard += 1
                    self.changed.notify_all()

        with self.changed:
            number = self._newest[what] = self._newest[what] + 1
            self.shown[what] = content
            self.heard += 1
            self.changed.notify_all()
        if steps:
            _in_thread(follow)


def _with_error(steps: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    try:
        yield from steps
    except UserError as error:
        yield {"error": str(error)}


def _in_thread(target: Callable[..., object], *arguments: object) -> None:
    threading.Thread(target=target, args=arguments, daemon=True).start()


def _prepare(seat: Seat, wanted: Callable[[], bool]) -> None:
    with contextlib.suppress(EngineError):  # the engine's turn will tell
        seat.prepare(wanted)
