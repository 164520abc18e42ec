"""Makes an opening book from positions of games."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import shogi

from pydlshogi.common import SQUARE_NUM
from pydlshogi.player.opening_book import Book, BookMove
from pydlshogi.positions import HAND_NUM, PLACEMENT_SIZE, opponents_view
from pydlshogi.uct.boards import make_search_board
from pydlshogi.uct.move import label_table, to_usi

#: Order of the kinds in the hands of an sfen.
_HAND_ORDER = (shogi.ROOK, shogi.BISHOP, shogi.GOLD, shogi.SILVER, shogi.KNIGHT, shogi.LANCE,
               shogi.PAWN)  # fmt: skip

#: The pieces of a placement: nothing, those of Black in capitals, and those of White.
_SYMBOLS = ("", *map(str.upper, shogi.PIECE_SYMBOLS[1:]), *shogi.PIECE_SYMBOLS[1:])

#: The start position without its move number.
_START = shogi.STARTING_SFEN.rsplit(" ", 1)[0]

#: A played move: the position, the move, and the answer or nothing.
_Played = tuple[str, str, str]


def make_opening_book(positions: Iterable[Any], plies: int, least: int) -> Book:
    """Counts the moves of the openings.

    Args:
        positions: What ``read_kifu`` returns. Games from another start and positions without a
            move number are left out, because they do not tell which side moves. A game ends
            before an illegal move.
        plies: Number of moves of each game.
        least: A move must have been played so many times.

    Returns:
        The book; of each position the most frequent moves first, each with its commonest answer.
    """
    answers: dict[str, dict[str, collections.Counter[str]]] = {}
    for key, move, answer in _played(positions, plies):
        counts = answers.setdefault(key, {}).setdefault(move, collections.Counter())
        counts[answer] += 1
    book = {key: _book_moves(moves, least) for key, moves in answers.items()}
    return {key: moves for key, moves in book.items() if moves}


def _book_moves(moves: dict[str, collections.Counter[str]], least: int) -> list[BookMove]:
    """Sorts the moves of a position by how often they were played."""
    found = [
        BookMove(move, _most_frequent(counts), times=sum(counts.values()))
        for move, counts in moves.items()
    ]
    kept = [move for move in found if move.times >= least]
    return sorted(kept, key=lambda move: (-move.times, move.move))


def _most_frequent(answers: collections.Counter[str]) -> str:
    known = sorted((-count, answer) for answer, count in answers.items() if answer)
    return known[0][1] if known else ""


def _played(positions: Iterable[Any], plies: int) -> Iterator[_Played]:
    """Yields the moves of the openings with their answers."""
    rows = list(_openings(positions, plies))
    for (ply, key, move), (next_ply, _, answer) in zip(rows, [*rows[1:], (0, "", "")]):
        yield key, move, answer if next_ply == ply + 1 else ""


def _openings(positions: Iterable[Any], plies: int) -> Iterator[tuple[int, str, str]]:
    """Yields number, position and move of the first plies of the games from the start position."""
    is_counted = False
    last = 0
    for position in positions:
        ply = int(position["ply"])
        if ply == 1:
            is_counted = _key(position) == _START
        elif ply <= last:
            is_counted = False  # another game: HCPE3 may lack its first position
        last = ply
        if is_counted and 0 < ply <= plies:
            key, move = _key(position), _move(position)
            if move:
                yield ply, key, move
            else:
                is_counted = False


def _turn(position: Any) -> int:
    """The side to move: Black has the odd moves of an even game."""
    return int(position["ply"] - 1) % 2


def _key(position: Any) -> str:
    """Writes a position as an sfen without its move number."""
    placement = position.tobytes()[:PLACEMENT_SIZE]
    turn = _turn(position)
    if turn == shogi.WHITE:
        placement = opponents_view(placement)
    rows = (_row(placement[start : start + 9]) for start in range(0, SQUARE_NUM, 9))
    return f"{'/'.join(rows)} {'bw'[turn]} {_hands(placement[SQUARE_NUM:])}"


def _row(codes: bytes) -> str:
    """Writes a rank of the board."""
    groups = itertools.groupby((_SYMBOLS[code] for code in codes), key=bool)
    return "".join(
        "".join(group) if is_piece else str(len(list(group))) for is_piece, group in groups
    )


def _hands(numbers: bytes) -> str:
    """Writes the pieces in hand, Black's first."""
    words = []
    for side, change in ((numbers[:HAND_NUM], str.upper), (numbers[HAND_NUM:], str.lower)):
        for kind in _HAND_ORDER:
            count = side[kind - 1]
            if count:
                words.append((str(count) if count > 1 else "") + change(shogi.PIECE_SYMBOLS[kind]))
    return "".join(words) or "-"


def _move(position: Any) -> str:
    """Writes the move that was played; empty if it is illegal, as a king left in check."""
    moves = make_search_board(f"{_key(position)} 1").moves()
    labels = label_table()[_turn(position), moves]
    return next((to_usi(int(move)) for move in moves[labels == position["label"]]), "")
