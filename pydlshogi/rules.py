"""Rules of shogi that python-shogi lacks or gets wrong, as pure functions of a board.

Only :func:`untie` changes the board. A side may lack its king, as in mating problems. It is
then never in check.

Sources: rules of the Japan Shogi Association (pawn-drop mate, perpetual check);
rules of the Computer Shogi Association (27-point declaration).
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Iterable

import shogi

_BOARD_EDGE = 9
#: Bitboards of the three ranks where a side promotes and declares: Black's, White's.
_FAR_RANKS = ((1 << 27) - 1, ((1 << 27) - 1) << 54)
_BIG_PIECES = (shogi.BISHOP, shogi.ROOK, shogi.PROM_BISHOP, shogi.PROM_ROOK)
_DECLARATION_PIECES = 10
#: Pieces of both sides in an even game.
_PIECES = 40
#: Points needed for a declaration: Black's, White's.
_DECLARATION_POINTS = (28, 27)
#: White's first two ranks in the ten handicaps, and the points of the pieces that are missing.
_HANDICAPS = {
    "lnsgkgsn1/1r5b1": 1,
    "1nsgkgsnl/1r5b1": 1,
    "lnsgkgsnl/1r7": 5,
    "lnsgkgsnl/7b1": 5,
    "lnsgkgsn1/7b1": 6,
    "lnsgkgsnl/9": 10,
    "1nsgkgsn1/9": 12,
    "2sgkgs2/9": 14,
    "3gkg3/9": 16,
    "4k4/9": 18,
}
_BELOW = "/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w -"


@functools.cache
def lines_through(square: int) -> tuple[int, int, int]:
    """Bitboards of the squares in line with one: rank and file, diagonals, file."""
    y, x = divmod(square, _BOARD_EDGE)
    straight = diagonal = file = 0
    for other in shogi.SQUARES:
        dy, dx = other // _BOARD_EDGE - y, other % _BOARD_EDGE - x
        if other != square:
            straight |= (dx == 0 or dy == 0) << other
            diagonal |= (abs(dx) == abs(dy)) << other
            file |= (dx == 0) << other
    return straight, diagonal, file


def _with_lines(square: int) -> int:
    """Bitboard of a square and the squares in line with it."""
    straight, diagonal, _ = lines_through(square)
    return straight | diagonal | 1 << square


_LINES = [_with_lines(square) for square in shogi.SQUARES]


def untie(board: shogi.Board) -> None:
    """Breaks the reference cycles of a board, so that it is freed without a garbage collector.

    Afterwards the board lacks ``legal_moves`` and ``pseudo_legal_moves``. The functions of this
    module do not need them.
    """
    del board.legal_moves, board.pseudo_legal_moves


def legal_moves(board: shogi.Board) -> list[shogi.Move]:
    """Lists the legal moves.

    To try a move on the board takes time, so only moves that may be illegal are tried. In
    check these are all moves. Otherwise these are the king's moves, moves of pieces in line
    with it (they may be pinned) and pawn drops that give check.
    """
    moves = board.generate_pseudo_legal_moves()
    king = board.king_squares[board.turn]
    if board.is_check():
        return [move for move in moves if _is_sound(board, move)]
    in_line = 0 if king is None else _LINES[king]
    return [
        move
        for move in moves
        if not (
            drops_pawn_with_check(board, move)
            if move.drop_piece_type
            else in_line >> move.from_square & 1
        )
        or _is_sound(board, move)
    ]


def is_legal(board: shogi.Board, move: shogi.Move) -> bool:
    """Says whether a move is legal. Any move may be given."""
    return is_possible(board, move) and not _is_pawn_drop_mate(board, move)


def is_possible(board: shogi.Board, move: shogi.Move) -> bool:
    """Says whether a move is legal, apart from the rule against mates by a pawn drop.

    ``Board.is_pseudo_legal`` allows drops on a piece of the opponent.
    """
    onto_piece = move.drop_piece_type and board.piece_type_at(move.to_square) != shogi.NONE
    return not onto_piece and board.is_pseudo_legal(move) and not _leaves_king(board, move)


def has_legal_move(board: shogi.Board) -> bool:
    """Says whether the side to move has a legal move. Without one it has lost."""
    return any(_is_sound(board, move) for move in board.generate_pseudo_legal_moves())


def mate_in_one(board: shogi.Board, moves: Iterable[shogi.Move]) -> shogi.Move | None:
    """Returns the first of some legal moves that mates, or None."""
    for move in moves:
        board.push(move)
        is_mate = board.is_check() and not has_legal_move(board)
        board.pop()
        if is_mate:
            return move
    return None


def _is_sound(board: shogi.Board, move: shogi.Move) -> bool:
    """Says whether a pseudo-legal move is legal."""
    return not _leaves_king(board, move) and not _is_pawn_drop_mate(board, move)


def _leaves_king(board: shogi.Board, move: shogi.Move) -> bool:
    """Says whether a pseudo-legal move leaves the own king in check."""
    board.push(move)
    try:
        return board.was_suicide()
    finally:
        board.pop()


def drops_pawn_with_check(board: shogi.Board, move: shogi.Move) -> bool:
    """Says whether a drop puts a pawn in front of the opponent's king."""
    if move.drop_piece_type != shogi.PAWN:
        return False
    ahead = -_BOARD_EDGE if board.turn == shogi.BLACK else _BOARD_EDGE
    return board.king_squares[board.turn ^ 1] == move.to_square + ahead


