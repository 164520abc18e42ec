"""Chooses the board of the search: cshogi's if it is installed, else python-shogi's."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from pydlshogi.uct.board import SearchBoard


def make_board(sfen: str | None, moves: Sequence[str]) -> SearchBoard:
    """Makes a board with a position, after moves from a start position.

    Args:
        sfen: The start position; None for that of a game.
        moves: Legal moves from there, in USI's notation.
    """
    return _implementation()[0](sfen, moves)


def board_library() -> str:
    """Names the library whose board :func:`make_board` uses."""
    return _implementation()[1]


@functools.cache
def _implementation() -> tuple[Any, str]:
    """Returns the class of the board and the name of its library."""
    try:
        from pydlshogi.uct.cshogi_board import LIBRARY, CshogiBoard
    except ImportError:
        from pydlshogi.uct.python_shogi_board import LIBRARY, PythonShogiBoard

        return PythonShogiBoard, LIBRARY
    return CshogiBoard, LIBRARY
