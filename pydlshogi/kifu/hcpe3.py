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

import numpy

from pydlshogi.common import SQUARE_NUM
from pydlshogi.kifu.fixed import HCPE_RESULTS, NO_RESULT, LeftOut
from pydlshogi.kifu.hcp import FAULTS, HCP, PACKED_SIZE, Boards, our_squares, unpack
from pydlshogi.kifu.legality import illegal_moves
from pydlshogi.kifu.move16 import APERY, DROP_PIECES, unpack_moves
from pydlshogi.kifu.movement import check_moves
from pydlshogi.kifu.replay import Games, replay
from pydlshogi.positions import (
    CANDIDATE,
    PIECE_NUM,
    PLACEMENT_SIZE,
    POSITION,
    PROMOTED,
    Visits,
    raw_bytes,
)

SUFFIXES = (".hcpe3",)

_CANDIDATE = numpy.dtype([("move16", "<u2"), ("visits", "<u2")])
# Candidates that are checked together.
_CHUNK = 8192
_GAME = struct.Struct("<32sHBB")
_MOVE = struct.Struct("<HhH")
# The largest number of legal moves that a position can have, a known fact.
_MOST_CANDIDATES = 593


#: The bits of ``result`` that say how a game ended.
REPETITION, DECLARATION = 4, 8


def encode(
    hcp: bytes, result: int, moves: Sequence[tuple[int, int, Sequence[tuple[int, int]]]]
) -> bytes:
    """Encodes a game: its first board, the byte ``result`` of the table above, and of each move the
    move played, the evaluation, and the candidates with their visits.
    """
    parts = [_GAME.pack(hcp, len(moves), result, 0)]
    for move, evaluation, candidates in moves:
        parts.append(_MOVE.pack(move, evaluation, len(candidates)))
        parts.append(numpy.array(candidates, _CANDIDATE).tobytes())
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
    """Finds games and moves in the content of a file from the start of a game on.

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
                    reason = (
                        f"move {len(moves) + 1} has {move[2]} candidates, but no position has more "
                        f"than {_MOST_CANDIDATES} moves; the rest of the file cannot be read; "
                        "copy it again"
                    )
                    raise Broken(start, reason, final=True)
                end += _MOVE.size
                moves.append(move)
                candidates.append(end)
                end += _CANDIDATE.itemsize * move[2]
        except struct.error:
            end = size + 1
        if end > size:
            reason = f"the file ends {size - start} bytes after the game's start, within it"
            raise Broken(start, f"{reason}; copy the file again", final=False)
        yield Layout(number, start, head, moves, candidates)
        number += 1


def blocks(file: BinaryIO, size: int) -> Iterator[tuple[int, int, bytes]]:
    """Cuts an open file, of which it reads ``size`` bytes at once, into blocks of whole games.

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


class DecodedGames(NamedTuple):
    """The positions of some games.

    Attributes:
        left_out: The games that cannot be used, in order.
        positions: Searched positions, ``POSITION`` array (n,), game by game.
        turns: Side to move, (n,) uint8.
        lengths: Number of searched positions of each game that is used, (games,) int64.
        results: The result of each of these games for Black, (games,) uint8.
        visits: The candidates of the positions.
        not_searched: Number of moves of these games without candidates.
    """

    left_out: list[LeftOut]
    positions: numpy.ndarray = numpy.empty(0, POSITION)
    turns: numpy.ndarray = numpy.empty(0, numpy.uint8)
    lengths: numpy.ndarray = numpy.empty(0, numpy.int64)
    results: numpy.ndarray = numpy.empty(0, numpy.uint8)
    visits: Visits = Visits.none(0)
    not_searched: int = 0


def decode_games(data: bytes | memoryview, strict: bool = False) -> DecodedGames:
    """Decodes whole games, such as a block of :func:`blocks`.

    A game is left out completely if its board, result, a move or a candidate is wrong; with
    ``strict``, also if a move is illegal.
    """
    left_out: list[LeftOut] = []
    layouts: list[Layout] = []
    try:
        for layout in scan(data):
            layouts.append(layout)
    except Broken as broken:
        left_out.append(LeftOut(len(layouts), broken.start, broken.reason))
    layouts, boards = _sound_layouts(layouts, left_out)
    decoded = _play(data, layouts, boards, left_out, strict) if layouts else DecodedGames(left_out)
    left_out.sort()
    return decoded


def _sound_layouts(layouts: list[Layout], left_out: list[LeftOut]) -> tuple[list[Layout], Boards]:
    """Keeps the games that have a board, a result and moves."""
    packed = numpy.frombuffer(b"".join(layout.head[0] for layout in layouts), numpy.uint8)
    boards = unpack(packed.reshape(-1, PACKED_SIZE), HCP)
    good = []
    for row, layout in enumerate(layouts):
        reason = FAULTS[boards.faults[row]]
        if not reason and HCPE_RESULTS[layout.head[2]] == NO_RESULT:
            reason = "its result is not one of the format"
        if not reason and not layout.moves:
            reason = "it has no move"
        if reason:
            left_out.append(LeftOut(layout.number, layout.start, reason))
        else:
            good.append(row)
    return [layouts[row] for row in good], Boards(*(column[good] for column in boards))


