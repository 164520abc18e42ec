"""Plays many games at once: converts moves to packed positions and checks each move.

Each step makes move t of all games, with a few numpy calls for all of them. Everything is seen
from the mover, so no step depends on the colour. Each game keeps its position
twice, as seen from either side, and a move changes both.

A move is *possible* if the mover has the piece on the square it leaves, or in hand; if the
target has no piece of the mover; if the piece moves that way and no piece is in between; if
a promotion is allowed; and if the piece can move again later. Whether the king is left
in check is not tested here but in :mod:`pydlshogi.kifu.legality`. The rules are tables that are
built on first use.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import NamedTuple

import numpy
import shogi

from pydlshogi.common import (
    DOWN,
    DOWN_LEFT,
    DOWN_RIGHT,
    LEFT,
    MOVE_DIRECTION,
    RIGHT,
    SQUARE_NUM,
    UP,
    UP2_LEFT,
    UP2_RIGHT,
    UP_LEFT,
    UP_RIGHT,
)
from pydlshogi.features import move_direction
from pydlshogi.kifu.csa_board import PIECE_NAMES
from pydlshogi.kifu.game import OTHER_RESULT, Game
from pydlshogi.positions import (
    HAND_NUM,
    PIECE_NUM,
    PLACEMENT_SIZE,
    PLY_MAX,
    POSITION,
    PROMOTED,
    RECENT_NUM,
)

#: Number of origins of a move: the squares, then the piece types in the mover's hand.
ORIGIN_NUM = SQUARE_NUM + HAND_NUM

# Geometry of a move. 0..9: a step in one of the ten directions. From _FAR: a longer move in one
# of the first eight. Then: a drop, and what no piece can do.
_FAR = 10
_DROP = 18
_NOWHERE = 19
_GEOMETRY_NUM = 20
# Relation between the piece before and after a move.
_SAME, _PROMOTES = 1, 2
# Difference between the label of a promoting move and of the same plain move.
_PROMOTION_LABELS = SQUARE_NUM * (len(MOVE_DIRECTION) // 2)

_PAWN, _LANCE, _KNIGHT, _SILVER, _GOLD, _BISHOP, _ROOK, _KING = range(1, 9)
_ORTHOGONAL = (UP, LEFT, RIGHT, DOWN)
_DIAGONAL = (UP_LEFT, UP_RIGHT, DOWN_LEFT, DOWN_RIGHT)
_GOLD_STEPS = (*_ORTHOGONAL, UP_LEFT, UP_RIGHT)
# Directions in which each piece moves one step, and in which it slides.
_STEPS = {
    _PAWN: (UP,),
    _KNIGHT: (UP2_LEFT, UP2_RIGHT),
    _SILVER: (UP, *_DIAGONAL),
    _GOLD: _GOLD_STEPS,
    _KING: _ORTHOGONAL + _DIAGONAL,
    **{PROMOTED[piece]: _GOLD_STEPS for piece in (_PAWN, _LANCE, _KNIGHT, _SILVER)},
    PROMOTED[_BISHOP]: _ORTHOGONAL,
    PROMOTED[_ROOK]: _DIAGONAL,
}
_SLIDES = {
    _LANCE: (UP,),
    _BISHOP: _DIAGONAL,
    _ROOK: _ORTHOGONAL,
    PROMOTED[_BISHOP]: _DIAGONAL,
    PROMOTED[_ROOK]: _ORTHOGONAL,
}


MOVE_COLUMNS = ("origin", "target", "piece", "claimed", "evaluation")
GAME_COLUMNS = ("lengths", "starts", "turns", "results")


@dataclass
class Moves:
    """Moves as columns, one row a move, seen from the side that makes it.

    Attributes:
        origin, target, piece, claimed: As in :class:`pydlshogi.kifu.game.Move`, (moves,)
            uint8.
    """

    origin: numpy.ndarray
    target: numpy.ndarray
    piece: numpy.ndarray
    claimed: numpy.ndarray


@dataclass
class Games(Moves):
    """Games as columns. The first five have a row for each move, the others for each game.

    The moves are sorted by game.

    Attributes:
        evaluation: As in :class:`pydlshogi.kifu.game.Move`, (moves,) int16.
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
    """Returns the row numbers of selected games in an array that is sorted by game.

    Args:
        lengths: Number of rows of each game, (games,).
        order: Numbers of the selected games, in any order.

    Returns:
        The rows of these games, in the given order.
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
    """Plays games and packs the position before each move.

    Args:
        games: At least one game.

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
    """Returns the destinations of the last two moves before each move.

    Args:
        target: Destination of each move, seen from its mover, (moves,) uint8.
        ply: Number of each move in its game, from 0, (moves,).

    Returns:
        (moves, 2) uint8, as ``recent`` of ``POSITION``.
    """
    recent = numpy.zeros((len(target), RECENT_NUM), numpy.uint8)
    # The last move is the opponent's, who sees the board from the other side.
    recent[1:, 0] = SQUARE_NUM - target[:-1]
    recent[2:, 1] = target[:-2] + 1
    recent[ply[:, None] <= numpy.arange(RECENT_NUM)] = 0
    return recent


