"""Fast parser of CSA records: thousands of records at once.

It joins the records to one array of bytes and classifies all lines with numpy. It reads
the records that game servers write for an even game. Each line must be a move (perhaps with
its time and a comment), a time, a header or a comment. First comes ``PI`` or the nine rows of
the even game, then ``+``, then moves in turn, then at most one end mark. All other records
are left to :func:`pydlshogi.kifu.csa.parse_game`, which gives the same result for all.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import NamedTuple

import numpy
import shogi

from pydlshogi.common import SQUARE_NUM
from pydlshogi.kifu import stopping
from pydlshogi.kifu.csa import FALSE_DECLARATION, SUMMARY, evaluation_of, summary_result
from pydlshogi.kifu.csa_board import PIECE_NAMES, SQUARE_NAMES, position_lines
from pydlshogi.kifu.parsed_game import FOULS, end_result
from pydlshogi.kifu.replay import Games
from pydlshogi.positions import (
    EVALUATION_MAX,
    EVEN_GAME,
    HAND_NUM,
    NO_EVALUATION,
    UNKNOWN,
)

_LF, _CR, _BLANK, _COMMA, _DOT, _QUOTE, _STAR, _T, _PLUS, _MINUS = b"\n\r ,.'*T+-"
_BAD = 255
_MOVE_SIZE = len("+7776FU")


def _even_rows() -> Iterator[bytes]:
    """Yields the even game in rows, in the ways that real files write it."""
    rows = position_lines(shogi.Board())[:9]
    for line_end in ("\n", "\r\n"):
        yield line_end.join(rows).encode()
        yield line_end.join(row.rstrip() for row in rows).encode()


_EVEN_ROWS = tuple(_even_rows())


# Evaluations with more digits are parsed one by one. Engines write mates with at most six.
_DIGITS = 6
# A record with a longer time, or a longer line of an end mark, is parsed alone.
_LONGEST_TIME, _LONGEST_END = 20, 200


class Scanned(NamedTuple):
    """Result of :func:`scan`.

    Attributes:
        plain: Whether each record was read, (records,) bool.
        games: The games of the plain records, in order; None if there are none.
        summaries: Result for Black by floodgate's summary, for each game; ``UNKNOWN`` if
            there is no summary.
    """

    plain: numpy.ndarray
    games: Games | None
    summaries: numpy.ndarray


def scan(records: list[bytes]) -> Scanned:
    """Reads the plain records of a batch: at least one text without ``/`` lines."""
    records = [_with_short_start(record) for record in records]
    # Every record ends with a line end. The padding allows reading 8 bytes anywhere.
    joined = b"\n".join(records) + b"\n" + bytes(8)
    text = numpy.frombuffer(joined, dtype=numpy.uint8)
    sizes = numpy.fromiter(map(len, records), dtype=numpy.int64, count=len(records)) + 1
    record_start = numpy.cumsum(sizes) - sizes
    plain = numpy.ones(len(records), dtype=bool)

    line_start, line_end = _find_lines(joined, text, record_start, plain)
    first_line = numpy.searchsorted(line_start, record_start)
    size = line_end - line_start
    first = text[line_start]
    is_move = ((first == _PLUS) | (first == _MINUS)) & (size >= _MOVE_SIZE)
    move_line = numpy.flatnonzero(is_move)
    move_number = numpy.searchsorted(move_line, first_line)
    lengths = numpy.diff(move_number, append=len(move_line))
    record_of_move = numpy.repeat(numpy.arange(len(records)), lengths)
    origin, target, piece, good = _read_moves(
        text, line_start[move_line], line_end[move_line], first[move_line] == _MINUS
    )
    ply = numpy.arange(len(move_line)) - numpy.repeat(move_number, lengths)
    good &= (ply & 1) == (first[move_line] == _MINUS)
    plain[record_of_move[~good]] = False
    plain &= lengths > 0

    stopping.check()
    line = numpy.flatnonzero(~is_move)
    lines = _Lines(
        joined,
        text,
        line,
        line_start[line],
        line_end[line],
        numpy.searchsorted(first_line, line, side="right") - 1,
        (numpy.cumsum(is_move) - 1)[line],
    )
    results, summaries, end_line = _read_other_lines(lines, plain, move_line, move_number, lengths)
    stopping.check()
    evaluation = _read_evaluations(lines, move_number, end_line, ply)
    keep = plain[record_of_move]
    games = None
    if keep.any():
        count = int(plain.sum())
        games = Games(
            origin=origin[keep],
            target=target[keep],
            piece=piece[keep],
            claimed=numpy.zeros(int(keep.sum()), dtype=numpy.uint8),
            evaluation=evaluation[keep],
            lengths=lengths[plain],
            starts=numpy.tile(numpy.frombuffer(EVEN_GAME, dtype=numpy.uint8), (count, 1)),
            turns=numpy.full(count, shogi.BLACK, dtype=numpy.uint8),
            results=results[plain],
        )
    return Scanned(plain, games, summaries[plain])


def _with_short_start(record: bytes) -> bytes:
    """Replaces the nine rows of the even game by ``PI``."""
    if b"P1" in record:
        for rows in _EVEN_ROWS:
            if record.startswith(rows):
                record = b"PI" + record[len(rows) :]
            record = record.replace(b"\n" + rows, b"\nPI")
    return record


def _find_lines(
    joined: bytes, text: numpy.ndarray, record_start: numpy.ndarray, plain: numpy.ndarray
) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Finds start and end of all lines. Records with a lone CR lose ``plain``."""
    end = numpy.flatnonzero(text == _LF)
    start = numpy.empty_like(end)
    start[0] = 0
    start[1:] = end[:-1] + 1
    if b"\r" in joined:
        returns = numpy.flatnonzero(text == _CR)
        lone = returns[text[returns + 1] != _LF]
        plain[numpy.searchsorted(record_start, lone, side="right") - 1] = False
        end -= (text[end - 1] == _CR) & (end > start)
    return start, end


