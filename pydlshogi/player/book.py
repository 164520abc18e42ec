"""An opening book in YaneuraOu's text format.

The first line is ``#YANEURAOU-DB2016 1.00``. A line ``sfen B T H N`` begins a position; its
moves follow, one a line. The fields of a move are: the move; the expected answer or ``none``;
the evaluation in centipawns for the side to move; the depth of the search; how often the move
was played.

Source: the documentation of YaneuraOu.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pydlshogi.errors import UserError
from pydlshogi.files import write_beside
from pydlshogi.usi.protocol import MOVE

#: How the first line of every book begins.
FORMAT = "#YANEURAOU-DB2016"
HEADER = f"{FORMAT} 1.00"

_NO_MOVE = "none"

#: Ctrl-Z, with which old editors on Windows end a file.
_END_OF_TEXT = "\x1a"

#: First words of lines that name no move to play. The books of other programs have them.
_NO_MOVES = (_NO_MOVE, "resign", "win")

#: The order of the pieces in hand in an sfen; and one kind of them, with its number.
_HAND_ORDER = "RBGSNLPrbgsnlp"
_IN_HAND = re.compile(rf"(\d*)([{_HAND_ORDER}])", re.ASCII)

_NUMBER = re.compile(r"[-+]?\d{1,18}", re.ASCII)


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
    try:
        # Not splitlines(): comments may contain characters at which it splits, too.
        lines = Path(path).read_text(encoding="utf-8-sig", errors="replace").split("\n")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BookError(
            f"book {os.fspath(path)} cannot be read: {reason}. Choose another file."
        ) from None
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith(("#", "//", _END_OF_TEXT)):
            continue
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


def write_book(path: str | os.PathLike[str], book: Book) -> None:
    """Writes a book atomically, sorted as binary searches expect it.

    Raises:
        OSError: The file cannot be written.
    """
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