def _play(games: Games, first: numpy.ndarray) -> numpy.ndarray:
    """Makes the moves. Only the placements of the returned positions are set."""
    tables = _tables()
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
    other[:, :SQUARE_NUM] = tables.other_side[own[:, SQUARE_NUM - 1 :: -1]]
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
        flat_other[start + tables.origin_turned[origin]] = left
        flat_other[start + (SQUARE_NUM - 1) - target] = piece + PIECE_NUM
        capture = numpy.flatnonzero(captured)
        place = tables.hand_place[captured[capture]]
        taken_at = start[capture] + place
        richer = flat[taken_at] + 1
        flat[taken_at] = richer
        flat_other[taken_at + HAND_NUM] = richer
        flat, flat_other, views, views_other = flat_other, flat, views_other, views
    return positions


def check_moves(moves: Moves, positions: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Returns whether each move is possible in its position, and its label."""
    tables = _tables()
    rows = positions.view(numpy.uint8)
    row_at = numpy.arange(len(positions)) * POSITION.itemsize
    origin, target, piece = moves.origin, moves.target, moves.piece
    at_origin = rows[row_at + origin]
    at_target = rows[row_at + target]
    drop = origin >= SQUARE_NUM
    before = numpy.where(drop, origin - (SQUARE_NUM - 1), at_origin).astype(numpy.intp)
    path = origin.astype(numpy.intp) * SQUARE_NUM + target
    geometry = tables.geometry[path]
    change = tables.change[before * (PIECE_NUM + 1) + piece]
    possible = tables.able[before * _GEOMETRY_NUM + geometry]
    possible &= at_origin != 0
    possible &= (moves.claimed == 0) | (moves.claimed == before)
    possible &= (change == _SAME) | ((change == _PROMOTES) & tables.zone[path])
    possible &= ~tables.stuck[piece.astype(numpy.intp) * SQUARE_NUM + target]
    possible &= tables.target_free[at_target] > drop
    far = numpy.flatnonzero((geometry >= _FAR) & (geometry < _DROP))
    path_far = path[far]
    step, distance = tables.step[path_far], tables.distance[path_far]
    between_at = row_at[far] + origin[far]
    for passed in range(1, 8):
        longer = distance > passed
        far, step, distance = far[longer], step[longer], distance[longer]
        between_at = between_at[longer] + step
        possible[far] &= rows[between_at] == 0
    label = tables.label[path] + numpy.uint16(_PROMOTION_LABELS) * (change == _PROMOTES)
    return possible, label


def explain_fault(moves: Moves, positions: numpy.ndarray, row: int) -> str:
    """Returns the reason why a move is not possible."""
    tables = _tables()
    origin, target = int(moves.origin[row]), int(moves.target[row])
    piece, claimed = int(moves.piece[row]), int(moves.claimed[row])
    board, hands = positions["board"][row], positions["hands"][row]
    if origin >= SQUARE_NUM:
        before = origin - SQUARE_NUM + 1
        if not hands[origin - SQUARE_NUM]:
            return "no such piece is in the mover's hand"
        if board[target]:
            return "a piece is dropped onto another"
    else:
        before = int(board[origin])
        if not 1 <= before <= PIECE_NUM:
            return "the mover has no piece on the square it leaves"
        if claimed not in (0, before):
            return f"the piece there is {PIECE_NAMES[before - 1]}, not {PIECE_NAMES[claimed - 1]}"
        if board[target] and not tables.target_free[board[target]]:
            king = board[target] == _KING + PIECE_NUM
            return "it captures the king" if king else "an own piece is on the square it goes to"
        if piece not in (before, PROMOTED.get(before)):
            return f"the piece there is {PIECE_NAMES[before - 1]}"
        geometry = int(tables.geometry[origin * SQUARE_NUM + target])
        if not tables.able[before * _GEOMETRY_NUM + geometry]:
            return "the piece does not move that way"
        if piece != before and not tables.zone[origin * SQUARE_NUM + target]:
            return "it promotes outside the promotion zone"
    if tables.stuck[piece * SQUARE_NUM + target]:
        return "the piece could never move again"
    if positions["ply"][row] == 0:
        return f"the game has more than {PLY_MAX} moves"
    return "a piece stands in between"


class _Tables(NamedTuple):
    """The rules as lookup tables. A path is ``origin · 81 + target``.

    Attributes:
        geometry: Geometry of the move, by path.
        step, distance: For moves on a line, the difference of square numbers for one step, and
            the number of steps, by path.
        zone: Whether a piece may promote, by path.
        label: Label of the plain move, by path.
        able: Whether a piece can move so, by ``piece · _GEOMETRY_NUM + geometry``.
        change: Relation of the two pieces, by ``before · (PIECE_NUM + 1) + after``.
        stuck: Whether the piece could never move again, by ``piece · 81 + target``.
        target_free: By the code on the target: 2 empty, 1 a piece that can be captured,
            0 another piece.
        other_side: Code of a square seen from the other side.
        origin_turned: Index of an origin, seen from the other side.
        hand_place: Index in the capturer's placement where a captured piece is counted.
    """

    geometry: numpy.ndarray
    step: numpy.ndarray
    distance: numpy.ndarray
    zone: numpy.ndarray
    label: numpy.ndarray
    able: numpy.ndarray
    change: numpy.ndarray
    stuck: numpy.ndarray
    target_free: numpy.ndarray
    other_side: numpy.ndarray
    origin_turned: numpy.ndarray
    hand_place: numpy.ndarray


@functools.lru_cache(maxsize=1)
def _tables() -> _Tables:
    """Builds the tables."""
    geometry = numpy.full((ORIGIN_NUM, SQUARE_NUM), _NOWHERE, dtype=numpy.uint8)
    step = numpy.zeros((ORIGIN_NUM, SQUARE_NUM), dtype=numpy.intp)
    distance = numpy.zeros((ORIGIN_NUM, SQUARE_NUM), dtype=numpy.intp)
    zone = numpy.zeros((ORIGIN_NUM, SQUARE_NUM), dtype=bool)
    label = numpy.zeros((ORIGIN_NUM, SQUARE_NUM), dtype=numpy.uint16)
    for origin in range(SQUARE_NUM):
        y, x = divmod(origin, 9)
        for target in range(SQUARE_NUM):
            try:
                direction = move_direction(origin, target)
            except ValueError:
                continue
            target_y, target_x = divmod(target, 9)
            far = max(abs(target_y - y), abs(target_x - x))
            if direction in (UP2_LEFT, UP2_RIGHT):
                far = 1
            geometry[origin, target] = direction if far == 1 else _FAR + direction
            distance[origin, target] = far
            step[origin, target] = (target - origin) // far
            zone[origin, target] = min(y, target_y) < 3
            label[origin, target] = SQUARE_NUM * direction + target
    for hand in range(HAND_NUM):
        geometry[SQUARE_NUM + hand] = _DROP
        label[SQUARE_NUM + hand] = SQUARE_NUM * (len(MOVE_DIRECTION) + hand) + numpy.arange(
            SQUARE_NUM
        )

    codes = 2 * PIECE_NUM + 1
    able = numpy.zeros((codes, _GEOMETRY_NUM), dtype=bool)
    for piece, steps in _STEPS.items():
        able[piece, list(steps)] = True
    for piece, slides in _SLIDES.items():
        able[piece, list(slides)] = True
        able[piece, [_FAR + direction for direction in slides]] = True
    able[1 : HAND_NUM + 1, _DROP] = True

    change = numpy.zeros((codes, PIECE_NUM + 1), dtype=numpy.uint8)
    for piece in range(1, PIECE_NUM + 1):
        change[piece, piece] = _SAME
    for plain, promoted in PROMOTED.items():
        change[plain, promoted] = _PROMOTES

    stuck = numpy.zeros((PIECE_NUM + 1, 9, 9), dtype=bool)
    stuck[[_PAWN, _LANCE], 0] = True
    stuck[_KNIGHT, :2] = True

    target_free = numpy.zeros(codes, dtype=numpy.uint8)
    target_free[0] = 2
    target_free[PIECE_NUM + 1 :] = 1
    target_free[PIECE_NUM + _KING] = 0

    # Pieces that cannot be captured have an index too. Their game is left out later. Until then
    # it must not write outside its own row.
    hand_place = numpy.full(codes, SQUARE_NUM, dtype=numpy.intp)
    for piece in range(1, HAND_NUM + 1):
        hand_place[PIECE_NUM + piece] = SQUARE_NUM + piece - 1
    for plain, promoted in PROMOTED.items():
        hand_place[PIECE_NUM + promoted] = SQUARE_NUM + plain - 1

    other_side = numpy.arange(codes, dtype=numpy.uint8)
    other_side[1 : PIECE_NUM + 1] += PIECE_NUM
    other_side[PIECE_NUM + 1 :] -= PIECE_NUM
    origin_turned = numpy.concatenate(
        [numpy.arange(SQUARE_NUM)[::-1], SQUARE_NUM + HAND_NUM + numpy.arange(HAND_NUM)]
    )
    return _Tables(
        geometry=geometry.reshape(-1),
        step=step.reshape(-1),
        distance=distance.reshape(-1),
        zone=zone.reshape(-1),
        label=label.reshape(-1),
        able=able.reshape(-1),
        change=change.reshape(-1),
        stuck=stuck.reshape(-1),
        target_free=target_free,
        other_side=other_side,
        origin_turned=origin_turned,
        hand_place=hand_place,
    )
