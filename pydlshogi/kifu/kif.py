"""Parser of KIF records (.kif, .kifu).

It reads the parts that all KIF writers use. The start is the header ``手合割`` or a board diagram
with both hands. Then follow numbered moves with the square they leave, the end of the game and
the closing line. The encoding is UTF-8, CP932 or EUC-JP. Text after the first variation
(``変化``) is ignored. Some programs write their own words for the end of a game. An unknown
word that does not look like a move ends the game, and the closing line gives the result.

A move names the piece before the move, and :mod:`pydlshogi.kifu.replay` compares it with the
board. So a promotion that is written with the name of the promoted piece is an error. Moves
must be numbered without a gap, so a lost line is found too.

Source: the format of Kifu for Windows; the tests compare with python-shogi's parser.
"""

from __future__ import annotations

import re
from typing import NoReturn

import shogi

from pydlshogi.common import SQUARE_NUM
from pydlshogi.kifu.csa_board import require_one_set
from pydlshogi.kifu.game import Game, Move, RecordError, end_result
from pydlshogi.positions import (
    DRAW,
    EVEN_GAME,
    HAND_NUM,
    LOSS,
    PIECE_NUM,
    PROMOTED,
    UNKNOWN,
    WIN,
    opponents_view,
)
from pydlshogi.text import UTF_16_REASON, is_utf_16, shown, without_end_of_file

# Lines above the moves, as bytes: the title of the columns, the handicap.
_HEADS = [
    word.encode(encoding)
    for word in ("手数--", "手合割")
    for encoding in ("utf-8", "cp932", "euc_jp")
]

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
_CODES = {name: code for code, names in _NAMES_BY_CODE.items() for name in names}
_NUMBERS = {name: number for number, name in enumerate("一二三四五六七八九十", 1)}
_NUMBERS.update({f"十{name}": 10 + number for name, number in _NUMBERS.items() if number <= 8})
_FILES = {digit: int(digit) for digit in "123456789１２３４５６７８９"}

