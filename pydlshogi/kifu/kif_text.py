"""What KIF and KI2 records share: the encoding, the header, the start position and the end.

The start position is the header ``手合割``, or a board diagram with both hands. Then the moves
follow, the end of the game and the closing line. The encoding is UTF-8, CP932 or EUC-JP. Text
after the first variation (``変化``) is ignored.

Source: the format of Kifu for Windows.
"""

from __future__ import annotations

import re
from typing import NoReturn

import shogi

from pydlshogi.common import SQUARE_NUM
from pydlshogi.kifu.csa_board import require_one_set
from pydlshogi.kifu.game import Game, NoMovesError, RecordError, end_result
from pydlshogi.positions import DRAW, EVEN_GAME, HAND_NUM, LOSS, PIECE_NUM, WIN, opponents_view
from pydlshogi.text import UTF_16_REASON, is_utf_16, without_end_of_file

_NAMES_BY_CODE = {
    1: ("歩",),
    2: ("香",),
    3: ("桂",),
    4: ("銀",),
    5: ("金",),
    6: ("角",),
    7: ("飛",),
    8: ("玉", "王"),
    9: ("と",),
    10: ("成香", "杏"),
    11: ("成桂", "圭"),
    12: ("成銀", "全"),
    13: ("馬",),
    14: ("龍", "竜"),
}
#: Codes of the pieces, 1..14, by their names.
CODES = {name: code for code, names in _NAMES_BY_CODE.items() for name in names}
_NUMBERS = {name: number for number, name in enumerate("一二三四五六七八九十", 1)}
_NUMBERS.update({f"十{name}": 10 + number for name, number in _NUMBERS.items() if number <= 8})
_FILES = {digit: int(digit) for digit in "123456789１２３４５６７８９"}
#: Marks of a move of Black and of White.
BLACK_MARKS, WHITE_MARKS = "▲☗▼", "△☖▽"
#: The target and the piece of a move: groups file, rank and piece. 同 is the last move's target.
TARGET_AND_PIECE = f"(?:同[ 　]*|([{''.join(_FILES)}])([一二三四五六七八九]))({'|'.join(CODES)})"
BLANKS = " 　\t"

#: Squares of the pieces that the stronger side (White) removes, as file and rank seen by Black.
HANDICAPS = {
    "平手": "",
    "香落ち": "11",
    "右香落ち": "91",
    "角落ち": "22",
    "飛車落ち": "82",
    "飛香落ち": "82 11",
    "二枚落ち": "82 22",
    "三枚落ち": "82 22 11",
    "四枚落ち": "82 22 11 91",
    "五枚落ち": "82 22 11 91 81",
    "左五枚落ち": "82 22 11 91 21",
    "六枚落ち": "82 22 11 91 21 81",
    "左七枚落ち": "82 22 11 91 21 81 31",
    "右七枚落ち": "82 22 11 91 21 81 71",
    "八枚落ち": "82 22 11 91 21 81 31 71",
    "十枚落ち": "82 22 11 91 21 81 31 71 41 61",
}
# Other names of some of them.
_OTHER_HANDICAP_NAMES = {"": "平手", "なし": "平手", "互先": "平手", "飛落ち": "飛車落ち"}

# CSA's end mark for each end of a game. 反則勝ち means that the opponent broke a rule.
_END_MARKS = {
    "投了": "%TORYO",
    "詰み": "%TSUMI",
    "詰": "%TSUMI",
    "切れ負け": "%TIME_UP",
    "時間切れ": "%TIME_UP",
    "反則負け": "%ILLEGAL_MOVE",
    "入玉勝ち": "%KACHI",
    "入玉宣言": "%KACHI",
    "入玉宣言勝ち": "%KACHI",
    "勝ち宣言": "%KACHI",
    "宣言勝ち": "%KACHI",
    "千日手": "%SENNICHITE",
    "持将棋": "%JISHOGI",
    "引き分け": "%HIKIWAKE",
    "最大手数": "%MAX_MOVES",
    "最大手数超過": "%MAX_MOVES",
    "中断": "%CHUDAN",
    "打ち切り": "%CHUDAN",
    "封じ手": "%CHUDAN",
    "不詰": "%FUZUMI",
}
_ILLEGAL_BY_OPPONENT = "反則勝ち"

# The decoder's replacement for undecodable bytes.
_DAMAGED = "\ufffd"
_LINE_END = re.compile(r"\r\n|\n|\r")
_CLOSING = re.compile(r"[ 　]*まで[、 　]*[0-9０-９]+[ 　]*手[で、 　]*(.*)")
# A closing line ends with the winner. The text before it gives the reason.
_WINNER = re.compile(
    r"([先下後上])手の?(?:入玉|宣言|反則|時間切れ|切れ|不戦)?(勝|負)(?:[ちけ]|[。．)） 　]*$)"
)
_DRAWN = re.compile(r"千日手|持将棋|引き?分け?|最大手数")
_HAND = re.compile(rf"(?:([先下後上])手|[{BLACK_MARKS}{WHITE_MARKS}])の?(?:持ち?駒|手駒)")
# Part of every header about pieces in hand.
_OF_A_HAND = ("持駒", "持ち駒", "手駒")
# Bars of a board diagram, and beginnings of its other lines.
_BARS = "|｜│"
_FRAME = ("+--", "＋－", "┌─", "├─", "└─")
_PIECES_IN_HAND = re.compile(
    f"([{''.join(n for n, code in CODES.items() if len(n) == 1 and 1 <= code <= HAND_NUM)}])"
    "(十[一二三四五六七八]|[一二三四五六七八九十])?"
)
_CELL = re.compile(rf"([v^Vｖ+ 　]?)([・･]|[{''.join(name for name in CODES if len(name) == 1)}])")
_OF_WHITE = ("v", "V", "ｖ")


