"""Record formats: how each one is recognised, split into records and parsed.

A new text format is one more entry in :data:`FORMATS`. To recognise it without a suffix,
extend :func:`format_of`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from pydlshogi.kifu.csa import parse_game, split_records
from pydlshogi.kifu.details import Details, details_of_csa, details_of_kif
from pydlshogi.kifu.fixed import HCPE, PSV
from pydlshogi.kifu.hcpe3 import SUFFIXES as HCPE3_SUFFIXES
from pydlshogi.kifu.kif import looks_like_kif, parse_kif, split_games
from pydlshogi.kifu.parsed_game import Game
from pydlshogi.kifu.report import Note


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

#: Suffixes of binary files (:mod:`pydlshogi.kifu.parts`).
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
