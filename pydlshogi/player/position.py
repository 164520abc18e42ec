"""Sets up boards from the commands of a GUI. python-shogi checks neither moves nor hands.

These positions are refused, because they are impossible:

- more pieces than a set has, or two kings of a side;
- two unpromoted pawns of a side on a file;
- a piece that can never move;
- a king that can be captured at once.

Fewer pieces and a missing king are allowed, as in handicap games and
mating problems.
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
_HAND = re.compile(r"(\d{0,2})([plnsgbr])", re.IGNORECASE | re.ASCII)
_MOVE_NUMBER = re.compile(r"\d{1,9}", re.ASCII)

#: Name and number of the pieces of a set, for both sides together. Kings are counted for
#: each side.
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
    """Sets up a position, ``B T H [N]`` or None for the usual start, and plays USI moves.

    It raises CommandError if the sfen is malformed, or the position or a move is impossible.
    """
    board = shogi.Board() if sfen is None else _board_of(sfen)
    _play(board, list(moves), 0)
    return board


def start_and_moves(board: shogi.Board) -> tuple[str | None, list[str]]:
    """Returns the start position and the moves, as arguments of :func:`make_board`."""
    moves = [board.pop() for _ in range(len(board.move_stack))]
    sfen = board.sfen()
    for move in reversed(moves):
        board.push(move)
    start = None if sfen == shogi.STARTING_SFEN else sfen
    return start, [move.usi() for move in reversed(moves)]


def change_moves(board: shogi.Board, before: Sequence[str], after: Sequence[str]) -> None:
    """Replaces the moves ``before`` at the end of a board's stack by others, in USI notation.

    Only those that differ are taken back and played: to play a whole game again takes longer than
    to choose a move. After a CommandError, for an impossible move, the board is unchanged.
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
    finally:
        # python-shogi keeps a zero for every position that was ever on the board.
        board.transpositions = +board.transpositions


def _play(board: shogi.Board, moves: Sequence[str], start: int) -> None:
    """Plays the moves from index ``start`` on, or raises CommandError."""
    for number, word in enumerate(moves[start:], start + 1):
        move = shogi.Move.from_usi(word) if MOVE.fullmatch(word) else None
        # Not is_legal: if a GUI has allowed a mate by a pawn drop, the game goes on.
        if move is None or not rules.is_possible(board, move):
            raise CommandError(f"position: move {number}, {quote(word)}, cannot be played")
        board.push(move)


def _board_of(sfen: str) -> shogi.Board:
    """Sets up a board. Checks what python-shogi does not."""

    def refuse(reason: str) -> CommandError:
        return CommandError(f"position: sfen {quote(sfen, 120)} cannot be: {reason}")

    fields = sfen.split()
    reason = _malformed(fields)
    if reason:
        raise refuse(reason)
    rows, turn, hands, move_number = [*fields, "1"][:4]
    try:
        board = shogi.Board(" ".join([rows, turn, hands, move_number]))
    except ValueError as error:
        raise refuse(str(error).partition(":")[0]) from None
    reason = _impossible(board)
    if reason:
        raise refuse(reason)
    return board


def _malformed(fields: list[str]) -> str:
    """Says what is wrong with the fields of a sfen; empty if nothing is."""
    if len(fields) < 3:
        missing = ("a board", "the side to move (b or w)", "the hands (- for none)")
        return f"it needs also {' and '.join(missing[len(fields) :])}"
    if len(fields) > 4:
        return "it needs only a board, b or w, hands and a move number"
    rows, _, hands, move_number = [*fields, "1"][:4]
    if not all(_ROW.fullmatch(row) for row in rows.split("/")):
        return f"its board is {quote(rows, 100)}"
    if not _HANDS.fullmatch(hands):
        return f"its hands are {quote(hands)}"
    if not _MOVE_NUMBER.fullmatch(move_number):
        return f"its move number is {quote(move_number)}"
    return _impossible_hands(hands)


def _impossible_hands(hands: str) -> str:
    """Says what is wrong with the hands of a sfen; empty if nothing is."""
    seen = set()
    for count, letter in _HAND.findall(hands):
        if letter in seen:
            return f"its hands {quote(hands)} name {letter} twice"
        seen.add(letter)
        name, number = _SET[shogi.PIECE_SYMBOLS.index(letter.lower())]
        if count and int(count) > number:
            return f"it has {count} {name}, a set has {number}"
    return ""


def _impossible(board: shogi.Board) -> str:
    """Says why a position is impossible; empty if it is possible."""
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
    """Returns the piece type before promotion."""
    return shogi.PIECE_PROMOTED.index(kind) if kind >= shogi.PROM_PAWN else kind
