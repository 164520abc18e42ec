"""How long a player thinks.

Source of the share of the remaining time: dlshogi.
"""

from __future__ import annotations

import collections
import dataclasses
import time

from pydlshogi.usi.protocol import Clock, Go, parse_go

#: The remaining time is divided among so many moves, and early in the game among more.
_MOVES_LEFT, _OPENING_PLIES = 14, 30

#: The same for a player without a search, at any time of the game.
_MOVES_LEFT_WITHOUT_SEARCH = 30

#: How much longer than planned to think about an unclear choice.
_EXTENSION = 2.0

#: With an increment, the part of it, and the most seconds, that stay on the clock for delays.
_RESERVE_PART, _MOST_RESERVE = 0.5, 5.0

#: Seconds to send a move.
_SENDING = 0.05

#: Longest wait for the network's first answer after an immediate stop, in seconds.
_PATIENCE = 0.05

#: The same if ``go`` itself had to load the network, in seconds. That has used up the time anyway.
_FIRST_PATIENCE = 1.0

#: Delays are remembered for so many moves.
_REMEMBERED = 16

#: Seconds of a delay that the usual margin covers.
_QUIET = 0.1

#: Longest delay in seconds that is remembered: a computer that was suspended stands for no load.
_LONGEST_DELAY = 1.0


@dataclasses.dataclass(frozen=True)
class Budget:
    """The time for a move, in seconds."""

    planned: float  # after it, a clear choice is played
    extended: float  # after it, any choice is played
    last: float  # after it, the move comes too late


def make_budget(
    go: Go, color: int, ply: int, margin: float, for_delays: float = 0.0
) -> Budget | None:
    """Plans the time for a move of a side, 0 for Black, after some plies; None without a limit.

    ``margin`` is the reserve for usual delays of the GUI and of the system, ``for_delays`` that for
    the delays that were seen, both in seconds.
    """
    if go.movetime is not None:
        seconds = go.movetime / 1000
        planned = seconds - _kept(seconds, margin, for_delays)
        return Budget(planned, planned, _last(seconds))
    clock = go.clock(color)
    if clock == Clock():
        return None
    remaining, increment, byoyomi = _seconds_of(clock)
    moves = _moves_left(go, _MOVES_LEFT + max(0, _OPENING_PLIES - ply))
    # Without a reserve, the clock would soon run down to the margin before each increment.
    reserve = min(_RESERVE_PART * increment, _MOST_RESERVE, remaining / 2)
    share = (remaining - reserve) / moves + increment
    # A part of the time is for the search, unless an increment is too small to restore the margin.
    if 0 < increment < margin + for_delays:
        margin += for_delays
    else:
        margin = _kept(remaining - reserve + byoyomi, margin, for_delays)
    # Some GUIs add the increment only after the move, so it is no part of the limit.
    limit = max(0.0, remaining - reserve + byoyomi - margin)
    # The share is well below the limit. With an increment of 0.1 s, a margin would take all of it.
    planned = min(limit, max(share, byoyomi - min(margin, byoyomi / 2)))
    extended = min(limit, _EXTENSION * planned)
    return Budget(planned, extended, _last(remaining + byoyomi))


def _kept(seconds: float, margin: float, for_delays: float) -> float:
    """Returns the part of some seconds that the search must not use: at most three quarters."""
    margin = min(margin, seconds / 2)
    return margin + min(for_delays, (seconds - margin) / 2)


def half_of_the_time(go: Go, color: int) -> float | None:
    """Returns how long a player without a search may think, in seconds; None for no limit.

    It is half of the time for this move: of ``movetime``, else of the byoyomi, the increment and a
    share of the remaining time, but at most of remaining time and byoyomi. The other half is a
    reserve for steps that cannot be interrupted and for delays of the GUI.
    """
    if go.is_held:
        return None
    if go.movetime is not None:
        return max(0, go.movetime) / 2000
    clock = go.clock(color)
    if clock == Clock():
        return None
    remaining, increment, byoyomi = _seconds_of(clock)
    share = byoyomi + increment + remaining / _moves_left(go, _MOVES_LEFT_WITHOUT_SEARCH)
    return min(share, byoyomi + remaining) / 2


def _seconds_of(clock: Clock) -> tuple[float, float, float]:
    """Returns the remaining time, the increment and the byoyomi of this move in seconds."""
    remaining, increment, byoyomi = ((number or 0) / 1000 for number in dataclasses.astuple(clock))
    increment, byoyomi = max(0.0, increment), max(0.0, byoyomi)
    if remaining <= 0 and not byoyomi:
        # ShogiHome takes the increment off the clock that it sends, even below zero. The side has
        # both together.
        remaining += increment
    return max(0.0, remaining), increment, byoyomi


