"""The engine's answers, as lines on a stream, and the log of the dialogue."""

from __future__ import annotations

import collections
import contextlib
import datetime
import os
import re
import stat
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, cast

from pydlshogi.usi.protocol import CommandError

#: How many lines are kept for a log that is opened later.
_EARLY_LINES = 1000

#: How many characters of such a line are kept. The commands of a long game are shorter.
_EARLY_LENGTH = 20_000

#: How every log begins: a time and a direction.
_FIRST_LINE = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} [<>] ")
_FIRST_LINE_LENGTH = len("2018-08-24 12:00:00.000 < ")


class DialogueLog:
    """A file with all lines of a dialogue and their times.

    The lines before the option that names the file are kept in memory.
    """

    def __init__(self) -> None:
        self._early: collections.deque[str] = collections.deque(maxlen=_EARLY_LINES)
        self._file: BinaryIO | None = None
        self._lock = threading.Lock()

    def open(self, path: Path | None) -> None:
        """Opens a new log, or continues an old one; None closes it.

        A GUI's file dialog suggests existing files. Only an empty file or a log of this engine is
        written to. For another one it raises ValueError, or OSError, and no log is open then.
        """
        with self._lock:
            self._close()
            if path:
                self._file = _open_log(path)
                self._put("".join(self._early))
                self._early.clear()

    def write(self, direction: str, text: str) -> OSError | None:
        """Adds a line from the GUI (``<``) or to it (``>``).

        It returns the error if the file cannot be written any more, and closes the log: a full
        disk must not end a game.
        """
        now = datetime.datetime.now().isoformat(sep=" ", timespec="milliseconds")
        with self._lock:
            if self._file:
                try:
                    self._put(f"{now} {direction} {text}\n")
                except OSError as error:
                    return error
            else:
                self._early.append(f"{now} {direction} {text[:_EARLY_LENGTH]}\n")
        return None

    def _put(self, text: str) -> None:
        """Writes to the file. Closes it where that raises OSError."""
        try:
            self._file.write(text.encode("utf-8", "backslashreplace"))  # type: ignore[union-attr]
        except OSError:
            self._close()
            raise

    def _close(self) -> None:
        if self._file:
            with contextlib.suppress(OSError):  # a network drive may fail only now
                self._file.close()
            self._file = None


def _open_log(path: Path) -> BinaryIO:
    """Opens a file for appending, after checking that it is empty or a log."""
    file = path.open("a+b", buffering=0)
    try:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError(f"{path} is no ordinary file. Choose a new file.")
        file.seek(0)
        start = file.read(_FIRST_LINE_LENGTH)
        if start and not _FIRST_LINE.fullmatch(start):
            raise ValueError(f"{path} exists and is not a log of this engine. Choose a new file.")
    except BaseException:
        file.close()
        raise
    return cast(BinaryIO, file)


class Output:
    """Writes the engine's lines, each flushed at once, in ASCII: the same in CP932 and in UTF-8."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream: BinaryIO | None = stream
        self._log = DialogueLog()
        # Reentrant: if a line cannot be logged, send() sends another line about that.
        self._lock = threading.RLock()

    def send(self, line: str) -> None:
        """Writes a line. Escapes control characters and all that is not ASCII."""
        text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)
        with self._lock:
            self.log(">", text)
            if self._stream:
                try:
                    self._stream.write(text.encode("ascii", "backslashreplace") + b"\n")
                    self._stream.flush()
                except (OSError, ValueError):
                    # The GUI is gone. The end of its input, which follows, ends the engine.
                    self._stream = None

    def send_together(self, lines: Iterable[str]) -> None:
        """Writes lines without others in between."""
        with self._lock:
            for line in lines:
                self.send(line)

    def open_log(self, path: Path | None) -> None:
        """Logs the dialogue in a file; None ends that. CommandError: it cannot be written."""
        try:
            self._log.open(path)
        except (OSError, ValueError) as error:
            raise CommandError(f"debug_log cannot be written: {error}") from None

    def log(self, direction: str, text: str) -> None:
        """Adds a line to the log. Tells the GUI if the log fails."""
        error = self._log.write(direction, text)
        if error:
            self.info_string(f"debug_log cannot be written any more: {error}")

    def info_string(self, text: str) -> None:
        """Shows a text to the person at the GUI."""
        self.send(f"info string {text}")
