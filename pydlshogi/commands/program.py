"""The end of every program: errors and signals become one sentence and an exit status.

=====================  =====================================  ======================
exception              standard error                         exit status
=====================  =====================================  ======================
``UserError``          ``NAME: error: SENTENCE``              1
``OSError``            ``NAME: error: FILE: REASON.``         1
``MemoryError``        ``NAME: error: SENTENCE``              1
a missing package      ``NAME: error: SENTENCE``              1
Ctrl-C                 ``NAME: interrupted.``                 130
SIGTERM                ``NAME: interrupted.``                 143
a closed terminal      ``NAME: interrupted.``                 129
closed standard output nothing                                141
=====================  =====================================  ======================

All other exceptions are faults of this package and keep their traceback.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import io
import logging
import os
import select
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Callable, TextIO

from pydlshogi.errors import UserError, missing_package
from pydlshogi.signals import ENDINGS, HANG_UP, Terminated

_Main = Callable[..., int]

#: Exit status of a program whose standard output was closed: 128 + SIGPIPE, as in a shell.
CLOSED_OUTPUT = 141

_REMEDY = "End other programs."

#: Error numbers of a write to a closed pipe; Windows reports the second one.
_CLOSED = (errno.EPIPE, errno.EINVAL)


class Reported(Exception):
    """An error that the user has been told already; the program ends with ``status``."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the program ends with status {status}")
        self.status = status


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Makes SIGTERM and SIGHUP raise ``Terminated``, so that temporary files are removed.

    A signal that the process ignores, for example under nohup, stays ignored. Only the main
    thread can handle signals; in other threads this does nothing.
    """
    caught = []
    if threading.current_thread() is threading.main_thread():
        caught = [number for number in ENDINGS if signal.getsignal(number) == signal.SIG_DFL]
    for number in caught:
        signal.signal(number, _terminate)
    try:
        yield
    finally:
        for number in caught:
            signal.signal(number, signal.SIG_DFL)


def _terminate(number: int, frame: FrameType | None) -> None:
    if number == HANG_UP:
        signal.signal(number, signal.SIG_IGN)  # the second one would interrupt the cleanup
    raise Terminated(number)


def program(
    name: str, *, remedy: str = _REMEDY, interrupted: str = ""
) -> Callable[[_Main], Callable[..., int]]:
    """Makes the decorator of a program's ``main(argv=None) -> int``.

    The decorated function returns the exit status and prints the message, as the table at the top
    of this module says.

    Args:
        name: Name of the program, the start of every message.
        remedy: What to do when memory runs out, one sentence.
        interrupted: What to do after Ctrl-C, one sentence; may be empty.
    """

    def decorate(main: _Main) -> Callable[..., int]:
        @functools.wraps(main)
        def call(argv: Sequence[str] | None = None) -> int:
            _open_standard_streams()
            try:
                with terminable(), _flushed_output():
                    _print_every_character()
                    return main(argv)
            except Reported as reported:
                return reported.status
            except BaseException as error:
                status, sentence = describe(error, remedy, interrupted)
                _print_error(f"{name}: {sentence}" if sentence else "")
                return status
            finally:
                _discard_errors()

        return call

    return decorate


@contextlib.contextmanager
def report_to(
    logger: logging.Logger, *, remedy: str = _REMEDY, interrupted: str = ""
) -> Iterator[None]:
    """Logs the errors of a block instead of printing them; for programs with a log file.

    Interruptions are warnings. The other arguments are those of :func:`program`.

    Raises:
        Reported: The sentence is logged; :func:`program` returns the status.
    """
    try:
        yield
    except Reported:
        raise
    except BaseException as error:
        status, sentence = describe(error, remedy, interrupted)
        if sentence:
            level = logging.ERROR if status == 1 else logging.WARNING
            logger.log(level, "%s", sentence.partition("error: ")[2] if status == 1 else sentence)
        raise Reported(status) from None


def describe(error: BaseException, remedy: str = _REMEDY, interrupted: str = "") -> tuple[int, str]:
    """Gives the exit status and the sentence of an exception, without the program's name.

    An empty sentence means that there is nothing to say. The exception is raised again if the
    user cannot have caused it.
    """
    if isinstance(error, KeyboardInterrupt):
        number = getattr(error, "signal_number", signal.SIGINT)
        return 128 + number, f"interrupted. {interrupted}".rstrip()
    if isinstance(error, UserError):
        return 1, f"error: {error}"
    if isinstance(error, MemoryError):
        reason = str(error).rstrip(".") or "the system refused more"
        return 1, f"error: there is not enough memory ({reason}). {remedy}"
    if isinstance(error, _ClosedOutput):
        return CLOSED_OUTPUT, ""
    if isinstance(error, OSError):
        return 1, f"error: {_system_error(error)}"
    if isinstance(error, SystemExit) and (place := _of_user(error)):
        return 1, f"error: {place} ends the program. Let it raise an error instead."
    if isinstance(error, ModuleNotFoundError) and not (error.name or "").startswith("pydlshogi"):
        return 1, f"error: {missing_package(error)}"
    raise error


def _of_user(error: SystemExit) -> str:
    """Names the line of a user's network that raised an exception; empty if none did."""
    from pydlshogi.network.own import PREFIX

    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        if frame.f_globals.get("__name__", "").startswith(PREFIX):
            place = f"the file {frame.f_code.co_filename}, line {line},"
    return place