def _is_pawn_drop_mate(board: shogi.Board, move: shogi.Move) -> bool:
    """Says whether a pawn drop mates, which is illegal.

    python-shogi overlooks it if a pinned piece attacks the pawn.
    """
    if not drops_pawn_with_check(board, move):
        return False
    board.push(move)
    try:
        return not has_legal_move(board)
    finally:
        board.pop()


class Repetition(enum.IntEnum):
    """Result of a move by repetition, for the side that makes it; best first."""

    WIN = 0
    NONE = 1
    DRAW = 2
    LOSS = 3


def may_repeat(board: shogi.Board) -> bool:
    """Says quickly whether a move may repeat a position for the fourth time."""
    return any(count >= 3 for count in board.transpositions.values())


def repetition_after(board: shogi.Board, move: shogi.Move) -> Repetition:
    """Returns the result of a legal move by fourfold repetition, as :func:`repetition`."""
    board.push(move)
    try:
        return repetition(board)
    finally:
        board.pop()


def repetition(board: shogi.Board) -> Repetition:
    """Returns the result of fourfold repetition for the side that has just moved.

    It is a draw. But if one side alone has given check with every move since the first occurrence
    of the position, it loses. The moves that led to it are on the board's stack.
    """
    repeated = board.zobrist_hash()
    if board.transpositions[repeated] < 4:
        return Repetition.NONE
    mover = board.turn ^ 1
    only_checks = [True, True]  # whether each side has only given check until here
    taken_back = []
    earlier = 3
    while earlier:
        only_checks[board.turn ^ 1] &= board.is_check()
        taken_back.append(board.pop())
        earlier -= board.zobrist_hash() == repeated
    for move in reversed(taken_back):
        board.push(move)
    if only_checks[0] == only_checks[1]:
        return Repetition.DRAW
    return Repetition.LOSS if only_checks[mover] else Repetition.WIN


def can_declare_win(board: shogi.Board, missing: int | None = None) -> bool:
    """Says whether the side to move wins by declaration under the 27-point rule.

    The king must not be in check. The king and at least ten other own pieces must be in the
    far three ranks. These pieces and the hand must count 28 points for Black and 27 for White:
    bishops and rooks 5 each, others 1. In a handicap game, the missing pieces count for White.

    Args:
        board: The position.
        missing: Points of the missing pieces. None finds the start of the game by the moves on
            the board's stack.
    """
    us = board.turn
    king = board.king_squares[us]
    far = _FAR_RANKS[us]
    if king is None or not far >> king & 1 or board.is_check():
        return False
    ours = board.occupied[us] & far & ~board.piece_bb[shogi.KING]
    pieces = _count(ours)
    if pieces < _DECLARATION_PIECES:
        return False
    big = sum(_count(ours & board.piece_bb[kind]) for kind in _BIG_PIECES)
    hand = sum(
        count * (5 if kind in _BIG_PIECES else 1)
        for kind, count in board.pieces_in_hand[us].items()
    )
    lacking = _DECLARATION_POINTS[us] - pieces - 4 * big - hand
    if lacking <= 0 or us == shogi.BLACK:
        return lacking <= 0
    return lacking <= (_missing_in(board) if missing is None else missing)


def missing_points(sfen: str | None) -> int:
    """Counts the pieces that a handicap takes from White, for White's declaration.

    They are 0 unless the game starts from one of the ten handicaps. ``sfen`` is its start, None for
    that of an even game.
    """
    ranks, below, _ = (sfen or "").rpartition(_BELOW)
    return _HANDICAPS.get(ranks, 0) if below else 0


def _missing_in(board: shogi.Board) -> int:
    """Counts the missing pieces as :func:`missing_points`, by the moves on a board's stack."""
    in_hand = sum(map(sum, (hand.values() for hand in board.pieces_in_hand)))
    if _count(board.occupied.bits) + in_hand == _PIECES:
        return 0
    moves = [board.pop() for _ in range(len(board.move_stack))]
    sfen = board.sfen()
    for move in reversed(moves):
        board.push(move)
    return missing_points(sfen)


def _count(bitboard: int) -> int:
    """Counts set bits (``int.bit_count`` came with Python 3.10)."""
    return bin(bitboard).count("1")
