"""A match of two networks, with many games in a batch of each."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Sequence
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


class Score:
    """The result of a match for the first network.

    Args:
        points: Its points of each pair of games that is complete.

    Attributes:
        games: Number of games.
        share: Share of the points, 0 to 1; 0.5 without a game.
    """

    def __init__(self, points: Sequence[Sequence[float]]) -> None:
        self._points, self.games = points, 2 * len(points)
        self.share = sum(map(sum, points)) / self.games if points else 0.5

    def elo(self) -> tuple[float, float, float]:
        """Returns the Elo difference and its 95 % interval; infinite without a bound."""
        low, high = score_interval(self._points)
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
    plies = _KIFU_PLIES if settings.kifu_list else _RANDOM_PLIES
    openings = draw_openings(games // 2, plies, seed, settings.kifu_list or None)
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
    whole = [n for n in range(1, games, 2) if n in points and n + 1 in points]
    return Score([(points[n], points[n + 1]) for n in whole])


def _read(path: Path) -> dict[int, float]:
    """Reads the points of the games so far; cuts off a line that is incomplete."""
    data = path.read_bytes() if path.exists() else b""
    lines = data[: data.rfind(b"\n") + 1].splitlines(keepends=True)
    if data:
        os.truncate(path, sum(map(len, lines)))
    return {int(number): float(won) for number, won, *_ in (line.split(b"\t") for line in lines)}
