"""The engine's answers, as lines on a stream."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import BinaryIO

from pydlshogi.usi.dialogue_log import DialogueLog


class Output:
    """Writes the engine's lines: ASCII, each flushed at once.

    Windows GUIs read CP932 and others UTF-8. ASCII is the same in both.
    """

    def __init__(self, stream: BinaryIO, log: DialogueLog) -> None:
        self._stream: BinaryIO | None = stream
        self._log = log
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

    def log(self, direction: str, text: str) -> None:
        """Adds a line to the log. Tells the GUI if the log fails."""
        error = self._log.write(direction, text)
        if error:
            self.info_string(f"debug_log cannot be written any more: {error}")

    def info_string(self, text: str) -> None:
        """Shows a text to the person at the GUI."""
        self.send(f"info string {text}")
