"""Parsers of KIF (.kif, .kifu) and KI2 (.ki2) records.

A move of KIF has a number and the square it leaves: ``1 ７六歩(77)``. It names the piece before the
move, and :mod:`pydlshogi.kifu.replay` compares it with the board. So a promotion that is written
with the name of the promoted piece is an error. Moves must be numbered without a gap, so a lost
line is found.

KI2 is the notation of books and newspapers: ``▲７六歩 △３四歩``. Where several pieces of this kind
could go to the target, more words choose one. 右, 左 and 直 mean the piece on the right, on the
left, or straight below the target. 上, 寄 and 引 mean that it moves forward, sideways or back. 打
means a drop where a piece on the board could go there, too. So the parser plays the game, and finds
the piece on the board. The mark of a move must be that of the side to move.

The moves tell the format, not the suffix. Text after the first variation (``変化``) is ignored.
Sources: the format of Kifu for Windows, the notation of the Japan Shogi Association. The tests
compare with python-shogi, cshogi and rsshogi.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import NoReturn

import shogi

from pydlshogi.common import SQUARE_NUM
from pydlshogi.kifu import stopping
from pydlshogi.kifu.kif_text import (
    BLACK_MARKS,
    BLANKS,
    CODES,
    COMMENT_MARKS,
    DIAGRAM_LINE,
    DIGITS,
    HEADER_LINE,
    LONGEST_CLOSING,
    TARGET_AND_PIECE,
    WHITE_MARKS,
    End,
    Header,
    closing_end,
    decode_record,
    end_of,
    is_closing,
    lines_of,
    square_of,
)
from pydlshogi.kifu.legality import board_of, possible_move
from pydlshogi.kifu.movement import origins, placement_after
from pydlshogi.kifu.parsed_game import Game, Move, NoMovesError, RecordError
from pydlshogi.positions import HAND_NUM, PLY_MAX, PROMOTED, UNKNOWN
from pydlshogi.text import shown

_MARKS = BLACK_MARKS + WHITE_MARKS
# Bytes at the start of a file that are searched for moves.
_BEGINNING = 1 << 16
# The title of the columns, and headers: of each group, a game has one.
_TITLE = "手数--"
_NAMES = ("先手：", "先手:", "下手：", "下手:")
_GROUPS = ((_TITLE,), _NAMES, ("手合割",), ("開始日時：", "開始日時:"))
_ONCE = tuple(word for group in _GROUPS for word in group)
_CODES = ("utf-8", "cp932", "euc_jp")
_ONCE_AS_BYTES = [[word.encode(code) for word in group] for group in _GROUPS for code in _CODES]

_ORIGIN = rf"[(（]([{''.join(DIGITS)}])([{''.join(DIGITS)}])[)）]"
_NUMBER = rf"[{BLANKS}]*([0-9０-９]+)(?![0-9０-９])(?:手目|[.．:：)）、])?[{BLANKS}]*"
_MOVE = (
    rf"(?:[{_MARKS}][{BLANKS}]*)?{TARGET_AND_PIECE}[{BLANKS}]*"
    rf"(?:打(?:[{BLANKS}]*[(（]00[)）])?|(?:(不?成|生)[{BLANKS}]*)?{_ORIGIN})"
)
# Text after a move of KIF: its times, + if a variation begins, a comment.
_TIME = r"[(（\[][ 　/／:：.,，\-0-9０-９時間分秒]*[)）\]]"
_AFTER = rf"[{BLANKS}]*(?:{_TIME}[{BLANKS}]*)*(?:\+[{BLANKS}]*)?(?:[{COMMENT_MARKS}].*)?"
# A line with a move; a line with a number, for lines that are wrong or have a word in its place.
_KIF_LINE = re.compile(f"{_NUMBER}{_MOVE}{_AFTER}")
_NUMBERED = re.compile(rf"{_NUMBER}(\S.*)?")
_KIF_MOVE = re.compile(_MOVE)
_PLAIN = re.compile(rf"[0-9０-９]+[{BLANKS}]+(\S.*)")
# Of a move that may be damaged; the beginning of what may follow a word for the end.
_PART_OF_MOVE = re.compile(f"{TARGET_AND_PIECE}|{_ORIGIN}")
_AFTER_END = r"[(（\[*＊+]"
_REST = re.compile(_AFTER)
# Characters of a damaged move, which a word for the end of a game does not have.
_OF_A_MOVE = re.compile(rf"[0-9０-９同打]|[成{''.join(name[-1] for name in CODES)}]$")

_KI2_MOVE = re.compile(
    rf"([{_MARKS}])[{BLANKS}]*{TARGET_AND_PIECE}([右左直])?([上行寄引])?(打)?(成|不成|生)?"
    rf"(?:[{BLANKS}]*{_ORIGIN})?"
)
_DIGIT = re.compile("[0-9０-９]")
_GAP = re.compile(rf"[{BLANKS}]*")
_BRACKETS = re.compile(r"[(（][^()（）]*[)）]")
_WORD = re.compile(rf"[{_MARKS}]?[{BLANKS}]*([^{_MARKS}{BLANKS}]+)")
# What a comment behind the moves of a line must not have, unless it has a mark of its own.
_LIKE_A_MOVE = re.compile(rf"[{_MARKS}0-9０-９同]|[{''.join(DIGITS)}]{{2}}")
_FIRST_KI2_MOVE = re.compile(rf"[{BLANKS}]*{_KI2_MOVE.pattern}(?=[{BLANKS}{_MARKS}(（]|\Z)")
_FIRST_KIF_MOVE = re.compile(rf"[{BLANKS}]*[0-9０-９]+[{BLANKS}]+{_MOVE}")


def parse_kif(data: bytes) -> Game:
    """Parses one record of KIF or KI2. The game's end mark has CSA's name.

    Raises:
        RecordError: a part of the record is neither KIF nor KI2, or a move of KI2 can be made by no
            piece or by several. ``NoMovesError`` if there is no move.
    """
    lines = lines_of(decode_record(data))
    return (_Ki2Reader if _is_ki2(lines) else _KifReader)(lines).game


def looks_like_kif(data: bytes) -> bool:
    """Tests whether a file begins with a header or moves of KIF or KI2."""
    try:
        text = decode_record(data[:_BEGINNING])
    except RecordError:
        return False
    return any(
        line.startswith((_TITLE, "手合割"))
        or _FIRST_KI2_MOVE.match(line)
        or _FIRST_KIF_MOVE.match(line)
        for line in lines_of(text)
    )


def _is_ki2(lines: list[str]) -> bool:
    """Tests whether the first line with moves is one of KI2."""
    for line in stopping.watched(lines):
        if _FIRST_KI2_MOVE.match(line):
            return True
        if _FIRST_KIF_MOVE.match(line):
            return False
    return False


def split_games(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Splits a file into games: yields the number of lines before each, and its bytes."""
    lines: list[str] = []
    if any(sum(map(data.count, group)) > 1 for group in _ONCE_AS_BYTES):
        with contextlib.suppress(RecordError):
            lines = lines_of(decode_record(data))
    starts = list(_starts_of_games(lines))
    if len(starts) < 2:
        yield 0, data
        return
    for start, end in zip(starts, [*starts[1:], len(lines)]):
        yield start, "\n".join(lines[start:end]).encode()


