"""Where the log of a training run goes: to a file, and to the terminal above a progress bar."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Iterator

from tqdm import tqdm

from pydlshogi.training.log import POINT

_FORMAT = "%(asctime)s\t%(levelname)s\t%(message)s"
_DATE_FORMAT = "%Y/%m/%d %H:%M:%S"


class _TerminalHandler(logging.StreamHandler):
    """Handler for standard error that writes its lines above a progress bar."""

    def emit(self, record: logging.LogRecord) -> None:
        with tqdm.external_write_mode(file=self.stream):
            super().emit(record)


class _FileHandler(logging.FileHandler):
    """Handler for a file that reports a write error once and lets the run continue."""

    _reported = False

    def handleError(self, record: logging.LogRecord) -> None:
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            super().handleError(record)
        elif not self._reported:
            self._reported = True
            print(f"{self.baseFilename} cannot be written: {error.strerror}.", file=sys.stderr)

    def close(self) -> None:
        with contextlib.suppress(OSError):  # the error has been reported
            super().close()


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

    Args:
        path: Lines are appended to this file, so that a resumed run continues its log.
            Warnings, errors, and the lines with loss and accuracy then also go to standard
            error. None, an empty path or standard error itself, such as ``/dev/stderr``:
            everything goes to standard error, once.

    Raises:
        OSError: the file cannot be written.
    """
    terminal = _TerminalHandler()
    handlers: list[logging.Handler] = [terminal]
    if path and not _is_standard_error(path):
        # A file name in a kifu list may have bytes that are no text; they become \udcXX.
        handlers.append(_FileHandler(path, encoding="utf-8", errors="backslashreplace"))
        terminal.addFilter(_is_for_terminal)
    package = logging.getLogger("pydlshogi")
    level = package.level
    package.setLevel(logging.INFO)
    for handler in handlers:
        handler.setFormatter(logging.Formatter(_FORMAT, _DATE_FORMAT))
        package.addHandler(handler)
    try:
        yield
    finally:
        package.setLevel(level)
        for handler in handlers:
            package.removeHandler(handler)
            handler.close()
