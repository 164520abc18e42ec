"""Where the log of a training run goes: to a file, and to the terminal above a progress bar."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Iterator

from tqdm import tqdm

from pydlshogi.errors import UserError
from pydlshogi.training.log import POINT

_FORMAT = "%(asctime)s\t%(levelname)s\t%(message)s"
_DATE_FORMAT = "%Y/%m/%d %H:%M:%S"


class _TerminalHandler(logging.StreamHandler):
    """Handler for standard error that writes its lines above a progress bar."""

    def emit(self, record: logging.LogRecord) -> None:
        with tqdm.external_write_mode(file=self.stream):
            super().emit(record)


class LogError(UserError):
    """The log lacks lines."""


class _FileHandler(logging.Handler):
    """Handler for a file. What cannot be written waits for the next line; the run continues."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__()
        self._path = os.path.abspath(path)
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115 - until the end of the run
        # A line that a full disk has cut must not continue in ours.
        self._pending = b"" if _ends_a_line(path) else b"\n"
        self._reported = False

    def emit(self, record: logging.LogRecord) -> None:
        # A file name in a kifu list may have bytes that are no text; they become \udcXX.
        line = f"{self.format(record)}{os.linesep}"
        self._pending += line.encode("utf-8", "backslashreplace")
        error = self._write()
        if error and not self._reported:
            self._reported = True
            with contextlib.suppress(OSError):
                print(f"{self._path} cannot be written: {error.strerror}.", file=sys.stderr)

    def _write(self) -> OSError | None:
        try:
            while self._pending:
                self._pending = self._pending[self._file.write(self._pending) :]
        except OSError as error:
            return error
        return None

    def end(self) -> None:
        """Writes what waits, and closes the file."""
        with contextlib.closing(self._file):
            error = self._write()
        if error:
            raise LogError(
                f"the log {self._path} is incomplete ({error.strerror}). The model and the state "
                "are saved."
            )


def _ends_a_line(path: str | os.PathLike[str]) -> bool:
    if not os.path.isfile(path) or not os.path.getsize(path):
        return True
    with open(path, "rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read() == b"\n"


def _is_for_terminal(record: logging.LogRecord) -> bool:
    """Chooses the lines of a log file that a user wants to see during the training."""
    return record.levelno >= logging.WARNING or bool(POINT.fullmatch(record.getMessage()))


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Tests whether a log file is standard error, another device or a pipe."""
    other = os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
    return other or _is_standard_error(path)


def _is_standard_error(path: str | os.PathLike[str]) -> bool:
    """Tests whether a path leads to where standard error goes."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # it may be closed
        return os.path.samestat(os.stat(path), os.fstat(sys.stderr.fileno()))
    return False


@contextlib.contextmanager
def log_to(path: str | os.PathLike[str] | None) -> Iterator[None]:
    """Sends the package's log to a file or to standard error while a block runs.

    Lines are appended to the file, so that a resumed run continues its log. Warnings, errors, and
    the lines with loss and accuracy then also go to standard error. With None, an empty path or
    standard error itself, such as ``/dev/stderr``, everything goes to standard error, once.

    Raises:
        OSError: the file cannot be written.
        LogError: at the end, because lines are missing, for example on a full disk.
    """
    terminal = _TerminalHandler()
    handlers: list[logging.Handler] = [terminal]
    file = _FileHandler(path) if path and not _is_standard_error(path) else None
    if file:
        handlers.append(file)
        terminal.addFilter(_is_for_terminal)
    package = logging.getLogger("pydlshogi")
    level = package.level
    package.setLevel(logging.INFO)
    for handler in handlers:
        handler.setFormatter(logging.Formatter(_FORMAT, _DATE_FORMAT))
        package.addHandler(handler)
    finished = False
    try:
        yield
        finished = True
    finally:
        package.setLevel(level)
        for handler in handlers:
            package.removeHandler(handler)
        # Another error is more important than missing lines.
        with contextlib.nullcontext() if finished else contextlib.suppress(LogError):
            if file:
                file.end()
