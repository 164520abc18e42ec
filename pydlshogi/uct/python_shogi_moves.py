"""Legal moves and checks on python-shogi's board, without trying each move on it.

To play a move and take it back costs 33 µs. Most moves need no trial. Pins tell whether a piece
may move. The squares from which a piece attacks the king tell whether it gives check.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import shogi

from pydlshogi import rules


def legal_moves(board: shogi.Board) -> list[shogi.Move]:
    """Lists the legal moves, like :func:`pydlshogi.rules.legal_moves`."""
    if board.is_check():
        return rules.legal_moves(board)
    us = board.turn
    king = board.king_squares[us]
    pins = {} if king is None else _lines_with_one_piece(board, king, attacker=us ^ 1, piece=us)
    return [
        move for move in board.generate_pseudo_legal_moves() if _is_legal(board, move, king, pins)
    ]


def checks(board: shogi.Board, moves: list[shogi.Move]) -> list[shogi.Move]:
    """Picks the moves that give check.

    Args:
        board: The position.
        moves: Legal moves of it.
    """
    us = board.turn
    king = board.king_squares[us ^ 1]
    if king is None:
        return []
    # From these squares a piece of each kind attacks the king.
    near = [
        shogi.Board.attacks_from(kind, king, board.occupied, us ^ 1)
        for kind in (shogi.NONE, *shogi.PIECE_TYPES)
    ]
    behind = _lines_with_one_piece(board, king, attacker=us, piece=us)
    return [
        move
        for move in moves
        if near[_kind_after(board, move)] >> move.to_square & 1
        or (move.from_square in behind and not behind[move.from_square] >> move.to_square & 1)
    ]


def is_mate(board: shogi.Board) -> bool:
    """Says whether the side to move, which is in check, has no legal move.

    The king can leave most checks, so its moves are tried first.
    """
    return not _king_can_move(board) and not rules.has_legal_move(board)


def _king_can_move(board: shogi.Board) -> bool:
    """Says whether the king of the side to move has a legal move."""
    us = board.turn
    king = board.king_squares[us]
    targets = shogi.Board.attacks_from(shogi.KING, king, board.occupied, us) & ~board.occupied[us]
    return any(rules.is_possible(board, shogi.Move(king, to)) for to in _squares(targets))


def _is_legal(board: shogi.Board, move: shogi.Move, king: int | None, pins: dict[int, int]) -> bool:
    """Judges a pseudo-legal move of a side that is not in check."""
    if move.drop_piece_type:
        return not _may_mate_by_pawn(board, move) or rules.is_legal(board, move)
    if move.from_square == king:
        return not board.is_attacked_by(board.turn ^ 1, move.to_square)
    return move.from_square not in pins or bool(pins[move.from_square] >> move.to_square & 1)


def _may_mate_by_pawn(board: shogi.Board, move: shogi.Move) -> bool:
    """Says whether a drop is one of a pawn that gives check."""
    ahead = -9 if board.turn == shogi.BLACK else 9
    gives_check = move.to_square + ahead == board.king_squares[board.turn ^ 1]
    return move.drop_piece_type == shogi.PAWN and gives_check


def _kind_after(board: shogi.Board, move: shogi.Move) -> int:
    """The kind of the moved piece after the move."""
    if move.drop_piece_type:
        return move.drop_piece_type
    kind = board.pieces[move.from_square]
    return shogi.PIECE_PROMOTED[kind] if move.promotion else kind


def _lines_with_one_piece(
    board: shogi.Board, king: int, attacker: int, piece: int
) -> dict[int, int]:
    """Finds lines from a far-reaching piece of a color to a king with one ``piece`` between them.

    Returns:
        For the square of each such piece the bitboard of the line, its far end included.
    """
    occupied = board.occupied.bits
    lines = {}
    for square in _far_reaching(board, king, attacker):
        line = _between(king, square)
        blockers = line & occupied
        if blockers and not blockers & (blockers - 1) and blockers & board.occupied[piece]:
            lines[blockers.bit_length() - 1] = line | 1 << square
    return lines


def _far_reaching(board: shogi.Board, king: int, attacker: int) -> Iterator[int]:
    """Lists the squares of the pieces that would attack a king on an empty board."""
    ours = board.occupied[attacker]
    straight, diagonal, file = _lines_through(king)
    rooks = (board.piece_bb[shogi.ROOK] | board.piece_bb[shogi.PROM_ROOK]) & straight
    bishops = (board.piece_bb[shogi.BISHOP] | board.piece_bb[shogi.PROM_BISHOP]) & diagonal
    # Black's lances attack upwards, towards smaller squares.
    below = -1 << king if attacker == shogi.BLACK else (1 << king) - 1
    lances = board.piece_bb[shogi.LANCE] & file & below
    return _squares((rooks | bishops | lances) & ours)


def _squares(bitboard: int) -> Iterator[int]:
    """Yields the squares of a bitboard."""
    while bitboard:
        lowest = bitboard & -bitboard
        yield lowest.bit_length() - 1
        bitboard ^= lowest


@functools.cache
def _lines_through(square: int) -> tuple[int, int, int]:
    """Bitboards of the squares in line with one: rank and file, diagonals, file."""
    y, x = divmod(square, 9)
    straight = diagonal = file = 0
    for other in shogi.SQUARES:
        dy, dx = other // 9 - y, other % 9 - x
        if other != square:
            straight |= (dx == 0 or dy == 0) << other
            diagonal |= (abs(dx) == abs(dy)) << other
            file |= (dx == 0) << other
    return straight, diagonal, file


@functools.cache
def _between(one: int, other: int) -> int:
    """Bitboard of the squares between two that are in line."""
    y, x = divmod(one, 9)
    dy, dx = other // 9 - y, other % 9 - x
    steps = max(abs(dx), abs(dy))
    step = 9 * (dy // steps) + dx // steps
    return sum(1 << one + n * step for n in range(1, steps))
