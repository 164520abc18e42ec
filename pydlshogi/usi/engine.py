"""The engine around a player of ours, and what it asks of the player."""

from __future__ import annotations

from pathlib import Path
from typing import Callable

from pydlshogi.errors import missing_package
from pydlshogi.usi.dialogue import Dialogue
from pydlshogi.usi.options import Options
from pydlshogi.usi.output import DialogueLog, Output
from pydlshogi.usi.protocol import (
    CommandError,
    FatalError,
    Go,
    parse_position,
    parse_setoption,
)


class Player:
    """A player that the engine can drive.

    The engine calls the methods one at a time, all from one thread. A player that thinks
    for long must look at ``go.stop`` and at the clock meanwhile.

    Attributes:
        name: Name of the engine, for ``id name``.
        options: What the GUI can set. The player reads the values at each call.
        send: Sends one line to the GUI.
    """

    name = "player"
    options: Options
    send: Callable[[str], None]

    def prepare(self) -> None:
        """Loads what the player needs, before every game. A UserError ends the engine."""

    def new_game(self) -> None:
        """Starts a game."""

    def set_position(self, sfen: str | None, moves: list[str]) -> None:
        """Sets up the position: an sfen, or None for the usual start, and moves in USI notation.

        Raises:
            CommandError: The position or a move is impossible. The position is unchanged.
        """
        raise NotImplementedError

    def choose(self, go: Go) -> str:
        """Chooses a move: returns the text behind ``bestmove``. A UserError ends the engine."""
        raise NotImplementedError

    def is_endless(self, go: Go) -> bool:
        """Says whether only ``stop`` ends the search."""
        return False

    def find_mate(self, go: Go) -> str:
        """Searches a mate: returns the text behind ``checkmate``."""
        return "notimplemented"

    def close(self) -> None:
        """Ends what the player has started. The engine calls it once."""


def open_log(log: DialogueLog, options: Options, folder: Path) -> None:
    """Opens the log that the option ``debug_log`` names, or closes it if the option is empty.

    A relative path starts at ``folder``. A log that cannot be written raises CommandError.
    """
    path = options["debug_log"]
    try:
        log.open(folder / path if path else None)
    except (OSError, ValueError) as error:
        raise CommandError(f"debug_log cannot be written: {error}") from None


class Engine(Dialogue):
    """A USI engine around a player.

    Args:
        name: Shown by the GUI.
        author: Shown by the GUI.
        options: What the GUI can set; shared with the player.
        make_player: Makes the player, given :meth:`Output.send`. The engine calls it when
            it first needs the player: making one may import for seconds, and ``usi`` must
            be answered at once.
        output: Receives the answers.
        log: Receives the dialogue if the option ``debug_log`` names a file.
        folder: Relative paths start here.
    """

    answers_at_once = True

    def __init__(
        self,
        name: str,
        author: str,
        options: Options,
        make_player: Callable[[Callable[[str], None]], Player],
        output: Output,
        log: DialogueLog,
        folder: Path,
    ) -> None:
        super().__init__(output)
        self.name = name
        self.author = author
        self.options = options
        self._make_player = make_player
        self._log = log
        self._folder = folder
        self._player: Player | None = None

    @property
    def player(self) -> Player:
        """The player, made at the first use."""
        if self._player is None:
            try:
                self._player = self._make_player(self._output.send)
            except ModuleNotFoundError as error:
                raise FatalError(missing_package(error)) from error
        return self._player

    def _usi(self, rest: str) -> None:
        names = (f"id name {self.name}", f"id author {self.author}")
        self._output.send_together((*names, *self.options.declarations(), "usiok"))

    def _setoption(self, rest: str) -> None:
        name, value = parse_setoption(rest)
        self.options.set(name, value)
        if name.lower() == "debug_log":
            open_log(self._log, self.options, self._folder)

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
