"""Plays many games at once: converts moves to packed positions and checks each move.

Each step makes move t of all games, with a few numpy calls for all of them. Everything is seen
from the mover, so no step depends on the colour. Each game keeps its position
twice, as seen from either side, and a move changes both.

Which moves are possible is in :mod:`pydlshogi.kifu.movement`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy
import shogi

from pydlshogi.common import SQUARE_NUM
from pydlshogi.kifu.movement import Moves, check_moves, explain_fault, tables
from pydlshogi.kifu.parsed_game import OTHER_RESULT, Game
from pydlshogi.positions import (
    HAND_NUM,
    PIECE_NUM,
    PLACEMENT_SIZE,
    PLY_MAX,
    POSITION,
    RECENT_NUM,
)

MOVE_COLUMNS = ("origin", "target", "piece", "claimed", "evaluation")
GAME_COLUMNS = ("lengths", "starts", "turns", "results")


@dataclass
class Games(Moves):
    """Games as columns. The first five have a row for each move, the others for each game.

    The moves are sorted by game.

    Attributes:
        evaluation: As in :class:`pydlshogi.kifu.parsed_game.Move`, (moves,) int16.
        lengths: Number of moves, at least 1, (games,) int64.
        starts: Placement before the first move, seen from its mover,
            (games, PLACEMENT_SIZE) uint8.
        turns: The side that makes the first move, (games,) uint8.
        results: The result for Black, (games,) uint8.
    """

    evaluation: numpy.ndarray
    lengths: numpy.ndarray
    starts: numpy.ndarray
    turns: numpy.ndarray
    results: numpy.ndarray

    def select(self, order: numpy.ndarray) -> Games:
        """Selects games by their numbers, in any order."""
        moves = rows_of(self.lengths, order)
        return Games(
            **{name: getattr(self, name)[moves] for name in MOVE_COLUMNS},
            **{name: getattr(self, name)[order] for name in GAME_COLUMNS},
        )

    @classmethod
    def of(cls, games: list[Game]) -> Games:
        """Converts parsed games to columns."""
        moves = [move for game in games for move in game.moves]
        origin, target, piece, claimed = numpy.array(
            [move[:4] for move in moves], dtype=numpy.uint8
        ).T
        return cls(
            origin=origin,
            target=target,
            piece=piece,
            claimed=claimed,
            evaluation=numpy.array([move.evaluation for move in moves], dtype=numpy.int16),
            lengths=numpy.array([len(game.moves) for game in games], dtype=numpy.int64),
            starts=numpy.array([list(game.start) for game in games], dtype=numpy.uint8),
            turns=numpy.array([game.turn for game in games], dtype=numpy.uint8),
            results=numpy.array([game.result for game in games], dtype=numpy.uint8),
        )

    @classmethod
    def join(cls, parts: list[Games]) -> Games:
        """Concatenates games."""
        return cls(
            **{
                name: numpy.concatenate([getattr(part, name) for part in parts])
                for name in cls.__dataclass_fields__
            }
        )


def rows_of(lengths: numpy.ndarray, order: numpy.ndarray) -> numpy.ndarray:
    """Returns the rows of selected games in an array that is sorted by game.

    ``lengths`` has the number of rows of each game, ``order`` the numbers of the selected games.
    """
    first = (numpy.cumsum(lengths) - lengths)[order]
    chosen = lengths[order]
    new_first = numpy.cumsum(chosen) - chosen
    return numpy.repeat(first - new_first, chosen) + numpy.arange(chosen.sum())


class Fault(NamedTuple):
    """An impossible move: number of its game, its number in the game from 0, and the reason."""

    game: int
    ply: int
    reason: str


def replay(games: Games) -> tuple[numpy.ndarray, list[Fault]]:
    """Plays games, at least one, and packs the position before each move.

    Returns:
        The positions, ``POSITION`` (moves,), in the order of the moves; and the first
        impossible move of each game that has one. The positions after it are meaningless.
    """
    first = numpy.cumsum(games.lengths) - games.lengths
    positions = _play(games, first)
    ply = numpy.arange(len(positions)) - numpy.repeat(first, games.lengths)
    positions["ply"] = ply + 1
    positions["evaluation"] = games.evaluation
    positions["recent"] = _recent(games.target, ply)
    other = numpy.array([OTHER_RESULT[result] for result in range(len(OTHER_RESULT))])
    own_result = numpy.where(games.turns == shogi.BLACK, games.results, other[games.results])
    by_parity = numpy.stack([own_result, other[own_result]], axis=1).astype(numpy.uint8)
    positions["result"] = numpy.repeat(by_parity, games.lengths, axis=0)[
        numpy.arange(len(ply)), ply & 1
    ]
    possible, positions["label"] = check_moves(games, positions)
    possible &= ply < PLY_MAX
    wrong = numpy.flatnonzero(~possible)
    wrong_game = numpy.searchsorted(first, wrong, side="right") - 1
    wrong_game, index = numpy.unique(wrong_game, return_index=True)
    return positions, [
        Fault(int(game), int(row - first[game]), explain_fault(games, positions, row))
        for game, row in zip(wrong_game, wrong[index])
    ]


def _recent(target: numpy.ndarray, ply: numpy.ndarray) -> numpy.ndarray:
    """Returns the destinations of the two moves before each move, as ``recent`` of ``POSITION``.

    ``ply`` is the number of each move in its game, from 0.
    """
    recent = numpy.zeros((len(target), RECENT_NUM), numpy.uint8)
    # The last move is the opponent's, who sees the board from the other side.
    recent[1:, 0] = SQUARE_NUM - target[:-1]
    recent[2:, 1] = target[:-2] + 1
    recent[ply[:, None] <= numpy.arange(RECENT_NUM)] = 0
    return recent


def _play(games: Games, first: numpy.ndarray) -> numpy.ndarray:
    """Makes the moves. Only the placements of the returned positions are set."""
    table = tables()
    size = POSITION.itemsize
    positions = numpy.empty(len(games.origin), dtype=POSITION)
    rows = positions.view(f"V{size}")
    # Longest games first: then the games that have not ended at a ply are the first ones.
    order = numpy.argsort(-games.lengths, kind="stable")
    first = first[order]
    going_on = len(order) - numpy.searchsorted(
        games.lengths[order][::-1], numpy.arange(games.lengths.max()), side="right"
    )
    # Both views of every game; as flat arrays of bytes they take the moves.
    own = numpy.zeros((len(order), size), dtype=numpy.uint8)
    own[:, :PLACEMENT_SIZE] = games.starts[order]
    other = numpy.zeros_like(own)
    other[:, :SQUARE_NUM] = table.other_side[own[:, SQUARE_NUM - 1 :: -1]]
    hands, turned = own[:, SQUARE_NUM:PLACEMENT_SIZE], other[:, SQUARE_NUM:PLACEMENT_SIZE]
    turned[:, :HAND_NUM], turned[:, HAND_NUM:] = hands[:, HAND_NUM:], hands[:, :HAND_NUM]
    base = numpy.arange(len(order)) * size
    flat, flat_other = own.reshape(-1), other.reshape(-1)
    views, views_other = (array.view(f"V{size}").reshape(-1) for array in (own, other))
    for ply, count in enumerate(going_on):
        move = first[:count] + ply
        start = base[:count]
        origin, target, piece = games.origin[move], games.target[move], games.piece[move]
        rows[move] = views[:count]
        origin_at, target_at = start + origin, start + target
        captured = flat[target_at]
        # The square becomes empty, or the hand loses one piece.
        left = (flat[origin_at] - 1) * (origin >= SQUARE_NUM)
        flat[origin_at] = left
        flat[target_at] = piece
        flat_other[start + table.origin_turned[origin]] = left
        flat_other[start + (SQUARE_NUM - 1) - target] = piece + PIECE_NUM
        capture = numpy.flatnonzero(captured)
        place = table.hand_place[captured[capture]]
        taken_at = start[capture] + place
        richer = flat[taken_at] + 1
        flat[taken_at] = richer
        flat_other[taken_at + HAND_NUM] = richer
        flat, flat_other, views, views_other = flat_other, flat, views_other, views
    return positions
