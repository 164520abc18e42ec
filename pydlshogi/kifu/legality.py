"""Full test of the rules, as ``--strict`` asks: python-shogi and :mod:`pydlshogi.rules`.

A game that a foul decided may end with the move that was the foul. It is no move to learn.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy
import shogi

from pydlshogi.common import SQUARE_NUM, SQUARES_R180
from pydlshogi.kifu import stopping
from pydlshogi.kifu.parsed_game import END_MARKS_FOR_BLACK, FOULS, Game, Move
from pydlshogi.kifu.replay import Games
from pydlshogi.positions import HAND_NUM, LOSS, PIECE_NUM, WIN, opponents_view
from pydlshogi.rules import is_legal, is_possible


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
        moves: Origin, target and piece of each move (:class:`pydlshogi.kifu.parsed_game.Move`). All
            moves are possible.

    Returns:
        Number of the move from 0, or None.
    """
    board = board_of(start, turn)
    for ply, (origin, target, piece) in enumerate(moves):
        stopping.check()
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


def possible_move(board: shogi.Board, parsed: Move) -> shogi.Move | None:
    """Converts a parsed move, which is seen from its side; None if it is not possible.

    It must name the piece that moves, and may not leave the king in check.
    """
    origin, target = parsed.origin, parsed.target
    is_drop = origin >= SQUARE_NUM
    if board.turn == shogi.WHITE:
        target = SQUARES_R180[target]
        origin = origin if is_drop else SQUARES_R180[origin]
    if is_drop:
        move = shogi.Move(None, target, drop_piece_type=origin - SQUARE_NUM + 1)
    else:
        piece = board.piece_type_at(origin)
        move = shogi.Move(origin, target, promotion=piece != parsed.piece)
        after = shogi.PIECE_PROMOTED[piece] if move.promotion else piece
        if after != parsed.piece or parsed.claimed not in (0, piece):
            return None
    return move if is_possible(board, move) else None


def settle_foul(game: Game) -> None:
    """Drops the last move if a foul decided the game and this move was the foul.

    KIF's 反則勝ち and CSA's ``%+ILLEGAL_ACTION`` blame the side that moved last, also for a
    repetition. Other marks blame the side to move; but if the last move breaks a rule, its side
    has lost.
    """
    if game.end_mark not in FOULS:
        return
    blames_last = game.end_mark in END_MARKS_FOR_BLACK and game.winner == game.to_move
    if blames_last or _first_fault(game) == len(game.moves) - 1:
        del game.moves[-1:]
        game.end_mark = "%ILLEGAL_MOVE"
        game.result = LOSS if game.to_move == shogi.BLACK else WIN


def _first_fault(game: Game) -> int | None:
    """Finds the first move of a parsed game that breaks a rule: its number from 0, or None."""
    board = board_of(game.start, game.turn)
    for ply, parsed in enumerate(game.moves):
        move = possible_move(board, parsed)
        if move is None or not is_legal(board, move):
            return ply
        board.push(move)
    return None
