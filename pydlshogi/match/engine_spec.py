"""What the command line says of an engine: name, command, options."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from dataclasses import dataclass

_NAME = re.compile(r"[\w.+-]+", re.ASCII)

#: Where Debian puts games, outside the path of many users.
_GAMES_FOLDER = "/usr/games"

_RANDOM = "random"
_FAIRY = "fairy"

#: Stands in a command for the Python that runs the match, wherever it lies.
_THIS_PYTHON = "{python}"

#: The opponents that the strength of the shipped model is measured against.
USUAL_OPPONENTS = (_RANDOM, *(f"{_FAIRY}:{level}" for level in (-20, -10, -5, -3, 0)))


@dataclass(frozen=True)
class EngineSpec:
    """An engine to start.

    Attributes:
        name: What it is called in tables, folders and records.
        command: Program and arguments, as settings keep them: the same on every machine.
        options: USI options and their values.
    """

    name: str
    command: tuple[str, ...]
    options: tuple[tuple[str, str], ...] = ()

    def arguments(self) -> list[str]:
        """Gives program and arguments as this machine starts them."""
        program, *rest = self.command
        if program == _THIS_PYTHON:
            return [sys.executable, *rest]
        path = os.pathsep.join([os.environ.get("PATH", os.defpath), _GAMES_FOLDER])
        return [shutil.which(program, path=path) or program, *rest]


def parse_engine(text: str) -> EngineSpec:
    """Reads an engine of the command line.

    Args:
        text: ``NAME=COMMAND;OPTION=VALUE;…``, the command with its arguments quoted as
            in a shell; or ``random``, the built-in random mover; or ``fairy:LEVEL``,
            fairy-stockfish at that skill level.

    Raises:
        ValueError: none of these; the text says what is wrong.
    """
    if text == _RANDOM:
        # Not a file's path: so started, it would not find the package in a clone.
        return EngineSpec(_RANDOM, (_THIS_PYTHON, "-m", "pydlshogi.match.random_player"))
    kind, _, level = text.partition(":")
    if kind == _FAIRY and re.fullmatch(r"[+-]?\d+", level, re.ASCII):
        skill = ("Skill Level", str(int(level)))
        return EngineSpec(f"{_FAIRY}{int(level)}", ("fairy-stockfish",), (skill,))
    head, *settings = text.split(";")
    name, equals, command = head.partition("=")
    if not (equals and _NAME.fullmatch(name) and command.strip()):
        raise ValueError(
            f"{text!r} is not random, fairy:LEVEL or NAME=COMMAND;OPTION=VALUE;... "
            "(a name has letters, digits and . + - _)"
        )
    options = []
    for setting in settings:
        option, equals, value = setting.partition("=")
        if not (equals and option.strip()):
            raise ValueError(f"{setting!r} in the engine {name} is not OPTION=VALUE")
        options.append((option.strip(), value.strip()))
    return EngineSpec(name, _split(command), tuple(options))


def _split(command: str) -> tuple[str, ...]:
    """Splits a command as the system's shell would; on Windows ``\\`` is no escape."""
    try:
        words = shlex.split(command, posix=os.name != "nt")
    except ValueError as error:
        raise ValueError(f"the command {command!r} cannot be split ({error})") from None
    return tuple(word.strip('"') for word in words) if os.name == "nt" else tuple(words)
