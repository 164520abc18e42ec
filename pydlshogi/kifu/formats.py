"""Record formats: how each one is recognised, split into records and parsed.

A new text format is one more entry in :data:`FORMATS`. To recognise it without a suffix,
extend :func:`format_of`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from pydlshogi.kifu.csa import decoder_of, parse_game, split_records
from pydlshogi.kifu.fixed import HCPE, PSV
from pydlshogi.kifu.hcpe3 import SUFFIXES as HCPE3_SUFFIXES
from pydlshogi.kifu.kif import begins_game, looks_like_kif, parse_kif, split_games
from pydlshogi.kifu.kif_text import BLANKS, COMMENT_MARKS, decode_record, lines_of
from pydlshogi.kifu.parsed_game import Game, RecordError
from pydlshogi.kifu.report import Note


@dataclass
class Details:
    """What a record says besides its moves; what it does not say is empty.

    A record with a fault has details, too, as far as they can be understood.

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
    details = Details()
    try:
        lines = lines_of(decode_record(record))
    except RecordError:
        return details
    number = before = 0
    for line in lines:
        if line.lstrip(BLANKS).startswith("変化"):
            break
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
        elif move and (number or begins_game(line[move.end() - 1 :])):
            # A record of a position in the middle of a game goes on with its number.
            before = before if number else int(move[1]) - 1
            number = max(0, int(move[1]) - before)
            time = _KIF_TIME.search(line)
            if time:
                hours, minutes, seconds = (int(part or 0) for part in time.groups())
                details.seconds[number] = float(3600 * hours + 60 * minutes + seconds)
    return details


class Format(NamedTuple):
    """A text format of game records.

    Attributes:
        name: Its usual name.
        suffixes: File name suffixes in lower case, with the dot.
        split: Splits a file into records. Yields the number of lines before each record,
            and its bytes.
        parse: Parses one record; raises ``RecordError``.
        details: Reads what one record says besides its moves.
    """

    name: str
    suffixes: tuple[str, ...]
    split: Callable[[bytes], Iterator[tuple[int, bytes]]]
    parse: Callable[[bytes], Game]
    details: Callable[[bytes], Details]


CSA = Format("CSA", (".csa",), split_records, parse_game, details_of_csa)
KIF = Format("KIF", (".kif", ".kifu", ".ki2", ".ki2u"), split_games, parse_kif, details_of_kif)
FORMATS = (CSA, KIF)

#: Suffixes of binary files (:mod:`pydlshogi.kifu.record_batch`).
BINARY_SUFFIXES = (*HCPE.suffixes, *PSV.suffixes, *HCPE3_SUFFIXES)
#: Suffixes of all record files.
RECORD_SUFFIXES = (*(suffix for text in FORMATS for suffix in text.suffixes), *BINARY_SUFFIXES)


def is_binary(name: str) -> bool:
    """Says by its name whether a file is HCPE, HCPE3 or PSV."""
    return name.lower().endswith(BINARY_SUFFIXES)


def format_of(name: str, data: bytes) -> Format:
    """Finds the format of a file: by its suffix, or else by its content; the default is CSA."""
    for format_ in FORMATS:
        if name.lower().endswith(format_.suffixes):
            return format_
    return KIF if looks_like_kif(data) else CSA


class Record(NamedTuple):
    """One record of a file.

    Attributes:
        text: Its bytes.
        file: Name of the file.
        number: Number of the record in the file, from 1.
        lines_before: Number of lines of the file before the record.
        format: Its format.
    """

    text: bytes
    file: str
    number: int
    lines_before: int
    format: Format

    def parse(self) -> Game:
        """Parses the text; raises ``RecordError``."""
        return self.format.parse(self.text)

    def details(self) -> Details:
        """Reads the event, the date, the times and the comments."""
        return self.format.details(self.text)

    def note(self, line: int, reason: str) -> Note:
        """Makes a note about the record; ``line`` counts within it, 0 for no line."""
        return Note(self.file, self.number, line + self.lines_before if line else 0, reason)


def records_of(name: str, data: bytes) -> Iterator[Record]:
    """Splits the content of a file into records. The name gives the format, and is in notes."""
    format_ = format_of(name, data)
    for number, (lines_before, text) in enumerate(format_.split(data), 1):
        yield Record(text, name, number, lines_before, format_)
