"""The engine around a player of ours, what it asks of the player, and its process.

Standard input and output of the process are reserved for the protocol.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Callable, NoReturn

import pydlshogi
from pydlshogi.errors import missing_package
from pydlshogi.usi.dialogue import Dialogue, perhaps_without_reader
from pydlshogi.usi.options import Options
from pydlshogi.usi.output import Output
from pydlshogi.usi.protocol import FatalError, Go, parse_position, parse_setoption

#: Relative paths in options start here: the root of a clone. The GUI chooses the current
#: folder, so that one is of no use.
PROGRAM_FOLDER = Path(pydlshogi.__file__).resolve().parent.parent


class Player:
    """A player that the engine can drive.

    The engine calls the methods one at a time, all from one thread. A player that thinks
    for long must look at ``go.stop`` and at the clock meanwhile.
    """

    name = "player"  # for id name
    options: Options  # what the GUI can set; the player reads the values at each call
    send: Callable[[str], None]  # sends one line to the GUI

    def prepare(self) -> None:
        """Loads what the player needs, before every game. A UserError ends the engine."""

    def new_game(self) -> None:
        """Starts a game."""

    def set_position(self, sfen: str | None, moves: list[str]) -> None:
        """Sets up an sfen, or None for the usual start, and plays moves in USI notation.

        If the position or a move is impossible, it raises CommandError and changes nothing.
        """
        raise NotImplementedError

    def choose(self, go: Go) -> str:
        """Chooses a move: returns the text behind ``bestmove``. A UserError ends the engine."""
        raise NotImplementedError

    def is_endless(self, go: Go) -> bool:
        """Says whether the search has no limit of its own."""
        return False

    def find_mate(self, go: Go) -> str:
        """Searches a mate: returns the text behind ``checkmate``."""
        return "notimplemented"

    def close(self) -> None:
        """Ends what the player has started. The engine calls it once."""


class Engine(Dialogue):
    """A USI engine around a player.

    Args:
        name: Shown by the GUI.
        options: What the GUI can set; shared with the player.
        make_player: Makes the player, given :meth:`Output.send`. The engine calls it when
            it first needs the player: making one may import for seconds, and ``usi`` must
            be answered at once.
        output: Receives the answers, and opens the log that the option ``debug_log`` names.
        folder: Relative paths start here.
    """

    answers_at_once = True

    def __init__(
        self,
        name: str,
        options: Options,
        make_player: Callable[[Callable[[str], None]], Player],
        output: Output,
        folder: Path = PROGRAM_FOLDER,
    ) -> None:
        super().__init__(output)
        self._name = name
        self._options = options
        self._make_player = make_player
        self._folder = folder
        self._player: Player | None = None

    @property
    def player(self) -> Player:
        """The player, made at the first use."""
        if self._player is None:
            try:
                self._player = self._make_player(self._output.send)
            except ImportError as error:
                raise FatalError(missing_package(error)) from error
        return self._player

    def _usi(self, rest: str) -> None:
        names = (f"id name {self._name}", "id author pydlshogi")
        self._output.send_together((*names, *self._options.declarations(), "usiok"))

    def _setoption(self, rest: str) -> None:
        name, value = parse_setoption(rest)
        self._options.set(name, value)
        if name.lower() == "debug_log":
            path = self._options["debug_log"]
            self._output.open_log(self._folder / path if path else None)

    def _prepare(self) -> None:
        self.player.prepare()

    def _new_game(self) -> None:
        self.player.new_game()

    def _set_position(self, text: str) -> None:
        self.player.set_position(*parse_position(text))

    def _choose(self, go: Go) -> str:
        return self.player.choose(go)

    def _waits_for_stop(self, go: Go) -> bool:
        return go.is_held or self.player.is_endless(go)

    def _mate(self, go: Go) -> str:
        return self.player.find_mate(go)

    def _close(self) -> None:
        if self._player:
            self._player.close()


def run_engine(
    name: str, options: Options, make_player: Callable[[Callable[[str], None]], Player]
) -> NoReturn:
    """Runs an engine until ``quit`` or the end of the input, and ends the process with status 0.

    The arguments are those of :class:`Engine`. A UserError means that the engine cannot go on,
    for example without a model; ``program`` turns it into the status 1.
    """
    with protocol_streams() as (lines, stream):
        Engine(name, options, make_player, Output(stream)).run(lines)
        with perhaps_without_reader():
            sys.stderr.flush()
        # A normal exit would wait for all threads: an import, CUDA, a batch of the network. Then
        # it would free the tree node by node.
        os._exit(0)


@contextlib.contextmanager
def protocol_streams() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Opens standard input and output for the protocol alone, and yields both."""
    _open_standard_files()
    with _input_for_protocol() as lines, _output_for_protocol() as stream:
        yield lines, stream


def _open_standard_files() -> None:
    """Opens standard input, output and error if the GUI has not: files would take their numbers."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number


@contextlib.contextmanager
def _input_for_protocol() -> Iterator[BinaryIO]:
    """Reserves standard input. Everyone else finds it empty.

    On Windows a call about a pipe waits while another thread reads it. Libraries make such calls
    when they are imported: numpy would wait for the GUI's next line, the GUI for ``readyok``.
    """
    own = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    try:
        with os.fdopen(os.dup(own), "rb") as stream:
            yield stream
    finally:
        os.dup2(own, 0)
        os.close(own)


@contextlib.contextmanager
def _output_for_protocol() -> Iterator[BinaryIO]:
    """Reserves standard output. What libraries print meanwhile goes to standard error."""
    own = os.dup(1)
    os.dup2(2, 1)
    stream = os.fdopen(os.dup(own), "wb")
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield stream
    finally:
        with contextlib.suppress(OSError):  # the GUI is gone, and a line is left over
            stream.close()
        os.dup2(own, 1)
        os.close(own)
