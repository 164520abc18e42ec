"""Text files of any editor."""

import codecs

import pytest

from pydlshogi.text import decode

TEXT = "recipe  # 表す\r\n"


@pytest.mark.parametrize(
    "data",
    [
        TEXT.encode(),
        codecs.BOM_UTF8 + TEXT.encode(),
        codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le"),
        codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"),
        TEXT.encode("cp932"),
    ],
    ids=["UTF-8", "UTF-8 with a BOM", "UTF-16 LE", "UTF-16 BE", "CP932"],
)
def test_every_encoding_is_found(data):
    assert decode(data) == TEXT


@pytest.mark.parametrize("data", [b"a\xff\nb", codecs.BOM_UTF16_LE + b"a\0\n\0b\0c"])
def test_what_is_no_character_hides_no_other_line(data):
    first, second = decode(data).splitlines()
    assert (first[0], second[0]) == ("a", "b")
