"""The signals that end a program."""

from __future__ import annotations

import signal

#: The terminal was closed; None on Windows. It may come twice: from the shell and the system.
HANG_UP = getattr(signal, "SIGHUP", None)

#: Signals that ask a program to end, beside Ctrl-C. Windows has Ctrl-Break.
ENDINGS = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)
)


class Terminated(KeyboardInterrupt):
    """A signal arrived that asks the program to end."""

    def __init__(self, signal_number: int = signal.SIGTERM) -> None:
        super().__init__()
        self.signal_number = signal_number
