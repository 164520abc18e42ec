"""A mate search by cshogi's df-pn in a process of its own, which can be ended at any time.

In the process of the engine, cshogi's search would stop all other code of Python. This module runs
as a script there, so it imports nothing of this package at its top level.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from typing import Any

#: Positions of the first search, and the factor for the next ones: the library starts anew.
_FIRST_NODES, _GROWTH = 100_000, 4

#: Longest mate in plies.
_MOST_PLIES = 400

#: The call of Linux that sets the signal for the end of the parent.
_PR_SET_PDEATHSIG = 1

#: Memory of a position in bytes, about.
_NODE_BYTES = 200


class MateProcess:
    """A search in a process.

    Args:
        sfen: The position; the side to move mates.
        memory: Memory of the search in bytes.
    """

    def __init__(self, sfen: str, memory: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, sfen, str(memory // _NODE_BYTES)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._mate: list[int] = []
        self._reader = threading.Thread(target=self._read, name="mate search", daemon=True)
        self._reader.start()

    def mate(self) -> list[int]:
        """Returns the shortest mate found so far; empty if there is none."""
        return self._mate

    def has_ended(self) -> bool:
        """Says whether nothing more will be found. This is no proof that there is no mate."""
        return not self._reader.is_alive()

    def close(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _read(self) -> None:
        """Reads the mates that the process finds."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._mate = [int(move) for move in line.split()]


def _main() -> None:
    """Searches a mate, and then shorter ones; prints the moves of each."""
    if sys.platform == "linux":  # a search cannot see that its parent was killed
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    del sys.path[0]  # the folder of this file
    import cshogi

    board, most = cshogi.Board(sys.argv[1]), int(sys.argv[2])
    plies, nodes, parent = _MOST_PLIES, _FIRST_NODES, os.getppid()
    while os.getppid() == parent:
        nodes = min(nodes, most)
        search = cshogi.DfPn(depth=plies, nodes=nodes)
        if search.search(board):
            moves = search.get_pv(board)
            # The library may exceed the limit, or may have lost the end of the line.
            if len(moves) > plies or not _is_mating(board, moves):
                return
            print(*(move & 0x7FFF for move in moves), flush=True)
            plies = len(moves) - 2
            if plies < 1:
                return
        elif search.searched_node < nodes or nodes == most:
            return
        else:
            nodes *= _GROWTH


def _is_mating(board: Any, moves: list[int]) -> bool:
    """Says whether moves lead to a mate."""
    for move in moves:
        board.push(move)
    is_mating: bool = board.is_game_over()
    for _ in moves:
        board.pop()
    return is_mating


if __name__ == "__main__":
    _main()