def _moves_left(go: Go, guess: int) -> int:
    """Returns the number of moves that share the remaining time; ``guess`` if it is unknown."""
    if go.moves_to_go is None or go.moves_to_go < 1:
        # Some GUIs send 0 if there is no such limit. This move must not get all the time.
        return guess
    # One more than the GUI gives, so that some time is left for the last move.
    return min(guess, go.moves_to_go + 1)


def _last(seconds: float) -> float:
    """Returns when a move must be sent, so that it arrives before the clock has run down."""
    return max(0.0, seconds - _SENDING)


class Delays:
    """The delays of the last moves, from which the clock learns how busy the computer is.

    The delay of a move is the longest time for which other programs kept the search waiting.
    """

    def __init__(self) -> None:
        self._delays: collections.deque[float] = collections.deque(maxlen=_REMEMBERED)

    def add(self, seconds: float) -> None:
        """Adds the delay of a move."""
        self._delays.append(min(seconds, _LONGEST_DELAY))

    def reserve(self, delay: float = 0.0) -> float:
        """Returns the seconds to keep for delays: for one of the engine, and one of the GUI.

        ``delay`` is that of the present move so far.
        """
        return 2 * max(
            0.0, min(delay, _LONGEST_DELAY) - _QUIET, *(d - _QUIET for d in self._delays)
        )


class Timer:
    """The time of one search. All calls come from the thread that searches.

    The arguments are those of :func:`make_budget`, and the delays of the moves before.
    """

    def __init__(
        self, go: Go, color: int, ply: int, margin: float, delays: Delays | None = None
    ) -> None:
        self._go = go
        self._color, self._ply, self._margin = color, ply, margin
        self._delays = delays or Delays()
        self._start = time.perf_counter() if go.time is None else go.time
        self._clock_start = self._start
        self._patient_until = self._start + _PATIENCE
        self._is_pondering = go.ponder
        self._clocks: tuple[Go, ...] = () if go.is_held else (go,)  # the first with a clock counts
        self._delay, self._seen = 0.0, _now()
        self._plan()

    def wait_for_first_answer(self) -> None:
        """Gives the network time for its first answer, from now on, even if the clock is over."""
        self._patient_until = time.perf_counter() + _FIRST_PATIENCE
        self._seen = _now()

    def elapsed(self) -> float:
        """Seconds since the command."""
        return time.perf_counter() - self._start

    def budget(self) -> Budget | None:
        """The budget; None while there is no limit. ``ponderhit`` switches the clock on."""
        if self._is_pondering and self._go.ponderhit.is_set():
            self._is_pondering = False
            # Without a GUI that waits for readyok, it may have come before the search began.
            self._clock_start = max(self._start, self._go.ponderhit.time)
            self._clocks = (parse_go(self._go.ponderhit.text)[0], self._go)
            self._plan()
        return self._budget

    def _plan(self) -> None:
        """Makes the budget, with a reserve for the delays."""
        numbers = self._color, self._ply, self._margin, self._delays.reserve(self._delay)
        budgets = (make_budget(go, *numbers) for go in self._clocks)
        self._budget = next(filter(None, budgets), None)
        go = self._go
        is_limited = self._budget or go.nodes is not None or go.depth is not None or go.infinite
        if go.ponder and self._clocks and not is_limited:
            self._budget = Budget(0, 0, 0)  # no limit is known: move at once

    def spent(self) -> float:
        """Seconds on the clock: since the command or since ``ponderhit``."""
        return time.perf_counter() - self._clock_start

    def is_over(self) -> bool:
        """Says whether the move is wanted now."""
        if self._go.stop.is_set():
            return True
        budget = self.budget()
        if budget is not None and self.spent() >= budget.extended:
            return True  # what follows counts as one delay, until the move is chosen
        self._notice_delay()
        return False

    def end(self) -> None:
        """Notes that the move is chosen."""
        self._notice_delay()
        self._delays.add(self._delay)

    def _notice_delay(self) -> None:
        """Measures how long this thread has not run since the last call."""
        before, self._seen = self._seen, _now()
        if self._seen - before > self._delay:
            self._delay = self._seen - before
            if self._delay > _QUIET:
                self._plan()

    def is_late(self) -> bool:
        """Says whether the move is wanted now even if the network has not answered yet."""
        if time.perf_counter() <= self._patient_until:
            return False
        budget = self.budget()
        return self._go.stop.is_set() or (budget is not None and self.spent() >= budget.last)


def _now() -> float:
    """Returns the seconds on a clock that stands still while this thread computes."""
    return time.perf_counter() - time.thread_time()
