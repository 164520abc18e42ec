"""Runs a command with a time limit and keeps its output."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

#: Longest time from Ctrl-C to the kill, in seconds. A training saves its files in this time.
_GRACE = 15.0

#: Seconds of one step of a wait.
_STEP = 0.2

_ON_WINDOWS = os.name == "nt"


class Ended(NamedTuple):
    """A command that has ended.

    Attributes:
        status: Exit status; None if the time limit ended the command.
        seconds: Time it took.
        lines: Its output, standard error included, without line ends.
    """

    status: int | None
    seconds: float
    lines: list[str]

    @property
    def reason(self) -> str:
        """Why the command failed, in one line."""
        if self.status is None:
            return f"the time limit of {self.seconds:.0f} s was reached"
        last = next((line.strip() for line in reversed(self.lines) if line.strip()), "no output")
        return f"exit status {self.status}: {last[:300]}"


def run(
    command: Sequence[str],
    seconds: float,
    log: Path,
    *,
    folder: Path,
    environment: Mapping[str, str],
) -> Ended:
    """Runs a command and waits until it ends or the time limit is reached.

    At the limit the command receives Ctrl-C first. It is killed, with its child processes, if
    it does not end then. After Ctrl-C in this process the command is ended in the same way.

    Args:
        command: The program and its arguments.
        seconds: Time limit, including the time between Ctrl-C and the kill.
        log: File that receives the command and its output while it runs.
        folder: Current folder of the command.
        environment: Environment variables of the command.

    Raises:
        OSError: the command cannot be started, or the log cannot be written.
    """
    start = time.monotonic()
    grace = min(_GRACE, seconds / 4)
    lines: list[str] = []
    with log.open("w", encoding="utf-8") as file:
        print("$", *command, file=file, flush=True)
        process = _start(command, folder, environment)
        reader = threading.Thread(target=_copy, args=(process.stdout, file, lines), daemon=True)
        reader.start()
        status: int | None = None
        try:
            status = _wait(process, seconds - grace)
        finally:
            _end(process, grace)
            reader.join(5)
    return Ended(status, time.monotonic() - start, list(lines))


def _start(
    command: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> subprocess.Popen[str]:
    """Starts a command in a process group of its own."""
    flags = subprocess.CREATE_NEW_PROCESS_GROUP if _ON_WINDOWS else 0  # type: ignore[attr-defined]
    return subprocess.Popen(
        list(command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        cwd=folder,
        env=dict(environment),
        start_new_session=not _ON_WINDOWS,
        creationflags=flags,
    )


def _wait(process: subprocess.Popen[str], seconds: float) -> int | None:
    """Waits until a command ends; returns its exit status, or None after the time.

    Ctrl-C does not interrupt a wait on Windows, so the function waits in short steps.
    """
    end = time.monotonic() + seconds
    while True:
        left = end - time.monotonic()
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(max(0.0, min(left, _STEP)))
        if left <= 0:
            return None


def _copy(source: IO[str] | None, file: IO[str], lines: list[str]) -> None:
    """Copies the output of a process to a file and to a list."""
    assert source is not None
    # The file is closed if a grandchild keeps the pipe open after the end of the command.
    with contextlib.suppress(ValueError, OSError):
        for line in source:
            file.write(line)
            file.flush()
            lines.append(line.rstrip("\r\n"))


def _end(process: subprocess.Popen[str], grace: float) -> None:
    """Ends a command that still runs, and all that it started."""
    if process.poll() is None:
        _signal(process, interrupt=True)
        with contextlib.suppress(KeyboardInterrupt):
            _wait(process, grace)
    _signal(process, interrupt=False)
    process.wait()


def _signal(process: subprocess.Popen[str], *, interrupt: bool) -> None:
    """Sends Ctrl-C to the command, or kills it together with its child processes."""
    if not _ON_WINDOWS:
        number = signal.SIGINT if interrupt else signal.SIGKILL
        with contextlib.suppress(OSError):  # the group has ended
            os.killpg(process.pid, number)
    elif process.poll() is None:
        # Windows has no Ctrl-C for another process group.
        stop = ["taskkill", "/F", "/T", "/PID", str(process.pid)]
        subprocess.run(stop, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
