"""CSA text to games, one record at a time and with every care.

Reads CSA V1, V2.x and V3.0 as files really are: UTF-8 with or without a BOM, CP932,
EUC-JP, any line ends, ``'`` comments, times as ``T`` lines or ``,T5``, several
statements on one line, start positions by ``PI``, ``P1`` … ``P9`` and ``P+``/``P-``,
floodgate's ratings and summary. Whatever is none of these raises ``RecordError`` with
the line: a record is read wholly or not at all.

The text of a record is not played here: whether its moves are possible is for
:mod:`pydlshogi.replay` to say. :mod:`pydlshogi.csa_scan` reads many records at once,
the plain ones among them, to the same result.

Source: the CSA standard, http://www2.computer-shogi.org/protocol/record_v22.html and
record_v3.html; the comments are those of the floodgate server.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn

import shogi

from pydlshogi.common import SQUARE_NUM
from pydlshogi.positions import (
    DRAW,
    HAND_NUM,
    LOSS,
    PIECE_NUM,
    UNKNOWN,
    WIN,
    opponents_view,
    placement_of,
)

#: CSA's names of the pieces, in the order of the codes 1..14.
PIECE_NAMES = ("FU", "KY", "KE", "GI", "KI", "KA", "HI", "OU", "TO", "NY", "NK", "NG", "UM", "RY")
PIECE_CODES = {name: code for code, name in enumerate(PIECE_NAMES, 1)}
_KING = PIECE_CODES["OU"]

#: CSA's names of the squares: "91" is square 0, "19" square 80.
SQUARE_NAMES = tuple(f"{9 - x}{y + 1}" for y in range(9) for x in range(9))
SQUARES = {name: square for square, name in enumerate(SQUARE_NAMES)}
_NO_SQUARE = "00"

#: Code of the promoted piece by that of the plain one; gold and king have none.
PROMOTED = {
    PIECE_CODES[plain]: PIECE_CODES[promoted]
    for plain, promoted in zip(("FU", "KY", "KE", "GI", "KA", "HI"), PIECE_NAMES[_KING:])
}
_PLAIN = {promoted: plain for plain, promoted in PROMOTED.items()}

# How many of each kind a shogi set has, by the code of the unpromoted piece.
_PIECES_IN_SET = {1: 18, 2: 4, 3: 4, 4: 4, 5: 4, 6: 2, 7: 2, 8: 2}

#: The even game's start, as Black and as White sees it.
EVEN_GAME = placement_of(shogi.Board())

#: What the end marks mean for the side to move.
END_MARKS = {
    "%TORYO": LOSS,
    "%TIME_UP": LOSS,
    "%TSUMI": LOSS,
    "%ILLEGAL_MOVE": LOSS,
    "%KACHI": WIN,
    "%SENNICHITE": DRAW,
    "%JISHOGI": DRAW,
    "%HIKIWAKE": DRAW,
    "%MAX_MOVES": DRAW,
    "%CHUDAN": UNKNOWN,
    "%MATTA": UNKNOWN,
    "%FUZUMI": UNKNOWN,
    "%ERROR": UNKNOWN,
}
#: End marks that name the side themselves, and what they mean for Black.
END_MARKS_FOR_BLACK = {"%+ILLEGAL_ACTION": LOSS, "%-ILLEGAL_ACTION": WIN}

#: A result as the other side sees it.
OTHER_RESULT = {LOSS: WIN, WIN: LOSS, DRAW: DRAW, UNKNOWN: UNKNOWN}

_MOVE = re.compile(rf"([+-])(00|[1-9][1-9])([1-9][1-9])({'|'.join(PIECE_NAMES)})")
_TIME = re.compile(r"T[0-9.]*")
_LINE_END = re.compile(r"\r\n|\n|\r")
_RECORD_SEPARATOR = re.compile(rb"(?<![^\r\n])/[ \t]*(?=[\r\n]|\Z)")
#: Matches floodgate's summary as written in latin-1: the results of Black and of White.
SUMMARY = re.compile(
    rb"^'summary:[^:\r\n]*:[^\r\n]* (win|lose|draw):[^\r\n]* (win|lose|draw)", re.MULTILINE
)
_SUMMARY_RESULTS = {
    (b"win", b"lose"): WIN,
    (b"lose", b"win"): LOSS,
    (b"draw", b"draw"): DRAW,
}
_ENCODING = re.compile(rb"^'CSA encoding=([-\w]+)", re.MULTILINE)
_BOM = b"\xef\xbb\xbf"


class RecordError(Exception):
    """A record that cannot be read.

    Attributes:
        line: The number of the line in the record, from 1; 0 where there is none to name.
        reason: What is wrong, a clause in words.
    """

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}" if line else reason)
        self.line = line
        self.reason = reason


class Move(NamedTuple):
    """A move as its mover sees it.

    Attributes:
        origin: The square it comes from, 0..80, or 81..87 for a drop: the place of the
            mover's own pawn … rook in a placement.
        target: The square it goes to, 0..80.
        piece: The piece's code after the move, 1..14.
        claimed: The piece's code before the move where the record names it, else 0.
        line: The number of its line in the record, from 1.
    """

    origin: int
    target: int
    piece: int
    claimed: int
    line: int


@dataclass
class Game:
    """A record's text, understood but not yet played.

    Attributes:
        names: Black's and White's, empty where not given.
        ratings: Black's and White's floodgate ratings, None where not given.
        start: Placement before the first move, seen from the side that makes it.
        turn: That side, ``shogi.BLACK`` or ``shogi.WHITE``.
        moves: The moves, the two sides by turns.
        end_mark: ``%TORYO`` and the like as written, None where there is none.
        result: ``WIN``, ``LOSS``, ``DRAW`` or ``UNKNOWN`` for Black.
        summary: The same by floodgate's summary, None where there is none.
    """

    names: list[str] = field(default_factory=lambda: ["", ""])
    ratings: list[float | None] = field(default_factory=lambda: [None, None])
    start: bytes = EVEN_GAME
    turn: int = shogi.BLACK
    moves: list[Move] = field(default_factory=list)
    end_mark: str | None = None
    result: int = UNKNOWN
    summary: int | None = None

    @property
    def winner(self) -> int | None:
        """``shogi.BLACK``, ``shogi.WHITE``, or None if neither has won."""
        return {WIN: shogi.BLACK, LOSS: shogi.WHITE}.get(self.result)


def end_result(mark: str, black_to_move: bool) -> int | None:
    """Says what an end mark means for Black.

    Args:
        mark: ``%TORYO`` and the like.
        black_to_move: Whether Black was to move when the game ended.

    Returns:
        ``WIN``, ``LOSS``, ``DRAW`` or ``UNKNOWN``; None if there is no such mark.
    """
    if mark in END_MARKS_FOR_BLACK:
        return END_MARKS_FOR_BLACK[mark]
    if mark in END_MARKS:
        return END_MARKS[mark] if black_to_move else OTHER_RESULT[END_MARKS[mark]]
    return None


def summary_result(black: bytes, white: bytes) -> int:
    """Gives Black's result of a summary's two words, ``UNKNOWN`` if they disagree."""
    return _SUMMARY_RESULTS.get((black, white), UNKNOWN)


def split_records(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Splits a file at its ``/`` lines.

    Args:
        data: The whole file.

    Yields:
        For each record the number of lines before it, and its bytes. What follows the
        last ``/`` is no record if it is blank.
    """
    if data.startswith(_BOM):
        data = data[len(_BOM) :]
    if b"\n/" not in data and b"\r/" not in data and not data.startswith(b"/"):
        yield 0, data
        return
    start = lines = 0
    for separator in [*_RECORD_SEPARATOR.finditer(data), None]:
        end = separator.start() if separator else len(data)
        record = data[start:end]
        if record.strip():
            yield lines, record
        # The end of the separator's line stays with the next record, as a blank line.
        lines += len(_LINE_END.findall(record.decode("latin-1")))
        start = separator.end() if separator else end


