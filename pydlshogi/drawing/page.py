"""A game as one HTML page with a board to click through. It needs no internet.

The page contains the viewer (the folder viewer beside this module), the game as JSON, and
the characters of the Japanese font that it uses. Without the package of the font, the page
is written all the same and uses the fonts of the machine.
"""

from __future__ import annotations

import base64
import dataclasses
import html
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydlshogi.drawing.font import DrawingError, font_subset
from pydlshogi.drawing.notation import FILES, MARKS, PIECES, RANKS, SIDES
from pydlshogi.drawing.words import word
from pydlshogi.files import not_written, write_beside

#: Folder of the page's parts; the board in the browser shares board.js.
VIEWER = Path(__file__).resolve().parent / "viewer"

#: Texts of the viewer (:mod:`pydlshogi.drawing.words`).
_WORDS = (
    "moves", "rank", "policy", "share", "before", "change", "time", "candidates", "line", "flip",
    "first", "back", "forward", "last", "keys", "next mistake", "mistakes", "no mistakes", "bad",
    "doubtful", "bad move", "doubtful move", "value", "visits", "to the game", "copy sfen",
    "copy kif", "copied", "win of",
)  # fmt: skip

#: What the viewer fills in.
_LATER = {key: f"{{{key}}}" for key in ("side", "move", "before", "after")}

_ASCII = "".join(map(chr, range(32, 127)))


@dataclass(frozen=True)
class PageMove:
    """A move played, in USI's notation and as players write it; the rest is None if it is unknown.

    ``rank`` (from 1) and ``p`` are its place and probability among the model's moves, ``before``
    and ``after`` the probability that its side wins. ``mark`` is ``bad``, ``doubtful`` or empty.
    """

    usi: str
    text: str
    rank: int | None = None
    p: float | None = None
    before: float | None = None
    after: float | None = None
    seconds: float | None = None
    mark: str = ""


@dataclass(frozen=True)
class PageCandidate:
    """A move of the model: USI notation, players' notation, probability or None.

    Attributes:
        value, visits: What a search found: probability that its side wins, number of visits.
        line, texts: The moves from it on, in both notations, with blanks between them.
    """

    usi: str
    text: str
    p: float | None
    value: float | None = None
    visits: int = 0
    line: str = ""
    texts: str = ""


@dataclass(frozen=True)
class PagePosition:
    """A position: its SFEN, the probability that Black wins, the model's moves."""

    sfen: str
    win: float | None = None
    moves: Sequence[PageCandidate] = ()


@dataclass(frozen=True)
class GamePage:
    """A game to click through; it has one position more than moves. ``kif`` is the game to copy.

    ``about`` has event, date and result in one line. ``sides`` are the players' names; without
    them, the page shows the words of its language. ``searched`` says that the probabilities are
    shares of a search's visits.
    """

    title: str
    notes: Sequence[str]
    positions: Sequence[PagePosition]
    moves: Sequence[PageMove]
    end: str
    about: str = ""
    sides: Sequence[str] = ()
    kif: str = ""
    searched: bool = False


def write_page(page: GamePage, output: str | os.PathLike[str], *, language: str = "en") -> None:
    """Writes a page atomically, in "en" or "ja"; makes the folder if needed.

    Raises:
        DrawingError: the file cannot be written.
    """
    try:
        Path(output).parent.mkdir(parents=True, exist_ok=True)
        with write_beside(output) as file:
            file.write(render_page(page, language).encode("utf-8"))
    except OSError as error:
        raise DrawingError(not_written(f"page {output}", error, "Choose another file.")) from None


def render_page(page: GamePage, language: str) -> str:
    """Returns the HTML of a page."""
    data: dict[str, Any] = dataclasses.asdict(page)
    del data["title"]
    data["sides"] = page.sides or [word("black", language), word("white", language)]
    data["words"] = {key: word(key, language, **_LATER) for key in _WORDS}
    content = _valid(json.dumps(data, ensure_ascii=False, separators=(",", ":")))
    title = _valid(page.title)
    parts = {
        "language": language,
        "title": html.escape(title),
        "font": _font_face(content + title),
        "style": _read("viewer.css"),
        # "<" could end the element, or begin a comment.
        "data": content.replace("<", "\\u003c"),
        "script": _read("board.js") + _read("viewer.js"),
    }
    # Split first: what is filled in may contain a mark itself.
    pieces = _read("page.html").split("@")
    return "".join(parts[piece] if n % 2 else piece for n, piece in enumerate(pieces))


def _valid(text: str) -> str:
    """Replaces what is no text by "?": bytes of a file name in another encoding."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _read(name: str) -> str:
    return (VIEWER / name).read_text(encoding="utf-8")


def _font_face(text: str) -> str:
    """Makes the CSS rule with the characters of a text; empty without the font."""
    font = font_subset(_ASCII + FILES + RANKS + PIECES + "王成" + MARKS + SIDES + text)
    if font is None:
        return ""
    source = base64.b64encode(font).decode("ascii")
    return f"@font-face {{ font-family: Shogi; src: url(data:font/woff;base64,{source}); }}"