# Squares of the pieces that the stronger side (White) removes, as file and rank seen by Black.
_HANDICAPS = {
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

# CSA's end mark for each end of a game in KIF. 反則勝ち means that the opponent broke a rule.
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
# Characters of a damaged move, which a word for the end of a game does not have.
_OF_A_MOVE = re.compile(rf"[0-9０-９同打]|[成{''.join(name[-1] for name in _CODES)}]$")

# The decoder's replacement for undecodable bytes.
_DAMAGED = "\ufffd"
_BLANKS = " 　"
_LINE_END = re.compile(r"\r\n|\n|\r")
_NUMBERED = re.compile(r"[ 　]*([0-9]+)[ 　]+(\S.*)")
_MOVE = re.compile(
    rf"[▲△☗☖▼▽]?(?:同[ 　]*|([{''.join(_FILES)}])([一二三四五六七八九]))({'|'.join(_CODES)})"
    r"(?:打(?:\(00\))?|(不?成)?\(([1-9])([1-9])\))(.*)"
)
# Text after a move, without blanks around it: its time, and + if a variation begins.
_REST = re.compile(r"(?:\([ /:.0-9]*\))?[ 　]*\+?")
_CLOSING = re.compile(r"[ 　]*まで[、 　]*[0-9０-９]+[ 　]*手[で、 　]*(.*)")
# A closing line ends with the winner. The text before it gives the reason.
_WINNER = re.compile(
    r"([先下後上])手の?(?:入玉|宣言|反則|時間切れ|切れ|不戦)?(勝|負)(?:[ちけ]|[。．)） 　]*$)"
)
_DRAWN = re.compile(r"千日手|持将棋|引き?分け?|最大手数")
_HAND = re.compile(r"([先下後上])手の持ち?駒")
_PIECES_IN_HAND = re.compile(
    f"([{''.join(n for n, code in _CODES.items() if len(n) == 1 and 1 <= code <= HAND_NUM)}])"
    "(十[一二三四五六七八]|[一二三四五六七八九十])?"
)
_CELL = re.compile(rf"([v^Vｖ+ 　]?)([・･]|[{''.join(name for name in _CODES if len(name) == 1)}])")
_OF_WHITE = ("v", "V", "ｖ")


def parse_kif(data: bytes) -> Game:
    """Parses a KIF file.

    Args:
        data: The whole file.

    Returns:
        The game. Its end mark has CSA's name; ``summary`` is the result of the closing
        line (``まで…``).

    Raises:
        RecordError: a part of the file is not KIF, or there is no move.
    """
    if is_utf_16(data):
        raise RecordError(0, UTF_16_REASON)
    return _Parser(_decode(without_end_of_file(data))).game


def looks_like_kif(data: bytes) -> bool:
    """Tests whether a file begins with a header of KIF."""
    return any(head in data[:4096] for head in _HEADS)


def _decode(data: bytes) -> str:
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


class _Parser:
    """Reads the lines of one file in order."""

    def __init__(self, text: str) -> None:
        self.game = Game()
        self._handicap: str | None = None
        self._handicap_line = 0
        self._white_first: bool | None = None
        self._rows: list[list[int]] = []
        self._hands = [[0] * HAND_NUM, [0] * HAND_NUM]
        self._started = False
        self._ended = False
        self._closing: int | None = None
        for number, line in enumerate(_LINE_END.split(text), 1):
            self._line = number
            # Some programs also write such a line into the header.
            if self._started and line.lstrip(" 　").startswith("変化"):
                break
            self._read_line(line.rstrip(" 　\t"))
        if not self.game.moves:
            raise RecordError(0, "it has no moves (KI2, whose moves have no numbers, is not read)")
        self.game.summary = self._closing
        if self.game.end_mark is None and self._closing is not None:
            # Some programs write only the closing line, or their own word for the end.
            self.game.result = self._closing

    def _read_line(self, line: str) -> None:
        numbered = _NUMBERED.fullmatch(line)
        closing = _CLOSING.match(line)
        if not line or line[0] in "*#&":
            return
        if numbered:
            self._read_numbered(*numbered.groups())
        elif closing:
            self._read_closing(closing[1])
        elif self._started:
            if not line.lstrip(_BLANKS).startswith("まで"):
                self._fail("a line that is not a move")
        elif line.startswith("|"):
            self._read_row(line)
        elif line in ("後手番", "上手番", "先手番", "下手番"):
            self._white_first = line[0] in "後上"
        elif "：" in line or ":" in line:
            key, value = re.split("[：:]", line, maxsplit=1)
            if _DAMAGED in key:
                self._fail("a header with a damaged name")  # it may be about pieces in hand
            self._read_header(key.strip(" 　"), value.strip(" 　"))

    def _read_header(self, key: str, value: str) -> None:
        side = shogi.BLACK if key[:1] in "先下" else shogi.WHITE
        if key in ("先手", "下手", "後手", "上手"):
            self.game.names[side] = value
        elif _HAND.fullmatch(key):
            self._read_hand(side, value)
        elif key == "手合割":
            self._handicap, self._handicap_line = value, self._line

    def _read_hand(self, side: int, value: str) -> None:
        if value == "なし":
            return
        hand = self._hands[side] = [0] * HAND_NUM
        if _PIECES_IN_HAND.sub("", value).strip(" 　"):
            self._fail("unknown pieces in hand")
        for name, number in _PIECES_IN_HAND.findall(value):
            hand[_CODES[name] - 1] += _NUMBERS[number or "一"]

    def _read_row(self, line: str) -> None:
        row = line[1:].split("|")[0]
        cells = _CELL.findall(row)
        if len(cells) != 9 or _CELL.sub("", row).strip(" 　") or len(self._rows) == 9:
            self._fail("a row of the board does not have nine known squares, or is the tenth row")
        self._rows.append(
            [
                _CODES[name] + (PIECE_NUM if side in _OF_WHITE else 0) if name in _CODES else 0
                for side, name in cells
            ]
        )

    def _start(self) -> None:
        """Sets the start position, before the first move."""
        self._started = True
        board = list(EVEN_GAME[:SQUARE_NUM])
        handicap = _HANDICAPS.get(self._handicap or "", "")
        white_first = bool(handicap)
        if self._rows:
            if len(self._rows) != 9:
                self._fail("the board does not have nine rows")
            board = [code for row in self._rows for code in row]
        elif self._handicap == "その他":
            self._fail("a special start position (手合割：その他) without a board")
        elif self._handicap is not None and self._handicap not in _HANDICAPS:
            self._line = self._handicap_line
            self._fail("an unknown handicap without a board")
        for square in handicap.split() if not self._rows else ():
            board[_square(int(square[0]), int(square[1]))] = 0
        if self._white_first is not None:
            white_first = self._white_first
        game = self.game
        game.turn = shogi.WHITE if white_first else shogi.BLACK
        placement = bytes(board + self._hands[shogi.BLACK] + self._hands[shogi.WHITE])
        try:
            require_one_set(placement)
        except ValueError as error:
            self._fail(str(error))
        game.start = opponents_view(placement) if white_first else placement

    def _read_numbered(self, number: str, text: str) -> None:
        if not self._started:
            self._start()
        moves = self.game.moves
        if self._ended:
            self._fail("a move after the end of the game")
        # As text, because int() refuses thousands of digits.
        if number.lstrip("0") != str(len(moves) + 1):
            self._fail(f"move number {shown(number)} instead of {len(moves) + 1}")
        match = _MOVE.fullmatch(text)
        if match:
            *move, rest = match.groups()
            self._read_move(*move)
        else:
            word = re.split(r"[ 　(]", text, maxsplit=1)[0]
            rest = text[len(word) :]
            self._read_end(word)
            if self.game.end_mark is None and "(" in rest and ":" not in rest:
                self._fail("neither a move nor a known end of the game")  # it has no time
        if not _REST.fullmatch(rest.strip(_BLANKS)):
            self._fail("unknown text after the move")

    def _read_move(
        self,
        file: str | None,
        rank: str | None,
        name: str,
        promotion: str | None,
        *origin: str | None,
    ) -> None:
        moves = self.game.moves
        white = self._white_to_move()
        code = _CODES[name]
        if file and rank:
            target = _square(_FILES[file], _NUMBERS[rank])
            target = SQUARE_NUM - 1 - target if white else target
        elif moves:
            target = SQUARE_NUM - 1 - moves[-1].target
        else:
            self._fail("the first move says 同, but there is no move before it")
        if origin[0] is None or origin[1] is None:
            if code > HAND_NUM:
                self._fail("it drops a piece that cannot be in hand")
            moves.append(Move(SQUARE_NUM + code - 1, target, code, 0, self._line))
            return
        square = _square(int(origin[0]), int(origin[1]))
        square = SQUARE_NUM - 1 - square if white else square
        after = code
        if promotion == "成":
            if code not in PROMOTED:
                self._fail("it promotes a piece that cannot promote")
            after = PROMOTED[code]
        moves.append(Move(square, target, after, code, self._line))

    def _read_end(self, word: str) -> None:
        black_to_move = not self._white_to_move()
        mark = _END_MARKS.get(word)
        if word == _ILLEGAL_BY_OPPONENT:
            mark = "%-ILLEGAL_ACTION" if black_to_move else "%+ILLEGAL_ACTION"
        # No move contains 手, but ends of a game do, for example 王手連続千日手.
        damaged = _OF_A_MOVE.search(word) and "手" not in word
        if mark is None and (damaged or not word.isalpha()):
            self._fail("neither a move nor a known end of the game")
        result = end_result(mark, black_to_move) if mark else UNKNOWN
        assert result is not None
        self._ended = True
        self.game.end_mark, self.game.result = mark, result

    def _read_closing(self, text: str) -> None:
        winners = _WINNER.findall(text)
        if winners:
            side, outcome = winners[-1]
            self._closing = WIN if (side in "先下") == (outcome == "勝") else LOSS
        elif _DRAWN.match(text):
            self._closing = DRAW

    def _white_to_move(self) -> bool:
        return (self.game.turn == shogi.WHITE) != (len(self.game.moves) % 2 == 1)

    def _fail(self, reason: str) -> NoReturn:
        raise RecordError(self._line, reason)


def _square(file: int, rank: int) -> int:
    return 9 * (rank - 1) + 9 - file