def parse_game(record: bytes) -> Game:
    """Reads one record.

    Args:
        record: Its text, without ``/`` lines, in any encoding that keeps ASCII.

    Returns:
        The game; its moves may still turn out to be impossible on the board.

    Raises:
        RecordError: something in it cannot be understood, or there is no move.
    """
    return _Reader(record).game


class _Reader:
    """Reads the statements of one record in turn."""

    def __init__(self, record: bytes) -> None:
        self.game = Game()
        self._decode = _name_decoder(record)
        self._position = _StartPosition()
        self._turn: int | None = None
        self._ended = False
        # Latin-1 keeps each byte one character; only names are decoded further.
        for number, line in enumerate(_LINE_END.split(record.decode("latin-1")), 1):
            self._line = number
            # Most lines are moves: they go the short way.
            move = _read_move(line)
            if move:
                self._add_move(line, *move)
            else:
                self._read_line(line.rstrip(" \t"))
        if not self.game.moves:
            raise RecordError(0, "it has no moves")

    def _read_line(self, line: str) -> None:
        if not line or line[0] in "V$":
            return
        if line[0] == "'":
            self._read_comment(line)
        elif line[0] == "N":
            if line[1:2] not in ("+", "-"):
                self._fail(f"unknown statement {_shown(line)}")
            self.game.names["+-".index(line[1])] = self._decode(line[2:])
        else:
            for statement in line.split(",") if "," in line else (line,):
                self._read_statement(statement.strip(" \t"))

    def _read_statement(self, statement: str) -> None:
        move = _read_move(statement)
        if move:
            self._add_move(statement, *move)
        elif _TIME.fullmatch(statement):
            pass
        elif statement in ("+", "-"):
            if self._turn is not None:
                self._fail("the side to move is given twice")
            self._start(shogi.BLACK if statement == "+" else shogi.WHITE)
        elif statement.startswith("P"):
            if self._turn is not None:
                self._fail("a start position after the side to move")
            try:
                self._position.add(statement)
            except ValueError as error:
                self._fail(str(error))
        elif statement.startswith("%"):
            self._read_end_mark(statement)
        else:
            self._fail(f"unknown statement {_shown(statement)}")

    def _start(self, turn: int) -> None:
        """Fixes the start position, now that it is known who moves first."""
        try:
            placement = self._position.placement(turn)
        except ValueError as error:
            self._fail(str(error))
        self._turn = self.game.turn = turn
        self.game.start = placement

    def _add_move(self, statement: str, mover: int, origin: int, target: int, piece: int) -> None:
        if self._turn is None:
            # Without a line for the side to move, the even game begins with Black and
            # a handicap game with whoever makes the first move.
            self._start(shogi.BLACK if self._position.is_even() else mover)
        if self._ended:
            self._fail(f"the move {statement} after the end of the game")
        moves = self.game.moves
        if (mover == self.game.turn) != (len(moves) % 2 == 0):
            self._fail(f"the move {statement} is not of the side to move")
        if origin == SQUARE_NUM + piece - 1 and piece > HAND_NUM:
            self._fail(f"the move {statement} drops what cannot be in hand")
        moves.append(Move(origin, target, piece, 0, self._line))

    def _read_end_mark(self, statement: str) -> None:
        if self._ended:
            self._fail(f"a second end of the game, {_shown(statement)}")
        self._ended = True
        black_to_move = (self.game.turn == shogi.BLACK) == (len(self.game.moves) % 2 == 0)
        result = end_result(statement, black_to_move)
        if result is None:
            self._fail(f"unknown end of the game {_shown(statement)}")
        self.game.end_mark, self.game.result = statement, result

    def _read_comment(self, line: str) -> None:
        if line.startswith("'summary:"):
            match = SUMMARY.match(line.encode("latin-1"))
            if match:
                self.game.summary = summary_result(*match.groups())
            return
        for side, start in enumerate(("'black_rate:", "'white_rate:")):
            if line.startswith(start):
                try:
                    self.game.ratings[side] = float(line.rsplit(":", 1)[1])
                except ValueError:
                    self.game.ratings[side] = None

    def _fail(self, reason: str) -> NoReturn:
        raise RecordError(self._line, reason)


