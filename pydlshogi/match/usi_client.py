"""The process of an engine and the USI dialogue with it.

A thread reads the output of the engine, so that each wait has a deadline: a client must not wait
for ever for a silent engine. Standard error goes to a file: an engine that writes much there
would block at a pipe that nobody reads.
"""

from __future__ import annotations

import contextlib
import os
import queue
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from typing import IO, Callable, NamedTuple

from pydlshogi.errors import UserError
from pydlshogi.match.engine_spec import EngineSpec, Limit
from pydlshogi.usi.options import SENT_ANYWAY
from pydlshogi.usi.protocol import decode

#: Seconds from ``quit`` to the kill, as in GUIs.
_QUIT_GRACE = 5.0

# One thread for each engine, unless the user chose another number. More threads are very slow
# when the cores are busy.
_ENVIRONMENT = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PYDLSHOGI_THREADS"), "1")

_INFO = b"info string "

#: Longer lines of an engine are ignored.
_LONGEST_LINE = 1 << 16

#: Lines that wait to be read. Then, an engine that writes more has to wait.
_MOST_LINES = 1000

#: A number that is sent even if the engine declares another range: ranges may be wrong.
_FORCED = re.compile(r"-?\d+!", re.ASCII)

#: Evaluation of a mate, in centipawns; more than any that is not a mate.
MATE = 32000

_NUMBER = re.compile(r"[+-]?\d{1,9}")

_OPTION = re.compile(r"option name (?P<name>.+?) type (?P<type>\w+)(?P<rest>.*)")


class Answer(NamedTuple):
    """The answer of an engine to ``go``: the word after ``bestmove``, unchecked.

    The evaluation is the last one of the best line, in centipawns for the side to move, -``MATE`` …
    ``MATE``; a bound only if there is no other. None if the engine sent none.
    """

    move: str
    evaluation: int | None


class EngineError(UserError):
    """An engine cannot be started, has died or does not answer."""


