"""The dialogue with a GUI: reads its lines, obeys them in order, answers each ``go`` once.

The main thread reads, so the GUI never waits for the engine to read. The engine also notices
``quit`` while it loads a model. A second thread executes the commands in their order. While it
thinks, the main thread tells it of ``ponderhit``, and of commands that stop the current search. A
third thread answers ``isready`` during a search, and ``usi`` if only ``stop`` would end the
search. The main thread sends no answers, because a GUI that does not read would stop it.

After ``go infinite`` and ``go ponder`` the move is held back until ``stop``, ``ponderhit`` or
the next command that needs the player. If a GUI forgets ``stop``, the next ``position`` or
``go`` ends these searches, too, and all others that have no limit. Where ``isready`` may be
answered during a search, it ends one only if an option was changed: it may have to load a model.
"""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import functools
import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Iterable, Iterator
from typing import Callable

from pydlshogi.errors import UserError
from pydlshogi.usi.output import Output
from pydlshogi.usi.protocol import CommandError, Go, PonderHit, decode, parse_go, quote

#: Seconds that ``quit`` waits for the current command. GUIs kill an engine after five.
QUIT_GRACE = 3.0

#: Seconds for the last replies, which a GUI that does not read would delay for ever.
_LAST_LINE_GRACE = 0.5

#: Seconds between signs of life while a player loads.
SIGN_OF_LIFE = 5.0

#: Largest number of unknown words or wrong numbers of one ``go`` that are named.
_MOST_COMPLAINTS = 5


