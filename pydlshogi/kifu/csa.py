"""Parser of CSA records, one record at a time.

It reads CSA V1, V2.x and V3.0 as real files use them. The encoding is UTF-8 with or without a
BOM, CP932 or EUC-JP; the line ends may be any. Comments stand on their own lines or after a
comma, times on ``T`` lines or as ``,T5``. A line may have several statements. A start position
is given by ``PI``, by ``P1`` … ``P9``, or by ``P+`` and ``P-``.

It also reads floodgate's comments: ratings, the summary, and evaluations (``'** 120 +7776FU …``
after a move: 120 centipawns, seen from Black). Anything else raises ``RecordError`` with the
line number, so a record is read completely or not at all.

The parser does not play the moves; :mod:`pydlshogi.kifu.replay` does.
:mod:`pydlshogi.kifu.csa_scan` reads many plain records at once, with the same result.

Source: the CSA standard, http://www2.computer-shogi.org/protocol/record_v22.html and
record_v3.html; the comments are those of the floodgate server (shogi-server).
"""

from __future__ import annotations

import codecs
import functools
import math
import re
from collections.abc import Callable, Iterator
from typing import NoReturn

import shogi

from pydlshogi.common import SQUARE_NUM
from pydlshogi.kifu import stopping
from pydlshogi.kifu.csa_board import (
    NO_SQUARE,
    PIECE_CODES,
    PIECE_NAMES,
    SQUARES,
    StartPosition,
)
from pydlshogi.kifu.parsed_game import Game, Move, NoMovesError, RecordError, end_result
from pydlshogi.positions import DRAW, EVALUATION_MAX, HAND_NUM, LOSS, UNKNOWN, WIN
from pydlshogi.text import UTF_16_REASON, is_utf_16, looks_like_utf_16, shown, without_end_of_file

_MOVE = re.compile(rf"([+-])(00|[1-9][1-9])([1-9][1-9])({'|'.join(PIECE_NAMES)})")
_MOVE_SIZE = len("+7776FU")
_TIME = re.compile(r"T[0-9.]*")
_LINE_END = re.compile(r"\r\n|\n|\r")
_RECORD_SEPARATOR = re.compile(rb"(?<![^\r\n])/[ \t]*(?=[\r\n]|\Z)")
#: Floodgate's summary: how the game ended, the results of Black and of White.
SUMMARY = re.compile(
    rb"^'summary:([^:\r\n]*):[^\r\n]* (win|lose|draw):[^\r\n]* (win|lose|draw)", re.MULTILINE
)
#: The summary's word for a ``%KACHI`` that the server refused.
FALSE_DECLARATION = b"illegal kachi"
_SUMMARY_RESULTS = {
    (b"win", b"lose"): WIN,
    (b"lose", b"win"): LOSS,
    (b"draw", b"draw"): DRAW,
}
# An evaluation, perhaps followed by the principal variation.
_EVALUATION = re.compile(r"'\*\*[ \t]+([+-]?)([0-9]+)(?![^ \t])")
_ENCODING = re.compile(rb"^'CSA encoding=([-\w]+)", re.MULTILINE)
# Tried in this order: a text rarely decodes by accident in the first two. Other declared names
# are ignored, because Python also has codecs that are not for text or that always fail.
_ENCODINGS = ("utf-8", "euc_jp", "cp932")
_DECLARED = {
    b"UTF-8": "utf-8",
    b"UTF8": "utf-8",
    b"SHIFT_JIS": "cp932",
    b"SHIFT-JIS": "cp932",
    b"SJIS": "cp932",
    b"CP932": "cp932",
    b"WINDOWS-31J": "cp932",
    b"EUC-JP": "euc_jp",
    b"EUCJP": "euc_jp",
}


def summary_result(black: bytes, white: bytes) -> int:
    """Returns the result for Black of a summary's two words, ``UNKNOWN`` if they disagree."""
    return _SUMMARY_RESULTS.get((black, white), UNKNOWN)


