"""Evaluations of positions by the engines of a match, read from their ``info`` lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

#: Evaluation of a mate, in centipawns; more than any that is not a mate.
MATE = 32000

_NUMBER = re.compile(r"[+-]?\d{1,9}")


class Answer(NamedTuple):
    """The answer of an engine to ``go``.

    Attributes:
        move: The word after ``bestmove``, unchecked.
        evaluation: The last evaluation of the best line, in centipawns for the side to move,
            -``MATE`` … ``MATE``; a bound only if there is no other. None if the engine sent none.
    """

    move: str
    evaluation: int | None


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
