"""What a record says besides its moves: event, date, times and comments.

The parsers of the moves refuse a record with a fault. These details are read beside them, as far
as they can be understood, because no training needs them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from pydlshogi.kifu.csa import decoder_of
from pydlshogi.kifu.kif_text import BLANKS, COMMENT_MARKS, decode_record, lines_of
from pydlshogi.kifu.parsed_game import RecordError


@dataclass
class Details:
    """The details of a record; what it does not say is empty.

    Attributes:
        seconds: Time of each move by its number, from 1.
        comments: Comments on each move by its number; 0 for the start.
    """

    event: str = ""
    date: str = ""
    seconds: dict[int, float] = field(default_factory=dict)
    comments: dict[int, str] = field(default_factory=dict)

    def add_comment(self, number: int, text: str) -> None:
        """Adds a line to the comments on a move."""
        before = self.comments.get(number)
        self.comments[number] = text if before is None else f"{before}\n{text}"


_CSA_MOVE = re.compile(r"[+-][0-9]{4}[A-Z]{2}")
_CSA_TIME = re.compile(r"T([0-9]{1,7}(?:\.[0-9]{1,3})?)", re.ASCII)

#: A number and what follows it, but not the files above a board: ``９ ８ ７ …``.
_KIF_MOVE = re.compile(
    rf"[{BLANKS}]*([0-9０-９]{{1,4}})(?:手目|[.．:：)）、])?[{BLANKS}]*(?![0-9０-９][{BLANKS}])\S"
)
#: Hours may be missing: ``( 1:05/00:02:10)``.
_KIF_TIME = re.compile(
    rf"[(（][{BLANKS}]*(?:([0-9]{{1,3}}):)?([0-9]{{1,4}}):([0-9]{{1,2}})[{BLANKS}]*[/／)）]"
)
_KIF_HEADER = re.compile(rf"[{BLANKS}]*(棋戦|開始日時|対局日)[{BLANKS}]*[：:][{BLANKS}]*(.*)")


def details_of_csa(record: bytes) -> Details:
    """Reads the details of a record in CSA."""
    details, number = Details(), 0
    decoded = decoder_of(record)
    for line in lines_of(decoded(record.decode("latin-1"))):
        if line.startswith("$EVENT:"):
            details.event = line[7:].strip()
        elif line.startswith("$START_TIME:"):
            details.date = line[12:].strip()
        elif line.startswith("'*") and not line.startswith("'**"):
            details.add_comment(number, line[2:].strip())
        elif line[:1] not in ("'", "N", "$", "P"):
            for word in line.split(","):
                number += bool(_CSA_MOVE.fullmatch(word))
                time = _CSA_TIME.fullmatch(word)
                if time and number and not line.startswith("%"):
                    details.seconds.setdefault(number, float(time[1]))
        if line.startswith("%"):
            break
    return details


def details_of_kif(record: bytes) -> Details:
    """Reads the details of a record in KIF or KI2; KI2 has neither times nor numbers of moves."""
    try:
        lines = lines_of(decode_record(record))
    except RecordError:
        return Details()
    details = Details()
    number = before = 0
    for line in _first_variation(lines):
        header = _KIF_HEADER.fullmatch(line)
        move = _KIF_MOVE.match(line)
        if line[:1] in tuple(COMMENT_MARKS):
            if line[0] in "*＊":
                details.add_comment(number, line[1:].strip(BLANKS))
        elif header and not number:
            if header[1] == "棋戦":
                details.event = header[2]
            else:
                details.date = details.date or header[2]
        elif move and not line.startswith(("|", "｜")):
            # A record of a position in the middle of a game goes on with its number.
            before = before if number else int(move[1]) - 1
            number = max(0, int(move[1]) - before)
            time = _KIF_TIME.search(line)
            if time:
                hours, minutes, seconds = (int(part or 0) for part in time.groups())
                details.seconds[number] = float(3600 * hours + 60 * minutes + seconds)
    return details


def _first_variation(lines: list[str]) -> Iterator[str]:
    """Yields the lines of the game itself."""
    for line in lines:
        if line.lstrip(BLANKS).startswith("変化"):
            return
        yield line
