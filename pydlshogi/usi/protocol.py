"""The words of USI: lines in, messages out of them, lines back.

Sources: the Shogidokoro page 「USIプロトコルとは」; Tord Romstad's draft for ``nodes``,
``depth``, ``movetime`` and ``searchmoves``.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import datetime
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

#: A move as USI writes it; whether some piece can make it is the board's business.
MOVE = re.compile(r"[1-9][a-i][1-9][a-i]\+?|[PLNSGBR]\*[1-9][a-i]", re.ASCII)

#: How many early lines are kept for a log that is opened later.
_EARLY_LINES = 1000


class CommandError(ValueError):
    """A command cannot be obeyed; the text names what is wrong with it."""


class FatalError(Exception):
    """The engine cannot go on; the text is a sentence for the person at the GUI."""


def decode(line: bytes) -> str:
    """Turns a line of a GUI into text, whatever its encoding and its line end.

    Args:
        line: UTF-8, else CP932 (Japanese Windows), else anything.

    Returns:
        The text without line end and surrounding blanks. Bytes that are neither
        encoding come out as U+FFFD.
    """
    for encoding in ("utf-8-sig", "cp932"):
        try:
            return line.decode(encoding).strip()
        except UnicodeDecodeError:
            pass
    return line.decode("utf-8", "replace").strip()


def quote(text: str, most: int = 60) -> str:
    """Names a piece of input in a message, shortened where it is long."""
    return repr(text if len(text) <= most else text[: most - 3] + "...")


def parse_setoption(text: str) -> tuple[str, str]:
    """Reads what stands behind ``setoption``.

    Args:
        text: ``name N``, ``name N value`` or ``name N value V``; V runs to the end
            of the line and may hold spaces.

    Returns:
        Name and value; the value is empty where none is given.

    Raises:
        CommandError: there is no name.
    """
    start = re.match(r"name\s+(?=\S)", text)
    if not start:
        raise CommandError(f"setoption {quote(text)} has no name: setoption name N [value V]")
    # Begun behind the last letter of a word only: many blanks are looked at once.
    name, *value = re.split(r"(?<=\S)\s+value(?:\s+|\Z)", text[start.end() :], maxsplit=1)
    return name, value[0] if value else ""


def parse_position(text: str) -> tuple[str | None, list[str]]:
    """Reads what stands behind ``position``.

    Args:
        text: ``startpos`` or ``sfen B T H [N]``, then ``moves M …`` or nothing.

    Returns:
        The sfen, None for the usual start; and the moves, not yet looked at.

    Raises:
        CommandError: it starts in another way.
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
    """The time of one side, in milliseconds; None where the GUI gave none."""

    remaining: int | None = None
    increment: int | None = None
    byoyomi: int | None = None


@dataclasses.dataclass(frozen=True)
class Go:
    """A ``go`` command: how long to think, and when the move may be told.

    Attributes:
        infinite: The move must wait for ``stop``.
        ponder: The move must wait for ``ponderhit`` or ``stop``.
        mate: A mate is asked for, not a move.
        black: Clock of the first player (``btime``, ``binc``), whoever is to move.
        white: Clock of the second player (``wtime``, ``winc``).
        movetime: Milliseconds for this move.
        nodes: Positions to visit at most.
        depth: Plies to search at most.
        searchmoves: The moves to choose from; all where it is empty.
        stop: Set, by another thread, when the player shall answer with what it has.
    """

    infinite: bool = False
    ponder: bool = False
    mate: bool = False
    black: Clock = Clock()
    white: Clock = Clock()
    movetime: int | None = None
    nodes: int | None = None
    depth: int | None = None
    searchmoves: tuple[str, ...] = ()
    stop: threading.Event = dataclasses.field(default_factory=threading.Event, compare=False)

    def clock(self, color: int) -> Clock:
        """Gives the clock of a side, ``shogi.BLACK`` (0) or ``shogi.WHITE`` (1)."""
        return (self.black, self.white)[color]

    def seconds(self, color: int) -> float | None:
        """Says how long a side should think: half of what it could spend on this move.

        That is ``movetime`` or else byoyomi, the increment and a thirtieth of the time
        that remains, but never more than time and byoyomi, since an increment may be
        added only after the move. The other half is for what cannot be interrupted and
        for the GUI's delays.

        Returns:
            Seconds; None where there is no limit: none is given, or the move has to
            wait for ``stop`` or ``ponderhit`` anyhow.
        """
        if self.infinite or self.ponder:
            return None
        if self.movetime is not None:
            return max(0, self.movetime) / 2000
        clock = self.clock(color)
        if clock == Clock():
            return None
        remaining, increment, byoyomi = (
            max(0, number or 0) for number in dataclasses.astuple(clock)
        )
        share = byoyomi + increment + remaining / 30
        return min(share, byoyomi + remaining) / 2000


_GO_FLAGS = ("infinite", "ponder", "mate")
_GO_NUMBERS = ("btime", "wtime", "byoyomi", "binc", "winc", "movetime", "nodes", "depth")