def _read_moves(
    text: numpy.ndarray, start: numpy.ndarray, end: numpy.ndarray, white: numpy.ndarray
) -> tuple[numpy.ndarray, ...]:
    """Reads lines that begin like moves: origin, target and piece, seen from the mover.

    The last column says whether the line is a move, perhaps with its time and a comment.
    """
    squares, pieces, turned = _number_tables()
    word = numpy.ndarray((len(text) - 7,), dtype="<u8", buffer=text, strides=(1,))[start]
    origin = squares[(word >> numpy.uint64(8)).astype(numpy.uint16)]
    target = squares[(word >> numpy.uint64(24)).astype(numpy.uint16)]
    piece = pieces[(word >> numpy.uint64(40)).astype(numpy.uint16)]
    drop = origin == SQUARE_NUM
    good = (origin != _BAD) & (target < SQUARE_NUM) & (piece != _BAD)
    good &= ~drop | (piece <= HAND_NUM)
    origin = numpy.where(
        drop, piece + numpy.uint8(SQUARE_NUM - 1), turned[white.view("u1"), origin]
    )
    target = turned[white.view("u1"), target]
    longer = numpy.flatnonzero(end - start > _MOVE_SIZE)
    if len(longer):
        good[longer] &= _is_time_or_comment(text, start[longer] + _MOVE_SIZE, end[longer])
    return origin, target, piece, good


def _is_time_or_comment(
    text: numpy.ndarray, start: numpy.ndarray, end: numpy.ndarray
) -> numpy.ndarray:
    """Tests whether each part of the text, none empty, is ``,T5``, ``,'…`` or both."""
    timed = (text[start] == _COMMA) & (text[start + 1] == _T)
    rest = start.copy()
    rest[timed] = _after_digits(text, start[timed] + 2, end[timed])
    comment = (text[rest] == _COMMA) & (text[rest + 1] == _QUOTE)
    return comment | (timed & (rest == end))