@functools.lru_cache(maxsize=1 << 14)
def _read_move(statement: str) -> tuple[int, int, int, int] | None:
    """Reads a move: who makes it, origin, target and piece; None if it is none.

    Moves repeat from game to game, so that remembering them saves most of the work.
    """
    match = _MOVE.fullmatch(statement)
    if not match:
        return None
    sign, origin_name, target_name, name = match.groups()
    mover = shogi.BLACK if sign == "+" else shogi.WHITE
    piece = PIECE_CODES[name]
    target = SQUARES[target_name]
    origin = SQUARES.get(origin_name, -1)
    if mover == shogi.WHITE:
        target, origin = SQUARE_NUM - 1 - target, SQUARE_NUM - 1 - origin
    if origin_name == _NO_SQUARE:
        origin = SQUARE_NUM + piece - 1
    return mover, origin, target, piece


class _StartPosition:
    """The ``P`` statements of a record, gathered."""

    def __init__(self) -> None:
        self._board = [0] * SQUARE_NUM
        self._hands = [0] * (2 * HAND_NUM)
        self._initial = False
        self._rows: set[int] = set()
        self._placed = False
        self._all_to: int | None = None

    def is_even(self) -> bool:
        """Says whether it is, or for want of any statement is taken as, the even game."""
        return not self._given() or self._packed() == EVEN_GAME

    def placement(self, turn: int) -> bytes:
        """Packs it as the side ``turn`` sees it.

        Raises:
            ValueError: it is incomplete, or no shogi set could make it.
        """
        if not self._given():
            if turn == shogi.WHITE:
                raise ValueError("White moves first, but there is no start position")
            return EVEN_GAME
        if self._rows and len(self._rows) < 9:
            missing = next(row for row in range(1, 10) if row not in self._rows)
            raise ValueError(f"the start position lacks its row P{missing}")
        require_one_set(self._packed())
        if self._all_to is not None:
            counts = _count_pieces(self._packed())
            for code in range(1, HAND_NUM + 1):
                self._hands[HAND_NUM * self._all_to + code - 1] += (
                    _PIECES_IN_SET[code] - counts[code]
                )
        packed = self._packed()
        return packed if turn == shogi.BLACK else opponents_view(packed)

    def add(self, statement: str) -> None:
        """Takes one statement.

        Raises:
            ValueError: it cannot be understood, or contradicts an earlier one.
        """
        kind, rest = statement[1:2], statement[2:]
        if kind == "I":
            if self._given():
                raise ValueError("PI after another start position")
            self._initial = True
            self._board = list(EVEN_GAME[:SQUARE_NUM])
            for square, code in _squares_and_pieces(rest):
                if square is None or code != _type_of(self._board[square]):
                    raise ValueError(f"{statement} removes a piece that is not there")
                self._board[square] = 0
        elif kind in "123456789" and kind:
            self._add_row(int(kind), rest)
        elif kind in "+-" and kind:
            self._placed = True
            for square, code in _squares_and_pieces(rest):
                self._place("+-".index(kind), square, code)
        else:
            raise ValueError(f"unknown statement {_shown(statement)}")

    def _add_row(self, row: int, cells: str) -> None:
        if self._initial or row in self._rows:
            raise ValueError(f"row P{row} is given twice")
        self._rows.add(row)
        # " * " may have lost its last blank to an editor that trims lines.
        cells = cells + " " if len(cells) == 26 else cells
        if len(cells) != 27:
            raise ValueError(f"row P{row} has not nine squares")
        for x in range(9):
            cell = cells[3 * x : 3 * x + 3]
            if cell == " * ":
                continue
            if cell[0] not in "+-" or cell[1:] not in PIECE_CODES:
                raise ValueError(f"row P{row} has the unknown square {_shown(cell)}")
            self._place("+-".index(cell[0]), 9 * (row - 1) + x, PIECE_CODES[cell[1:]])

    def _place(self, side: int, square: int | None, code: int) -> None:
        if self._all_to is not None:
            raise ValueError("a piece is placed after 00AL gave all of them")
        if code == _ALL:
            self._all_to = side
        elif square is None:
            if code > HAND_NUM:
                raise ValueError(f"{PIECE_NAMES[code - 1]} cannot be in hand")
            self._hands[HAND_NUM * side + code - 1] += 1
        elif self._board[square]:
            raise ValueError(f"two pieces are placed on {SQUARE_NAMES[square]}")
        else:
            self._board[square] = code + PIECE_NUM * side

    def _given(self) -> bool:
        return self._initial or bool(self._rows) or self._placed

    def _packed(self) -> bytes:
        return bytes(self._board + self._hands)


