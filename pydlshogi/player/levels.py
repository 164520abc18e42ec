"""The levels of play: what the option ``Level`` changes.

Levels 1 to 10 draw one of the policy's moves, without a search. A high temperature makes the moves
of a low level nearly equal. Levels 11 to 19 search few visits. The lower of them draw their move,
too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy

from pydlshogi.player.strategy import softmax
from pydlshogi.uct.settings import Settings

#: Seconds after which a level ends its search, if it has not made its visits.
SECONDS = 0.8

#: The best move, or the best two together, are all but forced with so much of the probability.
_FORCED, _MOST_FORCED = 0.9, 2


@dataclasses.dataclass(frozen=True)
class Level:
    """What makes a player weaker.

    The temperature divides the logarithms of the :func:`shares` by which a move is drawn.
    """

    temperature: float = 0.0  # 0 for the best move
    bound: float = 0.0  # moves with a smaller share are not drawn
    visits: int = 1  # most visits of the search; with 1 there is none
    mate_plies: int = 0  # longest mate that is searched; 0 for none

    def settings(self, settings: Settings) -> Settings:
        """Returns the settings of a search at this level."""
        return dataclasses.replace(
            settings,
            # A draw from the policy needs it as it is.
            temperature=1.0 if self.visits == 1 else settings.temperature,
            mate_plies=min(self.mate_plies, settings.mate_plies),
            root_mate=False,
            line_mate=False,
        )

    def draw(self, shares: Sequence[float] | numpy.ndarray, rng: Any) -> int:
        """Draws the index of a move by (n,) shares, at least one above 0; ``rng``: as numpy's."""
        weights = numpy.asarray(shares, numpy.float64)
        order = numpy.argsort(-weights, kind="stable")
        best = weights[order] / weights.sum()
        are_forced = numpy.cumsum(best[:_MOST_FORCED]) >= _FORCED
        number = int(are_forced.argmax()) + 1 if are_forced.any() else (best >= self.bound).sum()
        chosen = best[: max(1, number)]
        with numpy.errstate(divide="ignore"):
            probabilities = softmax(numpy.log(chosen), self.temperature)
        return int(order[rng.choice(len(chosen), p=probabilities)])


def shares(priors: Sequence[float], visits: Sequence[int]) -> numpy.ndarray:
    """Returns the (n,) shares by which moves are drawn: probability plus part of the visits.

    Without a search, all visits are 0.
    """
    return numpy.add(priors, numpy.divide(visits, max(1, sum(visits))))


#: The levels below full strength.
LEVELS = {
    1: Level(11.0),
    2: Level(6.8),
    3: Level(5.03),
    4: Level(4.98, 0.0000065),
    5: Level(4.8, 0.00005),
    6: Level(3.88, 0.0001),
    7: Level(3.17, 0.0002),
    8: Level(3.0, 0.0005, mate_plies=1),
    9: Level(2.38, 0.001, mate_plies=1),
    10: Level(1.95, 0.002, mate_plies=1),
    11: Level(1.36, 0.002, visits=8, mate_plies=1),
    12: Level(1.1, 0.002, visits=8, mate_plies=1),
    13: Level(0.9, 0.002, visits=8, mate_plies=1),
    14: Level(0.72, 0.002, visits=8, mate_plies=3),
    15: Level(0.46, 0.002, visits=8, mate_plies=3),
    16: Level(visits=14, mate_plies=3),
    17: Level(visits=40, mate_plies=5),
    18: Level(visits=110, mate_plies=5),
    19: Level(visits=300, mate_plies=5),
}
