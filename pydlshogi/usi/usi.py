"""``usi(player)``: runs a player as a USI engine, ours or a reader's.

A player of a reader of the book answers USI commands by ``print``. The engine catches what it
prints, adds the answers that it forgets, and survives its exceptions.

Source of the name: 「将棋AIで学ぶディープラーニング」.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import sysconfig
import threading
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Callable

from pydlshogi.errors import UserError
from pydlshogi.usi.dialogue import Dialogue, perhaps_without_reader
from pydlshogi.usi.engine import PROGRAM_FOLDER, Engine, protocol_streams
from pydlshogi.usi.options import EMPTY, Options
from pydlshogi.usi.output import Output
from pydlshogi.usi.protocol import CommandError, FatalError, Go, parse_position, parse_setoption

__all__ = ["usi"]

#: First words of the lines that a GUI understands between a command and its answer.
_PASSED_ON = ("id", "option", "info", "checkmate")

#: Answers that the engine itself sends, each once, when the player's method has returned.
_CLOSING = ("usiok", "readyok")

#: Folders of code that is not the reader's: this package and all others.
_NOT_THE_READERS = (
    str(Path(__file__).parents[1]),
    *map(sysconfig.get_path, ("stdlib", "purelib", "platlib")),
)


def usi(player: Any) -> None:
    """Talks USI on standard input and output until ``quit`` or the end of the input.

    The player is one of this package, or one of your own with the methods of
    :class:`pydlshogi.player.base_player.BasePlayer`, which answers by ``print``.
    """
    if isinstance(player, type):
        name = player.__name__
        raise TypeError(f"usi needs a player, not its class: write usi({name}()), not usi({name})")
    with _streams() as (lines, stream):
        if not _dialogue(player, Output(stream)).run(lines):
            # The player still thinks. A normal end would wait for it.
            os._exit(0)


def _dialogue(player: Any, output: Output) -> Dialogue:
    """Chooses the engine. A player that overrides a method of the book is the reader's own."""
    if not getattr(player, "is_plain", False):
        return BookEngine(player, output)
    player.send = output.send
    return Engine(player.name, player.options, lambda send: player, output)


@contextlib.contextmanager
def _streams() -> Iterator[tuple[Iterable[bytes], BinaryIO]]:
    """Opens the streams: those of the process, or what a script has put in their place."""
    if sys.stdin is sys.__stdin__ and sys.stdout is sys.__stdout__:
        with protocol_streams() as streams:
            yield streams
    else:
        lines = (line.encode("utf-8", "replace") for line in sys.stdin)
        yield lines, _TextOutput(sys.stdout)  # type: ignore[misc]


