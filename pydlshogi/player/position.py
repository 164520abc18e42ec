"""Boards from what a GUI sends; python-shogi checks neither moves nor hands.

Refused are positions that cannot be on a board: more pieces than a set has, two
kings of a side, two unpromoted pawns of a side on a file, pieces that could never
move again, and a king that could be captured at once. Allowed are fewer pieces than a
set has and a missing king, as in handicap games and mating problems.
"""

from __future__ import annotations

import collections
import os
import re
from collections.abc import Iterable, Sequence

import shogi

from pydlshogi import rules
from pydlshogi.usi.protocol import MOVE, CommandError, quote

_ROW = re.compile(r"(?:[1-9]|\+?[plnsbr]|[gk])+", re.IGNORECASE | re.ASCII)
_HANDS = re.compile(r"-|(?:(?:[1-9]\d?)?[plnsgbr])+", re.IGNORECASE | re.ASCII)
_MOVE_NUMBER = re.compile(r"\d{1,9}", re.ASCII)

#: How many of a kind a set has, both sides together; kings are counted a side.
_SET = {
    shogi.PAWN: ("pawns", 18),
    shogi.LANCE: ("lances", 4),
    shogi.KNIGHT: ("knights", 4),
    shogi.SILVER: ("silvers", 4),
    shogi.GOLD: ("golds", 4),
    shogi.BISHOP: ("bishops", 2),
    shogi.ROOK: ("rooks", 2),
}


def make_board(sfen: str | None, moves: Iterable[str]) -> shogi.Board:
    """Sets up a position and plays moves from it.

    Args:
        sfen: ``B T H [N]`` as in USI; None for the usual start.
        moves: In USI's notation.

    Returns:
        The board, with the moves on its stack.

    Raises:
        CommandError: the sfen is not one, the position cannot be, or a move is not
            possible; the text names it.
    """
    board = shogi.Board() if sfen is None else _board_of(sfen)
    _play(board, list(moves), 0)
    return board


def change_moves(board: shogi.Board, before: Sequence[str], after: Sequence[str]) -> None:
    """Takes back and plays what differs; playing a whole game anew takes longer than a move.

    Args:
        board: With the moves ``before`` at the end of its stack; it is changed, unless an
            error is raised.
        before: In USI's notation.
        after: The moves that are to be there instead.

    Raises:
        CommandError: a move is not possible; the text names it.
    """
    # commonprefix() compares any sequences, item by item.
    common = len(os.path.commonprefix([list(before), list(after)]))
    taken_back = [board.pop() for _ in before[common:]]
    length = len(board.move_stack)
    try:
        _play(board, after, common)
    except CommandError:
        while len(board.move_stack) > length:
            board.pop()
        for move in reversed(taken_back):
            board.push(move)
        raise


def _play(board: shogi.Board, moves: Sequence[str], start: int) -> None:
    """Plays moves from the one with the index ``start`` on; raises ``CommandError``."""
    for number, word in enumerate(moves[start:], start + 1):
        move = shogi.Move.from_usi(word) if MOVE.fullmatch(word) else None
        # Not is_legal: where a GUI let a pawn drop mate, the position stands all the same.
        if move is None or not rules.is_possible(board, move):
            raise CommandError(f"position: move {number}, {quote(word)}, cannot be played")
        board.push(move)


def _board_of(sfen: str) -> shogi.Board:
    """Sets up a board, after checking all that python-shogi does not."""

    def refuse(reason: str) -> CommandError:
        return CommandError(f"position: sfen {quote(sfen, 120)} cannot be: {reason}")

    fields = sfen.split()
    if len(fields) == 3:
        fields.append("1")
    if len(fields) != 4:
        raise refuse("it needs a board, b or w, hands and a move number")
    rows, turn, hands, move_number = fields
    if not all(_ROW.fullmatch(row) for row in rows.split("/")):
        raise refuse(f"its board is {quote(rows, 100)}")
    if not _HANDS.fullmatch(hands):
        raise refuse(f"its hands are {quote(hands)}")
    if not _MOVE_NUMBER.fullmatch(move_number):
        raise refuse(f"its move number is {quote(move_number)}")
    try:
        board = shogi.Board(" ".join([rows, turn, hands, move_number]))
    except ValueError as error:
        raise refuse(str(error).partition(":")[0]) from None
    reason = _impossible(board)
    if reason:
        raise refuse(reason)
    return board


def _impossible(board: shogi.Board) -> str:
    """Says why a position cannot be on a board; empty where it can."""
    pieces = [(square, board.piece_at(square)) for square in shogi.SQUARES]
    pieces = [(square, piece) for square, piece in pieces if piece]
    kings = collections.Counter(p.color for _, p in pieces if p.piece_type == shogi.KING)
    pawns = collections.Counter(
        (p.color, square % 9) for square, p in pieces if p.piece_type == shogi.PAWN
    )
    if any(number > 1 for number in kings.values()):
        return "a side has two kings"
    if any(number > 1 for number in pawns.values()):
        return "a side has two pawns on a file"
    for square, p in pieces:
        if not shogi.can_move_without_promotion(square, p.piece_type, p.color):
            return f"the piece on {shogi.SQUARE_NAMES[square]} could never move"
    total = collections.Counter(_unpromoted(p.piece_type) for _, p in pieces)
    for hand in board.pieces_in_hand:
        total.update(hand)
    for kind, (name, number) in _SET.items():
        if total[kind] > number:
            return f"it has {total[kind]} {name}, a set has {number}"
    return "the side to move could capture the king" if board.was_suicide() else ""


def _unpromoted(kind: int) -> int:
    """Turns a piece type into the one that it was before it promoted."""
    return shogi.PIECE_PROMOTED.index(kind) if kind >= shogi.PROM_PAWN else kind
