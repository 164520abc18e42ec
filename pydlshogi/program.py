"""What the programs have in common: how an interrupt and full memory end them."""

from __future__ import annotations

import functools
import signal
import sys
from collections.abc import Sequence
from typing import Callable

_Main = Callable[..., int]


def program(name: str) -> Callable[[_Main], _Main]:
    """Makes a decorator for the ``main`` of a program.

    Args:
        name: What the program's sentences begin with.

    Returns:
        A decorator: an interrupt from the keyboard gives one sentence on standard error
        and the status 130, memory that does not suffice one sentence and the status 1.
    """

    def decorate(main: _Main) -> _Main:
        @functools.wraps(main)
        def call(argv: Sequence[str] | None = None) -> int:
            try:
                return main(argv)
            except KeyboardInterrupt:
                print(f"{name}: interrupted.", file=sys.stderr)
                return 128 + signal.SIGINT
            except MemoryError as error:
                print(f"{name}: error: {out_of_memory(error)}", file=sys.stderr)
                return 1

        return call

    return decorate


def out_of_memory(error: MemoryError) -> str:
    """Says in a sentence what to do where memory, a GPU's or the machine's, does not suffice."""
    return (
        f"there is not enough memory ({str(error).rstrip('.') or 'the system refused more'}). "
        "Lower --batchsize or --test_batchsize, or end other programs."
    )