def decode_record(data: bytes) -> str:
    """Decodes a KIF or KI2 file.

    Args:
        data: The whole file.

    Returns:
        The text. Undecodable bytes become U+FFFD.

    Raises:
        RecordError: it is not such a text.
    """
    if is_utf_16(data):
        raise RecordError(0, UTF_16_REASON)
    data = without_end_of_file(data)
    if not data.strip():
        return ""
    # A name or a comment may be damaged, or cut within a character.
    for errors in ("strict", "replace"):
        texts = []
        for encoding in ("utf-8-sig", "cp932", "euc_jp"):
            try:
                text = data.decode(encoding, errors)
            except UnicodeDecodeError:
                continue
            # Text decoded with a wrong encoding hardly ever contains these characters.
            if "手" in text or "歩" in text:
                texts.append(text)
        if texts:
            return min(texts, key=lambda text: text.count(_DAMAGED))
    raise RecordError(0, "it is not KIF text in UTF-8, CP932 or EUC-JP")


def lines_of(text: str) -> list[str]:
    """Splits a text into lines, without the blanks at their ends."""
    return [line.rstrip(BLANKS) for line in _LINE_END.split(text)]


class RecordReader:
    """Reads the lines of one record in order. A subclass reads the lines with moves.

    Attributes:
        game: What was read. Its end mark has CSA's name; ``summary`` is the result of the
            closing line (``まで…``).
    """

    def __init__(self, text: str) -> None:
        """Reads a record.

        Args:
            text: The record.

        Raises:
            RecordError: a line cannot be understood. ``NoMovesError`` if there is no move.
        """
        self.game = Game()
        self._header = _Header(self.game)
        self._started = False
        self._ended = False
        for number, line in enumerate(lines_of(text), 1):
            self._line = number
            # Some programs also write such a line into the header.
            if self._started and line.lstrip(BLANKS).startswith("変化"):
                break
            self._read_line(line)
        if not self.game.moves:
            if self._header.has_position():
                self._start()
            raise NoMovesError(
                "it has no moves of KIF or KI2", self.game if self._started else None
            )
        if self.game.end_mark is None and self.game.summary is not None:
            # Some programs write only the closing line, or their own word for the end.
            self.game.result = self.game.summary

    def _read_moves(self, line: str) -> bool:
        """Reads a line with moves; returns False if it has none."""
        raise NotImplementedError

    def _read_line(self, line: str) -> None:
        if not line or line[0] in "*#&" or self._read_moves(line):
            return
        if line.lstrip(BLANKS).startswith("まで"):
            self._read_closing(line)
        elif self._started:
            # People and web pages write notes below the game.
            if not self._ended:
                self._fail("a line that is not a move")
        else:
            self._header.read(self._line, line)

    def _read_closing(self, line: str) -> None:
        closing = _closing_result(line)
        self.game.summary = self.game.summary if closing is None else closing
        self._ended = self._started

    def _start(self) -> None:
        """Sets the start position, before the first move."""
        if not self._started:
            self._started = True
            self._header.start(self._line)

    def _target(self, file: str | None, rank: str | None) -> int:
        """Returns the target of a move, seen from the mover; the arguments are None for 同."""
        if file and rank:
            return self._square(_FILES[file], _NUMBERS[rank])
        if not self.game.moves:
            self._fail("the first move says 同, but there is no move before it")
        return SQUARE_NUM - 1 - self.game.moves[-1].target

    def _square(self, file: int, rank: int) -> int:
        """Returns a square, seen from the mover."""
        square = _square(file, rank)
        return SQUARE_NUM - 1 - square if self._white_to_move() else square

    def _read_end(self, word: str) -> bool:
        """Reads the word for the end of the game; returns whether it is a usual one."""
        black_to_move = not self._white_to_move()
        mark = _END_MARKS.get(word)
        if word == _ILLEGAL_BY_OPPONENT:
            mark = "%-ILLEGAL_ACTION" if black_to_move else "%+ILLEGAL_ACTION"
        if mark is None:
            return False
        result = end_result(mark, black_to_move)
        assert result is not None
        self._ended = True
        self.game.end_mark, self.game.result = mark, result
        return True

    def _white_to_move(self) -> bool:
        return self.game.to_move == shogi.WHITE

    def _fail(self, reason: str) -> NoReturn:
        raise RecordError(self._line, reason)


