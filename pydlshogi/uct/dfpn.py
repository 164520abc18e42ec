"""A mate search by df-pn (depth-first proof-number search) that can be stopped at any time.

A position is proven if it is a mate. One proven move proves a position of the attacker. A
position of the defender needs a proof of every move. The proof number of a position is the
smallest number of unknown positions below it whose proofs would prove it. The disproof number
is the same for disproofs. At the attacker's positions the search follows the smallest proof
number, at the defender's the smallest disproof number. It keeps the numbers in a table.

Perpetual check loses, so the attacker fails by a repetition. A disproof that needs repetitions
holds only while the repeated positions are on the path (the graph history interaction). So the
search keeps all such disproofs of a position, each with these positions.

Where lines run in circles, positions can change each other's numbers for ever. While nothing new
is found, the limits of the numbers grow until the search is a plain depth-first search. Such a
search always ends.

Source: A. Nagai, Df-pn algorithm for searching AND/OR trees and its applications (2002).
"""

from __future__ import annotations

import itertools
import threading
import time
from typing import Any, Callable, NamedTuple

from pydlshogi.uct.board import SearchBoard

#: The limits of the numbers double at most so often. Then they are infinite.
_DOUBLINGS = 40

#: Proof number of a disproven position, and disproof number of a proven one.
INFINITE = 1 << _DOUBLINGS

#: Longest mate in plies; each ply takes a Python frame. Even, so that the last position is one of
#: the attacker, who fails there. A defender without a move would count as mated.
MOST_PLIES = 400

#: Memory of an entry of the table in bytes, about.
_ENTRY_BYTES = 300

#: Positions visited without anything new after which the limits double.
_IDLE = 64

#: Positions that a disproof repeats and that take as much memory as an entry.
_REPEATED_IN_ENTRY = 8

#: Entries of the table that are freed at a time, about 1 ms, and the seconds between them.
_FREED, _PAUSE = 5000, 0.002


class _Numbers(NamedTuple):
    """The numbers of a position, seen from the side to move.

    Attributes:
        phi: Proof number if the attacker is to move, else disproof number.
        delta: The other of the two.
        plies: Number of plies to the mate, if it is proven.
        repeated: Keys of the earlier positions that a disproof repeats.
    """

    phi: int
    delta: int
    plies: int = 0
    repeated: frozenset[int] = frozenset()


_UNKNOWN = _Numbers(1, 1)
#: The side to move has failed: the attacker has no checks left, or the defender is mated.
_FAILED = _Numbers(INFINITE, 0)
#: The defender to move has succeeded, because the attacker may not repeat the position.
_REACHED = _Numbers(0, INFINITE)


class _Stopped(Exception):
    """The search was told to stop, or its table is full."""