def _starts_of_games(lines: list[str]) -> Iterator[int]:
    """Yields the number of each game's first line.

    A header below moves is a note. If moves follow, it begins a game with the header lines above.
    """
    yield 0
    # Headers below moves; another one below a title without moves.
    headers: list[int] = []
    second, has_moves, has_title = -1, False, False
    # Where the lines begin that may belong to a header; the line below a diagram.
    begin = diagram = 0
    for number, line in enumerate(lines):
        line = line.lstrip(BLANKS)
        numbered = _PLAIN.match(line)
        if _FIRST_KI2_MOVE.match(line) or (numbered and begins_game(numbered[1])):
            yield from headers
            headers, second, begin = [], -1, number + 1
            has_moves, has_title = True, False
        elif line.startswith("変化"):
            headers, second = [], -1
        elif line.startswith(_TITLE):
            if second >= 0:  # the game of the title before has no moves
                headers.append(second)
            elif has_moves and not headers:
                headers = [begin]
            second, has_title, begin = -1, True, number + 1
        elif line.startswith(_ONCE):
            # A board above the date or the handicap shows how the game before ended.
            first = begin if line.startswith(_NAMES) else max(begin, diagram)
            if has_moves and not headers:
                headers = [first]
            elif has_title and second < 0:
                second = first
        elif DIAGRAM_LINE.match(line):
            diagram = number + 1
        elif begin < number and (numbered or line[:1] in COMMENT_MARKS):
            pass  # within a header: 10 秒将棋, a comment, an empty line
        elif not HEADER_LINE.match(line):
            begin = number + 1


