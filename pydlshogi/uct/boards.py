"""Chooses the board of the search: cshogi's if it is installed, else python-shogi's."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from pydlshogi.processors import has_avx2
from pydlshogi.uct.board import SearchBoard

#: cshogi has memory for the 593 moves that a position with both kings can have at most. Without a
#: king there can be more, which ends the process. The difference is a reserve.
_MOST_MOVES = 560


def make_board(sfen: str | None, moves: Sequence[str]) -> SearchBoard:
    """Makes a board with a position, after moves from a start position.

    Args:
        sfen: The start position; None for that of a game.
        moves: Legal moves from there, in USI's notation.
    """
    if sfen and {"k", "K"} - set(sfen.split()[0]):
        from pydlshogi.uct.python_shogi_board import PythonShogiBoard

        slow = PythonShogiBoard(sfen, moves)
        if slow.most_moves() > _MOST_MOVES:
            return slow
    return _implementation()[0](sfen, moves)


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
    from pydlshogi.uct.python_shogi_board import LIBRARY, PythonShogiBoard

    return PythonShogiBoard, LIBRARY
