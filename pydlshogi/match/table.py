"""The table of a match, as Markdown to read and as tab-separated values to reckon with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pydlshogi.match.elo import elo_difference, score_interval
from pydlshogi.match.record import Outcome

_MARKDOWN_HEAD = (
    "| engine | opponent | games | won | drawn | lost | score | Elo | 95 % interval "
    "| faults | moves |",
    "|:--|:--|--:|--:|--:|--:|--:|--:|:--|:--|--:|",
)
_TSV_COLUMNS = (
    "engine",
    "opponent",
    "games",
    "won",
    "drawn",
    "lost",
    "score",
    "elo",
    "elo_low",
    "elo_high",
    "faults",
    "opponent_faults",
    "mean_plies",
)


@dataclass(frozen=True)
class Row:
    """The results of an engine against an opponent.

    Attributes:
        engine: Its name.
        opponent: The opponent's.
        outcomes: The games' by their numbers; the engine is Black in the odd ones.
    """

    engine: str
    opponent: str
    outcomes: dict[int, Outcome]

    @property
    def points(self) -> dict[int, float]:
        """The engine's points by the numbers of the games."""
        return {
            number: outcome.points(_colour(number)) for number, outcome in self.outcomes.items()
        }

    @property
    def score(self) -> float:
        """The engine's share of the points, 0..1; 0.5 before the first game."""
        points = self.points.values()
        return sum(points) / len(points) if points else 0.5

    def count(self, points: float) -> int:
        """Counts the games that brought the engine 1, 0.5 or 0 points."""
        return list(self.points.values()).count(points)

    def faults(self, points: float) -> int:
        """Counts the games decided by a fault that brought the engine 1 or 0 points."""
        own = self.points
        return sum(o.by_fault and own[number] == points for number, o in self.outcomes.items())

    @property
    def mean_plies(self) -> float:
        """The mean length of the games."""
        return sum(o.plies for o in self.outcomes.values()) / max(1, len(self.outcomes))

    def elo_interval(self) -> tuple[float, float]:
        """Gives the 95 % interval of the Elo difference; infinite where there is no bound."""
        pairs: dict[int, list[float]] = {}
        for number, points in self.points.items():
            pairs.setdefault((number - 1) // 2, []).append(points)
        low, high = score_interval(list(pairs.values()))
        return elo_difference(low), elo_difference(high)


def markdown(rows: Sequence[Row]) -> str:
    """Draws the table for people."""
    lines = list(_MARKDOWN_HEAD)
    for row in rows:
        cells = [
            row.engine,
            row.opponent,
            str(len(row.outcomes)),
            *(str(row.count(points)) for points in (1, 0.5, 0)),
            f"{100 * row.score:.1f} %" if row.outcomes else "",
            _signed(elo_difference(row.score)) if row.outcomes else "",
            _interval(*row.elo_interval()),
            f"{row.faults(0)} : {row.faults(1)}",
            f"{row.mean_plies:.0f}" if row.outcomes else "",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "".join(f"{line}\n" for line in lines)


def tsv(rows: Sequence[Row]) -> str:
    """Draws the table for programs; a cell is empty where there is no bound, or no game."""
    lines = ["\t".join(_TSV_COLUMNS)]
    for row in rows:
        elos = (elo_difference(row.score), *row.elo_interval()) if row.outcomes else [math.inf] * 3
        cells = [
            row.engine,
            row.opponent,
            str(len(row.outcomes)),
            *(str(row.count(points)) for points in (1, 0.5, 0)),
            f"{row.score:.4f}" if row.outcomes else "",
            *("" if abs(elo) == float("inf") else f"{elo:.1f}" for elo in elos),
            str(row.faults(0)),
            str(row.faults(1)),
            f"{row.mean_plies:.1f}" if row.outcomes else "",
        ]
        lines.append("\t".join(cells))
    return "".join(f"{line}\n" for line in lines)


def _colour(number: int) -> int:
    """Gives the engine's side in a game: ``shogi.BLACK`` (0) in the first of each pair."""
    return (number - 1) % 2


def _interval(low: float, high: float) -> str:
    """Writes an interval; where an end is unknown, as a bound."""
    if low == -float("inf") and high == float("inf"):
        return "unknown"
    if low == -float("inf"):
        return f"at most {_signed(high)}"
    if high == float("inf"):
        return f"at least {_signed(low)}"
    return f"{_signed(low)} to {_signed(high)}"


def _signed(elo: float) -> str:
    """Writes an Elo difference in whole numbers; a dash where there is none."""
    return "-" if abs(elo) == float("inf") else f"{elo:+.0f}"
