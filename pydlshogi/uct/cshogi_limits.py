"""Positions with more moves than cshogi has memory for. cshogi would end the process.

Only constructed positions have so many moves. cshogi stores all moves of a position. Its mate
searches also store all evasions: the moves that answer a check.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator

import shogi

from pydlshogi import rules

#: cshogi has memory for the 593 moves that a position with both kings can have at most. Without a
#: king there can be more. The difference is a reserve for the next moves.
_MOST_MOVES = 560

#: In cshogi's mate searches, 95 evasions did no visible harm, and 98 ended the process. The
#: difference is a reserve for the next moves.
_MOST_EVASIONS = 80

#: Most squares between a king and a piece that gives check from a distance.
_BETWEEN = 7

#: Most moves of a king.
_KING_MOVES = 8


def fits_cshogi(board: shogi.Board) -> bool:
    """Says whether cshogi has memory for the moves of a position and of those soon after it.

    It takes about 2 ms. Of 57,018 positions of games, it is false for two, without need.
    """
    return all(
        len(moves) <= _MOST_MOVES and _most_evasions(board, moves) <= _MOST_EVASIONS
        for moves in _possible_moves(board)
    )


def _possible_moves(board: shogi.Board) -> Iterator[list[shogi.Move]]:
    """Lists the moves of each side, as if it had captured a piece of every kind."""
    board = shogi.Board(board.sfen())
    rules.untie(board)
    names = board.sfen().split()[0].upper()
    hands = board.pieces_in_hand
    for _ in shogi.COLORS:
        for kind in range(shogi.PAWN, shogi.KING):
            if hands[board.turn ^ 1][kind] or shogi.PIECE_SYMBOLS[kind].upper() in names:
                hands[board.turn][kind] += 1
        yield list(board.generate_pseudo_legal_moves())
        board.turn ^= 1


def _most_evasions(board: shogi.Board, moves: list[shogi.Move]) -> int:
    """Returns an upper bound of the evasions: a check may come along any line of the board.

    The moves that capture the checking piece are not counted; the reserve covers them.
    """
    kings = set(board.king_squares) - {None}
    to_squares = collections.Counter(
        move.to_square for move in moves if move.from_square not in kings
    )
    return _KING_MOVES + max(
        sum(sorted(to_squares[square] for square in line)[-_BETWEEN:]) for line in _LINES
    )


def _lines() -> list[list[int]]:
    """Lists the squares of each rank, file and diagonal."""
    lines = collections.defaultdict(list)
    for square in shogi.SQUARES:
        rank, file = divmod(square, 9)
        for name in (("rank", rank), ("file", file), ("sum", rank + file), ("gap", rank - file)):
            lines[name].append(square)
    return list(lines.values())


_LINES = _lines()
