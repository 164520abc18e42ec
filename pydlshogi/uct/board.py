"""The interface between the search and its boards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy

from pydlshogi.uct.mate_process import MateProcess
from pydlshogi.uct.move import not_promoting

#: Positions and plies of the search for a mate after a reply that cshogi leaves out: a few ms.
_REPLY_NODES, _REPLY_PLIES = 4000, 31


class Mate(NamedTuple):
    """A forced mate.

    Attributes:
        move: The first move, as in :mod:`pydlshogi.uct.move`.
        plies: Number of plies to the mate, odd.
    """

    move: int
    plies: int


class SearchBoard(Protocol):
    """A position and the moves that led to it.

    Moves are the numbers of :mod:`pydlshogi.uct.move`. A side may lack its king, as in mate
    problems: that side is then never in check, and no mate of it is found.
    """

    @property
    def turn(self) -> int:
        """The side to move: 0 for Black, 1 for White."""

    def push(self, move: int) -> object:
        """Plays a legal move."""

    def pop(self) -> object:
        """Takes back the last move."""

    def key(self) -> int:
        """Hash of the position, the side to move and the hands."""

    def in_check(self) -> bool:
        """Says whether the side to move is in check."""

    def moves(self) -> numpy.ndarray:
        """Lists the legal moves: (n,) uint16."""

    def checks(self) -> list[int]:
        """Lists the legal moves that give check."""

    def can_declare(self) -> bool:
        """Says whether the side to move wins by the 27-point declaration."""

    def mate(self, plies: int) -> Mate | None:
        """Finds a mate in at most ``plies`` plies, the shortest that the board's search finds.

        None does not prove that there is no mate: a board may miss some.
        """

    def search_mate(self, nodes: int, plies: int) -> tuple[list[int], bool]:
        """Searches a mate by the board's df-pn search, which cannot be interrupted.

        Args:
            nodes: Largest number of positions to visit.
            plies: Longest mate.

        Returns:
            The moves up to the mate, empty if none was found; and whether the search was
            complete, so that more nodes would not change the result.
        """

    def start_mate_process(self, memory: int) -> MateProcess | None:
        """Starts the board's df-pn search in a process of its own; None if there is no such one.

        Args:
            memory: Memory of the search in bytes.
        """

    def sfen(self) -> str:
        """Returns the position in SFEN notation."""


def ends_in_mate(board: SearchBoard, moves: Sequence[int]) -> bool:
    """Says whether moves are legal, end in mate, and meet no reply that cshogi leaves out.

    cshogi's mate searches always promote the defender's pawn, lance, bishop or rook. But if the
    attacker would have to mate by a dropped pawn, which is illegal, it can be better not to. So
    such replies are tried, unless the mate is the next move. No illegal move is played: cshogi's
    board ends the process at some of them.
    """
    played = 0
    for move in moves:
        legal = board.moves().tolist()
        has_defence = (
            played % 2
            and len(moves) - played > 3
            and not all(_is_mated_long(board, reply) for reply in not_promoting(legal))
        )
        if has_defence or move not in legal:
            break
        board.push(move)
        played += 1
    is_mate = 0 < played == len(moves) and board.in_check() and not len(board.moves())
    for _ in range(played):
        board.pop()
    return is_mate


def _is_mated_long(board: SearchBoard, reply: int) -> bool:
    """Says whether df-pn finds a mate after a reply."""
    board.push(reply)
    moves, _ = board.search_mate(_REPLY_NODES, _REPLY_PLIES)
    board.pop()
    return bool(moves)


def forced_mate(board: SearchBoard, plies: int) -> Mate | None:
    """Finds a check after which the board's mate search knows a mate for each reply.

    This finds mates that the search itself misses: cshogi's overlooks some distant checks. There
    must be no mate in one. ``plies``, an odd number, is the length of the longest mate.

    Returns the mate; None without one, or if the search misses it after a reply, too.
    """
    for move in board.checks():
        board.push(move)
        is_forced = all(is_mated(board, reply, plies - 2) for reply in board.moves().tolist())
        board.pop()
        if is_forced:
            return Mate(move, plies)
    return None


def is_mated(board: SearchBoard, reply: int, plies: int) -> bool:
    """Says whether a mate is found after a reply to a check."""
    board.push(reply)
    mate = board.mate(plies)
    board.pop()
    return mate is not None