def _play(
    data: bytes | memoryview,
    layouts: list[Layout],
    boards: Boards,
    left_out: list[LeftOut],
    strict: bool,
) -> DecodedGames:
    """Replays games, checks their candidates and keeps the searched positions."""
    games = _games(layouts, boards)
    positions, reasons = _replay(games, strict)
    game = numpy.repeat(numpy.arange(len(layouts)), games.lengths)
    turns = (games.turns[game] + positions["ply"] - 1 & 1).astype(numpy.uint8)
    counts = numpy.array([move[2] for layout in layouts for move in layout.moves])
    candidates = _candidates(data, layouts, counts)
    row = numpy.repeat(numpy.arange(len(counts)), counts)
    possible, labels = _check_candidates(candidates["move16"], positions, turns, row)
    for wrong in row[~possible].tolist():
        reason = f"a candidate of move {positions['ply'][wrong]} is not possible there"
        reasons.setdefault(int(game[wrong]), reason)  # the first fault counts
    left_out.extend(
        LeftOut(layouts[number].number, layouts[number].start, reason)
        for number, reason in reasons.items()
    )
    searched = numpy.empty(len(labels), CANDIDATE)
    searched["label"], searched["count"] = labels, candidates["visits"]
    used = numpy.ones(len(layouts), bool)
    used[list(reasons)] = False
    kept = used[game] & (counts > 0)
    return DecodedGames(
        positions=positions[kept],
        turns=turns[kept],
        lengths=numpy.bincount(game[kept], minlength=len(layouts))[used],
        results=games.results[used],
        visits=Visits(numpy.append(0, numpy.cumsum(counts)), searched)[numpy.flatnonzero(kept)],
        not_searched=int((used[game] & (counts == 0)).sum()),
        left_out=left_out,
    )


def _replay(games: Games, strict: bool) -> tuple[numpy.ndarray, dict[int, str]]:
    """Replays games: the position before each move, and why games, by number, cannot be used."""
    positions, faults = replay(games)
    reasons = {f.game: f"move {f.ply + 1} is not possible: {f.reason}" for f in faults}
    if strict:
        sound = numpy.ones(len(games.lengths), bool)
        sound[list(reasons)] = False
        for number, move in illegal_moves(games, sound):
            reasons[number] = f"move {move + 1} is not legal"
    return positions, reasons


def _games(layouts: list[Layout], boards: Boards) -> Games:
    """Makes columns of the moves of games, not checked."""
    moves = numpy.array([move[0] for layout in layouts for move in layout.moves])
    evaluations = [move[1] for layout in layouts for move in layout.moves]
    lengths = numpy.array([len(layout.moves) for layout in layouts], numpy.int64)
    first = numpy.cumsum(lengths) - lengths
    ply = numpy.arange(len(moves)) - numpy.repeat(first, lengths)
    turns = numpy.repeat(boards.turns, lengths) + ply & 1
    pieces = numpy.array(list(_pieces_before(layouts, boards)), numpy.uint8)
    # unpack_moves reads only the piece on the origin, so every square may have that piece.
    stand_in = numpy.broadcast_to(pieces[:, None], (len(pieces), SQUARE_NUM))
    unpacked, _ = unpack_moves(moves, stand_in, turns, APERY)
    return Games(
        **vars(unpacked),
        evaluation=numpy.array(evaluations, numpy.int16),
        lengths=lengths,
        starts=boards.placements,
        turns=boards.turns,
        results=HCPE_RESULTS[[layout.head[2] for layout in layouts]],
    )


def _pieces_before(layouts: list[Layout], boards: Boards) -> Iterator[int]:
    """Yields the piece (1..14) that each move of each game moves, 0 for none or a drop."""
    order = our_squares()
    for layout, placement, turn in zip(layouts, boards.placements, boards.turns):
        codes = placement[order[turn]].astype(int)
        # Squares of the file; seven bits can name more of them than there are.
        board = numpy.where(codes > PIECE_NUM, codes - PIECE_NUM, codes).tolist() + [0] * 47
        for move, _, _ in layout.moves:
            origin = move >> 7 & 127
            piece = board[origin]
            yield piece
            if origin >= SQUARE_NUM:
                piece = DROP_PIECES.get(origin, 0)
            elif move & APERY.promotion:
                piece = PROMOTED.get(piece, 0)
            board[origin] = 0
            target = move & 127
            if target < SQUARE_NUM:
                board[target] = piece


def _candidates(
    data: bytes | memoryview, layouts: list[Layout], counts: numpy.ndarray
) -> numpy.ndarray:
    """Collects the candidates of all moves: an array of ``_CANDIDATE``."""
    size = _CANDIDATE.itemsize
    content = b"".join(
        data[start : start + size * move[2]]
        for layout in layouts
        for start, move in zip(layout.candidates, layout.moves)
    )
    assert len(content) == size * counts.sum()
    return numpy.frombuffer(content, _CANDIDATE)


def _check_candidates(
    moves: numpy.ndarray, positions: numpy.ndarray, turns: numpy.ndarray, rows: numpy.ndarray
) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Checks candidates on their positions, which have the numbers ``rows``.

    Returns whether each is possible, (c,) bool, and its label, (c,) uint16.
    """
    possible = numpy.empty(len(moves), bool)
    labels = numpy.empty(len(moves), numpy.uint16)
    for start in range(0, len(moves), _CHUNK):
        part = slice(start, start + _CHUNK)
        there = positions[rows[part]]
        placements = raw_bytes(there)[:, :PLACEMENT_SIZE]
        mover = turns[rows[part]].astype(numpy.intp)
        unpacked, _ = unpack_moves(moves[part], placements, mover, APERY)
        possible[part], labels[part] = check_moves(unpacked, there)
    return possible, labels