def evaluation_of(comment: str) -> int | None:
    """Reads the evaluation in a comment such as ``'** -120 -3334FU``.

    It is in centipawns seen from Black, limited to ``±EVALUATION_MAX``; None for another comment.
    """
    match = _EVALUATION.match(comment)
    if not match:
        return None
    sign, digits = match[1], match[2].lstrip("0") or "0"
    # int() refuses thousands of digits.
    value = min(int(digits), EVALUATION_MAX) if len(digits) < 10 else EVALUATION_MAX
    return -value if sign == "-" else value


def split_records(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Splits a file at its ``/`` lines.

    Yields:
        The number of lines before each record, and its bytes. Blank text after a ``/`` is not a
        record. A file of blanks and ``/`` is one record.
    """
    if data.startswith(codecs.BOM_UTF8):
        data = data[len(codecs.BOM_UTF8) :]
    data = without_end_of_file(data)
    if b"\n/" not in data and b"\r/" not in data and not data.startswith(b"/"):
        yield 0, data
        return
    # In a file that was joined from several files, each part may have a BOM.
    data = data.replace(b"\n" + codecs.BOM_UTF8, b"\n")
    start = lines = 0
    found = False
    for separator in [*_RECORD_SEPARATOR.finditer(data), None]:
        end = separator.start() if separator else len(data)
        record = data[start:end]
        if record.strip():
            found = True
            yield lines, record
        # The line end after the separator becomes a blank line of the next record.
        lines += data.count(b"\n", start, end) + data.count(b"\r", start, end)
        lines -= data.count(b"\r\n", start, end)
        start = separator.end() if separator else end
    if not found:
        yield 0, data


def parse_game(record: bytes) -> Game:
    """Parses one record, in any encoding that contains ASCII and without ``/`` lines.

    Raises:
        RecordError: a part of the record is not CSA. ``NoMovesError`` if there is no move.
    """
    if is_utf_16(record) or looks_like_utf_16(record):
        raise RecordError(0, UTF_16_REASON)
    return _Parser(record).game


class _Parser:
    """Reads the statements of one record in order."""

    def __init__(self, record: bytes) -> None:
        self.game = Game()
        self._moves = self.game.moves
        self._decode = decoder_of(record)
        self._position = StartPosition()
        self._turn: int | None = None
        self._ended = False
        self._false_declaration = False
        # Latin-1 maps each byte to one character. Only names are decoded further.
        lines = _LINE_END.split(record.decode("latin-1"))
        for number, line in enumerate(lines, 1):
            self._line = number
            if not number & 255:
                stopping.check()
            # Most lines are moves, so they are tried first.
            move = _read_move(line) if len(line) == _MOVE_SIZE else None
            if move:
                self._add_move(line, *move)
            else:
                self._read_line(line.rstrip(" \t"))
        if not self.game.moves:
            raise NoMovesError("it has no moves", None if self._turn is None else self.game)
        self._apply_summary()

    def _read_line(self, line: str) -> None:
        if not line or line[0] in "V$":
            return
        if line[0] == "'":
            self._read_comment(line)
        elif line[0] == "N":
            if line[1:2] not in ("+", "-"):
                self._fail(f"unknown statement {shown(line)}")
            self.game.names["+-".index(line[1])] = self._decode(line[2:])
        else:
            for statement in stopping.watched(line.split(",")) if "," in line else (line,):
                statement = statement.strip(" \t")
                if statement.startswith("'"):
                    break  # a comment, to the end of the line
                self._read_statement(statement)

    def _read_statement(self, statement: str) -> None:
        move = _read_move(statement) if len(statement) == _MOVE_SIZE else None
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
            self._fail(f"unknown statement {shown(statement)}")

    def _start(self, turn: int) -> None:
        """Sets the start position and the side that moves first."""
        try:
            placement = self._position.placement(turn)
        except ValueError as error:
            self._fail(str(error))
        self._turn = self.game.turn = turn
        self.game.start = placement

    def _add_move(self, statement: str, mover: int, origin: int, target: int, piece: int) -> None:
        if self._turn is None:
            # The record does not say who moves first: Black in the even game, otherwise
            # the side that makes the first move.
            self._start(shogi.BLACK if self._position.is_even() else mover)
        if self._ended:
            self._fail(f"the move {statement} after the end of the game")
        if mover != self._turn ^ (len(self._moves) & 1):  # type: ignore[operator]
            self._fail(f"the move {statement} is not by the side to move")
        if origin >= SQUARE_NUM and piece > HAND_NUM:
            self._fail(f"the move {statement} drops a piece that cannot be in hand")
        self._moves.append(Move(origin, target, piece, 0, self._line))

    def _read_end_mark(self, statement: str) -> None:
        if self._ended:
            # Floodgate writes %KACHI twice: when it is declared and when it is accepted.
            if statement == self.game.end_mark == "%KACHI":
                return
            self._fail(f"a second end mark, {shown(statement)}")
        self._ended = True
        result = end_result(statement, self.game.to_move == shogi.BLACK)
        if result is None:
            self._fail(f"{shown(statement)} is not an end mark")
        self.game.end_mark, self.game.result = statement, result

    def _read_comment(self, line: str) -> None:
        if line.startswith("'**"):
            self._read_evaluation(line)
        elif line.startswith("'summary:"):
            match = SUMMARY.match(line.encode("latin-1"))
            if match:
                kind, *words = match.groups()
                self.game.summary = summary_result(*words)
                self._false_declaration = kind == FALSE_DECLARATION
        elif line.startswith("'black_rate:"):
            self.game.ratings[shogi.BLACK] = _read_rating(line)
        elif line.startswith("'white_rate:"):
            self.game.ratings[shogi.WHITE] = _read_rating(line)

    def _read_evaluation(self, line: str) -> None:
        """Gives the last move its evaluation. After the end mark there is no move for it."""
        value = evaluation_of(line)
        if value is None or not self._moves or self._ended:
            return
        by_black = self.game.to_move == shogi.WHITE
        self._moves[-1] = self._moves[-1]._replace(evaluation=value if by_black else -value)

    def _apply_summary(self) -> None:
        """Takes the result from the summary where the end mark does not give it.

        After a repetition, a time-out or an illegal move the server writes only the summary.
        Otherwise the end mark decides. But ``%KACHI`` is only the declaration of the mover, and
        the summary says whether the server accepted it.
        """
        game = self.game
        false = self._false_declaration and game.end_mark == "%KACHI"
        if game.summary is not None and (game.end_mark is None or false):
            game.result = game.summary

    def _fail(self, reason: str) -> NoReturn:
        raise RecordError(self._line, reason)


def _read_rating(line: str) -> float | None:
    """Parses the rating at the end of a comment; None if it is not a finite number."""
    try:
        rating = float(line.rsplit(":", 1)[1])
    except ValueError:
        return None
    return rating if math.isfinite(rating) else None


@functools.lru_cache(maxsize=1 << 14)
def _read_move(statement: str) -> tuple[int, int, int, int] | None:
    """Parses a statement of 7 characters: mover, origin, target and piece; None: it is no move.

    The same moves occur in many games, so the cache saves most of the work.
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
    if origin_name == NO_SQUARE:
        origin = SQUARE_NUM + piece - 1
    return mover, origin, target, piece


def decoder_of(record: bytes) -> Callable[[str], str]:
    """Returns the decoder for names and comments of a record; it takes latin-1 text."""
    if record.isascii():
        return str
    match = _ENCODING.search(record)
    declared = _DECLARED.get(match[1].upper()) if match else None
    for encoding in (declared, *_ENCODINGS) if declared else _ENCODINGS:
        try:
            record.decode(encoding)
        except UnicodeDecodeError:
            continue
        return lambda name: name.encode("latin-1").decode(encoding, "replace")
    return lambda name: name.encode("latin-1").decode("utf-8", "replace")
