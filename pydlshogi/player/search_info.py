"""What a search tells the GUI."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Callable

from pydlshogi.player.clock import Timer
from pydlshogi.player.strategy import score
from pydlshogi.uct.dfpn import MateSearch
from pydlshogi.uct.line import Line
from pydlshogi.uct.move import to_usi
from pydlshogi.uct.proof import DRAW, WIN, Proof
from pydlshogi.uct.search import Search


class Reports:
    """Sends ``info`` lines at regular intervals during a search.

    Args:
        timer: The time of the search.
        interval: Seconds between two reports; 0 for no reports.
        send: Sends the lines of a report.
    """

    def __init__(self, timer: Timer, interval: float, send: Callable[[], None]) -> None:
        self._timer = timer
        self._interval = interval
        self._send = send
        self._due = interval or math.inf

    def send_if_due(self) -> None:
        """Sends a report, if the last one was sent long enough ago."""
        if self._timer.elapsed() >= self._due:
            self._send()
            self._due = self._timer.elapsed() + self._interval


def info_lines(
    search: Search, lines: Sequence[Line], *, seconds: float, nodes: int, has_value: bool
) -> Iterator[str]:
    """Writes the ``info`` lines of a search, the first last: GUIs take the last score.

    Args:
        search: The search.
        lines: What to show, ``multipv 1`` first.
        seconds: Time since ``go``.
        nodes: Visits since ``go``.
        has_value: Whether the network has a value head; without one there is no score.
    """
    seldepth = max([search.deepest, *(len(line.moves) for line in lines)])
    common = f"seldepth {seldepth} {_effort(seconds, nodes, search.fullness())}"
    for rank in range(len(lines), 0, -1):
        line = lines[rank - 1]
        words = f" score {score_words(line)}" if has_value or line.proof else ""
        pv = " ".join(map(to_usi, line.moves))
        yield f"info depth {len(line.moves)} {common} multipv {rank}{words} pv {pv}"


def mate_info(search: MateSearch, seconds: float, mate: Sequence[int] = ()) -> str:
    """Writes the ``info`` line of a mate search.

    Args:
        search: The search. It does not count positions that the board's own search visits.
        seconds: Time since ``go``.
        mate: The moves of the mate; empty if none is known.
    """
    effort = _effort(seconds, search.nodes, search.fullness())
    if not mate:
        return f"info {effort}"
    pv = " ".join(map(to_usi, mate))
    return f"info depth {len(mate)} {effort} score mate {len(mate)} pv {pv}"


def _effort(seconds: float, nodes: int, fullness: float) -> str:
    """Writes the time, the number of nodes, and the used part of the memory."""
    return (
        f"time {round(1000 * seconds)} nodes {nodes} nps {round(nodes / max(seconds, 1e-3))} "
        f"hashfull {min(1000, int(1000 * fullness))}"
    )


def score_words(line: Line) -> str:
    """Writes the score of a line: ``cp N``, or ``mate N`` where the end is proven."""
    proof: Proof | None = line.proof
    if proof is None or proof.outcome == DRAW:
        return f"cp {score(line.value)}"
    return f"mate {proof.plies}" if proof.outcome == WIN else f"mate -{proof.plies}"
