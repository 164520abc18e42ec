"""What the programs have in common: how a signal and full memory end them."""

from __future__ import annotations

import contextlib
import functools
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Callable

_Main = Callable[..., int]


class Terminated(KeyboardInterrupt):
    """SIGTERM, as :func:`terminable` turns it into what Ctrl-C raises.

    Attributes:
        signal_number: The signal's.
    """

    signal_number = signal.SIGTERM


def signal_of(interrupt: KeyboardInterrupt) -> int:
    """Gives the number of the signal that an exception stands for."""
    return getattr(interrupt, "signal_number", signal.SIGINT)


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Lets SIGTERM end what is under way as Ctrl-C does: what is half done is removed.

    By itself it would leave an unpacked archive, or a file that is written beside.
    Only the main thread can catch signals; elsewhere this does nothing.

    Raises:
        Terminated: the signal came.
    """
    before = signal.getsignal(signal.SIGTERM)
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or before != signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated


def program(name: str, remedy: str = "End other programs.") -> Callable[[_Main], _Main]:
    """Makes a decorator for the ``main`` of a program.

    Args:
        name: What the program's sentences begin with.
        remedy: What to do where memory does not suffice, a sentence.

    Returns:
        A decorator: Ctrl-C and SIGTERM give one sentence on standard error and the
        status 130 or 143, memory that does not suffice one sentence and the status 1.
    """

    def decorate(main: _Main) -> _Main:
        @functools.wraps(main)
        def call(argv: Sequence[str] | None = None) -> int:
            try:
                with terminable():
                    return main(argv)
            except KeyboardInterrupt as interrupt:
                print(f"{name}: interrupted.", file=sys.stderr)
                return 128 + signal_of(interrupt)
            except MemoryError as error:
                print(f"{name}: error: {out_of_memory(error, remedy)}", file=sys.stderr)
                return 1

        return call

    return decorate


def out_of_memory(
    error: MemoryError,
    remedy: str = "Lower --batchsize or --test_batchsize, or end other programs.",
) -> str:
    """Says what to do where memory, a GPU's or the machine's, does not suffice."""
    return (
        f"there is not enough memory ({str(error).rstrip('.') or 'the system refused more'}). "
        + remedy
    )
