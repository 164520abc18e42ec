"""The words of USI: reads the commands of a GUI and writes ``info`` lines.

Sources: the Shogidokoro page 「USIプロトコルとは」; Tord Romstad's draft for ``nodes``,
``depth``, ``movetime``, ``movestogo`` and ``searchmoves``.
"""

from __future__ import annotations

import collections
import dataclasses
import re
import threading
import time
from collections.abc import Sequence

from pydlshogi.errors import UserError
from pydlshogi.text import decode as decode_text

#: The form of a move in USI. Whether the move is possible is checked on the board.
MOVE = re.compile(r"[1-9][a-i][1-9][a-i]\+?|[PLNSGBR]\*[1-9][a-i]", re.ASCII)


class CommandError(UserError, ValueError):
    """A command of the GUI is wrong. The dialogue goes on."""


class FatalError(UserError):
    """The engine cannot go on. The text is for the person at the GUI."""


def decode(line: bytes) -> str:
    """Decodes a line of a GUI as :func:`pydlshogi.text.decode`, without surrounding blanks."""
    return decode_text(line).strip()


def quote(text: str, most: int = 60) -> str:
    """Quotes input in a message and shortens it to ``most`` characters."""
    return repr(text if len(text) <= most else text[: most - 3] + "...")


def parse_setoption(text: str) -> tuple[str, str]:
    """Parses ``name N [value V]``; V extends to the end of the line and may contain blanks.

    It returns name and value, which may be empty; without a name it raises CommandError.
    """
    start = re.match(r"name\s+(?=\S)", text)
    if not start:
        raise CommandError(f"setoption {quote(text)} has no name: setoption name N [value V]")
    # The match begins after a word, so that a long run of blanks is scanned only once.
    name, *value = re.split(r"(?<=\S)\s+value(?:\s+|\Z)", text[start.end() :], maxsplit=1)
    return name, value[0] if value else ""


def parse_position(text: str) -> tuple[str | None, list[str]]:
    """Parses ``startpos`` or ``sfen B T H [N]``, then optionally ``moves M …``.

    It returns the sfen, None for ``startpos``, and the moves, unchecked. Another text raises
    CommandError.
    """
    words = text.split()
    end = words.index("moves") if "moves" in words else len(words)
    root, moves = words[:end], words[end + 1 :]
    if root == ["startpos"]:
        return None, moves
    if len(root) > 1 and root[0] == "sfen":
        return " ".join(root[1:]), moves
    raise CommandError(f"position {quote(text)} is neither startpos nor sfen ...")


@dataclasses.dataclass(frozen=True)
class Clock:
    """The clock of one side, in milliseconds; None where the GUI gave none."""

    remaining: int | None = None
    increment: int | None = None
    byoyomi: int | None = None


@dataclasses.dataclass(frozen=True)
class Go:
    """A ``go`` command: the limits of a search, and when the move may be sent.

    Times are in milliseconds. Another thread sets ``stop`` when the player must answer at once, and
    ``ponderhit`` when a ``ponder`` becomes a normal search. ``time`` is when the command came, by
    ``time.perf_counter()``; None for the time when the search begins.
    """

    infinite: bool = False  # the move is held back until stop
    ponder: bool = False  # the move is held back until ponderhit or stop
    mate: bool = False  # the GUI asks for a mate, not for a move
    mate_ms: int | None = None  # for the mate search; None for no limit
    black: Clock = Clock()  # of the first player (btime, binc)
    white: Clock = Clock()
    moves_to_go: int | None = None  # until the clocks get new time; less than 1: unknown
    movetime: int | None = None
    nodes: int | None = None  # most positions to visit
    depth: int | None = None  # most plies to search
    searchmoves: tuple[str, ...] = ()  # moves to choose from; empty for all
    stop: threading.Event = dataclasses.field(default_factory=threading.Event, compare=False)
    ponderhit: PonderHit = dataclasses.field(default_factory=lambda: PonderHit(), compare=False)
    time: float | None = dataclasses.field(default=None, compare=False)

    @property
    def is_held(self) -> bool:
        """Whether the move is held back until the GUI asks for it."""
        return self.infinite or self.ponder

    @property
    def has_limit(self) -> bool:
        """Whether the command limits the search."""
        limits = (self.movetime, self.nodes, self.depth, self.mate_ms)
        return any(limit is not None for limit in limits) or not (
            self.black == self.white == Clock()
        )

    def clock(self, color: int) -> Clock:
        """Returns the clock of a side, ``shogi.BLACK`` (0) or ``shogi.WHITE`` (1)."""
        return (self.black, self.white)[color]


