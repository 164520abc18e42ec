"""Full test of the rules, as ``--strict`` asks: python-shogi and :mod:`pydlshogi.rules`.

A game that a foul decided may end with the move that was the foul. It is no move to learn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy
import shogi

from pydlshogi.common import SQUARE_NUM, SQUARES_R180
from pydlshogi.kifu import stopping
from pydlshogi.kifu.parsed_game import END_MARKS_FOR_BLACK, FOULS, Game, Move
from pydlshogi.kifu.replay import Games
from pydlshogi.positions import HAND_NUM, LOSS, PIECE_NUM, WIN, opponents_view
from pydlshogi.rules import is_legal, is_possible


def board_of(placement: bytes, turn: int) -> shogi.Board:
    """Makes a python-shogi board, without a history.

    ``placement`` is board and hands as in ``POSITION``, seen from ``turn``, the side to move.
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


def first_illegal(
    start: bytes, turn: int, moves: Iterable[tuple[int, int, int]] | Iterable[Move]
) -> int | None:
    """Finds the first move of a game that breaks a rule: its number from 0, or None.

    Args:
        start: Placement before the first move, seen from the side that makes it.
        turn: That side.
        moves: The moves; or origin, target and piece of each, which are possible.
    """
    board = board_of(start, turn)
    for ply, parsed in enumerate(moves):
        stopping.check()
        move = _as_move(board, *parsed[:4])
        if move is None or not is_legal(board, move):
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


def possible_move(board: shogi.Board, parsed: Move) -> shogi.Move | None:
    """Converts a parsed move, which is seen from its side; None if it is not possible.

    It must name the piece that moves, and may not leave the king in check.
    """
    move = _as_move(board, *parsed[:4])
    return move if move is not None and is_possible(board, move) else None


def _as_move(
    board: shogi.Board, origin: int, target: int, piece: int, claimed: int = 0
) -> shogi.Move | None:
    """Converts a move, seen from its side; None if another piece would move."""
    if board.turn == shogi.WHITE:
        target = SQUARES_R180[target]
    if origin >= SQUARE_NUM:
        return shogi.Move(None, target, drop_piece_type=origin - SQUARE_NUM + 1)
    if board.turn == shogi.WHITE:
        origin = SQUARES_R180[origin]
    before = board.piece_type_at(origin)
    after = shogi.PIECE_PROMOTED[before] if before != piece else piece
    if after != piece or claimed not in (0, before):
        return None
    return shogi.Move(origin, target, promotion=before != piece)


def settle_foul(game: Game) -> None:
    """Drops the last move if a foul decided the game and this move was the foul.

    KIF's 反則勝ち and CSA's ``%+ILLEGAL_ACTION`` blame the side that moved last, also for a
    repetition. Other marks blame the side to move; but if the last move breaks a rule, its side
    has lost.
    """
    if game.end_mark not in FOULS:
        return
    blames_last = game.end_mark in END_MARKS_FOR_BLACK and game.winner == game.to_move
    if blames_last or first_illegal(game.start, game.turn, game.moves) == len(game.moves) - 1:
        del game.moves[-1:]
        game.end_mark = "%ILLEGAL_MOVE"
        game.result = LOSS if game.to_move == shogi.BLACK else WIN
