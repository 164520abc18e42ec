"""Chooses the board of the search: cshogi's if it is installed, else python-shogi's."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from pydlshogi.processors import has_avx2
from pydlshogi.uct.board import SearchBoard
from pydlshogi.uct.cshogi_limits import fits_cshogi


def make_board(sfen: str | None, moves: Sequence[str]) -> SearchBoard:
    """Makes a board with a position, after moves from a start position.

    Args:
        sfen: The start position; None for that of a game.
        moves: Legal moves from there, in USI's notation.
    """
    make, library = _implementation()
    if sfen and library == "cshogi" and not fits_cshogi(sfen, moves):
        make = _python_shogi()[0]
    return make(sfen, moves)


def board_library() -> str:
    """Names the library whose board :func:`make_board` uses."""
    return _implementation()[1]


@functools.cache
def _implementation() -> tuple[Any, str]:
    """Returns the class of the board and the name of its library."""
    try:
        if has_avx2():  # without it, cshogi would end the process
            from pydlshogi.uct.cshogi_board import LIBRARY, CshogiBoard

            return CshogiBoard, LIBRARY
    except ImportError:
        pass
    return _python_shogi()


def _python_shogi() -> tuple[Any, str]:
    from pydlshogi.uct.python_shogi_board import LIBRARY, PythonShogiBoard

    return PythonShogiBoard, LIBRARY