class UsiClient:
    """A running engine; a ``with`` statement calls :meth:`greet` and :meth:`close`.

    It starts in the current folder. An answer may take ``timeout`` seconds, in addition to the
    byoyomi; the attribute may be changed. With ``is_alone`` it may use all cores. Most methods
    raise EngineError: it cannot be started, has died, does not answer, or lacks an option.
    """

    def __init__(self, spec: EngineSpec, timeout: float, is_alone: bool = False) -> None:
        self.spec = spec
        self.timeout = timeout
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the process)
        try:
            self._process = _start(spec, self._stderr, {} if is_alone else _ENVIRONMENT)
        except OSError as error:
            self._stderr.close()
            raise EngineError(
                f"engine {spec.name} cannot be started: {spec.command[0]}: {error.strerror}. "
                "Check that it is installed and may be executed."
            ) from None
        assert self._process.stdin and self._process.stdout
        self._stdin = self._process.stdin
        self._lines = _Lines(self._process.stdout)

    def greet(self) -> None:
        """Sends ``usi`` and sets the options."""
        with self._talk("usi"):
            self._send("usi")
            declared = [" ".join(words) for words in self._until("usiok")]
        self._set_options(declared)

    def new_game(self) -> None:
        """Prepares the engine for a game."""
        with self._talk("isready"):
            self._send("isready")
            list(self._until("readyok"))
            self._send("usinewgame")

    def best_move(self, moves: list[str], limit: Limit) -> Answer:
        """Asks for a move after the moves of a game from the standard start, in USI notation.

        The limit holds unless the engine has one of its own.
        """
        evaluation, is_exact = None, False

        def hear(words: list[str]) -> None:
            nonlocal evaluation, is_exact
            found = evaluation_of(words)
            if found is not None and not (is_exact and is_bound(words)):
                evaluation, is_exact = found, not is_bound(words)

        limit = self.spec.limit or limit
        position = " ".join(["startpos", *(["moves"] if moves else []), *moves])
        move, *_ = [*self.ask(position, limit.command, limit.seconds, hear), ""]
        return Answer(move, evaluation)

    def ask(
        self, position: str, go: str, seconds: float, hear: Callable[[list[str]], None]
    ) -> list[str]:
        """Asks for a move in a position; returns the words after ``bestmove``, unchecked.

        Args:
            position: What follows ``position``: ``startpos`` or ``sfen …``, and ``moves …``.
            go: The command, for example ``go byoyomi 1000``.
            seconds: Time that the command allows the engine.
            hear: Receives the words of each ``info`` line that is no string.
        """
        words: list[str] = []
        with self._talk(go, seconds):
            self._lines.discard()  # a second bestmove of the last move would count for this one
            self._send(f"position {position}")
            self._send(go)
            for words in self._until("bestmove"):
                if words[:1] == ["info"] and words[1:2] != ["string"]:
                    hear(words)
        return words[1:]

    def stop(self) -> None:
        """Asks for the move now; another thread may call this while :meth:`ask` waits."""
        with contextlib.suppress(OSError, ValueError):  # it has died, or is closed
            self._send("stop")

    def game_over(self, result: str) -> None:
        """Sends ``gameover`` with ``win``, ``lose`` or ``draw``."""
        with contextlib.suppress(EngineError), self._talk("gameover"):
            self._send(f"gameover {result}")

    def is_alive(self) -> bool:
        """Returns whether the process is running."""
        return self._process.poll() is None

    def kill(self) -> None:
        """Kills the process, and its child processes if it still runs.

        On Windows child processes, such as the Python of a .bat file, end later: when their input
        ends, by :meth:`close`.
        """
        if self.is_alive() and os.name != "nt":
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Sends ``quit``, and kills the engine if it does not end, or at Ctrl-C."""
        try:
            with contextlib.suppress(OSError):
                self._send("quit")
            with contextlib.suppress(OSError):
                self._stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_QUIT_GRACE)
        finally:
            self.kill()
            self._lines.close()
            self._stderr.close()

    def __enter__(self) -> UsiClient:
        try:
            self.greet()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _send(self, line: str) -> None:
        # A path may have bytes that are no UTF-8.
        self._stdin.write(line.encode("utf-8", "surrogateescape") + b"\n")
        self._stdin.flush()

    def _until(self, last: str) -> Iterator[list[str]]:
        """Yields the words of the lines that come, up to the line with a first word."""
        words: list[str] = []
        while words[:1] != [last]:
            words = self._lines.readline().split()
            yield words

    def _set_options(self, declared: list[str]) -> None:
        """Checks and sets the options of the spec; engines ignore wrong ones silently."""
        options = {
            match["name"].lower(): match for match in map(_OPTION.fullmatch, declared) if match
        }
        for name, value in self.spec.options:
            option = options.get(name.lower())
            if not option and name.lower() not in SENT_ANYWAY:
                raise EngineError(
                    f"engine {self.spec.name} has no option {name!r}. It has: "
                    f"{', '.join(match['name'] for match in options.values()) or 'none'}."
                )
            if option and option["type"] == "combo":
                value = _as_declared(option["rest"], value)
            if option and option["type"] == "spin" and _FORCED.fullmatch(value):
                value = value[:-1]
            elif option and (complaint := _complaint(option["type"], option["rest"], value)):
                raise EngineError(f"engine {self.spec.name}: the option {name} must be {complaint}")
            with self._talk("setoption"):
                self._send(f"setoption name {option['name'] if option else name} value {value}")

    @contextlib.contextmanager
    def _talk(self, command: str, seconds: float = 0.0) -> Iterator[None]:
        """Sets the deadline of a command; if it fails, kills the engine and says why."""
        patience = seconds + self.timeout
        self._lines.deadline = time.monotonic() + patience
        self._lines.said = ""
        try:
            yield
        except TimeoutError:
            self.kill()
            raise EngineError(
                f"engine {self.spec.name} did not answer {command!r} within {patience:g} s"
                f"{self._last_words()}."
            ) from None
        except (OSError, EOFError):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_QUIT_GRACE)
            status = self._process.poll()
            self.kill()
            raise EngineError(
                f"engine {self.spec.name} ended at {command!r} with status {status}"
                f"{self._last_words()}."
            ) from None

    def _last_words(self) -> str:
        """Quotes the last ``info string`` and the last line of standard error."""
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - _LONGEST_LINE))
        errors = [text for text in map(decode, self._stderr.read().splitlines()) if text]
        said, error = self._lines.said, errors[-1] if errors else ""
        if said and error.endswith(said):  # our engines say the same twice
            error = ""
        words = [text[:200].rstrip(".") for text in (said, error) if text]
        return f" ({'; '.join(words)})" if words else ""


class _Lines:
    """Standard output of an engine with a deadline."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.deadline = 0.0  # when reading fails, by time.monotonic()
        self.said = ""  # text of the last info string
        self._stream = stream
        self._is_closed = False
        self._queue: queue.Queue[bytes] = queue.Queue(_MOST_LINES)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def readline(self) -> str:
        """Returns the next line; other characters than ASCII become U+FFFD.

        It raises TimeoutError at the deadline, and EOFError at the end of the output.
        """
        left = self.deadline - time.monotonic()
        if left <= 0:  # even if lines are waiting: the engine may write without end
            raise TimeoutError
        try:
            line = self._queue.get(timeout=min(left, threading.TIMEOUT_MAX))
        except queue.Empty:
            raise TimeoutError from None
        if not line:
            raise EOFError
        return line.decode("ascii", "replace")

    def discard(self) -> None:
        """Drops the lines that have come but were not read; those that come later stay."""
        for _ in range(self._queue.qsize()):
            if not self._queue.get():
                self._queue.put(b"")  # the output has ended, which the next read must find

    def close(self) -> None:
        """Closes the stream, after the end of the process."""
        self._is_closed = True
        end = time.monotonic() + 1.0
        while self._thread.is_alive() and time.monotonic() < end:
            with contextlib.suppress(queue.Empty):  # the thread may wait for room
                self._queue.get(timeout=0.01)
        # A child process of the engine may still write to it.
        if not self._thread.is_alive():
            self._stream.close()

    def _read(self) -> None:
        is_rest = False  # of a line that is too long
        while piece := self._stream.readline(_LONGEST_LINE):
            is_whole = piece.endswith(b"\n") or len(piece) < _LONGEST_LINE
            if is_whole and not is_rest:
                if piece.startswith(_INFO):
                    # The encoding is unknown; our own engine writes ASCII.
                    self.said = decode(piece[len(_INFO) :])
                if not self._is_closed:  # nobody reads any more; a child process may write
                    self._queue.put(piece)
            is_rest = not is_whole
        self._queue.put(b"")