def begins_game(text: str) -> bool:
    """Says whether the text of a numbered line is an end or like a move: ``10 秒将棋`` is not."""
    is_move = _PART_OF_MOVE.search(text)
    return bool(is_move or end_of(re.split(_AFTER_END, text, maxsplit=1)[0], True))


class _Reader:
    """Reads the lines of one record in order. A subclass reads the lines with moves."""

    def __init__(self, lines: list[str]) -> None:
        self.game = Game()
        self._header = Header(self.game)
        self._started = False
        self._ended = False
        for self._line, line in stopping.watched(enumerate(lines, 1)):
            begin = line.lstrip(BLANKS)
            # Some programs also write such a line into the header.
            if self._started and begin.startswith("変化"):
                break
            if begin and begin[0] not in COMMENT_MARKS and not self._read_moves(line):
                self._read_line(line, begin)
        if not self.game.moves:
            if self._header.has_position():
                self._start()
            raise NoMovesError(
                "it has no moves of KIF or KI2", self.game if self._started else None
            )
        if self.game.summary is not None and self.game.result == UNKNOWN:
            # Some programs write only the closing line, or their own word for the end.
            self.game.result = self.game.summary

    def _read_moves(self, line: str) -> bool:
        """Reads a line with moves; returns False if it has none."""
        raise NotImplementedError

    def _read_line(self, line: str, begin: str) -> None:
        """Reads a line without moves; ``begin`` is the line without blanks at its start."""
        if begin.startswith("まで") or (self._started and is_closing(line)):
            self._read_closing(line)
        elif not self._started:
            self._header.read(self._line, begin)
        # People and web pages write notes below the game.
        elif not (self._read_end(begin) or self._ended):
            self._fail("a line that is not a move")

    def _read_closing(self, line: str) -> None:
        end = closing_end(line, self._black_to_move())
        self._ended = self._started
        if end is None:
            return
        self.game.summary = end.result
        if self.game.end_mark is None and self.game.result == UNKNOWN:
            self.game.end_mark = end.mark

    def _read_end(self, word: str) -> bool:
        """Reads the word for the end of the game; returns whether it is a usual one."""
        end = end_of(word, self._black_to_move())
        if end is None:
            return False
        known = End(self.game.end_mark, self.game.result)
        # A game that was resigned may be marked as interrupted, too.
        if known.result == UNKNOWN:
            self.game.end_mark, self.game.result = end
        elif end.result not in (UNKNOWN, known.result):
            self._fail("a second end of the game")
        self._ended = True
        return True

    def _start(self) -> None:
        """Sets the start position, before the first move."""
        if not self._started:
            self._started = True
            self._header.start(self._line)

    def _refuse_after_end(self) -> None:
        if self._ended:
            self._fail("a move after the end of the game")

    def _add(self, origin: int, target: int, piece: int, claimed: int) -> None:
        if len(self.game.moves) == PLY_MAX:
            self._fail(f"the game has more than {PLY_MAX} moves")
        self.game.moves.append(Move(origin, target, piece, claimed, self._line))

    def _target(self, file: str | None, rank: str | None) -> int:
        """Returns the target of a move, seen from the mover; the arguments are None for 同."""
        if file and rank:
            return self._square(file, rank)
        if not self.game.moves:
            self._fail("the first move says 同, but there is no move before it")
        return SQUARE_NUM - 1 - self.game.moves[-1].target

    def _square(self, file: str, rank: str) -> int:
        """Returns a square, seen from the mover."""
        square = square_of(DIGITS[file], DIGITS[rank])
        return square if self._black_to_move() else SQUARE_NUM - 1 - square

    def _after(self, code: int, promotion: str | None) -> int:
        """Returns the piece after the move."""
        if promotion != "成":
            return code
        if code not in PROMOTED:
            self._fail("it promotes a piece that cannot promote")
        return PROMOTED[code]

    def _black_to_move(self) -> bool:
        return self.game.to_move == shogi.BLACK

    def _fail(self, reason: str) -> NoReturn:
        raise RecordError(self._line, reason)


