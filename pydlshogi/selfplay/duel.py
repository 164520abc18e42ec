"""A match of two networks, with many games in a batch of each."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

import shogi

from pydlshogi.match.elo import elo_difference, score_interval
from pydlshogi.match.openings import draw_openings
from pydlshogi.selfplay.game import LiveGame, Pool
from pydlshogi.selfplay.generate import Model
from pydlshogi.selfplay.search import RootSearch
from pydlshogi.selfplay.settings import SelfPlaySettings
from pydlshogi.selfplay.starts import EVEN, Start
from pydlshogi.uct.move import from_usi

#: Random moves of an opening, or moves of a game of the list.
_RANDOM_PLIES, _KIFU_PLIES = 4, 24


@dataclasses.dataclass(frozen=True)
class Score:
    """The result of a match for the first network.

    Attributes:
        points: Points of each pair of games that is complete.
    """

    points: tuple[tuple[float, float], ...]

    @property
    def games(self) -> int:
        """Number of games."""
        return 2 * len(self.points)

    @property
    def share(self) -> float:
        """Share of the points, 0 to 1; 0.5 without a game."""
        return sum(map(sum, self.points)) / self.games if self.points else 0.5

    def elo(self) -> tuple[float, float, float]:
        """Returns the Elo difference and its 95 % interval; infinite without a bound."""
        low, high = score_interval(self.points)
        return elo_difference(self.share), elo_difference(low), elo_difference(high)


def play_duel(
    first: Model, second: Model, path: Path, settings: SelfPlaySettings,
    *, games: int, batch: int, seed: int, end: float,
) -> Score:  # fmt: skip
    """Plays the games of a match that are missing. Each opening begins two of them.

    Args:
        first: The first network, Black in odd games.
        second: Its opponent.
        path: Table of the games so far, which goes on after a kill.
        settings: The parameters; all searches are full ones, without noise.
        games: Number of games.
        batch: Number of games at once.
        seed: Of the openings.
        end: Time, as by ``time.monotonic``, at which no more batches are made.
    """
    settings = dataclasses.replace(settings, play_on_share=0.0)
    openings = draw_openings(
        games // 2,
        _KIFU_PLIES if settings.kifu_list else _RANDOM_PLIES,
        seed,
        settings.kifu_list or None,
    )
    points = _read(path)
    waiting = [number for number in range(1, games + 1) if number not in points]
    networks = first.evaluator, second.evaluator
    pool = Pool(networks, batch)
    with path.open("ab", buffering=0) as table:
        while time.monotonic() < end and (waiting or pool.games):
            while waiting and len(pool.games) < batch:
                number = waiting.pop(0)
                moves = [from_usi(move) for move in openings[(number - 1) // 2].moves]
                order = (0, 1) if number % 2 else (1, 0)  # the networks as Black and White
                black, white = (RootSearch(settings, networks[n].plane_num) for n in order)
                start = Start(EVEN, shogi.STARTING_SFEN, moves)
                pool.games.append(LiveGame(number, start, (black, white), settings, None, order))
            for game in pool.step()[0]:
                won = 0.5 if game.winner is None else float(game.winner == 1 - game.number % 2)
                points[game.number] = won
                table.write(f"{game.number}\t{won}\t{len(game.moves)}\t{game.end}\n".encode())
    pairs = ((points.get(n), points.get(n + 1)) for n in range(1, games, 2))
    return Score(tuple((a, b) for a, b in pairs if a is not None and b is not None))


def _read(path: Path) -> dict[int, float]:
    """Reads the points of the games so far; cuts off a line that is incomplete."""
    if not path.exists():
        return {}
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if whole != data:
        path.write_bytes(whole)
    rows = [line.split("\t") for line in whole.decode().splitlines()]
    return {int(row[0]): float(row[1]) for row in rows}