class Dialogue(abc.ABC):
    """A USI dialogue. Subclasses say how a player obeys the commands."""

    #: Whether ``usi`` and ``isready`` may be answered during a search.
    answers_at_once = False

    def __init__(self, output: Output) -> None:
        self._output = output
        self._held: str | None = None
        self._held_for_ponder = False
        self._no_position = ""  # why the last position was refused
        self._free = 0.0  # when the last readyok or move was ready, by time.perf_counter()
        # Each line, and what tells the search of the last go to stop, and of ponderhit.
        self._lines: queue.SimpleQueue[tuple[str, _Signals] | None] = queue.SimpleQueue()
        # What the third thread sends.
        self._replies: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._signals = _Signals()  # of the line that is obeyed
        # What the reading thread knows: the signals of the last go, and of all searches that may
        # go on; and whether an option was set after the last isready.
        self._last = self._signals
        self._thinking = [self._last]
        self._has_new_options = False
        # For each command what the reading thread does at once, and what the second thread does
        # when the lines before it are obeyed. If the first says True, there is nothing more to do.
        self._commands: dict[str, tuple[Callable[[str], object], Callable[[str], None]]] = {
            "usi": (self._read_usi, self._usi),
            "setoption": (self._read_setoption, self._setoption),
            "isready": (self._read_isready, self._isready),
            "usinewgame": (self._read_stop, self._usinewgame),
            "position": (self._read_position, self._position),
            "go": (self._read_go, self._go),
            "stop": (self._read_stop, self._stop),
            "ponderhit": (self._read_ponderhit, self._ponderhit),
            "gameover": (self._read_stop, self._stop),
        }

    @abc.abstractmethod
    def _usi(self, rest: str) -> None:
        """Answers ``usi``, with ``usiok`` at the end."""

    @abc.abstractmethod
    def _setoption(self, rest: str) -> None:
        """Sets an option."""

    @abc.abstractmethod
    def _prepare(self) -> None:
        """Gets the player ready."""

    @abc.abstractmethod
    def _new_game(self) -> None:
        """Starts a game."""

    @abc.abstractmethod
    def _set_position(self, text: str) -> None:
        """Sets up the position that the arguments of ``position`` describe."""

    @abc.abstractmethod
    def _choose(self, go: Go) -> str:
        """Returns the text behind ``bestmove``."""

    def _waits_for_stop(self, go: Go) -> bool:
        """Says whether only ``stop`` or ``ponderhit`` ends a search."""
        return go.is_held

    def _mate(self, go: Go) -> str:
        """Returns the text behind ``checkmate``."""
        return "notimplemented"

    @abc.abstractmethod
    def _close(self) -> None:
        """Ends the player."""

    def _begin(self) -> None:  # noqa: B027 (most dialogues need nothing here)
        """Prepares the thread that obeys."""

    def run(self, lines: Iterable[bytes]) -> bool:
        """Talks until ``quit`` or the end of the input.

        It says whether all commands are done. If not, only the end of the process ends a thread.
        """
        worker = _start(self._obey_all, "usi")
        replier = _start(self._reply_all, "usi replies")
        with contextlib.suppress(KeyboardInterrupt):
            for line in lines:
                text = decode(line)
                self._output.log("<", text)
                command, rest = _split(text)
                if command == "quit":
                    break
                if not (command in self._commands and self._commands[command][0](rest)):
                    self._lines.put((text, self._last))
        self._stop_all()
        self._lines.put(None)
        worker.join(QUIT_GRACE)
        is_done = not worker.is_alive()
        if not is_done:
            text = "quit came before the last command was done"
            self._replies.put(lambda: self._output.info_string(text))
        self._replies.put(None)
        replier.join(_LAST_LINE_GRACE)
        return is_done

    # The thread that reads

    def _read_usi(self, rest: str) -> bool:
        reply = functools.partial(self._replies.put, lambda: self._usi(""))
        return self.answers_at_once and self._last.during_search(reply)

    def _read_setoption(self, rest: str) -> None:
        self._has_new_options = True

    def _read_isready(self, rest: str) -> bool:
        if self.answers_at_once and not self._has_new_options:
            reply = functools.partial(self._replies.put, lambda: self._output.send("readyok"))
            return self._last.during_search(reply, in_any=True)
        because = ", because an option was set before it" if self._has_new_options else ""
        self._stop_all("isready ended the search" + because)
        self._has_new_options = False
        return False

    def _read_position(self, rest: str) -> None:
        for search in self._thinking:
            search.supersede()

    def _read_go(self, rest: str) -> None:
        self._read_position(rest)
        words = rest.split()
        self._last = _Signals(is_go=True, is_ponder="ponder" in words and "infinite" not in words)
        self._thinking = [search for search in self._thinking if not search.is_done]
        self._thinking.append(self._last)

    def _read_ponderhit(self, rest: str) -> None:
        self._last.ponderhit.set(rest)

    def _read_stop(self, rest: str) -> None:
        self._stop_all()

    def _stop_all(self, reason: str = "") -> None:
        """Stops the last search and those before it that the GUI has not stopped."""
        while self._thinking:
            search = self._thinking.pop()
            search.reason = reason
            search.stop.set()

    # The thread that replies

    def _reply_all(self) -> None:
        """Sends replies until None."""
        while (reply := self._replies.get()) is not None:
            reply()

    # The thread that obeys

    def _obey_all(self) -> None:
        """Obeys the lines in their order, until None."""
        self._begin()
        while (item := self._lines.get()) is not None:
            line, self._signals = item
            self._obey(line)
            # A line carries the signals of the last go up to it, so that go has been obeyed.
            self._signals.end()
        self._release()
        try:
            self._close()
        except (Exception, SystemExit) as error:
            self._report(error, "quit")

    def _obey(self, line: str) -> None:
        """Obeys one line. Turns errors into ``info string`` lines."""
        command, rest = _split(line)
        if not command:
            return
        try:
            if command not in self._commands:
                raise CommandError(f"unknown command {quote(command)}")
            self._commands[command][1](rest)
        except CommandError as error:
            self._output.info_string(str(error))
        except UserError as error:
            self._output.info_string(str(error))
            # For the log of a .bat file: many GUIs do not show an info string before readyok.
            with perhaps_without_reader():
                print(f"error: {error}", file=sys.stderr, flush=True)
            self._die()
        except (Exception, SystemExit) as error:
            self._report(error, line)
            if command in ("isready", "go"):
                # The GUI would wait for ever for the answer.
                self._die()

    def _report(self, error: BaseException, line: str) -> None:
        """Shows an error that is a fault of the program."""
        with perhaps_without_reader():
            traceback.print_exception(type(error), error, error.__traceback__)
        self._output.info_string(
            f"internal error at {quote(line)}: {type(error).__name__}: {error}"
        )

    def _die(self) -> None:
        """Ends the process from the thread that obeys. The main thread is reading."""
        os._exit(1)

    def _isready(self, rest: str) -> None:
        if self._signals.stop.is_set():
            self._release()
        with self._signs_of_life():
            self._prepare()
        self._free = time.perf_counter()
        self._output.send("readyok")

    def _usinewgame(self, rest: str) -> None:
        self._release()
        self._new_game()

    def _position(self, rest: str) -> None:
        self._release()
        try:
            self._set_position(rest)
        except Exception as error:
            self._no_position = str(error) or type(error).__name__
            raise
        self._no_position = ""

    def _go(self, rest: str) -> None:
        self._release()
        go, complaints = parse_go(rest)
        for complaint in complaints[:_MOST_COMPLAINTS]:
            self._output.info_string(complaint)
        if len(complaints) > _MOST_COMPLAINTS:
            more = len(complaints) - _MOST_COMPLAINTS
            self._output.info_string(f"go does not know {more} more words")
        signals = self._signals
        # A GUI waits for readyok and for the move. A pipe does not: its go may have come before
        # the network was loaded, or during another search.
        begin = max(signals.time, self._free)
        go = dataclasses.replace(go, stop=signals.stop, ponderhit=signals.ponderhit, time=begin)
        self._signals.begin(self._waits_for_stop(go))
        answer = f"{'checkmate' if go.mate else 'bestmove'} {self._answer(go)}"
        if not signals.stop.is_set():  # after a stop, the clock of the next go is running
            self._free = time.perf_counter()
        if go.mate:
            self._tell_reason()
            self._output.send(answer)
            return
        self._held = answer
        self._held_for_ponder = go.ponder and not go.infinite
        if not go.is_held:
            self._release()

    def _answer(self, go: Go) -> str:
        """Asks for a move or a mate, if there is a position. ``timeout`` claims nothing."""
        if self._no_position:
            what = "no mate is searched" if go.mate else "resigns"
            self._output.info_string(
                f"{what} because the last position was refused: {self._no_position}"
            )
            return "timeout" if go.mate else "resign"
        return self._mate(go) if go.mate else self._choose(go)

    def _stop(self, rest: str) -> None:
        self._release()

    def _ponderhit(self, rest: str) -> None:
        if self._held_for_ponder:
            self._release()

    def _release(self) -> None:
        """Sends the move that was held back, if there is one."""
        if self._held is not None:
            self._tell_reason()
            self._output.send(self._held)
            self._held = None

    def _tell_reason(self) -> None:
        """Says why the search was stopped, if the GUI has not asked for that."""
        if self._signals.reason:
            self._output.info_string(self._signals.reason)

    @contextlib.contextmanager
    def _signs_of_life(self) -> Iterator[None]:
        """Tells the GUI every few seconds that the engine is still loading."""
        done = threading.Event()

        def tell() -> None:
            while not done.wait(SIGN_OF_LIFE):
                self._output.info_string("loading")

        thread = _start(tell, "signs of life")
        try:
            yield
        finally:
            done.set()
            thread.join()


