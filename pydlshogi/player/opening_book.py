"""The opening book that a player plays from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import shogi

from pydlshogi import rules
from pydlshogi.files import file_stamp
from pydlshogi.player.book import Book, BookMove, book_key, read_book

#: A move is not played if its evaluation is so many centipawns below the best one's. As the
#: default of YaneuraOu.
_MARGIN = 30


class OpeningBook:
    """An opening book; an empty one until :meth:`load`."""

    def __init__(self) -> None:
        self._book: Book = {}
        self._loaded: tuple[Any, ...] = ()

    def load(self, path: Path | None) -> None:
        """Reads a book file, unless it is read already.

        Args:
            path: The file; None for no book.

        Raises:
            BookError: The file cannot be read. The book is empty then.
        """
        wanted = (path, file_stamp(path)) if path else ()
        if wanted != self._loaded:
            self._book, self._loaded = {}, ()
            self._book = read_book(path) if path else {}
            self._loaded = wanted

    def choose(self, board: shogi.Board, random: numpy.random.Generator) -> BookMove | None:
        """Chooses a move at random, by how often each was played.

        Args:
            board: The position.
            random: The random generator.

        Returns:
            A legal move. Its answer is legal, too, or empty. None if the book has no legal move.
        """
        legal = _legal(board)
        moves = [move for move in self._book.get(book_key(board.sfen()), ()) if move.move in legal]
        if not moves:
            return None
        best = max(move.score for move in moves)
        moves = [move for move in moves if move.score >= best - _MARGIN]
        counts = numpy.array([max(1, move.times) for move in moves], numpy.float64)
        move = moves[random.choice(len(moves), p=counts / counts.sum())]
        return move if _has_legal_answer(board, move) else move._replace(answer="")


def _legal(board: shogi.Board) -> set[str]:
    """Lists the legal moves in USI notation."""
    return {move.usi() for move in rules.legal_moves(board)}


def _has_legal_answer(board: shogi.Board, move: BookMove) -> bool:
    """Says whether the answer can be played: books of other programs contain errors."""
    board.push(shogi.Move.from_usi(move.move))
    legal = _legal(board)
    board.pop()
    return move.answer in legal
