"""An opening book in YaneuraOu's text format: reading, writing, and the choice of a move.

The first line is ``#YANEURAOU-DB2016 1.00``. A line ``sfen B T H N`` begins a position; its
moves follow, one a line. The fields of a move are: the move; the expected answer or ``none``;
the evaluation in centipawns for the side to move; the depth of the search; how often the move
was played.

Source: the documentation of YaneuraOu.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import shogi

from pydlshogi import rules
from pydlshogi.errors import UserError
from pydlshogi.files import file_stamp, write_beside
from pydlshogi.usi.protocol import MOVE

#: How the first line of every book begins.
FORMAT = "#YANEURAOU-DB2016"
HEADER = f"{FORMAT} 1.00"

_NO_MOVE = "none"

#: How comments begin. Ctrl-Z is the last character of a file of old editors on Windows.
_COMMENTS = ("#", "//", "\x1a")

#: First words of lines that name no move to play. The books of other programs have them.
_NO_MOVES = (_NO_MOVE, "resign", "win")

#: Most characters of a line that is no comment. A position has fewer than 200.
_LONGEST_LINE = 1000

#: The order of the pieces in hand in an sfen; and one kind of them, with its number.
_HAND_ORDER = "RBGSNLPrbgsnlp"
_IN_HAND = re.compile(rf"(\d{{0,2}})([{_HAND_ORDER}])", re.ASCII)

_NUMBER = re.compile(r"[-+]?\d{1,18}", re.ASCII)

#: A move is not played if its evaluation is so many centipawns below the best one's. As the
#: default of YaneuraOu.
_MARGIN = 30


class BookError(UserError, ValueError):
    """A book cannot be read."""


class BookMove(NamedTuple):
    """A move of the book.

    Attributes:
        move: In USI notation.
        answer: The expected answer; empty if there is none.
        score: Evaluation in centipawns for the side to move.
        depth: Depth of the search that found the evaluation; 0 without a search.
        times: How often the move was played.
    """

    move: str
    answer: str = ""
    score: int = 0
    depth: int = 0
    times: int = 1


#: The moves of each position, which is an sfen without the move number.
Book = Mapping[str, Sequence[BookMove]]


def book_key(sfen: str) -> str:
    """Removes the move number from an sfen: a position may be reached at any move.

    The pieces in hand get one order, as boards write them: some programs have another one.
    """
    board, turn, hands = sfen.split()[:3]
    pieces = sorted(_IN_HAND.findall(hands), key=lambda found: _HAND_ORDER.find(found[1]))
    ordered = "".join(f"{'' if count == '1' else count}{piece}" for count, piece in pieces)
    return f"{board} {turn} {ordered or hands}"


def read_book(path: str | os.PathLike[str]) -> Book:
    """Reads a book.

    Raises:
        BookError: The file cannot be read, or a line is not of the format.
    """
    book: dict[str, list[BookMove]] = {}
    moves: list[BookMove] | None = None
    for number, words in _rows(path):
        if words[0] == "sfen" and len(words) > 3:
            moves = book.setdefault(book_key(" ".join(words[1:])), [])
            continue
        if words[0] in _NO_MOVES and moves is not None:
            continue
        move = _parse_move(words)
        if moves is None or move is None:
            raise BookError(
                f"book {os.fspath(path)}, line {number}: neither a position nor a move of "
                "YaneuraOu's text format. Choose another file."
            )
        moves.append(move)
    return book


def _rows(path: str | os.PathLike[str]) -> Iterator[tuple[int, list[str]]]:
    """Yields number and words of each line that is neither empty nor a comment.

    A line that is too long for a book has one empty word.
    """
    try:
        # A pipe would wait for a writer, and a device may have no end.
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ValueError("it is no plain file")
        with open(path, encoding="utf-8-sig", errors="replace", newline="\n") as lines:
            for number, line in enumerate(lines, 1):
                words = line[:_LONGEST_LINE].split()
                if words and not words[0].startswith(_COMMENTS):
                    yield number, words if len(line) <= _LONGEST_LINE else [""]
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BookError(
            f"book {os.fspath(path)} cannot be read: {reason}. Choose another file."
        ) from None


def write_book(path: str | os.PathLike[str], book: Book) -> None:
    """Writes a book atomically, sorted as binary searches expect it."""
    with write_beside(path) as file:
        for line in _lines(book):
            file.write(f"{line}\n".encode("ascii"))


def _lines(book: Book) -> Iterator[str]:
    yield HEADER
    for key in sorted(book):
        yield f"sfen {key} 1"
        for move in book[key]:
            answer = move.answer or _NO_MOVE
            yield f"{move.move} {answer} {move.score} {move.depth} {move.times}"


def _parse_move(words: Sequence[str]) -> BookMove | None:
    """Parses the line of a move; None if it is none."""
    if not MOVE.fullmatch(words[0]):
        return None
    answer = words[1] if len(words) > 1 and MOVE.fullmatch(words[1]) else ""
    columns = zip(("score", "depth", "times"), words[2:])
    numbers = {name: int(word) for name, word in columns if _NUMBER.fullmatch(word)}
    return BookMove(words[0], answer, **numbers)


class OpeningBook:
    """An opening book; an empty one until :meth:`load`."""

    def __init__(self) -> None:
        self._book: Book = {}
        self._loaded: tuple[Any, ...] = ()

    def load(self, path: Path | None) -> None:
        """Reads a book file, unless it is read already; None for no book.

        Raises:
            BookError: The file cannot be read. The book is empty then.
        """
        wanted = (path, file_stamp(path)) if path else ()
        if wanted != self._loaded:
            self._book, self._loaded = {}, ()
            self._book = read_book(path) if path else {}
            self._loaded = wanted

    def choose(self, board: shogi.Board, random: numpy.random.Generator) -> BookMove | None:
        """Chooses a legal move at random, by how often each was played. None if the book has none.

        The answer of the move is legal, too, or empty.
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
