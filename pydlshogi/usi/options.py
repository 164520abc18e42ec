"""Options of a USI engine, with the types that GUIs know.

GUIs cut names, the choices of a combo and string defaults at a space. None of these may
contain one; values may.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

from pydlshogi.usi.protocol import CommandError, quote

#: How USI writes an empty text.
EMPTY = "<empty>"

#: Options, in lower case, that GUIs send even if the engine does not declare them.
SENT_ANYWAY = ("usi_hash", "usi_ponder")


@dataclasses.dataclass(frozen=True)
class Option:
    """Name and default value of an option, as declared to the GUI."""

    name: str
    default: Any = None

    @property
    def names(self) -> tuple[str, ...]:
        """All names that GUIs may use for it."""
        return (self.name,)

    def declaration(self) -> str:
        """Returns the declaration behind ``option name N type``."""
        raise NotImplementedError

    def parse(self, text: str, value: Any) -> Any:
        """Parses the text behind ``value``, which may be empty; ``value`` is the present value.

        For a wrong text it raises ValueError, whose message says what is right.
        """
        raise NotImplementedError

    def text(self, value: Any) -> str:
        """Writes a value as a GUI does."""
        return str(value)


class Check(Option):
    """True or false."""

    def declaration(self) -> str:
        """Returns ``check`` and the default."""
        return f"check default {self.text(self.default)}"

    def parse(self, text: str, value: bool) -> bool:
        """Parses ``true`` or ``false`` in any case."""
        if text.lower() not in ("true", "false"):
            raise ValueError("choose true or false")
        return text.lower() == "true"

    def text(self, value: bool) -> str:
        """Writes ``true`` or ``false``."""
        return str(value).lower()


@dataclasses.dataclass(frozen=True)
class Spin(Option):
    """A whole number from ``low`` to ``high``; some programs use the ``aliases`` of its name."""

    low: int = 0
    high: int = 0
    aliases: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All names that GUIs may use for it."""
        return (self.name, *self.aliases)

    def declaration(self) -> str:
        """Returns ``spin``, the default and the bounds."""
        return f"spin default {self.default} min {self.low} max {self.high}"

    def parse(self, text: str, value: int) -> int:
        """Parses a number, such as ``5`` or ``5.0``, and checks the bounds."""
        match = re.fullmatch(r"([+-]?\d{1,18})(\.0*)?", text, re.ASCII)
        number = int(match[1]) if match else None
        if number is None or not self.low <= number <= self.high:
            raise ValueError(f"choose a number from {self.low} to {self.high}")
        return number


@dataclasses.dataclass(frozen=True)
class Combo(Option):
    """One of several words, in any case."""

    choices: Sequence[str] = ()

    def declaration(self) -> str:
        """Returns ``combo``, the default and the choices."""
        return " ".join(["combo default", self.default, *(f"var {word}" for word in self.choices)])

    def parse(self, text: str, value: str) -> str:
        """Parses one of the choices, in any case."""
        if text.lower() not in self.choices:
            raise ValueError(f"choose one of {', '.join(self.choices)}")
        return text.lower()


@dataclasses.dataclass(frozen=True)
class Filename(Option):
    """A path, possibly empty."""

    default: str = ""

    def declaration(self) -> str:
        """Returns ``filename`` and the default."""
        return f"filename default {self.default or EMPTY}"

    def parse(self, text: str, value: str) -> str:
        """Parses a path; ``<empty>`` is an empty one."""
        return "" if text == EMPTY else unquoted(text)


def unquoted(path: str) -> str:
    """Takes off the quotation marks around a path: Windows copies a path with them."""
    is_quoted = len(path) > 1 and path[0] in "\"'" and path[-1] == path[0]
    return path[1:-1].strip() if is_quoted else path


@dataclasses.dataclass(frozen=True)
class Button(Option):
    """A button; its value counts how often the user has pressed it."""

    default: int = 0

    def declaration(self) -> str:
        """Returns ``button``."""
        return "button"

    def parse(self, text: str, value: int) -> int:
        """Counts one more press."""
        return value + 1


class Options:
    """The options of an engine; ``options["strategy"]`` is the value of the option ``strategy``."""

    def __init__(self, *declared: Option) -> None:
        self._declared = declared
        self._values = {option.name: option.default for option in declared}
        self._by_name = {name.lower(): option for option in declared for name in option.names}

    def __getitem__(self, name: str) -> Any:
        """Returns the value of an option, by its declared name."""
        return self._values[name]

    def default(self, name: str) -> Any:
        """Returns the first value of an option, by its declared name."""
        return self._by_name[name.lower()].default

    def declarations(self) -> list[str]:
        """Returns the ``option`` lines that answer ``usi``."""
        return [
            f"option name {option.name} type {option.declaration()}" for option in self._declared
        ]

    def set(self, name: str, text: str) -> None:
        """Sets an option by its name or an alias, in any case.

        USI_Hash and USI_Ponder, which every GUI sends, are ignored where they are not declared. An
        unknown option or a wrong value raises CommandError, and leaves the value unchanged.
        """
        option = self._by_name.get(name.lower())
        if option is None:
            if name.lower() in SENT_ANYWAY:
                return
            raise CommandError(f"option {quote(name)} is unknown and was ignored")
        try:
            self._values[option.name] = option.parse(text, self._values[option.name])
        except ValueError as error:
            kept = quote(option.text(self._values[option.name]))
            raise CommandError(
                f"option {option.name} cannot be {quote(text)}: {error}; it stays {kept}"
            ) from None
