"""Full test of the rules, as ``--strict`` asks: python-shogi and :mod:`pydlshogi.rules`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy
import shogi

from pydlshogi.common import SQUARE_NUM, SQUARES_R180
from pydlshogi.kifu.replay import Games
from pydlshogi.positions import HAND_NUM, PIECE_NUM, opponents_view
from pydlshogi.rules import is_legal


def board_of(placement: bytes, turn: int) -> shogi.Board:
    """Unpacks a placement to a python-shogi board.

    Args:
        placement: Board and hands as in ``POSITION``, seen from the side to move.
        turn: That side, ``shogi.BLACK`` or ``shogi.WHITE``.

    Returns:
        The board, without a history.
    """
    if turn == shogi.WHITE:
        placement = opponents_view(placement)
    board = shogi.Board()
    board.clear()
    for square, code in enumerate(placement[:SQUARE_NUM]):
        if code:
            side, piece_type = divmod(code - 1, PIECE_NUM)
            board.set_piece_at(square, shogi.Piece(piece_type + 1, side))
    for place, count in enumerate(placement[SQUARE_NUM:]):
        side, kind = divmod(place, HAND_NUM)
        if count:
            board.pieces_in_hand[side][kind + 1] = count
    board.turn = turn
    return board


def first_illegal(start: bytes, turn: int, moves: list[tuple[int, int, int]]) -> int | None:
    """Finds the first move of a game that breaks a rule.

    Args:
        start: Placement before the first move, seen from the side that makes it.
        turn: That side.
        moves: Origin, target and piece of each move (:class:`pydlshogi.kifu.game.Move`). All
            moves are possible.

    Returns:
        Number of the move from 0, or None.
    """
    board = board_of(start, turn)
    for ply, (origin, target, piece) in enumerate(moves):
        to_square = target if board.turn == shogi.BLACK else SQUARES_R180[target]
        if origin >= SQUARE_NUM:
            move = shogi.Move(None, to_square, drop_piece_type=origin - SQUARE_NUM + 1)
        else:
            from_square = origin if board.turn == shogi.BLACK else SQUARES_R180[origin]
            promotion = board.piece_type_at(from_square) != piece
            move = shogi.Move(from_square, to_square, promotion=promotion)
        if not is_legal(board, move):
            return ply
        board.push(move)
    return None


def illegal_moves(games: Games, good: numpy.ndarray) -> Iterator[tuple[int, int]]:
    """Finds the good games with an illegal move, and the number of that move from 0."""
    end = numpy.cumsum(games.lengths)
    for game in numpy.flatnonzero(good).tolist():
        rows = slice(end[game] - games.lengths[game], end[game])
        columns = (games.origin[rows], games.target[rows], games.piece[rows])
        moves = list(zip(*(column.tolist() for column in columns)))
        ply = first_illegal(games.starts[game].tobytes(), int(games.turns[game]), moves)
        if ply is not None:
            yield game, ply
