"""The time to read a text grows with its length, not faster, whatever the text holds.

Texts of one kind are read at two lengths, one 16 times the other. Time that grows with the square
would grow 256 times, and would be far beyond the limit.
"""

import ast
import contextlib
import importlib
import math
import pkgutil
import re
import sys
import time
from pathlib import Path

import pytest

import pydlshogi
from pydlshogi.errors import UserError
from pydlshogi.kifu.csa import evaluation_of, parse_game, split_records
from pydlshogi.kifu.csa_scan import scan
from pydlshogi.kifu.kif import looks_like_kif, parse_kif, split_games
from pydlshogi.match.engine_spec import parse_engine, parse_limit
from pydlshogi.player.opening_book import read_book
from pydlshogi.player.position import make_board
from pydlshogi.usi.protocol import parse_go, parse_position, parse_setoption

if sys.version_info >= (3, 11):
    from re import _parser as sre
else:
    import sre_parse as sre

#: Modules with patterns that users' texts meet.
ROOMS = ("kifu", "usi", "player", "match", "analysis", "drawing", "browser", "text")
SIZE = 8_000
#: Seconds of the processor for SIZE characters. A linear pattern needs a hundredth of it, and one
#: that grows with the square several times as much.
LIMIT = 0.15
TRIES = 4
ALPHABET = (
    " 　\t\xa0\n\r0９1一十a1Z_.,:;+-*/'\"()（）[]|!%&=#<>\\@~^"
    "▲△歩銀玉金成同打不右左上手まで先後勝負分秒落持駒変化の反則時間切れ、。PLNSGBRplnsgbrbw"
)


METHODS = "match|fullmatch|search|findall|finditer|split|sub"


def patterns():
    """Yields the patterns of the modules by their names, and the methods that the modules call."""
    for module in pkgutil.walk_packages(pydlshogi.__path__, "pydlshogi."):
        if module.name.split(".")[1] not in ROOMS:
            continue
        try:
            content = vars(importlib.import_module(module.name))
        except ImportError:  # a package that is not installed here
            continue
        source = Path(content["__file__"]).read_text(encoding="utf-8")
        for name, value in content.items():
            if isinstance(value, re.Pattern):
                called = re.findall(rf"\b{name}\.({METHODS})\b", source)
                yield f"{module.name}.{name}", value, sorted(set(called) or {"match"})
        for node in ast.walk(ast.parse(source)):
            if (
                isinstance(node, ast.Call)
                and ast.unparse(node.func).startswith("re.")
                and node.func.attr in METHODS.split("|")
                and isinstance(node.args[0], ast.Constant)
            ):
                value = re.compile(node.args[0].value)
                yield f"{module.name}:{node.lineno}", value, [node.func.attr]


PATTERNS = sorted(patterns(), key=lambda found: found[0])


def samples(node):
    """Lists a few texts that match a part of a pattern."""
    kind, value = str(node[0]), node[1]
    if kind == "LITERAL":
        return [chr(value)]
    if kind in ("IN", "NOT_LITERAL", "ANY", "CATEGORY"):
        one = re.compile(as_pattern(kind, value), re.DOTALL)
        return [char for char in ALPHABET if one.fullmatch(char)][:12] or [""]
    if kind == "BRANCH":
        return [text for part in value[1] for text in joined(part)][:24]
    if kind == "SUBPATTERN":
        return joined(value[-1])
    if kind in ("MAX_REPEAT", "MIN_REPEAT"):
        low, _, part = value
        return [text * max(low, 1) for text in joined(part)]
    return [""]


def joined(part):
    """Lists texts that match a sequence of parts: the first sample of each part, and others."""
    choices = [samples(node) for node in part]
    first = "".join(choice[0] for choice in choices)
    others = ["".join(choice[min(n, len(choice) - 1)] for choice in choices) for n in range(1, 4)]
    return list(dict.fromkeys([first, *others]))


def as_pattern(kind, value):
    """Writes a class of characters, as the parser has it, as a pattern again."""
    if kind == "NOT_LITERAL":
        return f"[^{re.escape(chr(value))}]"
    if kind == "ANY":
        return "."
    classes = {
        "CATEGORY_DIGIT": r"\d", "CATEGORY_SPACE": r"\s", "CATEGORY_WORD": r"\w",
        "CATEGORY_NOT_DIGIT": r"\D", "CATEGORY_NOT_SPACE": r"\S", "CATEGORY_NOT_WORD": r"\W",
    }  # fmt: skip
    text = ""
    for item, content in value:
        item = str(item)
        if item == "NEGATE":
            text = "^" + text
        elif item == "LITERAL":
            text += re.escape(chr(content))
        elif item == "RANGE":
            text += f"{re.escape(chr(content[0]))}-{re.escape(chr(content[1]))}"
        else:
            text += classes[str(content)]
    return f"[{text}]"


def attacks(part, before=""):
    """Yields the beginning of a text, and what to repeat, for each unlimited repetition."""
    for node in part:
        kind, value = str(node[0]), node[1]
        inner = []
        if kind in ("MAX_REPEAT", "MIN_REPEAT"):
            inner = [value[2]]
            if value[1] > 1000:
                yield from ((before, text) for text in joined(value[2]) + samples(node) if text)
        elif kind == "SUBPATTERN":
            inner = [value[-1]]
        elif kind == "BRANCH":
            inner = value[1]
        for piece in inner:
            yield from attacks(piece, before)
        before += samples(node)[0]


