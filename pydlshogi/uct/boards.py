"""Chooses the board of the search: cshogi's, else rsshogi's, else python-shogi's."""

from __future__ import annotations

import collections
import functools
import importlib
import importlib.metadata
from collections.abc import Iterator
from typing import Any

import shogi

from pydlshogi import rules
from pydlshogi.processors import has_avx2
from pydlshogi.uct.board import Mate, SearchBoard
from pydlshogi.uct.move import from_usi

#: The fast boards by library, the fastest first.
_FAST_BOARDS = {"cshogi": "CshogiBoard", "rsshogi": "RsshogiBoard"}

#: A mate in one, on which a library is tried.
_MATE, _MATING_MOVE = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1", "G*5b"

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


def make_search_board(sfen: str | None = None, searched: shogi.Board | None = None) -> SearchBoard:
    """Makes a board with a start position.

    Args:
        sfen: The start position; None for that of a game.
        searched: The position to search, after moves from there. If cshogi has no memory for its
            moves, python-shogi's board is made. None if nothing is searched.
    """
    make, library, _ = _implementation()
    if library == "cshogi" and searched is not None and not fits_cshogi(searched):
        make, _, _ = _python_shogi()
    return make(sfen)


def board_library() -> str:
    """Names the library whose board :func:`make_search_board` uses."""
    return _implementation()[1]


def libraries_passed_over() -> list[str]:
    """Says in a sentence of each library that is installed but does not work why it is not used."""
    return _implementation()[2]


@functools.cache
def _implementation() -> tuple[Any, str, list[str]]:
    """Returns the class of the board, the name of its library, and why others are not used."""
    sentences: list[str] = []
    for library in _FAST_BOARDS:
        make, sentence = _load(library)
        if make:
            return make, library, sentences
        sentences += filter(None, [sentence])
    return (*_python_shogi()[:2], sentences)


def _load(library: str) -> tuple[Any, str]:
    """Returns a fast board's class, None if there is none; and why the library does not work."""
    if library == "cshogi" and not has_avx2():  # cshogi would end the process
        return None, ""
    module = f"pydlshogi.uct.{library}_board"
    try:
        make = getattr(importlib.import_module(module), _FAST_BOARDS[library])
        _try(make)
    except ModuleNotFoundError as error:
        if error.name in (library, module):  # not installed
            return None, ""
        return None, _passed_over(library, error)
    except Exception as error:
        return None, _passed_over(library, error)
    return make, ""


def _try(make: Any) -> None:
    """Calls what the search needs of a library."""
    board: SearchBoard = make(_MATE)
    move, key = from_usi(_MATING_MOVE), board.key()
    answers = [board.turn, board.in_check(), board.can_declare(), board.mate(3)]
    found = board.search_mate(1000, 3)[0]
    is_right = answers == [0, False, False, Mate(move, 1)] and found == [move]
    is_right &= move in board.moves() and move in board.checks()
    board.push(move)
    is_right &= board.in_check() and not len(board.moves())
    board.pop()
    if not is_right or board.key() != key or board.sfen() != _MATE:
        raise ValueError("its answers are not those of the versions known")


def _passed_over(library: str, error: Exception) -> str:
    """Says that a library is not used."""
    try:
        version = importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        version = "of an unknown version"
    return f"{library} {version} is not used, because it does not work with this program: {error}"


def _python_shogi() -> tuple[Any, str, list[str]]:
    from pydlshogi.uct.python_shogi_board import PythonShogiBoard

    return PythonShogiBoard, "python-shogi", []


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
