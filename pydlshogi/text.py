"""Text files as editors and shells of today and of yesterday write them."""

from __future__ import annotations

import codecs

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def decode(data: bytes) -> str:
    """Decodes a text file of which nothing says how it is encoded.

    Args:
        data: The file: UTF-8, with a BOM as Notepad writes it or without; UTF-16 with a
            BOM, as PowerShell's ``>`` writes; or else CP932, as Windows in Japanese has it.

    Returns:
        Its text without a BOM; what is no character becomes U+FFFD.
    """
    if data.startswith(_UTF16):
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp932", "replace")