def call(pattern, method):
    """Returns a function that calls a method of a pattern to the end."""
    if method == "sub":
        return lambda text: pattern.sub(text[:0], text)
    if method == "finditer":
        return lambda text: list(pattern.finditer(text))
    return getattr(pattern, method)


def seconds(function, text, limit=0.0):
    """Gives the processor's time of a call; errors of the user's text are none.

    A time over the limit is measured again, and the smallest counts: other programs on the machine
    slow single calls down, but not all of them.
    """
    best = math.inf
    for _ in range(TRIES):
        start = time.process_time()
        with contextlib.suppress(UserError, ValueError):
            function(text)
        best = min(best, time.process_time() - start)
        if best < limit:
            break
    return best


def test_the_patterns_of_all_rooms_are_found():
    assert {name.split(".")[1] for name, *_ in PATTERNS} >= {"kifu", "usi", "player", "match"}


@pytest.mark.parametrize(("name", "pattern", "methods"), PATTERNS, ids=[row[0] for row in PATTERNS])
def test_no_pattern_takes_longer_than_its_text_is_long(name, pattern, methods):
    tree = sre.parse(
        pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1"),
        pattern.flags & ~re.UNICODE,
    )
    tried = set()
    for before, unit in attacks(tree):
        text = before + unit * (SIZE // len(unit)) + "x"
        if text in tried:
            continue
        tried.add(text)
        if isinstance(pattern.pattern, bytes):
            text = text.encode("latin-1", "replace")
        for method in methods:
            assert seconds(call(pattern, method), text, LIMIT) < LIMIT, (method, before, unit)


@pytest.mark.long
def test_the_test_of_patterns_finds_what_grows_with_the_square():
    bad = re.compile(r"'\*\*[ \t]+([+-]?)0*([0-9]+)(?:[ \t]|\Z)")  # as it once was
    found = [
        seconds(bad.match, before + unit * (SIZE // len(unit)) + "x")
        for before, unit in attacks(sre.parse(bad.pattern))
    ]
    assert max(found) > LIMIT


UNITS = [
    *"0９一 　\t\xa0▲△歩同+-'/*.,:%(（|手まP\r\n\\\"!=_a\ufffd",
    *("00", "▲７六歩", "△ ", "( ", "()", "(0:00)", "1 ", " 1", "\n1", "win:", " win:", " lose:"),
    *(
        ",T1",
        ",'",
        "\n'",
        "\n/",
        "/ ",
        "\n'** 0",
        "\n+",
        "歩二",
        "：",
        "まで1手で",
        "先手の勝",
        "反則",
    ),
    *(
        " min 1",
        " type ",
        " var a",
        "value ",
        "name ",
        " moves",
        "2P",
        "1/",
        "変化",
        "\n手合割：平手",
    ),
]
STARTS = {
    "csa": [
        "",
        "PI\n+\n+7776FU\n",
        "PI\n+\n+7776FU\n'** ",
        "'summary:x:a",
        "PI\n+\n+7776FU,T",
        "P1",
        "%",
    ],
    "kif": [
        *(
            "",
            "手合割：平手\n",
            "手合割：平手\n   1 ７六歩(77)",
            "手合割：平手\n   1 ７六歩(77)( 0:01)",
        ),
        *(
            "手合割：平手\n   1 ７六歩(77)\n   2 ",
            "手合割：平手\n   1 ７六歩(77)\nまで",
            "後手の持駒：",
        ),
        *("手合割：平手\n▲７六歩 ", "手合割：平手\n▲７六歩\nまで1手で", "手合割：", "|", "   1"),
    ],
}


def read_kif(text):
    data = text.encode("utf-8", "surrogatepass")
    looks_like_kif(data)
    for _, record in split_games(data):
        parse_kif(record)


def read_csa(text):
    data = text.encode("utf-8", "surrogatepass")
    for _, record in split_records(data):
        scan([record])
        parse_game(record)


def set_up(text):
    make_board(text, [])


@pytest.mark.parametrize(
    ("read", "start"),
    [
        *((read_csa, start) for start in STARTS["csa"]),
        *((read_kif, start) for start in STARTS["kif"]),
        *((evaluation_of, start) for start in ("'** ", "'** -")),
        *((parse_go, start) for start in ("", "movetime ", "mate ", "searchmoves ")),
        *((parse_setoption, start) for start in ("", "name ", "name a value ", "name a")),
        *((parse_position, start) for start in ("", "startpos ", "startpos moves ", "sfen ")),
        *((set_up, start) for start in ("", "9/", "9/9/9/9/9/9/9/9/9 b ")),
        *((parse_engine, start) for start in ("", "usi:", "name=")),
        *((parse_limit, start) for start in ("", "nodes ", "byoyomi ")),
    ],
)  # fmt: skip
def test_reading_takes_no_longer_than_its_text_is_long(read, start):
    for unit in UNITS:
        small, large = (start + unit * (size // len(unit)) + "x" for size in (SIZE // 16, SIZE))
        limit = LIMIT
        if seconds(read, large, limit) >= limit:
            limit = 64 * seconds(read, small)
        assert seconds(read, large, limit) < limit, unit


@pytest.mark.parametrize("start", ["", "#YANEURAOU-DB2016 1.00\nsfen 9/9/9/9/9/9/9/9/9 b ", "a b "])
def test_opening_books_take_no_longer_than_their_text_is_long(start, tmp_path):
    for unit in UNITS:
        (tmp_path / "file").write_text(start + unit * (SIZE // len(unit)), encoding="utf-8")
        assert seconds(read_book, tmp_path / "file", LIMIT) < LIMIT, unit
