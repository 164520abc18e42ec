"""Parser of KIF records (.kif, .kifu).

It reads the parts that all KIF writers use: the header (:mod:`pydlshogi.kifu.kif_text`), then
numbered moves with the square they leave. Some programs write their own words for the end of a
game. An unknown word that does not look like a move ends the game, and the closing line gives the
result. A file whose moves have no numbers is KI2 (:mod:`pydlshogi.kifu.ki2`), whatever its suffix.

A move names the piece before the move, and :mod:`pydlshogi.kifu.replay` compares it with the
board. So a promotion that is written with the name of the promoted piece is an error. Moves
must be numbered without a gap, so a lost line is found too.

Source: the format of Kifu for Windows; the tests compare with python-shogi's parser.
"""

from __future__ import annotations

import re

from pydlshogi.common import SQUARE_NUM
from pydlshogi.kifu.game import Game, Move
from pydlshogi.kifu.ki2 import is_ki2, parse_ki2
from pydlshogi.kifu.kif_text import (
    BLACK_MARKS,
    BLANKS,
    CODES,
    TARGET_AND_PIECE,
    WHITE_MARKS,
    RecordReader,
    decode_record,
)
from pydlshogi.positions import HAND_NUM, PROMOTED
from pydlshogi.text import shown

# Lines above the moves, as bytes: the title of the columns, the handicap.
_HEADS = [
    word.encode(encoding)
    for word in ("手数--", "手合割")
    for encoding in ("utf-8", "cp932", "euc_jp")
]
# Characters of a damaged move, which a word for the end of a game does not have.
_OF_A_MOVE = re.compile(rf"[0-9０-９同打]|[成{''.join(name[-1] for name in CODES)}]$")

_NUMBERED = re.compile(rf"[{BLANKS}]*([0-9]+)[{BLANKS}]+(\S.*)")
_MOVE = re.compile(
    rf"[{BLACK_MARKS}{WHITE_MARKS}]?{TARGET_AND_PIECE}"
    r"(?:打(?:\(00\))?|(不?成)?\(([1-9])([1-9])\))(.*)"
)
# Text after a move, without blanks around it: its time, + if a variation begins, a comment.
_TIME = r"[(（\[][ /／:：.,，\-0-9０-９時間分秒]*[)）\]]"
_REST = re.compile(rf"(?:{_TIME})?[{BLANKS}]*(?:\+[{BLANKS}]*)?(?:\*.*)?")


def parse_kif(data: bytes) -> Game:
    """Parses a KIF or KI2 file.

    Args:
        data: The whole file.

    Returns:
        The game. Its end mark has CSA's name; ``summary`` is the result of the closing
        line (``まで…``).

    Raises:
        RecordError: a part of the file is neither KIF nor KI2, or there is no move.
    """
    text = decode_record(data)
    return parse_ki2(text) if is_ki2(text) else _KifReader(text).game


def looks_like_kif(data: bytes) -> bool:
    """Tests whether a file begins with a header of KIF or KI2."""
    return any(head in data[:4096] for head in _HEADS)


class _KifReader(RecordReader):
    """Reads numbered moves."""

    def _read_moves(self, line: str) -> bool:
        numbered = _NUMBERED.fullmatch(line)
        if numbered is None:
            return False
        self._start()
        number, text = numbered.groups()
        moves = self.game.moves
        if not (moves or number.strip("0")):
            return True  # some programs number the start position
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
            word = re.split(rf"[{BLANKS}(]", text, maxsplit=1)[0]
            rest = text[len(word) :]
            if not self._read_end(word):
                self._read_unknown_end(word, rest)
        if not _REST.fullmatch(rest.strip(BLANKS)):
            self._fail("unknown text after the move")
        return True

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
        if origin[0] is None or origin[1] is None:
            if code > HAND_NUM:
                self._fail("it drops a piece that cannot be in hand")
            self.game.moves.append(Move(SQUARE_NUM + code - 1, target, code, 0, self._line))
            return
        square = self._square(int(origin[0]), int(origin[1]))
        after = code
        if promotion == "成":
            if code not in PROMOTED:
                self._fail("it promotes a piece that cannot promote")
            after = PROMOTED[code]
        self.game.moves.append(Move(square, target, after, code, self._line))

    def _read_unknown_end(self, word: str, rest: str) -> None:
        # No move contains 手, but ends of a game do, for example 王手連続千日手.
        damaged = _OF_A_MOVE.search(word) and "手" not in word
        without_time = "(" in rest and ":" not in rest
        if damaged or without_time or not word.isalnum():
            self._fail("neither a move nor a known end of the game")
        self._ended = True