class PonderHit:
    """The ``ponderhit`` that a ``go ponder`` waits for: the reading thread notes it."""

    def __init__(self) -> None:
        self.text = ""  # arguments of the command: some GUIs repeat the clock there
        self.time = 0.0  # when the command came, by time.perf_counter()
        self._event = threading.Event()

    def set(self, text: str = "") -> None:
        """Notes that the command has come."""
        self.text = text
        self.time = time.perf_counter()
        self._event.set()

    def is_set(self) -> bool:
        """Says whether the command has come."""
        return self._event.is_set()


_GO_FLAGS = ("infinite", "ponder", "mate")
_GO_NUMBERS = (
    *("btime", "wtime", "byoyomi", "binc", "winc", "movestogo"),
    *("movetime", "nodes", "depth"),
)
_GO_WORDS = (*_GO_FLAGS, *_GO_NUMBERS, "searchmoves")

#: The numbers of one side. If the GUI gives one of them, both sides have a limit.
_GO_CLOCKS = ("btime", "wtime", "binc", "winc")

#: Larger numbers count as this one.
_LARGEST = 10**18

#: The whole number at the start of a text, and what may follow it: a fraction without a value.
_NUMBER = re.compile(r"([+-]?)0*(\d{0,20})\d*(?<=\d)(\.\d*)?", re.ASCII)


def _go_number(word: str, value: str, complaints: list[str]) -> int:
    """Reads the whole number at the start of a word behind ``word``.

    Lishogi-Bot sends ``movetime 1000.0``. Without a number it is 0, and at most 10**18. A value
    that is not only a number adds a complaint.
    """
    match = _NUMBER.match(value)
    # Python refuses to read thousands of digits.
    number = min(_LARGEST, int(match[2] or 0)) if match else 0
    if match and match[1] == "-":
        number = -number
    if not match or match.end() < len(value):
        instead = f", not {quote(value)}" if value else ""
        complaints.append(f"go {word} needs a number{instead}: it counts as {number}")
    return number


def parse_go(text: str) -> tuple[Go, list[str]]:
    """Parses the arguments of ``go``; returns the command, and a sentence for each unknown word.

    Unknown words are ignored, because the GUI waits for an answer. For the same reason a number
    that is missing or cannot be read counts as 0. So does the clock of a side if the GUI gives only
    that of the other side. Without a limit, the search would never end. ``mate`` without a number
    has no limit, as ``mate infinite``.
    """
    flags: set[str] = set()
    numbers: dict[str, int] = {}
    searchmoves: list[str] = []
    complaints: list[str] = []
    words = collections.deque(text.split())
    while words:
        word = words.popleft()
        if word in _GO_FLAGS:
            flags.add(word)
            if word != "mate" or not words:
                continue
            if words[0] == "infinite":  # the limit of the mate search, not go infinite
                words.popleft()
            elif words[0] not in _GO_WORDS:
                numbers["mate"] = _go_number("mate", words.popleft(), complaints)
        elif word in _GO_NUMBERS:
            value = words.popleft() if words and words[0] not in _GO_WORDS else ""
            numbers[word] = _go_number(word, value, complaints)
        elif word == "searchmoves":
            while words and MOVE.fullmatch(words[0]):
                searchmoves.append(words.popleft())
        else:
            complaints.append(f"go does not know {quote(word)}")
    if any(word in numbers for word in _GO_CLOCKS):
        numbers = {"btime": 0, "wtime": 0, **numbers}
    byoyomi = numbers.get("byoyomi")
    go = Go(
        infinite="infinite" in flags,
        ponder="ponder" in flags,
        mate="mate" in flags,
        mate_ms=numbers.get("mate"),
        black=Clock(numbers.get("btime"), numbers.get("binc"), byoyomi),
        white=Clock(numbers.get("wtime"), numbers.get("winc"), byoyomi),
        moves_to_go=numbers.get("movestogo"),
        movetime=numbers.get("movetime"),
        nodes=numbers.get("nodes"),
        depth=numbers.get("depth"),
        searchmoves=tuple(searchmoves),
    )
    return go, complaints


def info(
    pv: Sequence[str], score: str | None, *, time_ms: int, nodes: int, multipv: int = 1
) -> str:
    """Writes an ``info`` line of a search of depth 1.

    The score is ``cp N`` or ``mate N``, seen from the side to move; None for no score. ``multipv``
    is the rank of the line, from 1.
    """
    score_words = f"score {score} " if score else ""
    return (
        f"info depth 1 time {time_ms} nodes {nodes} multipv {multipv} {score_words}"
        f"pv {' '.join(pv)}"
    )


def end_info(score: str) -> str:
    """Writes the line of an ended game: ``mate 1`` for a declaration, ``mate -0`` if mated."""
    return f"info depth 0 time 0 nodes 0 score {score}"
