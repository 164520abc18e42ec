"""The engine: reads a GUI's lines, obeys them in order, answers each ``go`` once.

Two threads. The main one reads and does nothing else, so that the GUI never waits
for the engine to read, and ``quit`` is noticed while a model is loading. The other
one obeys the lines in the order they came; the first only tells the player, while
it still thinks, of a line that wants the move now. A move that must wait (``go infinite``,
``go ponder``) is kept in ``_held``; the command that frees it, or any command that
can only mean that the GUI has moved on, sends it, once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import queue
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Callable

from pydlshogi.usi.options import Options
from pydlshogi.usi.protocol import (
    CommandError,
    DialogueLog,
    FatalError,
    Output,
    decode,
    parse_go,
    parse_position,
    parse_setoption,
    quote,
)

if TYPE_CHECKING:
    from pydlshogi.player.base_player import BasePlayer

#: Seconds that ``quit`` grants to what is under way; GUIs kill after five.
QUIT_GRACE = 3.0

#: Seconds of loading after which a GUI is told that the engine is alive.
SIGN_OF_LIFE = 5.0

#: Commands that want the move of the ``go`` before them, or want it no more.
_STOPS = ("stop", "ponderhit", "gameover", "isready", "usinewgame", "quit")


class Engine:
    """A USI engine around a player.

    Args:
        name: What the GUI shows.
        author: Likewise.
        options: What the GUI can set; shared with the player.
        make_player: Makes the player, given :meth:`Output.send`. It is called only
            when the player is first needed, since it may import what takes long,
            and ``usi`` must be answered at once.
        output: Where the answers go.
        log: Where the dialogue is written when the option ``debug_log`` says so.
        folder: The program's folder, where relative paths start.
    """

    def __init__(
        self,
        name: str,
        author: str,
        options: Options,
        make_player: Callable[[Callable[[str], None]], BasePlayer],
        output: Output,
        log: DialogueLog,
        folder: Path,
    ) -> None:
        self.name = name
        self.author = author
        self.options = options
        self._make_player = make_player
        self._output = output
        self._log = log
        self._folder = folder
        self._player: BasePlayer | None = None
        self._held: str | None = None
        self._held_for_ponder = False
        # Each line with the event that will tell the player, if it is a go, to stop.
        self._lines: queue.SimpleQueue[tuple[str, threading.Event] | None] = queue.SimpleQueue()
        self._stop_thinking = threading.Event()
        self._commands: dict[str, Callable[[str], None]] = {
            "usi": self._usi,
            "setoption": self._setoption,
            "isready": self._isready,
            "usinewgame": self._usinewgame,
            "position": self._position,
            "go": self._go,
            "stop": self._stop,
            "ponderhit": self._ponderhit,
            "gameover": self._stop,
        }

    def run(self, lines: Iterable[bytes]) -> bool:
        """Talks until ``quit`` or the end of the input.

        Args:
            lines: What the GUI writes.

        Returns:
            Whether all that was asked has been done; False where something still
            runs on in its thread, which only the end of the process can end.
        """
        worker = threading.Thread(target=self._obey_all, name="usi", daemon=True)
        worker.start()
        stop = threading.Event()
        with contextlib.suppress(KeyboardInterrupt):
            for line in lines:
                text = decode(line)
                self._output.log("<", text)
                command = text.partition(" ")[0]
                if command == "go":
                    stop = threading.Event()
                elif command in _STOPS:
                    stop.set()
                if command == "quit":
                    break
                self._lines.put((text, stop))
        stop.set()
        self._lines.put(None)
        worker.join(QUIT_GRACE)
        return not worker.is_alive()

    def _obey_all(self) -> None:
        """Obeys the lines in their order, until None."""
        while (item := self._lines.get()) is not None:
            line, self._stop_thinking = item
            command, _, rest = line.partition(" ")
            try:
                self._obey(command, rest.strip())
            except CommandError as error:
                self._output.info_string(str(error))
            except FatalError as error:
                self._output.info_string(str(error))
                self._die()
            except Exception as error:
                traceback.print_exc()
                self._output.info_string(
                    f"internal error at {quote(line)}: {type(error).__name__}: {error}"
                )
                if command in ("isready", "go"):
                    # The GUI would wait for ever for the answer that is not coming.
                    self._die()
        self._release()

    def _obey(self, command: str, rest: str) -> None:
        """Obeys one line."""
        if not command:
            return
        if command not in self._commands:
            raise CommandError(f"unknown command {quote(command)}")
        self._commands[command](rest)

    def _die(self) -> None:
        """Ends the process from the thread that obeys; the other one is reading."""
        os._exit(1)

    @property
    def player(self) -> BasePlayer:
        """The player, made when it is first asked for."""
        if self._player is None:
            try:
                self._player = self._make_player(self._output.send)
            except ImportError as error:
                raise FatalError(
                    f"{sys.executable} cannot import what the player needs ({error}). "
                    "Run make train once, or install it into this Python as README.md says."
                ) from error
        return self._player

    def _usi(self, rest: str) -> None:
        self._output.send(f"id name {self.name}")
        self._output.send(f"id author {self.author}")
        for line in self.options.declarations():
            self._output.send(line)
        self._output.send("usiok")

    def _setoption(self, rest: str) -> None:
        name, value = parse_setoption(rest)
        self.options.set(name, value)
        if name.lower() == "debug_log":
            path = self.options["debug_log"]
            try:
                self._log.open(self._folder / path if path else None)
            except (OSError, ValueError) as error:
                raise CommandError(f"debug_log cannot be written: {error}") from None

    def _isready(self, rest: str) -> None:
        self._release()
        with self._signs_of_life():
            self.player.isready()
        self._output.send("readyok")

    def _usinewgame(self, rest: str) -> None:
        self._release()
        self.player.usinewgame()

    def _position(self, rest: str) -> None:
        self._release()
        self.player.position(*parse_position(rest))

    def _go(self, rest: str) -> None:
        self._release()
        go, complaints = parse_go(rest)
        for complaint in complaints:
            self._output.info_string(complaint)
        if go.mate:
            self._output.send("checkmate notimplemented")
            return
        go = dataclasses.replace(go, stop=self._stop_thinking)
        self._held = f"bestmove {self.player.go(go)}"
        self._held_for_ponder = go.ponder
        if not (go.infinite or go.ponder):
            self._release()

    def _stop(self, rest: str) -> None:
        self._release()

    def _ponderhit(self, rest: str) -> None:
        if self._held_for_ponder:
            self._release()

    def _release(self) -> None:
        """Sends the move that was held back, if there is one."""
        if self._held is not None:
            self._output.send(self._held)
            self._held = None

    @contextlib.contextmanager
    def _signs_of_life(self) -> Iterator[None]:
        """Tells the GUI every few seconds that something long is under way."""
        done = threading.Event()

        def tell() -> None:
            while not done.wait(SIGN_OF_LIFE):
                self._output.info_string("loading")

        thread = threading.Thread(target=tell, name="signs of life", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
