"""The parser of every command line: one error sentence, one spelling of options."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, NoReturn

from pydlshogi.processors import MOST_THREADS

if TYPE_CHECKING:
    from pydlshogi.match.engine_spec import EngineSpec

_NO_FILE = "the name of the file is missing"


class ArgumentParser(argparse.ArgumentParser):
    """Parser that reports a mistake in one sentence and takes old spellings.

    Options are declared as ``--long_name``. ``--long-name`` works as well, but ``--help``
    does not show it.
    """

    def error(self, message: str) -> NoReturn:
        """Prints one sentence to standard error, without the usage, and exits with status 2."""
        self.exit(2, f"{self.prog}: error: {message.rstrip('.')}. See --help.\n")

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parses as argparse does, after hyphens in option names became underscores."""
        words = list(sys.argv[1:] if args is None else args)
        options_end = words.index("--") if "--" in words else len(words)
        words[:options_end] = map(self._with_underscores, words[:options_end])
        return super().parse_known_args(words, namespace)

    def _with_underscores(self, word: str) -> str:
        """Respells ``--long-name`` or ``--long-name=value``; keeps any other word."""
        name, equals, value = word.partition("=")
        respelled = "--" + name[2:].replace("-", "_")
        known = any(option.startswith(respelled) for option in self._option_string_actions)
        if not name.startswith("--") or not known:
            return word
        return respelled + equals + value


def engine_spec(text: str) -> EngineSpec:
    """Reads an engine of a match; the ``type`` of an option."""
    from pydlshogi.match.engine_spec import parse_engine

    try:
        return parse_engine(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def whole_number(text: str, least: int, most: int | None = None) -> int:
    """Reads a whole number from ``least`` to ``most``, or raises ``ArgumentTypeError``."""
    wanted = f"a whole number of at least {least}"
    if most is not None:
        wanted = f"a whole number from {least} to {most}"
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least or (most is not None and value > most):
        raise argparse.ArgumentTypeError(f"{text!r} is not {wanted}")
    return value


def _number(text: str, wanted: str, fits: Callable[[float], bool]) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not fits(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not {wanted}")
    return value


# Functions of the text of an option, for its ``type``. A seed is one of numpy's RandomState; the
# GPU -1 is the CPU.
positive_int = partial(whole_number, least=1)
non_negative_int = partial(whole_number, least=0)
seed_number = partial(whole_number, least=0, most=2**32 - 1)
thread_number = partial(whole_number, least=1, most=MOST_THREADS)
gpu_number = partial(whole_number, least=-1)
non_negative_number = partial(
    _number, wanted="a number of at least 0", fits=lambda value: 0 <= value < math.inf
)
positive_number = partial(
    _number, wanted="a number above 0", fits=lambda value: 0 < value < math.inf
)
share = partial(_number, wanted="a number from 0 to below 1", fits=lambda value: 0 <= value < 1)
proportion = partial(_number, wanted="a number from 0 to 1", fits=lambda value: 0 <= value <= 1)


def add_number(
    parser: argparse._ActionsContainer,
    name: str,
    read: Callable[[str], int],
    text: str,
    default: int | None = None,
) -> None:
    """Adds an option that is a number; the help tells a default that is not None."""
    ending = "" if default is None else " (default: %(default)s)"
    parser.add_argument(name, type=read, default=default, metavar="N", help=text + ending)


def positive_ints(text: str) -> tuple[int, ...]:
    """Reads whole numbers of at least 1, separated by commas."""
    return tuple(positive_int(part) for part in text.split(","))


def file_name(text: str) -> str:
    """Reads the path of a file that must be named."""
    if not text:
        raise argparse.ArgumentTypeError(_NO_FILE)
    return text


class OptionalFile(argparse.Action):
    """Stores the path of a file that may be left out; its default is ``""``.

    An empty path is refused: a script whose variable is empty does not mean the default. (argparse
    would pass the default to a ``type``, too.)
    """

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Stores the path, as argparse asks for it."""
        if not values:
            raise argparse.ArgumentError(self, _NO_FILE)
        setattr(namespace, self.dest, values)


def named_path(text: str) -> Path:
    """Reads a path; ``Path("")``, of a script's empty variable, would be the current folder."""
    if not text:
        raise argparse.ArgumentTypeError("the path is missing")
    return Path(text)