class MateSearch:
    """A mate search of one position.

    Args:
        board: The position; the side to move attacks.
        memory: Memory of the table in bytes.

    Attributes:
        board: The board, with the position.
        nodes: Number of positions visited so far.
        was_too_deep: Whether the search has cut a line of ``MOST_PLIES`` plies.
    """

    def __init__(self, board: SearchBoard, memory: int = 10**9) -> None:
        self.board = board
        self._capacity = memory // _ENTRY_BYTES
        self._root = board.key()
        self._table: dict[int, _Numbers] = {}
        self._disproofs: dict[int, list[frozenset[int]]] = {}  # what they repeat, by position
        self._kept = 0  # memory of these disproofs, in entries of the table
        self._found_at = 0  # number of positions visited when something new was found
        self._path: set[int] = set()
        self._pushed = 0
        self.was_too_deep = False
        self.nodes = 0

    def run(self, is_stopped: Callable[[], bool]) -> bool | None:
        """Searches, or continues a search that was stopped.

        Args:
            is_stopped: Says whether to stop; asked at every position.

        Returns:
            Whether there is a mate. None if this is not known: the search was stopped, its table
            is full, or it has cut a line of ``MOST_PLIES`` plies.
        """
        self._is_stopped = is_stopped
        try:
            self._search(True, INFINITE, INFINITE, MOST_PLIES)
        except _Stopped:
            self._take_back()
            return None
        if self._table[self._root].phi == 0:
            return True
        return None if self.was_too_deep else False

    def fullness(self) -> float:
        """Returns the used part of the memory, 1 for all of it."""
        return (len(self._table) + self._kept) / max(1, self._capacity)

    def line(self) -> list[int]:
        """Returns the moves of the mate: the shortest attack against the longest defence.

        Lengths are those of the lines searched; there may be a shorter mate.
        """
        moves: list[int] = []
        attacks = True
        while len(moves) < MOST_PLIES and (move := self._best_move(attacks)):
            moves.append(move)
            self._push(move)
            attacks = not attacks
        self._take_back()
        return moves

    def free(self) -> None:
        """Frees the tables in another thread, in slices: a million entries would take 0.1 s."""
        tables: tuple[dict[int, Any], ...] = (self._table, self._disproofs)
        self._table, self._disproofs, self._kept = {}, {}, 0

        def free_slices() -> None:
            for table in tables:
                while table:
                    for _ in range(min(_FREED, len(table))):
                        table.popitem()
                    time.sleep(_PAUSE)

        threading.Thread(target=free_slices, name="freed mate search", daemon=True).start()

    def _best_move(self, attacks: bool) -> int | None:
        """Chooses the next move of a mating line; None at its end."""
        children = [
            (self._table[key].plies, move)
            for move, key in self._children(attacks)
            if key in self._table and _is_mate(self._table[key], not attacks)
        ]
        if not children:
            return None
        return min(children)[1] if attacks else max(children)[1]

    def _search(self, attacks: bool, phi_limit: int, delta_limit: int, plies: int) -> None:
        """Searches below a position until one of its numbers reaches its limit."""
        key = self.board.key()
        self._count_node()
        children = self._children(attacks) if plies else []
        self.was_too_deep |= not plies
        self._path.add(key)
        while True:
            best, second, numbers = self._sum_up(children, attacks)
            self._keep(key, numbers)
            if numbers.phi >= phi_limit or numbers.delta >= delta_limit:
                break
            move, child = children[best]
            # The child returns when the second best becomes better, or when this position
            # reaches a limit of its own.
            child_phi = self._numbers(child, not attacks).phi
            factor = 1 << min((self.nodes - self._found_at) // _IDLE, _DOUBLINGS)
            self._push(move)
            self._search(
                not attacks,
                min(INFINITE, (delta_limit - numbers.delta + child_phi) * factor),
                min(phi_limit, (second + 1) * factor),
                plies - 1,
            )
            self._pop()
        self._path.discard(key)

    def _sum_up(self, children: list[tuple[int, int]], attacks: bool) -> tuple[int, int, _Numbers]:
        """Computes the numbers of a position from those of its children.

        Returns:
            The index of the child with the smallest ``delta``, the second smallest
            ``delta``, and the position's numbers.
        """
        if not children:
            return 0, INFINITE, _FAILED
        numbers = [self._numbers(key, not attacks) for _, key in children]
        best = min(range(len(numbers)), key=lambda index: numbers[index].delta)
        second = min(
            (other.delta for index, other in enumerate(numbers) if index != best),
            default=INFINITE,
        )
        phi = numbers[best].delta
        delta = sum(child.phi for child in numbers)
        if delta >= INFINITE:  # a sum of finite numbers stays finite, however large
            delta = INFINITE - all(child.phi < INFINITE for child in numbers)
        if (phi if attacks else delta) >= INFINITE:
            repeated = self._repeated(numbers, attacks)
            return best, second, _Numbers(phi, delta, 0, repeated)
        return best, second, _Numbers(phi, delta, self._plies(numbers, attacks))

    def _repeated(self, children: list[_Numbers], attacks: bool) -> frozenset[int]:
        """Returns the positions that a disproof repeats, given the children."""
        if attacks:  # all moves fail
            return frozenset().union(*(child.repeated for child in children))
        return min((child.repeated for child in children if child.delta == 0), key=len)

    def _plies(self, children: list[_Numbers], attacks: bool) -> int:
        """Returns the number of plies to the mate; 0 if no child proves one."""
        mates = [child.plies for child in children if _is_mate(child, not attacks)]
        if not mates:
            return 0
        return 1 + (min(mates) if attacks else max(mates))

    def _numbers(self, key: int, attacks: bool) -> _Numbers:
        """Returns the numbers of a child. A repetition on the path is a perpetual check."""
        failed = _FAILED if attacks else _REACHED
        if key in self._path:
            return failed._replace(repeated=frozenset((key,)))
        if key in self._disproofs:
            for repeated in self._disproofs[key]:
                if repeated <= self._path:
                    return failed._replace(repeated=repeated)
        return self._table.get(key, _UNKNOWN)

    def _keep(self, key: int, numbers: _Numbers) -> None:
        """Keeps the numbers of a position on the path."""
        if numbers.repeated:
            repeated = numbers.repeated - {key}
            if repeated:
                self._keep_disproof(key, repeated)
                return
            numbers = numbers._replace(repeated=repeated)
        before = self._table.get(key)
        if before is None or (_is_result(numbers) and not _is_result(before)):
            self._found_at = self.nodes
        self._table[key] = numbers

    def _keep_disproof(self, key: int, repeated: frozenset[int]) -> None:
        """Keeps a disproof that repeats positions, unless one that repeats fewer is known."""
        disproofs = self._disproofs.setdefault(key, [])
        if any(other <= repeated for other in disproofs):
            return
        self._found_at = self.nodes
        self._kept -= _entries(disproofs)
        disproofs[:] = [other for other in disproofs if not repeated <= other]
        disproofs.append(repeated)
        self._kept += _entries(disproofs)

    def _children(self, attacks: bool) -> list[tuple[int, int]]:
        """Lists the moves of the attacker or the defender, each with the key after it.

        Of the attacker's moves, one that mates at once is enough.
        """
        board = self.board
        mate = board.mate(1) if attacks else None
        moves = [mate.move] if mate else board.checks() if attacks else board.moves().tolist()
        children = []
        for move in moves:
            board.push(move)
            children.append((move, board.key()))
            board.pop()
        if mate:
            self._table[children[0][1]] = _FAILED
        return children

    def _count_node(self) -> None:
        """Counts a position; raises ``_Stopped`` if the search must end."""
        self.nodes += 1
        # A position takes 0.1 ms, or 10 ms with the board of python-shogi.
        if self.fullness() >= 1 or self._is_stopped():
            raise _Stopped

    def _push(self, move: int) -> None:
        self.board.push(move)
        self._pushed += 1

    def _pop(self) -> None:
        self.board.pop()
        self._pushed -= 1

    def _take_back(self) -> None:
        """Takes back all moves down to the root."""
        while self._pushed:
            self._pop()
        self._path.clear()


def _is_result(numbers: _Numbers) -> bool:
    """Says whether a position is proven or disproven."""
    return not (numbers.phi and numbers.delta)


def _entries(disproofs: list[frozenset[int]]) -> int:
    """Returns the memory of the disproofs of a position, in entries of the table."""
    return sum(1 + len(repeated) // _REPEATED_IN_ENTRY for repeated in disproofs)


def _is_mate(numbers: _Numbers, attacks: bool) -> bool:
    """Says whether a mate is proven."""
    return (numbers.phi if attacks else numbers.delta) == 0


def search_mate(board: SearchBoard, nodes: int, plies: int) -> tuple[list[int], bool]:
    """Does the work of :meth:`SearchBoard.search_mate` where the library has no df-pn search."""
    search = MateSearch(board)
    numbers = itertools.count(1)  # not the search's own: a cycle would keep the board in memory
    result = search.run(lambda: next(numbers) > nodes)
    line = search.line() if result else []
    return (line, True) if line and len(line) <= plies else ([], result is False)
