"""Where the games of self-play begin."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy
import shogi

from pydlshogi.errors import UserError
from pydlshogi.match.openings import first_moves, shuffled_records, unread
from pydlshogi.selfplay.settings import HANDICAPS, SelfPlaySettings
from pydlshogi.uct.boards import make_search_board
from pydlshogi.uct.move import from_usi, to_usi

#: Kinds of starts besides the names of the handicaps.
EVEN, FROM_KIFU = "even", "kifu"

#: Records of a list that are used at most.
_MOST_RECORDS = 10_000


class StartError(UserError):
    """There is no position to start from."""


class Start(NamedTuple):
    """How a game begins: its kind, its first position and the first moves from there."""

    kind: str
    sfen: str
    moves: list[int]


def draw_start(settings: SelfPlaySettings, rng: numpy.random.Generator) -> Start:
    """Draws the start of a game.

    Raises:
        StartError: the list has no game.
        KifuError: the list cannot be read.
    """
    kind, sfen = EVEN, shogi.STARTING_SFEN
    if rng.random() < settings.handicap_share and settings.handicaps:
        kind = settings.handicaps[rng.integers(len(settings.handicaps))]
        sfen = HANDICAPS[kind]
    elif rng.random() < settings.kifu_share and settings.kifu_list:
        games = _games(settings.kifu_list, settings.kifu_plies)
        moves = games[rng.integers(len(games))]
        return Start(FROM_KIFU, sfen, moves[: rng.integers(1, len(moves) + 1)])
    return Start(kind, sfen, _random_moves(sfen, settings, rng))


def _random_moves(sfen: str, settings: SelfPlaySettings, rng: numpy.random.Generator) -> list[int]:
    """Draws legal moves, so many that the game is not over after them."""
    board = make_search_board(sfen)
    moves: list[int] = []
    for _ in range(rng.integers(settings.random_plies + 1)):
        # Sorted, so that all boards agree.
        legal = sorted(board.moves().tolist(), key=to_usi)
        move = legal[rng.integers(len(legal))]
        board.push(move)
        if not len(board.moves()):
            break
        moves.append(move)
    return moves


@functools.lru_cache(maxsize=1)
def _games(kifu_list: str, plies: int) -> list[list[int]]:
    """Reads the first moves of the even games of a list that are longer than ``plies``."""
    games: list[list[int]] = []
    problems: list[str] = []
    for record in shuffled_records(kifu_list, 0, problems):
        moves = first_moves(record, plies)
        if moves:
            games.append([from_usi(move) for move in moves])
        if len(games) == _MOST_RECORDS:
            break
    if not games:
        raise StartError(
            f"{kifu_list} names no even game of more than {plies} moves. Name another list, or "
            f"lower kifu_plies.{unread(problems)}"
        )
    return games
