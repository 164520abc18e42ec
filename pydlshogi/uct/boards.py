"""Chooses the board of the search: cshogi's if it is installed, else python-shogi's."""

from __future__ import annotations

import functools
from typing import Any

import shogi

from pydlshogi.processors import has_avx2
from pydlshogi.uct.board import SearchBoard
from pydlshogi.uct.cshogi_limits import fits_cshogi


def make_search_board(sfen: str | None = None, searched: shogi.Board | None = None) -> SearchBoard:
    """Makes a board with a start position.

    Args:
        sfen: The start position; None for that of a game.
        searched: The position to search, after moves from there. If cshogi has no memory for its
            moves, python-shogi's board is made. None if nothing is searched.
    """
    fits = searched is None or fits_cshogi(searched)
    make, _ = _implementation() if fits else _python_shogi()
    return make(sfen)


def board_library() -> str:
    """Names the library whose board :func:`make_search_board` uses."""
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