class _KifReader(_Reader):
    """Reads numbered moves."""

    #: Moves before the start position that the numbers count, and numbered ends that were read.
    _before = _ends = 0

    def _read_moves(self, line: str) -> bool:
        match = _KIF_LINE.fullmatch(line)
        if match is None:
            return self._read_numbered(line)
        number, *move = match.groups()
        if self._goes_on_with(number, True):
            self._read_move(*move)
        return True

    def _goes_on_with(self, number: str, is_move: bool) -> bool:
        """Checks the number of a line; returns False for the one of the start position."""
        if not self._started:
            self._start()
        count = len(self.game.moves)
        if not (count or number.strip("0０")):
            return False  # some programs number the start position
        if is_move:
            self._refuse_after_end()
        if number != str(self._before + count + 1):
            self._check_number(number)
        return True

    def _read_numbered(self, line: str) -> bool:
        """Reads a line with a number and a word, or with a move and unknown text."""
        numbered = _NUMBERED.fullmatch(line)
        if numbered is None:
            return False
        number, text = numbered[1], numbered[2] or ""
        is_move = _KIF_MOVE.match(text)
        is_plain = number.isascii() and text and line[numbered.end(1)] in BLANKS
        is_plain = is_plain and (self._started or begins_game(text))
        if not (is_move or is_plain or (self._started and end_of(text, True))):
            return False  # no move: 2020年, 10:00, 77手で…, the files above a diagram
        if self._goes_on_with(number, bool(is_move)) and (
            is_move or not _REST.fullmatch(self._read_word(text))
        ):
            self._fail("unknown text after the move")
        return True

    def _check_number(self, number: str) -> None:
        expected = len(self.game.moves) + 1
        # int() refuses thousands of digits.
        found = int(number) if len(number) < 10 else -1
        if expected == 1 and self._header.may_begin_with(found):
            self._before = found - 1
        if not self._before + expected <= found <= self._before + expected + self._ends:
            self._fail(f"move number {shown(number)} instead of {self._before + expected}")

    def _read_move(
        self,
        file: str | None,
        rank: str | None,
        name: str,
        promotion: str | None,
        *origin: str | None,
    ) -> None:
        code = CODES[name]
        target = self._target(file, rank)
        if origin[0] and origin[1]:
            after = self._after(code, promotion) if promotion else code
            self._add(self._square(origin[0], origin[1]), target, after, code)
            return
        if code > HAND_NUM:
            self._fail("it drops a piece that cannot be in hand")
        self._add(SQUARE_NUM + code - 1, target, code, 0)

    def _read_word(self, text: str) -> str:
        """Reads a word for the end of the game; returns the text after it."""
        for cut in (_AFTER_END, rf"{_AFTER_END}|[{BLANKS}]"):
            word = re.split(cut, text, maxsplit=1)[0]
            # 千日手（連続王手） is no draw: the closing line gives the result.
            if "連続王手" not in text and self._read_end(word):
                self._ends += 1
                return _BRACKETS.sub("", text[len(word) :])
        if closing_end(text, self._black_to_move()):
            self._read_closing(text)
            return ""
        rest = text[len(word) :]
        # No move contains 手, but ends of a game do, for example 王手連続千日手.
        damaged = _OF_A_MOVE.search(word) and "手" not in word
        without_time = _DIGIT.search(rest) and ":" not in rest
        if damaged or without_time or not word.replace("-", "").isalnum():
            self._fail("neither a move nor a known end of the game")
        self._refuse_after_end()
        self._ended = True
        return _BRACKETS.sub("", rest)


