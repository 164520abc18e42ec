"""``usi(player)``: runs a player as a USI engine.

Source of the name: 「将棋AIで学ぶディープラーニング」.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from pydlshogi.usi.book_engine import BookEngine
from pydlshogi.usi.dialogue import Dialogue
from pydlshogi.usi.engine import Engine, protocol_streams
from pydlshogi.usi.output import Output

__all__ = ["usi"]


def usi(player: Any) -> None:
    """Talks USI on standard input and output until ``quit`` or the end of the input.

    Args:
        player: A player of this package, or one of your own with the methods of
            :class:`pydlshogi.player.base_player.BasePlayer`, which answers by ``print``.

    Raises:
        TypeError: A class was given.
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
