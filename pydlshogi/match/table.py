"""The table of a match, as Markdown and as tab-separated values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pydlshogi import table
from pydlshogi.match.elo import elo_difference, score_interval
from pydlshogi.match.record import Outcome

_TITLES = (
    *("engine", "opponent", "games", "won", "drawn", "lost"),
    *("score", "Elo", "95 % interval", "faults", "moves"),
)
_TSV_TITLES = (
    *("engine", "opponent", "games", "won", "drawn", "lost"),
    *("score", "elo", "elo_low", "elo_high", "faults", "opponent_faults", "mean_plies"),
)


@dataclass(frozen=True)
class Row:
    """Results of an engine against an opponent, by the number of the game.

    The engine is Black in odd games.
    """

    engine: str
    opponent: str
    outcomes: dict[int, Outcome]

    @property
    def points(self) -> dict[int, float]:
        """Points of the engine in each game, by its number."""
        return {
            number: outcome.points(_colour(number)) for number, outcome in self.outcomes.items()
        }

    @property
    def score(self) -> float:
        """Share of the points that the engine won, 0..1; 0.5 before the first game."""
        points = self.points.values()
        return sum(points) / len(points) if points else 0.5

    def count(self, points: float) -> int:
        """Counts the games in which the engine got 1, 0.5 or 0 points."""
        return list(self.points.values()).count(points)

    def faults(self, points: float) -> int:
        """Counts the games decided by a fault in which the engine got 1 or 0 points."""
        own = self.points
        return sum(o.by_fault and own[number] == points for number, o in self.outcomes.items())

    @property
    def mean_plies(self) -> float:
        """Mean number of moves of a game."""
        return sum(o.plies for o in self.outcomes.values()) / max(1, len(self.outcomes))

    def elo_interval(self) -> tuple[float, float]:
        """Returns the 95 % interval of the Elo difference; infinite if there is no bound."""
        pairs: dict[int, list[float]] = {}
        for number, points in self.points.items():
            pairs.setdefault((number - 1) // 2, []).append(points)
        low, high = score_interval(list(pairs.values()))
        return elo_difference(low), elo_difference(high)


def markdown(rows: Sequence[Row]) -> str:
    """Formats the table as Markdown."""
    cells = (
        [
            *_start(row),
            f"{100 * row.score:.1f} %" if row.outcomes else "",
            _signed(elo_difference(row.score)) if row.outcomes else "",
            _interval(*row.elo_interval()),
            f"{row.faults(0)} : {row.faults(1)}",
            f"{row.mean_plies:.0f}" if row.outcomes else "",
        ]
        for row in rows
    )
    return table.markdown(_TITLES, cells, texts=(0, 1, 8, 9))


def tsv(rows: Sequence[Row]) -> str:
    """Formats the table as TSV; cells without a bound or without games are empty."""
    cells = []
    for row in rows:
        elos = (elo_difference(row.score), *row.elo_interval()) if row.outcomes else [math.inf] * 3
        cells.append(
            [
                *_start(row),
                f"{row.score:.4f}" if row.outcomes else "",
                *("" if math.isinf(elo) else f"{elo:.1f}" for elo in elos),
                str(row.faults(0)),
                str(row.faults(1)),
                f"{row.mean_plies:.1f}" if row.outcomes else "",
            ]
        )
    return table.tsv(_TSV_TITLES, cells)


def _start(row: Row) -> list[str]:
    """Returns the cells that both tables begin with."""
    counts = (len(row.outcomes), *(row.count(points) for points in (1, 0.5, 0)))
    return [row.engine, row.opponent, *map(str, counts)]


def _colour(number: int) -> int:
    """Returns the side of the engine: ``shogi.BLACK`` (0) in the first game of a pair."""
    return (number - 1) % 2


def _interval(low: float, high: float) -> str:
    """Formats an interval, or its one known bound."""
    if math.isinf(low) and math.isinf(high):
        return "unknown"
    if math.isinf(low):
        return f"at most {_signed(high)}"
    if math.isinf(high):
        return f"at least {_signed(low)}"
    return f"{_signed(low)} to {_signed(high)}"


def _signed(elo: float) -> str:
    """Formats an Elo difference as a whole number; a dash if it is infinite."""
    return "-" if math.isinf(elo) else f"{elo:+.0f}"