class _Lines(NamedTuple):
    """The lines that are not moves.

    Attributes:
        joined: Text of all records, as bytes.
        text: The same text as an array.
        number: Number of the line among all lines.
        start, end: Position of the line in the text.
        record: Number of its record.
        move: Number of the last move before the line, in any record; -1 if there is none.
    """

    joined: bytes
    text: numpy.ndarray
    number: numpy.ndarray
    start: numpy.ndarray
    end: numpy.ndarray
    record: numpy.ndarray
    move: numpy.ndarray


def _read_other_lines(
    lines: _Lines,
    plain: numpy.ndarray,
    move_line: numpy.ndarray,
    move_number: numpy.ndarray,
    lengths: numpy.ndarray,
) -> tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]:
    """Reads the lines that are not moves. Records with another line lose ``plain``.

    Returns:
        For each record: the result for Black, uint8; the summary for Black, uint8; and the number
        of the line with the end mark, -1 if there is none.
    """
    text, size = lines.text, lines.end - lines.start
    first, second = text[lines.start], text[lines.start + 1]
    is_comment = first == _QUOTE
    is_start = (size == 2) & (first == ord("P")) & (second == ord("I"))
    is_turn = (size == 1) & (first == _PLUS)
    is_end = first == ord("%")
    known = (size == 0) | is_comment | is_start | is_turn | is_end
    known |= (first == ord("V")) | (first == ord("$"))
    known |= (first == ord("N")) & ((second == _PLUS) | (second == _MINUS)) & (size >= 2)
    time = numpy.flatnonzero((first == _T) & (size > 0))
    known[time] = _after_digits(text, lines.start[time] + 1, lines.end[time]) == lines.end[time]
    plain[lines.record[~known]] = False

    # One PI, then one +, then the moves, then at most one end mark.
    some = lengths > 0
    first_move = move_line[move_number[some]]
    last_move = move_line[move_number[some] + lengths[some] - 1]
    start_line, start_count = _place_in_record(lines, is_start, len(plain))
    turn_line, turn_count = _place_in_record(lines, is_turn, len(plain))
    end_line, end_count = _place_in_record(lines, is_end, len(plain))
    plain &= (start_count == 1) & (turn_count == 1) & (end_count <= 1) & (start_line < turn_line)
    plain[some] &= turn_line[some] < first_move
    plain[some] &= (end_count[some] == 0) | (end_line[some] > last_move)

    results = numpy.full(len(plain), UNKNOWN, dtype=numpy.uint8)
    for index in stopping.watched(numpy.flatnonzero(is_end)):
        record = lines.record[index]
        line = lines.joined[lines.start[index] : lines.end[index]]
        mark = _end_mark(line) if len(line) <= _LONGEST_END else None
        if mark is None:
            plain[record] = False
        else:
            results[record] = mark[lengths[record] & 1]
    summaries = numpy.full(len(plain), UNKNOWN, dtype=numpy.uint8)
    for index in stopping.watched(numpy.flatnonzero(is_comment & (second == ord("s")))):
        match = SUMMARY.match(lines.joined, lines.start[index], lines.end[index])
        if match:
            record = lines.record[index]
            kind, *words = match.groups()
            summaries[record] = summary_result(*words)
            plain[record] &= kind != FALSE_DECLARATION
    return numpy.where(end_count > 0, results, summaries), summaries, end_line


def _read_evaluations(
    lines: _Lines, move_number: numpy.ndarray, end_line: numpy.ndarray, ply: numpy.ndarray
) -> numpy.ndarray:
    """Reads floodgate's evaluations, ``'** 120 …`` after a move, for the mover: (moves,) int16.

    ``move_number`` is the number of each record's first move, ``end_line`` that of its line with
    the end mark or -1, ``ply`` that of each move in its record, from 0. Of several evaluations
    after a move the last one counts.
    """
    evaluation = numpy.full(len(ply), NO_EVALUATION, dtype=numpy.int16)
    text, start, record = lines.text, lines.start, lines.record
    chosen = numpy.flatnonzero(text[start] == _QUOTE)
    chosen = chosen[(text[start[chosen] + 1] == _STAR) & (text[start[chosen] + 2] == _STAR)]
    after_move = lines.move[chosen] >= move_number[record[chosen]]
    end = end_line[record[chosen]]
    chosen = chosen[after_move & ((end < 0) | (lines.number[chosen] < end))]
    value, plain = _read_numbers(text, start[chosen] + len("'**"), lines.end[chosen])
    known = plain.copy()
    for index in stopping.watched(numpy.flatnonzero(~plain)):
        line = chosen[index]
        comment = lines.joined[start[line] : lines.end[line]].decode("latin-1")
        careful = evaluation_of(comment)
        if careful is not None:
            value[index], known[index] = careful, True
    move = lines.move[chosen[known]]
    value = numpy.clip(value[known], -EVALUATION_MAX, EVALUATION_MAX)
    evaluation[move] = numpy.where(ply[move] & 1, -value, value)
    return evaluation