class _Ki2Reader(_Reader):
    """Reads moves with the marks of the sides, and follows them on the board."""

    def _start(self) -> None:
        if not self._started:
            super()._start()
            #: The board and hands, seen from the side to move.
            self._placement = self.game.start

    def _read_moves(self, line: str) -> bool:
        first = _FIRST_KI2_MOVE.match(line)
        if not (first or (self._started and line.lstrip(BLANKS)[:1] in tuple(_MARKS))):
            return False
        self._start()
        place = _end_of(_GAP, line, 0)
        while place < len(line):
            stopping.check()
            match = _KI2_MOVE.match(line, place)
            if match:
                self._read_move(*match.groups())
                end = match.end()
            else:
                end = self._read_other(line, place)
            place = _end_of(_GAP, line, end)
        return True

    def _read_other(self, line: str, place: int) -> int:
        """Reads the end, a time or a comment on a line with moves; returns where it ends."""
        end = _end_of(_BRACKETS, line, place)
        if end > place:
            return end
        rest = line[place : place + LONGEST_CLOSING]  # copies of all would take quadratic time
        if is_closing(rest):
            self._read_closing(rest)
            return len(line)
        if rest[0] in COMMENT_MARKS:
            return len(line)
        word = _WORD.match(line, place)
        if word and self._read_end(word[1]):
            return word.end()
        if _LIKE_A_MOVE.search(line, place):
            self._fail("neither a move nor a known end of the game")
        return len(line)

    def _read_move(
        self,
        mark: str,
        file: str | None,
        rank: str | None,
        name: str,
        side: str | None,
        motion: str | None,
        drop: str | None,
        promotion: str | None,
        *origin: str | None,
    ) -> None:
        self._refuse_after_end()
        if (mark in BLACK_MARKS) != self._black_to_move():
            self._fail(f"move {len(self.game.moves) + 1} is not by the side to move")
        code = CODES[name]
        target = self._target(file, rank)
        after = self._after(code, promotion)
        in_hand = code <= HAND_NUM and self._placement[SQUARE_NUM + code - 1] > 0
        named = side or motion or promotion or origin[0]
        may_be_drop = in_hand and not (named or self._placement[target])
        squares = [] if drop else origins(self._placement, code, target)
        if origin[0] and origin[1]:
            squares = [s for s in squares if s == self._square(origin[0], origin[1])]
        if len(squares) + may_be_drop > 1:
            # Some writers do not count a piece that may not move, because it protects its king.
            board = board_of(self._placement, shogi.BLACK)
            moves = [Move(square, target, after, code, self._line) for square in squares]
            legal = [move.origin for move in moves if possible_move(board, move) is not None]
            squares = legal if legal or may_be_drop else squares
        squares = _of_side(_of_motion(squares, target, motion), target, side)
        if len(squares) > 1:
            self._fail(f"move {len(self.game.moves) + 1} can be made by several pieces")
        if not squares and not may_be_drop:
            self._fail(f"move {len(self.game.moves) + 1} can be made by no piece")
        square = squares[0] if squares else SQUARE_NUM + code - 1
        self._add(square, target, after, code if squares else 0)
        self._placement = placement_after(self._placement, square, target, after)


def _of_side(squares: list[int], target: int, side: str | None) -> list[int]:
    """Selects the pieces on one side. The mover sees the leftmost file first in each rank."""
    if side is None or not squares:
        return squares
    if side == "直":  # one step straight forward
        return [square for square in squares if square == target + 9]
    files = [square % 9 for square in squares]
    wanted = min(files) if side == "左" else max(files)
    return [square for square in squares if square % 9 == wanted]


def _of_motion(squares: list[int], target: int, motion: str | None) -> list[int]:
    """Selects the pieces that move forward (上, 行), sideways (寄) or back (引)."""
    if motion is None:
        return squares
    forward = {"上": 1, "行": 1, "寄": 0, "引": -1}[motion]
    rank = target // 9
    return [s for s in squares if (s // 9 > rank) - (s // 9 < rank) == forward]


def _end_of(pattern: re.Pattern[str], line: str, start: int) -> int:
    """Returns where a pattern that begins at ``start`` ends; ``start`` if it does not match."""
    match = pattern.match(line, start)
    return match.end() if match else start
