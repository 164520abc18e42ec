"""Files of records of a fixed size, one position each: HCPE and PSV.

HCPE, as Apery and dlshogi train on. The number of the move is not known:

==============  =====  ==================================================================
``hcp``            32  the board (:data:`pydlshogi.kifu.hcp.HCP`)
``eval``            2  centipawns for the side to move, int16
``bestMove16``      2  the move (:data:`pydlshogi.kifu.move16.APERY`)
``gameResult``      1  bits 0 and 1: 0 draw, 1 Black won, 2 White won; other bits: how the
                       game ended, as in HCPE3
unused              1
==============  =====  ==================================================================

PSV, as YaneuraOu trains on:

===============  =====  =================================================================
``sfen``            32  the board (:data:`pydlshogi.kifu.hcp.PACKED_SFEN`)
``score``            2  centipawns for the side to move, int16
``move``             2  the move (:data:`pydlshogi.kifu.move16.YANEURAOU`)
``gamePly``          2  number of the move, from 1
``game_result``      1  for the side to move: 1 won, 0 draw, −1 lost
unused               1
===============  =====  =================================================================

Integers are little-endian. A record that cannot be used is left out, with the reason. Sources of
the facts: cshogi's ``HuffmanCodedPosAndEval`` and ``PackedSfenValue``, dlshogi's ``cppshogi.h`` and
YaneuraOu's ``extra/sfen_packer.cpp``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy
import shogi

from pydlshogi.kifu.hcp import (
    FAULTS,
    HCP,
    PACKED_SFEN,
    PACKED_SIZE,
    Boards,
    Code,
    pack,
    unpack,
)
from pydlshogi.kifu.legality import first_illegal
from pydlshogi.kifu.move16 import APERY, YANEURAOU, Layout, pack_moves, unpack_moves
from pydlshogi.kifu.movement import Moves, check_moves, explain_fault
from pydlshogi.positions import (
    DRAW,
    EVALUATION_MAX,
    LOSS,
    NO_EVALUATION,
    PLACEMENT_SIZE,
    POSITION,
    UNKNOWN,
    WIN,
    raw_bytes,
)

#: A result that a file cannot hold.
NO_RESULT = 255

# Records that are read together: enough to be fast, few enough to fit the CPU's caches.
_CHUNK = 8192


class FixedFormat(NamedTuple):
    """A format.

    Attributes:
        name: Its usual name.
        suffixes: File name suffixes in lower case, with the dot.
        record: Type of a record.
        code: Format of the boards.
        layout: Format of the moves.
        board, evaluation, move, result: Names of the fields of a record.
        results: Our result by the file's number, (256,) uint8; ``NO_RESULT`` for other numbers.
        numbers: The file's number of our ``LOSS``, ``WIN`` and ``DRAW``.
        for_black: Whether the file has Black's results, not those of the side to move.
        ply: Name of the field with the number of the move; empty if there is none.
    """

    name: str
    suffixes: tuple[str, ...]
    record: numpy.dtype
    code: Code
    layout: Layout
    board: str
    evaluation: str
    move: str
    result: str
    results: numpy.ndarray
    numbers: tuple[int, int, int]
    for_black: bool
    ply: str = ""


class LeftOut(NamedTuple):
    """A record that cannot be used.

    Attributes:
        number: Its number, from 0.
        start: Index of its first byte; -1 if it is not in a file.
        reason: Why it cannot be used, a clause in words.
    """

    number: int
    start: int
    reason: str


class Decoded(NamedTuple):
    """The positions of some records.

    Attributes:
        positions: ``POSITION`` array, (n,).
        turns: Side to move, (n,) uint8.
        left_out: The records that cannot be used, in order.
    """

    positions: numpy.ndarray
    turns: numpy.ndarray
    left_out: list[LeftOut]


def decode_records(data: bytes | memoryview, format_: FixedFormat, strict: bool = False) -> Decoded:
    """Decodes records; bytes after the last whole record are ignored.

    ``strict`` also leaves out records with an illegal move, and is much slower.
    """
    count = len(data) // format_.record.itemsize
    records = numpy.frombuffer(data, format_.record, count)
    parts = [
        _decode(records[start : start + _CHUNK], start, format_, strict)
        for start in range(0, max(count, 1), _CHUNK)  # at least one part, perhaps an empty one
    ]
    return Decoded(
        numpy.concatenate([part.positions for part in parts]),
        numpy.concatenate([part.turns for part in parts]),
        [record for part in parts for record in part.left_out],
    )


def _decode(records: numpy.ndarray, first: int, format_: FixedFormat, strict: bool) -> Decoded:
    """Decodes some records, whose first has the number ``first``."""
    boards = unpack(records[format_.board], format_.code)
    packed_moves = records[format_.move]
    results = format_.results[records[format_.result]]
    if format_.for_black:
        results = seen_by_mover(results, boards.turns)
    positions = numpy.empty(len(records), POSITION)
    raw_bytes(positions)[:, :PLACEMENT_SIZE] = boards.placements
    positions["result"] = results
    positions["evaluation"] = records[format_.evaluation]
    positions["recent"] = 0  # the formats have single positions
    # For explain_fault, ply 0 means a game with too many moves.
    positions["ply"] = 1
    turns = boards.turns.astype(numpy.intp)
    moves, well_formed = unpack_moves(packed_moves, boards.placements, turns, format_.layout)
    possible, positions["label"] = check_moves(moves, positions)
    good = possible & (boards.faults == 0) & (results != NO_RESULT)
    reasons = {
        row: _reason(row, packed_moves, boards, moves, well_formed, positions)
        for row in numpy.flatnonzero(~good).tolist()
    }
    if strict:
        for row in numpy.flatnonzero(good).tolist():
            move = int(moves.origin[row]), int(moves.target[row]), int(moves.piece[row])
            board = boards.placements[row].tobytes(), int(boards.turns[row])
            if first_illegal(*board, [move]) == 0:
                reasons[row] = "its move is not legal"
    positions["ply"] = records[format_.ply] if format_.ply else 0
    good[list(reasons)] = False
    if reasons:
        positions, turns = positions[good], turns[good]
    size = format_.record.itemsize
    left_out = [LeftOut(first + row, (first + row) * size, reasons[row]) for row in sorted(reasons)]
    return Decoded(positions, turns.astype(numpy.uint8), left_out)


def _reason(
    row: int,
    packed_moves: numpy.ndarray,
    boards: Boards,
    moves: Moves,
    well_formed: numpy.ndarray,
    positions: numpy.ndarray,
) -> str:
    """Says why a record cannot be used."""
    if boards.faults[row]:
        return FAULTS[boards.faults[row]]
    if positions["result"][row] == NO_RESULT:
        return "its result is not one of the format"
    if not packed_moves[row]:
        return "it has no move"
    if not well_formed[row]:
        return f"its move, 0x{packed_moves[row]:04x}, is not one of the format"
    return f"its move is not possible: {explain_fault(moves, positions, row)}"


def limit_evaluations(positions: numpy.ndarray) -> None:
    """Limits evaluations to what ``POSITION`` allows, in place.

    Decoding keeps what the file says, so that converting loses nothing.
    """
    evaluations = positions["evaluation"]
    limited = numpy.clip(evaluations, -EVALUATION_MAX, EVALUATION_MAX)
    limited[evaluations == NO_EVALUATION] = NO_EVALUATION
    positions["evaluation"] = limited


def encode_records(
    positions: numpy.ndarray, turns: numpy.ndarray, format_: FixedFormat
) -> tuple[numpy.ndarray, list[LeftOut]]:
    """Encodes ``POSITION`` records (n,) with their sides to move, (n,).

    Returns:
        The records, (m,) of ``format_.record``, where unknown evaluations are 0; and the positions
        that the format cannot hold: those with an unknown result, or with pieces that are no part
        of a set.
    """
    placements = raw_bytes(positions)[:, :PLACEMENT_SIZE]
    packed, faults = pack(placements, turns, format_.code)
    unknown = positions["result"] == UNKNOWN
    left_out = [
        LeftOut(row, -1, FAULTS[faults[row]] if faults[row] else "its result is not known")
        for row in numpy.flatnonzero((faults != 0) | unknown).tolist()
    ]
    good = (faults == 0) & ~unknown
    positions, turns, placements = positions[good], turns[good], placements[good]
    evaluations = positions["evaluation"]
    records = numpy.zeros(len(positions), format_.record)
    records[format_.board] = packed[good]
    records[format_.evaluation] = numpy.where(evaluations == NO_EVALUATION, 0, evaluations)
    records[format_.move] = pack_moves(positions["label"], placements, turns, format_.layout)
    results = positions["result"]
    if format_.for_black:
        results = seen_by_mover(results, turns)
    records[format_.result] = numpy.array(format_.numbers)[results]
    if format_.ply:
        records[format_.ply] = positions["ply"]
    return records, left_out


# The same result for the other side, by number.
_OTHER = numpy.full(256, NO_RESULT, numpy.uint8)
_OTHER[[LOSS, WIN, DRAW]] = WIN, LOSS, DRAW


def seen_by_mover(results: numpy.ndarray, turns: numpy.ndarray) -> numpy.ndarray:
    """Turns results for Black into results for the side to move, or back: (n,) uint8."""
    return numpy.where(turns == shogi.BLACK, results, _OTHER[results])


HCPE_RECORD = numpy.dtype(
    [
        ("hcp", "u1", (PACKED_SIZE,)),
        ("eval", "<i2"),
        ("bestMove16", "<u2"),
        ("gameResult", "u1"),
        ("unused", "u1"),
    ]
)
assert HCPE_RECORD.itemsize == 38

# dlshogi's mark of a game with too many moves, a draw. The number is hexadecimal, so it also sets
# the bits of "White won".
_TOO_MANY_MOVES = 0x16

#: Our result for Black by the number in an HCPE or HCPE3 file. Bits 2–4 do not change it.
HCPE_RESULTS = numpy.full(256, NO_RESULT, numpy.uint8)
for _ending in range(0, 32, 4):
    HCPE_RESULTS[_ending : _ending + 3] = DRAW, WIN, LOSS
HCPE_RESULTS[_TOO_MANY_MOVES] = DRAW

HCPE = FixedFormat(
    "HCPE",
    (".hcpe",),
    HCPE_RECORD,
    HCP,
    APERY,
    board="hcp",
    evaluation="eval",
    move="bestMove16",
    result="gameResult",
    results=HCPE_RESULTS,
    numbers=(2, 1, 0),
    for_black=True,
)

PSV_RECORD = numpy.dtype(
    [
        ("sfen", "u1", (PACKED_SIZE,)),
        ("score", "<i2"),
        ("move", "<u2"),
        ("gamePly", "<u2"),
        ("game_result", "i1"),
        ("unused", "u1"),
    ]
)
assert PSV_RECORD.itemsize == 40

_PSV_RESULTS = numpy.full(256, NO_RESULT, numpy.uint8)
_PSV_RESULTS[[0, 1, -1]] = DRAW, WIN, LOSS

PSV = FixedFormat(
    "PSV",
    (".psv", ".bin"),
    PSV_RECORD,
    PACKED_SFEN,
    YANEURAOU,
    board="sfen",
    evaluation="score",
    move="move",
    result="game_result",
    results=_PSV_RESULTS,
    numbers=(-1, 1, 0),
    for_black=False,
    ply="gamePly",
)

FIXED_FORMATS = (HCPE, PSV)


def fixed_format(name: str) -> FixedFormat | None:
    """Finds the format of fixed records that a file name stands for; None for HCPE3."""
    for format_ in FIXED_FORMATS:
        if name.lower().endswith(format_.suffixes):
            return format_
    return None
