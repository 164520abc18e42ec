"""Moves and pieces as shogi players write them."""

from __future__ import annotations

import shogi

#: Pieces as one character, by python-shogi's piece type; 0 is unused.
PIECES = " 歩香桂銀金角飛玉と杏圭全馬龍"
#: Files and ranks.
FILES = "１２３４５６７８９"
RANKS = "一二三四五六七八九"
#: The marks of Black and White in front of a move.
MARKS = "▲△"
#: The marks of Black and White in front of a name.
SIDES = "☗☖"

#: Promoted pieces in moves; the others are written as in :data:`PIECES`.
_LONG_NAMES = {"杏": "成香", "圭": "成桂", "全": "成銀"}


def square_text(square: int) -> str:
    """Writes a square, such as ``７六``."""
    return FILES[8 - square % 9] + RANKS[square // 9]


def move_text(board: shogi.Board, move: shogi.Move) -> str:
    """Writes a move as KIF does, such as ``７六歩(77)``, ``同　角成(88)`` or ``５五歩打``.

    ``board`` is the position before the move, with the moves before it on its stack.
    """
    last = board.move_stack[-1] if board.move_stack else None
    is_same = last is not None and last.to_square == move.to_square
    target = "同　" if is_same else square_text(move.to_square)
    if move.drop_piece_type:
        return f"{square_text(move.to_square)}{PIECES[move.drop_piece_type]}打"
    name = PIECES[board.piece_type_at(move.from_square)]
    origin = f"{9 - move.from_square % 9}{move.from_square // 9 + 1}"
    return f"{target}{_LONG_NAMES.get(name, name)}{'成' if move.promotion else ''}({origin})"


def marked_move_text(board: shogi.Board, move: shogi.Move) -> str:
    """Writes a move with the mark of its side, such as ``▲７六歩(77)``."""
    return MARKS[board.turn] + move_text(board, move)


def line_text(board: shogi.Board, moves: list[shogi.Move]) -> str:
    """Writes a line of moves; the board is the same afterwards."""
    texts = []
    for move in moves:
        texts.append(marked_move_text(board, move))
        board.push(move)
    for _ in moves:
        board.pop()
    return " ".join(texts)