def _read_numbers(
    text: numpy.ndarray, start: numpy.ndarray, end: numpy.ndarray
) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Reads a blank and a whole number of few digits at the start of parts of the text.

    The second array says where such a number is, followed by the part's end or by a blank.
    """
    negative = text[start + 1] == _MINUS
    first = start + 1 + negative
    place = first.copy()
    value = numpy.zeros(len(start), dtype=numpy.int32)
    left = numpy.arange(len(start))
    for _ in range(_DIGITS):
        digit = text[place[left]] - numpy.uint8(ord("0"))
        is_digit = digit < 10
        left = left[is_digit]
        value[left] = 10 * value[left] + digit[is_digit]
        place[left] += 1
    plain = (text[start] == _BLANK) & (place > first)
    plain &= (place == end) | (text[place] == _BLANK)
    return numpy.where(negative, -value, value), plain


def _place_in_record(
    lines: _Lines, chosen: numpy.ndarray, record_num: int
) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Returns the number of the last chosen line of each record, -1 for none, and their count."""
    place = numpy.full(record_num, -1, dtype=numpy.int64)
    place[lines.record[chosen]] = lines.number[chosen]
    return place, numpy.bincount(lines.record[chosen], minlength=record_num)


def _after_digits(text: numpy.ndarray, start: numpy.ndarray, end: numpy.ndarray) -> numpy.ndarray:
    """Finds the end of the digits and dots at the start of each part, but not of a long time."""
    place = start.copy()
    left = numpy.flatnonzero(start < end)
    for _ in range(_LONGEST_TIME):
        if not len(left):
            break
        byte = text[place[left]]
        left = left[((byte >= ord("0")) & (byte <= ord("9"))) | (byte == _DOT)]
        place[left] += 1
        left = left[place[left] < end[left]]
    return place


@functools.lru_cache(maxsize=1024)
def _end_mark(line: bytes) -> tuple[int, int] | None:
    """Returns the result for Black of an end mark, with Black and with White to move.

    None also for a mark that names a foul: the last move may be illegal, so it needs care.
    """
    mark, comma, rest = line.partition(b",'")[0].decode("latin-1").partition(",")
    if comma and (rest[:1] != "T" or rest[1:].strip("0123456789.")):
        return None
    if mark in FOULS:
        return None
    results = end_result(mark, True), end_result(mark, False)
    return None if None in results else results  # type: ignore[return-value]


@functools.lru_cache(maxsize=1)
def _number_tables() -> tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]:
    """Builds the tables of squares and pieces by their two letters as a little-endian integer.

    Other letters have ``_BAD``, 00 has ``SQUARE_NUM``. The third table has the square seen from the
    mover, by [mover is White, square].
    """
    squares = numpy.full(1 << 16, _BAD, dtype=numpy.uint8)
    pieces = numpy.full(1 << 16, _BAD, dtype=numpy.uint8)
    for square, name in enumerate((*SQUARE_NAMES, "00")):
        squares[int.from_bytes(name.encode(), "little")] = square
    for code, name in enumerate(PIECE_NAMES, 1):
        pieces[int.from_bytes(name.encode(), "little")] = code
    turned = numpy.tile(numpy.arange(256, dtype=numpy.uint8), (2, 1))
    turned[1, :SQUARE_NUM] = turned[1, :SQUARE_NUM][::-1]
    return squares, pieces, turned