def _start(
    spec: EngineSpec, stderr: IO[bytes], environment: dict[str, str]
) -> subprocess.Popen[bytes]:
    """Starts an engine that does not receive Ctrl-C.

    Otherwise Ctrl-C would end the engines first, and they would lose their games. The variables of
    ``environment`` count where the user has not set them.
    """
    if os.name == "nt":
        group = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}  # type: ignore[attr-defined]
    else:
        group = {"start_new_session": True}
    return subprocess.Popen(
        spec.arguments(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env={**environment, **os.environ, **spec.variables()},
        **group,
    )


def _complaint(kind: str, declaration: str, value: str) -> str:
    """Says which values an option allows; empty if the given value is one of them."""
    if kind == "check":
        return "" if value in ("true", "false") else "true or false."
    if kind == "spin":
        bounds = re.search(r" min (-?\d+) max (-?\d+)", declaration)
        if bounds and not re.fullmatch(r"-?\d+", value, re.ASCII):
            return f"a number from {bounds[1]} to {bounds[2]}."
        if bounds and not int(bounds[1]) <= int(value) <= int(bounds[2]):
            anyway = f"To send {value} anyway, write {value}!"
            return f"a number from {bounds[1]} to {bounds[2]}. {anyway}"
    if kind == "combo":
        choices = _choices(declaration)
        if value not in choices:
            return f"one of {', '.join(choices)}."
    return ""


def _choices(declaration: str) -> list[str]:
    """Lists the values that a combo option allows."""
    return re.findall(r" var (.+?)(?= var |$)", declaration)


def _as_declared(declaration: str, value: str) -> str:
    """Returns the value of a combo option in upper and lower case as the engine declares it."""
    found = (choice for choice in _choices(declaration) if choice.lower() == value.lower())
    return value if value in _choices(declaration) else next(found, value)


def evaluation_of(words: Sequence[str]) -> int | None:
    """Reads the evaluation of the words of an ``info`` line, as in :class:`Answer`.

    None if there is none, if it is of another line than the best, or if it cannot be read.
    """
    if _word_after(words, "multipv") not in ("", "1"):
        return None
    kind = _word_after(words, "score")
    value = _word_after(words, kind) if kind in ("cp", "mate") else ""
    if kind == "mate" and value in ("+", "-"):
        value += "1"
    if not _NUMBER.fullmatch(value):
        return None
    if kind == "mate":  # 0: the side to move is mated
        return -MATE if value.startswith("-") or int(value) == 0 else MATE
    return max(-MATE, min(MATE, int(value)))


def is_bound(words: Sequence[str]) -> bool:
    """Says whether the evaluation of an ``info`` line is only a bound."""
    return "lowerbound" in words or "upperbound" in words


def _word_after(words: Sequence[str], name: str) -> str:
    """Returns the word after the first ``name``; "" if there is none."""
    if name not in words[:-1]:
        return ""
    return words[words.index(name) + 1]
