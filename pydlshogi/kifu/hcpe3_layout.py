"""HCPE3 files: games with the visits of a search, as dlshogi's self-play writes them.

====================  =====  ============================================================
``hcp``                  32  the first board (:data:`pydlshogi.kifu.hcp.HCP`)
``moveNum``               2  number of moves
``result``                1  bits 0 and 1: 0 draw, 1 Black won, 2 White won; 4 repetition,
                             8 declaration; the whole byte is 0x16: too many moves, a draw
``opponent``              1  kind of opponent
for each move
``selectedMove16``        2  the move played (:data:`pydlshogi.kifu.move16.APERY`)
``eval``                  2  centipawns for the side to move, int16
``candidateNum``          2  number of candidates; 0 for a move that was not searched
for each candidate
``move16``                2  a move
``visitNum``              2  how often the search visited it
====================  =====  ============================================================

Integers are little-endian. Nothing marks where a game begins. Source of the facts:
dlshogi's ``cppshogi.h``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import BinaryIO, NamedTuple

_GAME = struct.Struct("<32sHBB")
_MOVE = struct.Struct("<HhH")
_CANDIDATE = struct.Struct("<HH")
# The largest number of legal moves that a position can have, a known fact.
_MOST_CANDIDATES = 593


#: The bits of ``result`` that say how a game ended.
REPETITION, DECLARATION = 4, 8


def encode(
    hcp: bytes, result: int, moves: Sequence[tuple[int, int, Sequence[tuple[int, int]]]]
) -> bytes:
    """Encodes a game.

    Args:
        hcp: The first board.
        result: The byte ``result`` of the table above.
        moves: The move played, the evaluation and the candidates with their visits, of each move.
    """
    parts = [_GAME.pack(hcp, len(moves), result, 0)]
    for move, evaluation, candidates in moves:
        parts.append(_MOVE.pack(move, evaluation, len(candidates)))
        parts += [_CANDIDATE.pack(*candidate) for candidate in candidates]
    return b"".join(parts)


class Layout(NamedTuple):
    """Where the parts of a game are.

    Attributes:
        number: Number of the game, from 0.
        start: Index of its first byte.
        head: ``hcp``, ``moveNum``, ``result``, ``opponent``.
        moves: ``selectedMove16``, ``eval`` and ``candidateNum`` of each move.
        candidates: Index of the first byte of each move's candidates.
    """

    number: int
    start: int
    head: tuple[bytes, int, int, int]
    moves: list[tuple[int, int, int]]
    candidates: list[int]


class Broken(Exception):
    """A game whose end cannot be found.

    Attributes:
        start: Index of its first byte.
        reason: Why, a clause in words.
        final: Whether more data could not help.
    """

    def __init__(self, start: int, reason: str, *, final: bool) -> None:
        super().__init__(reason)
        self.start = start
        self.reason = reason
        self.final = final


def scan(data: bytes | memoryview) -> Iterator[Layout]:
    """Finds games and moves.

    Args:
        data: The content of a file from the start of a game on.

    Raises:
        Broken: the end of a game cannot be found.
    """
    end = number = 0
    size = len(data)
    while end < size:
        start = end
        try:
            head = _GAME.unpack_from(data, end)
            end += _GAME.size
            moves: list[tuple[int, int, int]] = []
            candidates: list[int] = []
            for _ in range(head[1]):
                move = _MOVE.unpack_from(data, end)
                if move[2] > _MOST_CANDIDATES:
                    raise Broken(start, _too_many(len(moves) + 1, move[2]), final=True)
                end += _MOVE.size
                moves.append(move)
                candidates.append(end)
                end += _CANDIDATE.size * move[2]
        except struct.error:
            end = size + 1
        if end > size:
            reason = f"the file ends {size - start} bytes after the game's start, within it"
            raise Broken(start, f"{reason}; copy the file again", final=False)
        yield Layout(number, start, head, moves, candidates)
        number += 1


def _too_many(move: int, candidates: int) -> str:
    return (
        f"move {move} has {candidates} candidates, but no position has more than "
        f"{_MOST_CANDIDATES} moves; the rest of the file cannot be read; copy it again"
    )


def blocks(file: BinaryIO, size: int) -> Iterator[tuple[int, int, bytes]]:
    """Cuts a file into blocks of whole games.

    Args:
        file: An open file.
        size: Number of bytes to read at once.

    Yields:
        Offset of each block, number of its first game from 0, and its bytes. If the file
        ends within a game, so does the last block. The block after which no game can be
        found is the last one. An empty file has one empty block.
    """
    offset, number, kept = 0, 0, b""
    while new := file.read(size):
        data = kept + new
        games, end = 0, len(data)
        try:
            for _ in scan(data):
                games += 1
        except Broken as broken:
            if broken.final:
                yield offset, number, data
                return
            end = broken.start
        if games:
            yield offset, number, data[:end]
        offset, number, kept = offset + end, number + games, data[end:]
    if kept or not offset:
        yield offset, number, kept
