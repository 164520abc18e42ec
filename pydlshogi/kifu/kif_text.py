"""What KIF and KI2 records share: the encoding, the games of a file, the header, the end.

The start position is the header ``手合割``, or a board diagram with both hands. Then the moves
follow, the end of the game and the closing line (``まで…``). The text is UTF-8, CP932 or EUC-JP.

Writers spell the end in many ways. So words are compared without blanks, width and okurigana.
``反則勝ち`` means that the last move broke a rule; ``反則負け`` that the side to move did.

Sources: the format of Kifu for Windows; records of ShogiHome, ShogiGUI, 81Dojo, Lishogi, Piyo
Shogi, Shogi Club 24, IS-SHOGI and Kifu Database.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from typing import NamedTuple

import shogi

from pydlshogi.common import SQUARE_NUM
from pydlshogi.kifu.csa_board import require_one_set
from pydlshogi.kifu.parsed_game import Game, RecordError, end_result
from pydlshogi.positions import (
    DRAW,
    EVEN_GAME,
    HAND_NUM,
    LOSS,
    PIECE_NUM,
    UNKNOWN,
    WIN,
    opponents_view,
)
from pydlshogi.text import UTF_16_REASON, is_utf_16, looks_like_utf_16, without_end_of_file

_NAMES = "歩 香 桂 銀 金 角 飛 玉/王 と 成香/杏 成桂/圭 成銀/全 馬 龍/竜"
#: Codes of the pieces, 1..14, by their names.
CODES = {name: code for code, names in enumerate(_NAMES.split(), 1) for name in names.split("/")}
_NUMBERS = {name: number for number, name in enumerate("一二三四五六七八九十", 1)}
_NUMBERS.update({f"十{name}": 10 + number for name, number in _NUMBERS.items() if number <= 8})
#: Numbers of files and ranks, by the digits that writers use.
DIGITS = {
    digit: number + 1
    for digits in ("123456789", "１２３４５６７８９", "一二三四五六七八九")
    for number, digit in enumerate(digits)
}
#: Marks of a move of Black and of White.
BLACK_MARKS, WHITE_MARKS = "▲☗▼", "△☖▽"
#: Blanks: also those of web pages, and byte order marks within a text.
BLANKS = " \t\v\f\xa0\u2002\u2003\u2009\u200b\u3000\ufeff"
#: The target and the piece of a move: groups file, rank and piece. 同 is the last move's target.
TARGET_AND_PIECE = (
    f"(?:同|([{''.join(DIGITS)}])([{''.join(DIGITS)}]))[{BLANKS}]*({'|'.join(CODES)})"
)
#: Characters that begin a comment.
COMMENT_MARKS = "*＊#＃&"

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


@functools.cache
def handicap_sfen(name: str) -> str:
    """Returns the start position of one of :data:`HANDICAPS`; White moves first."""
    board = shogi.Board()
    for square in HANDICAPS[name].split():
        board.remove_piece_at(square_of(*map(int, square)))
    board.turn = shogi.WHITE
    return str(board.sfen())


def handicap_of(sfen: str) -> str:
    """Names the handicap of a start position; empty for any other position."""
    position = sfen.split()[:3]
    for name in HANDICAPS:
        if name != "平手" and handicap_sfen(name).split()[:3] == position:
            return name
    return ""


# Other names of some of them.
_OTHER_HANDICAP_NAMES = {"": "平手", "なし": "平手", "互先": "平手", "飛落ち": "飛車落ち"}

# Words for the end of a game, without okurigana: by CSA's mark.
_END_WORDS = {
    "%TORYO": "投了 負 toryo resign resigns resigned",
    "%TSUMI": "詰 詰上 tsumi checkmate mate",
    "%TIME_UP": "切負 時間切 時間切負 持時間切 持時間切負 時間超過 タイムアップ timeup timeout",
    "%ILLEGAL_MOVE": "反則負 反則 反則手 反則行為 二歩 打歩詰 王手放置 二手指 illegal illegalmove",
    "%KACHI": "入玉勝 入玉宣言 入玉宣言勝 宣言勝 勝宣言 kachi declaration",
    "%SENNICHITE": "千日手 千日手引分 千日手成立 sennichite repetition",
    "%JISHOGI": "持将棋 持将棋引分 持将棋成立 相入玉 jishogi",
    "%HIKIWAKE": "引分 hikiwake draw",
    "%MAX_MOVES": "最大手数 最大手数超過 手数超過 手数制限",
    "%CHUDAN": "中断 打切 封手 指掛 中止 chudan suspended adjourned interrupted aborted",
    "%MATTA": "待",
    "%FUZUMI": "不詰",
}
_END_MARKS = {word: mark for mark, words in _END_WORDS.items() for word in words.split()}
# Results for the side to move of ends that CSA has no mark for.
_UNMARKED_ENDS = {
    "不戦勝": WIN,
    "不戦敗": LOSS,
    "不戦負": LOSS,
    "切勝": WIN,
    "時間切勝": WIN,
}
_ILLEGAL_BY_OPPONENT = ("反則勝", "相手反則", "相手反則勝")
_FOULS_FOR_BLACK = {LOSS: "%+ILLEGAL_ACTION", WIN: "%-ILLEGAL_ACTION"}
# Longer texts are no words for the end, and no closing lines.
_LONGEST_WORD, LONGEST_CLOSING = 40, 200
_WITHOUT_BLANKS = dict.fromkeys(map(ord, BLANKS))
_SIDES = {
    ord(mark): side
    for marks, side in ((BLACK_MARKS, "先手"), (WHITE_MARKS, "後手"))
    for mark in marks
}
_NOT_IN_A_WORD = re.compile("[^一-鿿々ぁ-んァ-ンーa-z0-9]|[みむちきけれりしじったでによのます]")

# The decoder's replacement for undecodable bytes.
_DAMAGED = "\ufffd"
_LINE_END = re.compile(r"\r\n|\n|\r")
# Patterns for lines in NFKC without blanks.
_NUMBER_OF_MOVES = "(?:[0-9]{1,6}|[〇一二三四五六七八九十百千]{1,9})手"
_CLOSING = re.compile(
    f"(?:以上)?[、,]*(?:まで[、,]*(?:{_NUMBER_OF_MOVES})?|{_NUMBER_OF_MOVES}(?=まで|にて|で))"
    "(?:まで|をもって|にて|で|[、,])*"
)
# The winner or the loser. A reason may stand before the outcome: 先手の時間切れ負け.
_WINNER = re.compile(
    "([先下後上])手(?:番|側)?[^先下後上勝負敗]{0,12}?(勝|負|敗)(?:利|北|[ちけ])?"
    "(?![一-鿿ぁ-つづてなにぬ-ん])"
)
_FOUL = re.compile("反則|二歩|打ち?歩詰|王手放置|二手指|連続王手|王手連続")
_LOSER = re.compile(f"([先下後上])手[のが]?(?:投了|時間切|切れ負|{_FOUL.pattern})")
_IN_BRACKETS = re.compile(r"\([^()]*\)")
_DRAWN = re.compile("千日手|持将棋|引き?分|最大手数")
_HAND = re.compile(rf"(?:([先下後上])手|[{BLACK_MARKS}{WHITE_MARKS}])の?(?:持ち?駒|手駒)")
# Part of every header about pieces in hand.
_OF_A_HAND = ("持駒", "持ち駒", "手駒")
# The number of the move that led to a diagram.
_MOVES_BEFORE = re.compile("手数[=＝]([0-9０-９]{1,6})(?![0-9０-９])")
# Bars of a board diagram, and beginnings of its other lines.
_BARS = "|｜│"
_FRAME = ("+--", "＋－", "┌─", "├─", "└─")
#: A line of a board diagram; another header with a name, but no closing line.
DIAGRAM_LINE = re.compile(
    rf"[{_BARS}]|{'|'.join(map(re.escape, _FRAME))}|{_HAND.pattern}|手数[=＝]|[先下後上]手番\Z"
    rf"|(?:[1-9１-９][{BLANKS}]*){{9}}\Z"
)
HEADER_LINE = re.compile(rf"(?!まで|以上)[^0-9０-９{BLACK_MARKS}{WHITE_MARKS}:：]+[:：]")
_PIECES_IN_HAND = re.compile(
    f"([{''.join(n for n, code in CODES.items() if len(n) == 1 and 1 <= code <= HAND_NUM)}])"
    "(十[一二三四五六七八]|[一二三四五六七八九十]|[0-9０-９]{1,2})?"
)
_CELL = re.compile(
    rf"([v^Vｖ+{BLANKS}]?)([・･]|[{''.join(name for name in CODES if len(name) == 1)}])"
)
_OF_WHITE = ("v", "V", "ｖ")


def decode_record(data: bytes) -> str:
    """Decodes a KIF or KI2 file; undecodable bytes become U+FFFD.

    Raises:
        RecordError: it is not such a text.
    """
    data = without_end_of_file(data)
    if is_utf_16(data) or looks_like_utf_16(data):
        raise RecordError(0, UTF_16_REASON)
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


class End(NamedTuple):
    """The end of a game.

    Attributes:
        mark: CSA's name of it; None if CSA has none, or if the closing line names only the winner.
        result: The result for Black.
    """

    mark: str | None
    result: int


def end_of(word: str, black_to_move: bool) -> End | None:
    """Reads a word for the end of a game, such as ``投了``; None if it is another word."""
    if len(word) > _LONGEST_WORD:
        return None
    plain = _NOT_IN_A_WORD.sub("", unicodedata.normalize("NFKC", word).lower())
    mark = _END_MARKS.get(plain)
    if plain in _ILLEGAL_BY_OPPONENT:
        mark = "%-ILLEGAL_ACTION" if black_to_move else "%+ILLEGAL_ACTION"
    if plain in _UNMARKED_ENDS:
        won = (_UNMARKED_ENDS[plain] == WIN) == black_to_move
        return End(None, WIN if won else LOSS)
    result = end_result(mark, black_to_move) if mark else None
    return None if result is None else End(mark, result)


def is_closing(line: str) -> bool:
    """Says whether a line is a closing line, such as ``まで77手で先手の勝ち``."""
    return bool(_CLOSING.match(_flat(line)))


def closing_end(line: str, black_to_move: bool) -> End | None:
    """Reads the result of a closing line; None if it gives no result.

    The mark is None unless a foul decided the game.
    """
    text = _flat(line)
    closing = _CLOSING.match(text)
    text = text[closing.end() :] if closing else text
    sides = [(side, outcome == "勝") for side, outcome in _WINNER.findall(text)]
    sides = sides or [(side, False) for side in _LOSER.findall(text)]
    if sides:
        side, won = sides[-1]
        result = WIN if (side in "先下") == won else LOSS
        return End(_FOULS_FOR_BLACK[result] if _FOUL.search(text) else None, result)
    if "連続王手" in text:  # no draw, but nothing says who lost
        return None
    end = end_of(_IN_BRACKETS.sub("", text), black_to_move)
    if end is None or end.result == UNKNOWN:
        return End(None, DRAW) if _DRAWN.match(text) else None
    return end if end.mark and "ILLEGAL" in end.mark else end._replace(mark=None)


def _flat(line: str) -> str:
    """Returns a short line as the patterns of closing lines expect it."""
    text = unicodedata.normalize("NFKC", line[:LONGEST_CLOSING]).translate(_WITHOUT_BLANKS)
    return text.translate(_SIDES)


class Header:
    """Reads the lines above the moves."""

    def __init__(self, game: Game) -> None:
        self._game = game
        self._handicap: str | None = None
        self._handicap_line = 0
        self._white_first: bool | None = None
        self._rows: list[list[int]] = []
        self._has_frame = False
        self._hands = [[0] * HAND_NUM, [0] * HAND_NUM]
        self._moves_before: int | None = None

    def read(self, number: int, line: str) -> None:
        """Reads a line without blanks at its start, given its number."""
        if line.startswith(tuple(_BARS)):
            self._read_row(number, line)
        elif line.startswith(_FRAME):
            self._has_frame = True
        elif line in ("後手番", "上手番", "先手番", "下手番"):
            self._white_first = line[0] in "後上"
        elif before := _MOVES_BEFORE.match(line):
            self._moves_before = int(before[1])
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

    def may_begin_with(self, number: int) -> bool:
        """Says whether the first move may have a number: moves before a diagram may count."""
        if self._moves_before is not None:
            return number == self._moves_before + 1
        by_white = self._game.turn == shogi.WHITE
        return self._has_frame and number >= 1 and by_white == (number % 2 == 0)

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
            board[square_of(int(square[0]), int(square[1]))] = 0
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
        hand[CODES[name] - 1] += _NUMBERS.get(count) or int(count or 1)
    if max(hand) > 18:
        raise RecordError(number, "more than 18 pieces of one kind in hand")
    return hand


def square_of(file: int, rank: int) -> int:
    """Returns the number of a square, seen from Black."""
    return 9 * (rank - 1) + 9 - file
