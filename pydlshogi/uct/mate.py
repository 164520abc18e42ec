"""Searches for long mates: at the root, along the best line, and for ``go mate``."""

from __future__ import annotations

import time
from typing import Callable

from pydlshogi.uct.board import SearchBoard, ends_in_mate, forced_mate
from pydlshogi.uct.core import SEARCHED
from pydlshogi.uct.dfpn import MOST_PLIES, MateSearch
from pydlshogi.uct.game import Game
from pydlshogi.uct.mate_process import MateProcess
from pydlshogi.uct.settings import Settings
from pydlshogi.uct.tree import Node

#: Longest mate that is searched during the search of the tree, in plies.
_LONGEST_MATE = 31

#: Df-pn may find a longer mate than necessary. Then a mate of at most so many plies is searched.
#: If there are many checks, a search of seven plies can take 0.2 s.
_EXACT_PLIES, _FAST_PLIES, _MANY_CHECKS = 7, 3, 24

#: Positions of the first and of the last slice, usually 1 to 5 ms. They are short because a
#: slice cannot be interrupted. The library starts anew in each slice, so each slice is twice
#: as long as the one before.
_FIRST_SLICE, _LAST_SLICE = 1000, 4000

#: The longest slice in seconds. A slice takes about twice as long as the one before. A slice
#: begins only if its expected time is below this limit. A node takes 1 µs, or 16 µs with many
#: pieces in hand. The time is that of the processor: on a busy computer, the time by the clock
#: ended the search of 72 of 900 positions after its first slice.
_LONGEST = 0.04

#: Seconds between two looks at the other process.
_PAUSE = 0.005

#: Least and most seconds for shortening a mate that the other process has found.
_LEAST_SHORTENING, _MOST_SHORTENING = 0.2, 2.0

#: Slices of the library's search for ``go mate``.
_SLICES = [_FIRST_SLICE << number for number in range(6)]

#: Positions that a search along the best line visits. They take 0.3 ms on average, and up to 25 ms
#: with many pieces in hand.
_LINE_NODES = 1000

#: A position of the line is searched when it has so many visits. In 300 positions near the end
#: of games, 1 in place of 4 avoided no further mate.
_LEAST_VISITS = 4

#: Number of searches that may follow one another, and the visits of the root for each further one.
#: With a fast network, a search takes as long as several evaluations.
_FIRST_SEARCHES, _VISITS_A_SEARCH = 16, 128

#: Seconds after which the check of the move to play begins no further search.
_CHECK_SECONDS = 0.01


class RootMate:
    """Searches a mate in slices, between the batches of the tree search.

    Args:
        board: The position; it must be there again at each call of :meth:`step`.
        plies_left: Plies until the game is drawn by its length; later mates do not count.
        root_moves: The moves with which a mate may begin; None for all.

    Attributes:
        is_complete: Whether there is nothing more to search.
    """

    def __init__(
        self, board: SearchBoard, plies_left: int, root_moves: frozenset[int] | None = None
    ) -> None:
        self._board = board
        self._root_moves = root_moves
        self._plies_left = plies_left
        self._nodes = _FIRST_SLICE
        self.is_complete = plies_left < 1

    def step(self) -> list[int]:
        """Searches the next slice, unless the search is complete.

        Returns:
            The moves of a mate; empty if none was found.
        """
        if self.is_complete:
            return []
        start = time.thread_time()
        mates, is_complete = long_mates(self._board, self._nodes, self._plies_left)
        is_slow = 2 * (time.thread_time() - start) > _LONGEST
        self._nodes *= 2
        self.is_complete = is_complete or is_slow or self._nodes > _LAST_SLICE
        moves = self._root_moves
        return next((mate for mate in mates if moves is None or mate[0] in moves), [])


class LineMate:
    """Searches mates after the moves of the best line, one position at a time.

    Mates that the tree has not found matter most there: the engine would play into one, or would
    not see that it wins. Source of the idea: dlshogi.

    Args:
        game: The position at the root; it must be there again at each call.
        settings: The settings of the search.
    """

    def __init__(self, game: Game, settings: Settings) -> None:
        self._game = game
        self._settings = settings
        self._searches = 0

    def step(self, root: Node) -> None:
        """Searches the first position of the line that has not been, unless it is too early."""
        if self._searches >= _FIRST_SEARCHES + root.visits // _VISITS_A_SEARCH:
            return
        node, depth = root, 0
        while (best := node.most_visited()) and best[1].visits >= _LEAST_VISITS:
            move, node = best
            self._game.push(move)
            depth += 1
            if _is_new(node):
                self._search(node)
                break
        self._game.pop(depth)

    def check_move(self, root: Node) -> None:
        """Searches a mate after the move to play; if there is one, after the next best move."""
        end = time.perf_counter() + _CHECK_SECONDS
        while (best := root.most_visited()) and _is_new(best[1]) and time.perf_counter() < end:
            move, child = best
            self._game.push(move)
            self._search(child)
            self._game.pop()

    def _search(self, node: Node) -> None:
        """Searches a mate in the position on the board, and stores it."""
        node.tree.nodes.marks[node.index] |= SEARCHED
        self._searches += 1
        plies_left = self._settings.plies_left(self._game.ply)
        mates, _ = long_mates(self._game.board, _LINE_NODES, plies_left)
        if mates:
            node.tree.set_mate(node.index, mates[0])


