"""What a search tells the GUI."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Callable

from pydlshogi.player.clock import Timer
from pydlshogi.player.opening_book import BookMove
from pydlshogi.player.strategy import score
from pydlshogi.uct.core import DRAW, WIN, Proof
from pydlshogi.uct.dfpn import MOST_PLIES, MateSearch
from pydlshogi.uct.line import Line, candidates
from pydlshogi.uct.move import to_usi
from pydlshogi.uct.search import Search
from pydlshogi.usi.protocol import Go

#: Seconds until the first report. The time until the next one doubles, up to the interval.
_FIRST_REPORT = 0.1

#: A line has enough visits for a comparison by value if it has so many, and this part of the most.
_ENOUGH_VISITS, _ENOUGH_PART = 10, 0.1


class Reports:
    """Sends ``info`` lines at intervals during a search, and more often in its first moments.

    A GUI that analyses each position for a second records the last report before ``stop``. The
    interval is in seconds; 0 sends no reports.
    """

    def __init__(self, timer: Timer, interval: float, send: Callable[[], None]) -> None:
        self._timer = timer
        self._interval = interval
        self._send = send
        self._due = min(interval, _FIRST_REPORT) or math.inf

    def send_if_due(self) -> None:
        """Sends a report, if the last one was sent long enough ago."""
        if self._timer.elapsed() >= self._due:
            self._send()
            pause = min(self._interval, self._due)
            # After a delay, the reports that were missed do not follow one another.
            self._due = max(self._due + pause, self._timer.elapsed() + pause / 2)


def info_lines(
    search: Search, lines: Sequence[Line], *, seconds: float, nodes: int, has_value: bool
) -> Iterator[str]:
    """Writes the ``info`` lines of a search, the first last: GUIs take the last score.

    ``seconds`` and ``nodes`` count since ``go``. Without a value head there is no score.
    """
    seldepth = max([search.deepest, *(len(line.moves) for line in lines)])
    common = f"seldepth {seldepth} {_effort(seconds, nodes, search.fullness())}"
    for rank in range(len(lines), 0, -1):
        line = lines[rank - 1]
        words = f" score {score_words(line)}" if has_value or line.proof else ""
        pv = " ".join(map(to_usi, line.moves))
        yield f"info depth {len(line.moves)} {common} multipv {rank}{words} pv {pv}"


def ordered(lines: Sequence[Line], search: Search) -> list[Line]:
    """Sorts the lines of a search, the best first: those with enough visits by their values.

    The first line stays the first, because its move is played. Its value is the most certain.
    """
    visits = {candidate.move: candidate.visits for candidate in candidates(search.root)}
    counts = [visits.get(line.moves[0], 0) for line in lines]
    least = max(_ENOUGH_VISITS, _ENOUGH_PART * max(counts, default=0))
    places = [
        place
        for place, line in enumerate(lines)
        if place and counts[place] >= least and not (line.proof and line.proof.outcome)
    ]
    found = list(lines)
    by_value = sorted((lines[place] for place in places), key=lambda line: -line.value)
    for place, line in zip(places, by_value):
        found[place] = line
    return found


def mate_info(search: MateSearch, seconds: float, mate: Sequence[int] = ()) -> str:
    """Writes the ``info`` line of a mate search, with the moves of the mate if one is known."""
    effort = _effort(seconds, search.nodes, search.fullness())
    if not mate:
        return f"info {effort}"
    pv = " ".join(map(to_usi, mate))
    return f"info depth {len(mate)} {effort} score mate {len(mate)} pv {pv}"


def why_unknown(search: MateSearch, go: Go) -> str:
    """Says why a mate search has ended without a result: some GUIs do not show ``timeout``."""
    if search.fullness() >= 1:
        return "it is unknown whether there is a mate: the memory of USI_Hash is full"
    if go.stop.is_set():
        return "it is unknown whether there is a mate: the search was stopped"
    if search.was_too_deep:
        return f"no mate in {MOST_PLIES} plies was found, and longer mates are not searched"
    return f"it is unknown whether there is a mate: the {go.mate_ms} ms are over"


def book_info(move: BookMove) -> str:
    """Writes the ``info`` line of a book move; it has a score if a search has found one."""
    depth = f"depth {move.depth} " if move.depth else ""
    score_words = f"score cp {move.score} " if move.depth or move.score else ""
    pv = f"{move.move} {move.answer}".rstrip()
    return f"info {depth}time 0 nodes 0 multipv 1 {score_words}pv {pv}"


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