def parse_go(text: str) -> tuple[Go, list[str]]:
    """Reads what stands behind ``go``.

    Whatever is not understood is passed over, since a GUI waits for an answer.

    Args:
        text: The words, in any order.

    Returns:
        The command, and a sentence for each word that was passed over.
    """
    flags: set[str] = set()
    numbers: dict[str, int] = {}
    searchmoves: list[str] = []
    complaints = []
    words = collections.deque(text.split())
    while words:
        word = words.popleft()
        if word in _GO_FLAGS:
            flags.add(word)
            # The limit of a mate search, which would otherwise read as go infinite.
            if word == "mate" and words and re.fullmatch(r"\d+|infinite", words[0], re.ASCII):
                words.popleft()
        elif word in _GO_NUMBERS:
            if words and re.fullmatch(r"-?\d{1,18}", words[0], re.ASCII):
                numbers[word] = int(words.popleft())
            else:
                complaints.append(f"go {word} has no number behind it")
        elif word == "searchmoves":
            while words and MOVE.fullmatch(words[0]):
                searchmoves.append(words.popleft())
        else:
            complaints.append(f"go does not know {quote(word)}")
    byoyomi = numbers.get("byoyomi")
    go = Go(
        infinite="infinite" in flags,
        ponder="ponder" in flags,
        mate="mate" in flags,
        black=Clock(numbers.get("btime"), numbers.get("binc"), byoyomi),
        white=Clock(numbers.get("wtime"), numbers.get("winc"), byoyomi),
        movetime=numbers.get("movetime"),
        nodes=numbers.get("nodes"),
        depth=numbers.get("depth"),
        searchmoves=tuple(searchmoves),
    )
    return go, complaints


def info(pv: Sequence[str], score: str, *, time_ms: int, nodes: int, multipv: int = 1) -> str:
    """Writes an ``info`` line of a search of depth 1.

    Args:
        pv: Moves, the first to be played now.
        score: ``cp N`` or ``mate N``, from the side to move.
        time_ms: Milliseconds since ``go``.
        nodes: Positions evaluated.
        multipv: Rank of the line, from 1.
    """
    return (
        f"info depth 1 time {time_ms} nodes {nodes} multipv {multipv} score {score} "
        f"pv {' '.join(pv)}"
    )


class DialogueLog:
    """A file of the whole dialogue, with times; closed until :meth:`open` is called.

    Lines that came before are kept in memory and written when it is opened, since
    the option that names the file comes after the first of them.
    """

    def __init__(self) -> None:
        self._early: collections.deque[str] = collections.deque(maxlen=_EARLY_LINES)
        self._file: BinaryIO | None = None
        self._lock = threading.Lock()

    def open(self, path: Path | None) -> None:
        """Goes on in a file, behind what it holds; None closes.

        Raises:
            OSError: the file cannot be written; none is open then.
            ValueError: no system has a file of that name.
        """
        with self._lock:
            self._close()
            if path:
                self._file = path.open("ab", buffering=0)
                self._put("".join(self._early))
                self._early.clear()

    def write(self, direction: str, text: str) -> OSError | None:
        """Adds a line, ``<`` from the GUI or ``>`` to it.

        Returns:
            Why the file cannot be written any more, the first time only, since it is then
            closed: a full disk must not end a game. None where all is well.
        """
        now = datetime.datetime.now().isoformat(sep=" ", timespec="milliseconds")
        line = f"{now} {direction} {text}\n"
        with self._lock:
            if self._file:
                try:
                    self._put(line)
                except OSError as error:
                    return error
            else:
                self._early.append(line)
        return None

    def _put(self, text: str) -> None:
        """Writes to the file, or closes it and raises OSError."""
        try:
            self._file.write(text.encode("utf-8", "backslashreplace"))  # type: ignore[union-attr]
        except OSError:
            self._close()
            raise

    def _close(self) -> None:
        """Closes the file, if there is one."""
        if self._file:
            with contextlib.suppress(OSError):  # a network drive may fail only now
                self._file.close()
            self._file = None


class Output:
    """The engine's end of the pipe: one line a call, ASCII, flushed.

    Windows GUIs read CP932 and others UTF-8: ASCII is the same in both.
    """

    def __init__(self, stream: BinaryIO, log: DialogueLog) -> None:
        self._stream: BinaryIO | None = stream
        self._log = log
        # A line that cannot be logged brings forth another line, inside of send.
        self._lock = threading.RLock()

    def send(self, line: str) -> None:
        """Writes a line; control characters and all that is not ASCII are escaped."""
        text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)
        with self._lock:
            self.log(">", text)
            if self._stream:
                try:
                    self._stream.write(text.encode("ascii", "backslashreplace") + b"\n")
                    self._stream.flush()
                except (OSError, ValueError):
                    # The GUI is gone; the end of its input, which follows, ends the engine.
                    self._stream = None

    def log(self, direction: str, text: str) -> None:
        """Adds a line to the log, and tells the person at the GUI where that fails."""
        error = self._log.write(direction, text)
        if error:
            self.info_string(f"debug_log cannot be written any more: {error}")

    def info_string(self, text: str) -> None:
        """Tells the person at the GUI something."""
        self.send(f"info string {text}")