# Stands for AL, all the pieces that are left, where a piece's code is expected.
_ALL = 0


def _squares_and_pieces(text: str) -> Iterator[tuple[int | None, int]]:
    """Reads ``55KA00FU…``: squares, None for the hand, with codes of pieces."""
    for start in range(0, len(text), 4):
        square, name = text[start : start + 2], text[start + 2 : start + 4]
        if square == _NO_SQUARE and name == "AL":
            yield None, _ALL
        elif name in PIECE_CODES and (square in SQUARES or square == _NO_SQUARE):
            yield SQUARES.get(square), PIECE_CODES[name]
        else:
            raise ValueError(f"unknown piece {_shown(square + name)} in the start position")


def _type_of(code: int) -> int:
    """Gives the code of the piece without its side."""
    return code - PIECE_NUM if code > PIECE_NUM else code


def require_one_set(placement: bytes) -> None:
    """Checks that one shogi set suffices for a placement.

    Args:
        placement: ``PLACEMENT_SIZE`` bytes, board and hands as in ``POSITION``.

    Raises:
        ValueError: there are too many of a kind, or two kings of one side.
    """
    if max(placement[:SQUARE_NUM].count(king) for king in (_KING, _KING + PIECE_NUM)) > 1:
        raise ValueError("the start position has two kings of one side")
    counts = _count_pieces(placement)
    if any(counts[code] > number for code, number in _PIECES_IN_SET.items()):
        raise ValueError("the start position has more pieces than a shogi set")


def _count_pieces(placement: bytes) -> dict[int, int]:
    """Counts the pieces on the board and in hand, by their unpromoted code."""
    counts = dict.fromkeys(_PIECES_IN_SET, 0)
    for code in placement[:SQUARE_NUM]:
        if code:
            counts[_PLAIN.get(_type_of(code), _type_of(code))] += 1
    for place, count in enumerate(placement[SQUARE_NUM:]):
        counts[place % HAND_NUM + 1] += count
    return counts


def _shown(text: str) -> str:
    """Quotes a piece of a record, cut short and printable."""
    return ascii(text if len(text) <= 20 else text[:20] + "...")


def _name_decoder(record: bytes) -> Callable[[str], str]:
    """Chooses how the names of a record, given as latin-1, are decoded."""
    if record.isascii():
        return str
    declared = _ENCODING.search(record)
    tries = ["utf-8", "euc_jp", "cp932"]  # from the most to the least particular
    if declared:
        tries.insert(0, declared[1].decode("ascii"))
    for encoding in tries:
        try:
            record.decode(encoding)
        except (UnicodeDecodeError, LookupError):
            continue
        return lambda name: name.encode("latin-1").decode(encoding, "replace")
    return lambda name: name.encode("latin-1").decode("utf-8", "replace")