class _Header:
    """Reads the lines above the moves."""

    def __init__(self, game: Game) -> None:
        self._game = game
        self._handicap: str | None = None
        self._handicap_line = 0
        self._white_first: bool | None = None
        self._rows: list[list[int]] = []
        self._has_frame = False
        self._hands = [[0] * HAND_NUM, [0] * HAND_NUM]

    def read(self, number: int, line: str) -> None:
        """Reads a line, given its number."""
        line = line.lstrip(BLANKS)
        if line.startswith(tuple(_BARS)):
            self._read_row(number, line)
        elif line.startswith(_FRAME):
            self._has_frame = True
        elif line in ("後手番", "上手番", "先手番", "下手番"):
            self._white_first = line[0] in "後上"
        elif "：" in line or ":" in line:
            key, value = re.split("[：:]", line, maxsplit=1)
            if _DAMAGED in key:
                # It may be about pieces in hand.
                raise RecordError(number, "a header with a damaged name")
            self._read_value(number, key.strip(BLANKS), value.strip(BLANKS))

    def _read_value(self, number: int, key: str, value: str) -> None:
        side = shogi.BLACK if key[:1] in "先下" + BLACK_MARKS else shogi.WHITE
        if key in ("先手", "下手", "後手", "上手"):
            self._game.names[side] = value
        elif _HAND.fullmatch(key):
            self._hands[side] = _pieces_in_hand(number, value)
        elif any(word in key for word in _OF_A_HAND):
            raise RecordError(number, "pieces in hand of an unknown side")
        elif key == "手合割":
            self._handicap, self._handicap_line = _usual_handicap(value), number
        elif key == "手番" and value[:1] in ("先", "下", "後", "上"):
            self._white_first = value[0] in "後上"

    def _read_row(self, number: int, line: str) -> None:
        row = re.split(f"[{_BARS}]", line[1:])[0]
        cells = _CELL.findall(row)
        if len(cells) != 9 or _CELL.sub("", row).strip(BLANKS) or len(self._rows) == 9:
            raise RecordError(
                number, "a row of the board does not have nine known squares, or is the tenth row"
            )
        self._rows.append(
            [
                CODES[name] + (PIECE_NUM if side in _OF_WHITE else 0) if name in CODES else 0
                for side, name in cells
            ]
        )

    def has_position(self) -> bool:
        """Says whether the lines name a handicap or draw a board."""
        return bool(self._handicap or self._rows or self._has_frame)

    def start(self, number: int) -> None:
        """Sets the start position of the game, given the number of the first move's line."""
        board = list(EVEN_GAME[:SQUARE_NUM])
        handicap = HANDICAPS.get(self._handicap or "", "")
        white_first = bool(handicap) if self._white_first is None else self._white_first
        if self._rows or self._has_frame:
            if len(self._rows) != 9:
                raise RecordError(number, "the board does not have nine rows")
            board = [code for row in self._rows for code in row]
        elif self._handicap == "その他":
            raise RecordError(number, "a special start position (手合割：その他) without a board")
        elif self._handicap is not None and self._handicap not in HANDICAPS:
            raise RecordError(self._handicap_line, "an unknown handicap without a board")
        for square in handicap.split() if not self._rows else ():
            board[_square(int(square[0]), int(square[1]))] = 0
        placement = bytes(board + self._hands[shogi.BLACK] + self._hands[shogi.WHITE])
        try:
            require_one_set(placement)
        except ValueError as error:
            raise RecordError(number, str(error)) from None
        self._game.turn = shogi.WHITE if white_first else shogi.BLACK
        self._game.start = opponents_view(placement) if white_first else placement


def _usual_handicap(value: str) -> str:
    """Returns the usual name of a handicap, such as 二枚落ち for ２枚落."""
    value = re.sub("落$", "落ち", value.replace("１０", "十").replace("10", "十"))
    for number, kanji in enumerate("二三四五六七八九", 2):
        value = value.replace(chr(ord("０") + number), kanji).replace(str(number), kanji)
    return _OTHER_HANDICAP_NAMES.get(value, value)


def _pieces_in_hand(number: int, value: str) -> list[int]:
    """Counts the pieces of a hand by their type; ``number`` is that of the line."""
    hand = [0] * HAND_NUM
    if value == "なし":
        return hand
    if _PIECES_IN_HAND.sub("", value).strip(BLANKS):
        raise RecordError(number, "unknown pieces in hand")
    for name, count in _PIECES_IN_HAND.findall(value):
        hand[CODES[name] - 1] += _NUMBERS[count or "一"]
    return hand


def _closing_result(line: str) -> int | None:
    """Returns the result of a closing line for Black, or None if it gives no result."""
    closing = _CLOSING.match(line)
    if closing is None:
        return None
    winners = _WINNER.findall(closing[1])
    if winners:
        side, outcome = winners[-1]
        return WIN if (side in "先下") == (outcome == "勝") else LOSS
    return DRAW if _DRAWN.match(closing[1]) else None


def _square(file: int, rank: int) -> int:
    return 9 * (rank - 1) + 9 - file