def _is_new(node: Node) -> bool:
    """Says whether a mate can be searched at a node, and was not. A repetition has no moves."""
    return node.is_expanded and not node.mate_searched


def long_mates(board: SearchBoard, nodes: int, plies_left: int) -> tuple[list[list[int]], bool]:
    """Searches a mate by the board's own df-pn search, and then a shorter one.

    ``nodes`` positions are visited at most. A mate after ``plies_left`` plies does not count.

    Returns:
        The moves of the mates found, a shorter one first; and whether df-pn was complete. A
        mate of more than seven plies may not be the shortest one. If there are many checks,
        this holds for more than three plies.
    """
    line, is_complete = board.search_mate(nodes, min(plies_left, _LONGEST_MATE))
    # The library may find a mate that is longer than the limit.
    if not line or len(line) > plies_left:
        return [], is_complete
    shorter = _exact(board, line)
    return [shorter, line] if shorter else [line], is_complete


def _exact(board: SearchBoard, line: list[int]) -> list[int]:
    """Returns the shortest mate if it is short, and shorter than a known one; else nothing."""
    exact = _EXACT_PLIES if len(board.checks()) <= _MANY_CHECKS else _FAST_PLIES
    shorter = mate_line(board, min(len(line) - 2, exact))
    return shorter if ends_in_mate(board, shorter) else []


def find_mate(
    search: MateSearch, is_stopped: Callable[[], bool], memory: int = 10**8
) -> list[int] | None:
    """Searches a mate of any length.

    The board's own search comes first, in slices because it cannot be interrupted. Then our own
    runs beside the library's in another process. Only our own can prove that there is no mate: the
    library takes a line that it has cut, or that repeats a position, for one without a mate.

    Args:
        search: A search that has not begun.
        is_stopped: Says whether to stop; asked at every position, or between two slices.
        memory: Memory of the library's search in bytes.

    Returns:
        The moves; empty if there is no mate; None if this is not known
        (:meth:`pydlshogi.uct.dfpn.MateSearch.run`).
    """
    board = search.board
    line: list[int] | None = _search_slices(board, is_stopped)
    if not line and is_stopped():
        return None
    if not line:
        process = board.start_mate_process(memory)
        try:
            line = _search_beside(search, is_stopped, process)
        finally:
            if process:
                process.close()
    return _shortened(board, line, is_stopped) if line else line


def _search_beside(
    search: MateSearch, is_stopped: Callable[[], bool], process: MateProcess | None
) -> list[int] | None:
    """Searches by our own df-pn, until it or the process has the result."""
    start = time.monotonic()

    def is_over() -> bool:
        return is_stopped() or bool(process and process.mate())

    has_mate = search.run(is_over)
    first = process.mate() if process else []
    if first and not ends_in_mate(search.board, first):
        process = None  # a reply refutes it
        has_mate = search.run(is_over)
    if has_mate is False:
        return []
    line = search.line() if has_mate else None
    if process:
        while not (line or process.has_ended() or is_over()):  # our own memory is full
            time.sleep(_PAUSE)
        _wait_for_shorter(process, is_stopped, time.monotonic() - start)
        for found in (first, process.mate()):
            if ends_in_mate(search.board, found) and not (line and len(line) <= len(found)):
                line = found
    return line


def _wait_for_shorter(process: MateProcess, is_stopped: Callable[[], bool], seconds: float) -> None:
    """Waits while the process looks for shorter mates, at most as long as it has searched."""
    end = time.monotonic() + min(max(seconds, _LEAST_SHORTENING), _MOST_SHORTENING)
    while not (process.has_ended() or is_stopped() or time.monotonic() >= end):
        time.sleep(_PAUSE)


def _shortened(board: SearchBoard, line: list[int], is_stopped: Callable[[], bool]) -> list[int]:
    """Returns a mate that is shorter than a known one, if the board's searches find it."""
    while not is_stopped():
        shorter, _ = board.search_mate(_LAST_SLICE, len(line) - 2)
        if not 0 < len(shorter) < len(line):
            break
        line = shorter
    if is_stopped():
        return line
    return _exact(board, line) or line


def _search_slices(board: SearchBoard, is_stopped: Callable[[], bool]) -> list[int]:
    """Searches a mate by the board's own search; returns its moves, empty if none was found."""
    for nodes in _SLICES:
        start = time.thread_time()
        line, is_complete = board.search_mate(nodes, MOST_PLIES)
        is_slow = 2 * (time.thread_time() - start) > _LONGEST
        if line or is_complete or is_slow or is_stopped():
            return line
    return []


def mate_line(board: SearchBoard, plies: int, is_known: bool = False) -> list[int]:
    """Lists the moves of a mate, with the longest defence.

    Args:
        board: The position; the side to move mates.
        plies: Longest mate.
        is_known: Whether there is such a mate. Then it is found even if the board's mate search
            misses it.
    """
    mate = board.mate(plies)
    if mate or is_known:
        shorter = range(3, mate.plies if mate else plies + 2, 2)
        mate = next(filter(None, (forced_mate(board, length) for length in shorter)), mate)
    if mate is None:
        return []
    board.push(mate.move)
    defences = []
    for move in board.moves().tolist():
        board.push(move)
        defences.append([move, *mate_line(board, mate.plies - 2, is_known=True)])
        board.pop()
    board.pop()
    return [mate.move, *max(defences, key=len, default=[])]