class _Signals:
    """What the reading thread tells a search.

    Before the first ``go`` there is no search. ``ponderhit`` makes a ``ponder`` a search that ends
    by itself.
    """

    def __init__(self, is_go: bool = False, is_ponder: bool = False) -> None:
        self.stop = threading.Event()
        self.reason = ""  # why it was stopped, if the GUI has not asked for that
        self.ponderhit = PonderHit()
        self.time = time.perf_counter()  # when the go was read
        self.is_done = not is_go  # set by the other thread; the move may still be held back
        self._is_ponder = is_ponder
        self._has_begun = self._waits = self._is_superseded = False
        self._answers: list[tuple[bool, Callable[[], None]]] = []
        self._lock = threading.Lock()

    def begin(self, waits: bool) -> None:
        """Notes, in the thread that obeys, that the search begins, and if it waits for stop."""
        self._waits = waits
        self._stop_if_forgotten()
        with self._lock:
            self._has_begun = True
            if not self.stop.is_set():
                self._give_answers(waits and not self._is_hit())

    def end(self) -> None:
        """Notes, in the thread that obeys, that the search has ended."""
        with self._lock:
            self.is_done = True
            self._give_answers(True)

    def during_search(self, answer: Callable[[], None], *, in_any: bool = False) -> bool:
        """Gives an answer during a search, in the thread that reads and without waiting.

        A search that has not begun gives it when it begins or ends. With ``in_any``, also a search
        that does not wait for ``stop`` gives it. False: the order of the lines must be kept.
        """
        with self._lock:
            ends_itself = self._is_hit() or (self._has_begun and not self._waits)
            if self.is_done or self.stop.is_set() or (ends_itself and not in_any):
                return False
            if self._has_begun:
                answer()
            else:
                self._answers.append((in_any, answer))
            return True

    def _is_hit(self) -> bool:
        """Says whether a ``ponderhit`` has switched the clock on; others have no effect."""
        return self._is_ponder and self.ponderhit.is_set()

    def _give_answers(self, to_all: bool) -> None:
        given = [answer for in_any, answer in self._answers if to_all or in_any]
        self._answers = [item for item in self._answers if not (to_all or item[0])]
        for answer in given:
            answer()

    def supersede(self) -> None:
        """Notes, in the thread that reads, that the GUI has sent the next position or ``go``."""
        self._is_superseded = True
        self._stop_if_forgotten()

    def _stop_if_forgotten(self) -> None:
        """Stops a search that waits for a ``stop`` which will not come."""
        if self._is_superseded and self._waits and not self._is_hit():
            self.stop.set()


def perhaps_without_reader() -> contextlib.suppress:
    """Ignores errors of a write to standard error, which may be closed or have no reader."""
    return contextlib.suppress(AttributeError, OSError, ValueError)


def _start(target: Callable[[], None], name: str) -> threading.Thread:
    """Starts a thread that the end of the process does not wait for."""
    thread = threading.Thread(target=target, name=name, daemon=True)
    thread.start()
    return thread


def _split(line: str) -> tuple[str, str]:
    """Splits a line into the command and its arguments."""
    words = line.split(None, 1)
    return (words[0] if words else ""), (words[1] if len(words) > 1 else "")
