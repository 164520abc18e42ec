"""Options of a USI engine, with the types that GUIs know.

GUIs cut names, the choices of a combo and string defaults at a space, so none of
these may hold one; values may.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

from pydlshogi.usi.protocol import CommandError, quote

#: How USI writes an empty text.
EMPTY = "<empty>"

#: Options, in lower case: GUIs send these whether an engine declares them or not.
SENT_ANYWAY = ("usi_hash", "usi_ponder")


@dataclasses.dataclass(frozen=True)
class Option:
    """What all options have: a name and a first value."""

    name: str
    default: Any = None

    def declaration(self) -> str:
        """Gives what ``usi`` is answered with, behind ``option name N type``."""
        raise NotImplementedError

    def parse(self, text: str, value: Any) -> Any:
        """Reads a value.

        Args:
            text: What stands behind ``value``; empty where nothing does.
            value: The option's value until now.

        Returns:
            The new value.

        Raises:
            ValueError: not a value of this option; the text says what would be.
        """
        raise NotImplementedError

    def text(self, value: Any) -> str:
        """Writes a value as a GUI does."""
        return str(value)


class Check(Option):
    """True or false."""

    def declaration(self) -> str:
        """See :class:`Option`."""
        return f"check default {self.text(self.default)}"

    def parse(self, text: str, value: bool) -> bool:
        """See :class:`Option`."""
        if text.lower() not in ("true", "false"):
            raise ValueError("choose true or false")
        return text.lower() == "true"

    def text(self, value: bool) -> str:
        """See :class:`Option`."""
        return str(value).lower()


@dataclasses.dataclass(frozen=True)
class Spin(Option):
    """A whole number, ``low`` and ``high`` included."""

    low: int = 0
    high: int = 0

    def declaration(self) -> str:
        """See :class:`Option`."""
        return f"spin default {self.default} min {self.low} max {self.high}"

    def parse(self, text: str, value: int) -> int:
        """See :class:`Option`."""
        number = int(text) if re.fullmatch(r"[+-]?\d{1,18}", text, re.ASCII) else None
        if number is None or not self.low <= number <= self.high:
            raise ValueError(f"choose a number from {self.low} to {self.high}")
        return number


@dataclasses.dataclass(frozen=True)
class Combo(Option):
    """One of several words; case does not matter."""

    choices: Sequence[str] = ()

    def declaration(self) -> str:
        """See :class:`Option`."""
        return " ".join(["combo default", self.default, *(f"var {word}" for word in self.choices)])

    def parse(self, text: str, value: str) -> str:
        """See :class:`Option`."""
        if text.lower() not in self.choices:
            raise ValueError(f"choose one of {', '.join(self.choices)}")
        return text.lower()


@dataclasses.dataclass(frozen=True)
class Filename(Option):
    """A path; empty is a value."""

    default: str = ""

    def declaration(self) -> str:
        """See :class:`Option`."""
        return f"filename default {self.default or EMPTY}"

    def parse(self, text: str, value: str) -> str:
        """See :class:`Option`."""
        return "" if text == EMPTY else text


@dataclasses.dataclass(frozen=True)
class Button(Option):
    """Something to press; its value counts how often it was."""

    default: int = 0

    def declaration(self) -> str:
        """See :class:`Option`."""
        return "button"

    def parse(self, text: str, value: int) -> int:
        """See :class:`Option`."""
        return value + 1


class Options:
    """The options of an engine and their values.

    ``options["strategy"]`` is the value of the option ``strategy``.
    """

    def __init__(self, *declared: Option) -> None:
        self._declared = {option.name.lower(): option for option in declared}
        self._values = {option.name: option.default for option in declared}

    def __getitem__(self, name: str) -> Any:
        """Gives the value of an option, by its name as declared."""
        return self._values[name]

    def declarations(self) -> list[str]:
        """Gives the ``option`` lines that answer ``usi``."""
        return [
            f"option name {option.name} type {option.declaration()}"
            for option in self._declared.values()
        ]

    def set(self, name: str, text: str) -> None:
        """Gives an option another value; an error leaves it as it was.

        Args:
            name: Its name; case does not matter. USI_Hash and USI_Ponder, which GUIs
                send unasked, are passed over.
            text: The value as the GUI wrote it.

        Raises:
            CommandError: no such option, or none of its values.
        """
        if name.lower() in SENT_ANYWAY:
            return
        option = self._declared.get(name.lower())
        if option is None:
            raise CommandError(f"option {quote(name)} is unknown and passed over")
        try:
            self._values[option.name] = option.parse(text, self._values[option.name])
        except ValueError as error:
            kept = quote(option.text(self._values[option.name]))
            raise CommandError(
                f"option {option.name} cannot be {quote(text)}: {error}; it stays {kept}"
            ) from None