def _system_error(error: OSError) -> str:
    """Writes an error of the system without its number: ``FILE: REASON.``"""
    reason = (error.strerror or str(error) or type(error).__name__).rstrip(".")
    if error.filename is None:
        return f"{reason}."
    name = os.fsdecode(error.filename) if isinstance(error.filename, bytes) else error.filename
    return f"{name}: {reason}."


class _ClosedOutput(OSError):
    """The reader of standard output has gone."""


@contextlib.contextmanager
def _flushed_output() -> Iterator[None]:
    """Writes standard output before the program ends, while errors can still be reported.

    An error of the program is reported, and not a second one of its output.
    """
    try:
        try:
            yield
        except Exception:
            with contextlib.suppress(OSError):
                _flush_output()
            raise
        except BaseException:
            _flush_output()
            raise
        _flush_output()
    except BrokenPipeError:
        # Another pipe may be broken; then standard output still has a reader.
        if not _reader_has_gone():
            raise
        _discard(sys.stdout)
        raise _ClosedOutput from None


def _open_standard_streams() -> None:
    """Leads standard input, output and error to nowhere if whoever started the program closed them.

    Otherwise the next file would take the number of the missing one and receive its lines.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
        if getattr(sys, name) is None:
            stream = io.TextIOWrapper(
                io.FileIO(os.devnull, "w" if number else "r"), "utf-8", "replace"
            )
            setattr(sys, name, stream)


def _print_every_character() -> None:
    r"""Lets standard output show a character that its encoding lacks as ``\uXXXX``.

    Names of files and players would otherwise end a program, for example on Windows if the
    output goes to a file. Python treats standard error in this way already.
    """
    output = sys.stdout
    if not isinstance(output, io.TextIOWrapper) or output.closed:
        return
    if output.errors in ("strict", "surrogateescape"):  # others are a choice of the user
        output.reconfigure(errors="backslashreplace")


def _flush_output() -> None:
    """Writes what Python still holds of standard output."""
    try:
        if sys.stdout and not sys.stdout.closed:
            sys.stdout.flush()
    except OSError as error:
        _discard(sys.stdout)
        if error.errno in _CLOSED:
            raise _ClosedOutput from None
        raise OSError(error.errno, error.strerror, "standard output") from None


def _discard_errors() -> None:
    """Discards lines that standard error has not taken, for example because its terminal closed."""
    try:
        if sys.stderr and not sys.stderr.closed:
            sys.stderr.flush()
    except OSError:
        _discard(sys.stderr)


def _discard(stream: TextIO) -> None:
    """Discards what Python still holds of a standard stream.

    Python would write it again at exit, print a second error, and end with status 120.
    """
    with contextlib.suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, stream.fileno())
        os.close(nothing)
        stream.flush()


def _reader_has_gone() -> bool:
    """Asks the system whether nobody reads standard output any more.

    Unbuffered output leaves nothing that a second write could fail with.
    """
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        return bool(poll.poll(0))
    except (AttributeError, OSError, ValueError):  # Windows has no poll
        return False


def _print_error(text: str) -> None:
    """Prints to standard error, which may be closed too."""
    if text:
        with contextlib.suppress(OSError, ValueError):
            print(text, file=sys.stderr, flush=True)
