"""An engine of the command line: its name, command, options, and the limit of its moves."""

from __future__ import annotations

import os
import re
import shutil
import sys
from dataclasses import dataclass

from pydlshogi.launch import python_path
from pydlshogi.text import split_words

_NAME = re.compile(r"[\w.+-]+", re.ASCII)

#: Debian installs games here; the folder is not in the PATH of every user.
_GAMES_FOLDER = "/usr/games"

_RANDOM = "random"
_FAIRY = "fairy"

#: Highest Skill Level of fairy-stockfish; the lowest is its negative.
_SKILL = 20

#: The option of the command line that is the limit of the engine's moves.
_LIMIT = "go"

#: Placeholder in a command for the Python that runs the match.
THIS_PYTHON = "{python}"

#: The opponents used to measure the strength of the shipped model.
USUAL_OPPONENTS = (_RANDOM, *(f"{_FAIRY}:{level}" for level in (-20, -10, -5, -3, 0)))


#: Kinds of limits, as ``go`` names them.
KINDS = ("nodes", "depth", "byoyomi")

#: The largest limit.
MOST = 10**12


@dataclass(frozen=True)
class Limit:
    """Limit of a move."""

    kind: str  # one of KINDS
    value: int  # number of nodes, depth, or milliseconds

    @property
    def command(self) -> str:
        """The ``go`` command."""
        # No clock besides the byoyomi: Fairy-Stockfish 11.1 confuses the two sides' clocks.
        clock = "btime 0 wtime 0 " if self.kind == "byoyomi" else ""
        return f"go {clock}{self.kind} {self.value}"

    @property
    def seconds(self) -> float:
        """Time that this limit allows an engine, in seconds."""
        return self.value / 1000 if self.kind == "byoyomi" else 0.0


def parse_limit(text: str) -> Limit:
    """Parses a limit: its kind and its value, as in ``nodes 1000``. ValueError: another form."""
    found = re.fullmatch(rf"({'|'.join(KINDS)}) +([1-9]\d*)", text.strip(), re.ASCII)
    if not found or len(found[2]) > len(str(MOST)) or int(found[2]) > MOST:
        raise ValueError(
            f"{text!r} is not nodes N, depth N or byoyomi MILLISECONDS, with numbers of at most "
            f"{MOST}"
        )
    return Limit(found[1], int(found[2]))


@dataclass(frozen=True)
class EngineSpec:
    """How to start an engine; the command is written so that it is the same on all machines.

    Its name stands in tables, folders and records. Without a limit, that of the match holds.
    """

    name: str
    command: tuple[str, ...]
    options: tuple[tuple[str, str], ...] = ()
    limit: Limit | None = None

    def arguments(self) -> list[str]:
        """Returns program and arguments for this machine."""
        program, *rest = self.command
        if program == THIS_PYTHON:
            return [sys.executable, *rest]
        path = os.pathsep.join([os.environ.get("PATH", os.defpath), _GAMES_FOLDER])
        return [shutil.which(program, path=path) or program, *rest]

    def variables(self) -> dict[str, str]:
        """Returns the environment variables that the engine needs."""
        return {"PYTHONPATH": python_path()} if self.command[0] == THIS_PYTHON else {}


def parse_engine(text: str) -> EngineSpec:
    """Parses an engine of the command line.

    That is ``NAME=COMMAND;OPTION=VALUE;…`` (a shell command), ``random`` or ``fairy:LEVEL``
    (fairy-stockfish at that Skill Level). The option ``go`` is the limit of its moves. For another
    text, ValueError says what is wrong.
    """
    if text == _RANDOM:
        return EngineSpec(_RANDOM, (THIS_PYTHON, "-m", "pydlshogi.match.random_player"))
    kind, _, level = text.partition(":")
    if kind == _FAIRY and re.fullmatch(r"[+-]?\d+", level, re.ASCII):
        if not -_SKILL <= int(level) <= _SKILL:
            raise ValueError(f"{text!r} needs a level from {-_SKILL} to {_SKILL}")
        skill = ("Skill Level", str(int(level)))
        return EngineSpec(f"{_FAIRY}{int(level)}", ("fairy-stockfish",), (skill,))
    head, *settings = text.split(";")
    name, equals, command = head.partition("=")
    if not (equals and _NAME.fullmatch(name) and command.strip()):
        raise ValueError(
            f"{text!r} is not random, fairy:LEVEL or NAME=COMMAND;OPTION=VALUE;... "
            "(a name has letters, digits and . + - _)"
        )
    options, limit = [], None
    for setting in settings:
        option, equals, value = setting.partition("=")
        if not (equals and option.strip()):
            raise ValueError(f"{setting!r} in the engine {name} is not OPTION=VALUE")
        if option.strip() == _LIMIT:
            try:
                limit = parse_limit(value)
            except ValueError as error:
                raise ValueError(f"{_LIMIT} of the engine {name}: {error}") from None
        else:
            options.append((option.strip(), value.strip()))
    return EngineSpec(name, _split(command), tuple(options), limit)


def _split(command: str) -> tuple[str, ...]:
    """Splits a command as the shell of the system does; on Windows only ``"`` quotes."""
    try:
        return tuple(split_words(command, windows_quotes='"'))
    except ValueError as error:
        raise ValueError(f"the command {command!r} cannot be split ({error})") from None
