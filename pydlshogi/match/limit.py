"""The limit of a move."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Kinds of limits, as ``go`` names them.
KINDS = ("nodes", "depth", "byoyomi")

#: The largest limit.
MOST = 10**12


@dataclass(frozen=True)
class Limit:
    """Limit of a move.

    Attributes:
        kind: One of :data:`KINDS`.
        value: Number of nodes, depth, or milliseconds.
    """

    kind: str
    value: int

    @property
    def command(self) -> str:
        """The ``go`` command."""
        # No clock besides the byoyomi: Fairy-Stockfish 11.1 confuses the two sides' clocks.
        clock = "btime 0 wtime 0 " if self.kind == "byoyomi" else ""
        return f"go {clock}{self.kind} {self.value}"

    @property
    def seconds(self) -> float:
        """Time that this limit allows an engine, in seconds."""
        return self.value / 1000 if self.kind == "byoyomi" else 0.0


def parse_limit(text: str) -> Limit:
    """Parses a limit: its kind and its value, as in ``nodes 1000``.

    Raises:
        ValueError: the text has another form.
    """
    found = re.fullmatch(rf"({'|'.join(KINDS)}) +([1-9]\d*)", text.strip(), re.ASCII)
    if not found or len(found[2]) > len(str(MOST)) or int(found[2]) > MOST:
        raise ValueError(
            f"{text!r} is not nodes N, depth N or byoyomi MILLISECONDS, with numbers of at most "
            f"{MOST}"
        )
    return Limit(found[1], int(found[2]))
