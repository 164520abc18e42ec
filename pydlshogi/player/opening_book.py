"""Opening books in YaneuraOu's text format: making, writing, reading, the choice of a move.

The first line is ``#YANEURAOU-DB2016 1.00``. A line ``sfen B T H N`` begins a position; its
moves follow, one a line. The fields of a move are: the move; the expected answer or ``none``;
the evaluation in centipawns for the side to move; the depth of the search; how often the move
was played.

Source: the documentation of YaneuraOu.
"""

from __future__ import annotations

import collections
import itertools
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import shogi

from pydlshogi import rules
from pydlshogi.common import SQUARE_NUM
from pydlshogi.errors import UserError
from pydlshogi.files import file_stamp, write_beside
from pydlshogi.positions import HAND_NUM, PLACEMENT_SIZE, opponents_view
from pydlshogi.uct.boards import make_search_board
from pydlshogi.uct.move import label_table, to_usi
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
    """A move of the book in USI notation, and the expected answer, which may be empty.

    ``score``, in centipawns for the side to move, comes from a search of ``depth``; 0 without one.
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
    """Reads a book; raises BookError if it cannot be read, or a line is not of the format."""
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

        The book is empty after a BookError.
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


# Making a book from positions of games

#: The pieces of a placement: nothing, those of Black in capitals, and those of White.
_SYMBOLS = ("", *map(str.upper, shogi.PIECE_SYMBOLS[1:]), *shogi.PIECE_SYMBOLS[1:])

#: The start position without its move number.
_START = shogi.STARTING_SFEN.rsplit(" ", 1)[0]


def make_opening_book(positions: Iterable[Any], plies: int, least: int) -> Book:
    """Counts the first ``plies`` moves of games, and keeps those played at least so many times.

    Of each position the most frequent moves come first, each with its commonest answer.

    Args:
        positions: What ``read_kifu`` returns. Games from another start and positions without a
            move number are left out, because they do not tell which side moves. A game ends
            before an illegal move.
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
    """Returns the commonest answer, of several the first by name; empty if none is known."""
    known = sorted((-count, answer) for answer, count in answers.items() if answer)
    return known[0][1] if known else ""


def _played(positions: Iterable[Any], plies: int) -> Iterator[tuple[str, str, str]]:
    """Yields the positions of the openings with the move and the answer, which may be empty."""
    rows = list(_openings(positions, plies))
    for (ply, key, move), (next_ply, _, answer) in zip(rows, [*rows[1:], (0, "", "")]):
        yield key, move, answer if next_ply == ply + 1 else ""


def _openings(positions: Iterable[Any], plies: int) -> Iterator[tuple[int, str, str]]:
    """Yields number, position and move of the first plies of the games from the start position."""
    # Position files may have any order, so each position must be the one after the move before.
    last, following = 0, ""
    for position in positions:
        ply = int(position["ply"])
        expected = _START if ply == 1 else following if ply == last + 1 else ""
        last, following = ply, ""
        if expected and ply <= plies and _key(position) == expected:
            move, following = _move(position, expected)
            if move:
                yield ply, expected, move


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
    for place, symbol in enumerate(_HAND_ORDER):
        kind = shogi.PIECE_SYMBOLS.index(symbol.lower())
        count = numbers[place // HAND_NUM * HAND_NUM + kind - 1]
        if count:
            words.append(f"{count if count > 1 else ''}{symbol}")
    return "".join(words) or "-"


def _move(position: Any, key: str) -> tuple[str, str]:
    """Writes the move and the position after it; empty if illegal, as a king left in check."""
    board = make_search_board(f"{key} 1")
    moves = board.moves()
    labels = label_table()[_turn(position), moves]
    for move in moves[labels == position["label"]]:
        board.push(int(move))
        return to_usi(int(move)), book_key(board.sfen())
    return "", ""