class _TextOutput:
    """A text stream that takes bytes."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, data: bytes) -> None:
        """Writes ASCII."""
        self._stream.write(data.decode("ascii"))

    def flush(self) -> None:
        """Flushes the text stream."""
        self._stream.flush()


class BookEngine(Dialogue):
    """A USI engine around a player with methods of the book's ``BasePlayer``.

    Missing methods do nothing. The option ``debug_log`` of a subclass of our players opens the log.
    """

    def __init__(self, player: Any, output: Output) -> None:
        super().__init__(output)
        self._player = player
        self._answers: list[str] = []
        self._is_ready = False
        self._settings = _chainer_settings()

    def _begin(self) -> None:
        # Chainer keeps its settings for each thread. The script has set them in another.
        if self._settings:
            vars(sys.modules["chainer"].config._local).update(self._settings)

    def _usi(self, rest: str) -> None:
        try:
            self._call("usi")
        finally:
            self._output.send("usiok")

    def _setoption(self, rest: str) -> None:
        name, value = parse_setoption(rest)
        # The value is one word, whatever it contains: the book's players read words[3].
        self._call("setoption", ["name", name, "value", "" if value == EMPTY else value])
        options = getattr(self._player, "options", None)
        if name.lower() == "debug_log" and isinstance(options, Options):
            path = options["debug_log"]
            self._output.open_log(PROGRAM_FOLDER / path if path else None)

    def _prepare(self) -> None:
        try:
            self._call("isready")
        except CommandError as error:
            raise FatalError(f"{error}. The engine ends.") from None
        self._is_ready = True

    def _new_game(self) -> None:
        self._call("usinewgame")

    def _set_position(self, text: str) -> None:
        parse_position(text)  # refuses what is no position
        self._call("position", text.split())

    def _choose(self, go: Go) -> str:
        if not self._is_ready:  # a GUI without isready
            self._prepare()
        self._answers.clear()
        complaint = ""
        try:
            self._call("go")
        except CommandError as error:
            complaint = str(error)
        if self._answers:
            answer = self._answers[0]
        else:
            complaint = f"{complaint or 'the player printed no bestmove'}. It resigns."
            answer = "resign"
        if complaint:
            self._output.info_string(complaint)
        return answer

    def _close(self) -> None:
        try:
            self._call("quit")
        except CommandError as error:
            self._output.info_string(str(error))

    def _call(self, name: str, *arguments: Any) -> None:
        """Calls a method of the player; raises CommandError if the method raised an exception."""
        method: Callable[..., Any] | None = getattr(self._player, name, None)
        if method is None:
            return
        printed = _Printed(self._printed)
        try:
            with contextlib.redirect_stdout(printed):
                method(*arguments)
            printed.end_line()
        except SystemExit as end:
            self._exit(end.code)
        except UserError as error:
            raise CommandError(str(error).rstrip(".")) from None
        except Exception as error:
            raise CommandError(_in_words(self._player, name, error)) from None

    def _exit(self, code: Any) -> None:
        """Ends the process as ``sys.exit`` does in a script: a text is a message, and status 1."""
        if code is not None and not isinstance(code, int):
            self._output.info_string(str(code))
            with perhaps_without_reader():
                print(code, file=sys.stderr, flush=True)
            code = 1
        os._exit(code or 0)

    def _printed(self, line: str) -> None:
        """Handles a line that the player has printed."""
        word, _, rest = line.strip().partition(" ")
        if word == "bestmove":
            self._answers.append(rest.strip() or "resign")
        elif word in _PASSED_ON:
            self._output.send(line.strip())
        elif word and word not in _CLOSING:
            # A GUI would not understand it, but may show it.
            self._output.info_string(line.rstrip())


class _Printed(io.TextIOBase):
    """A stream that hands over whole lines to a function. Threads may print at the same time."""

    encoding = "utf-8"

    def __init__(self, handle: Callable[[str], None]) -> None:
        self._handle = handle
        self._begun = threading.local()
        self._lock = threading.Lock()

    def writable(self) -> bool:
        """Says that it is writable."""
        return True

    def write(self, text: str) -> int:
        """Takes text; hands over each line that is complete."""
        *lines, self._begun.text = (getattr(self._begun, "text", "") + text).split("\n")
        with self._lock:
            for line in lines:
                self._handle(line)
        return len(text)

    def end_line(self) -> None:
        """Ends a line that this thread has begun."""
        if getattr(self._begun, "text", ""):
            self.write("\n")


def _chainer_settings() -> dict[str, Any]:
    """Returns the settings of Chainer in this thread, if Chainer is imported."""
    chainer = sys.modules.get("chainer")
    local = getattr(getattr(chainer, "config", None), "_local", None)
    return dict(vars(local)) if local is not None else {}


def _in_words(player: Any, method: str, error: Exception) -> str:
    """Says which exception a method raised, and where."""
    frames = traceback.extract_tb(error.__traceback__)[1:]  # without that of _call
    own = [frame for frame in frames if not frame.filename.startswith(_NOT_THE_READERS)]
    where = ", ".join(
        dict.fromkeys(
            f"line {frame.lineno} of {Path(frame.filename).name}"
            for frame in [*own[-1:], *frames[-1:]]
        )
    )
    text = " ".join(str(error).split())
    return f"{type(player).__name__}.{method} raised {type(error).__name__}: {text} ({where})"
