"""Text: files in the encodings of current and older editors and shells, and parts of messages."""

from __future__ import annotations

import codecs
import os
import shlex
import unicodedata

_ON_WINDOWS = os.name == "nt"

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

#: Categories of Unicode: controls, surrogates, characters that are none, separators of lines.
_NOT_IN_A_LINE = ("Cc", "Cs", "Cn", "Zl", "Zp")

#: Why a record in UTF-16 is refused, and what to do.
UTF_16_REASON = "the text is UTF-16, which no record format uses; save it as UTF-8"
# Bytes that old systems append to a text file: Ctrl-Z on DOS, zeros elsewhere.
_END_OF_FILE = b"\x1a\0"


def split_words(text: str, *, comments: str = "", windows_quotes: str = "'\"") -> list[str]:
    """Splits a line as a POSIX shell does, but on Windows a backslash is part of a path.

    There, only ``windows_quotes`` quote: an apostrophe may be part of a path.

    Raises:
        ValueError: A quote is not closed.
    """
    words = shlex.shlex(text, posix=True)
    words.whitespace_split = True
    words.commenters = comments
    if _ON_WINDOWS:
        words.escape, words.quotes = "", windows_quotes
    return list(words)


def one_line(text: str) -> str:
    """Replaces control characters and line ends, such as those in a name, by spaces."""
    return "".join(" " if unicodedata.category(c) in _NOT_IN_A_LINE else c for c in text)


def without_end_of_file(data: bytes) -> bytes:
    """Removes the bytes that old systems append to a text file, also before the last line end."""
    text = data.rstrip(_END_OF_FILE + b"\r\n")
    return text + data[len(text) :].translate(None, _END_OF_FILE)


def is_utf_16(data: bytes) -> bool:
    """Tests whether a text begins with a byte order mark of UTF-16."""
    return data.startswith(_UTF16)


def looks_like_utf_16(data: bytes) -> bool:
    """Tests whether a text without a byte order mark is UTF-16: it has line ends of two bytes."""
    beginning = data[:1024]
    return b"\0" in beginning and any(end in beginning for end in (b"\n\0", b"\0\n", b"\0\r"))


def decode(data: bytes) -> str:
    """Decodes a text file: UTF-8, UTF-16 with a BOM (PowerShell's ``>``), otherwise CP932.

    The result has no BOM. Undecodable bytes become U+FFFD.
    """
    if is_utf_16(data):
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp932", "replace")


def counted(number: int, noun: str) -> str:
    """Formats a number of things, such as ``1 game`` or ``2 games``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def shown(text: str) -> str:
    """Quotes a part of a record for a message: printable ASCII, at most 20 characters."""
    return ascii(text if len(text) <= 20 else text[:20] + "...")
