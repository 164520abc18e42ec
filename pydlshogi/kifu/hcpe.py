"""HCPE files: one position of 38 bytes after another, as Apery and dlshogi train on.

==============  =====  ==================================================================
``hcp``            32  the board (:data:`pydlshogi.kifu.hcp.HCP`)
``eval``            2  centipawns for the side to move, int16
``bestMove16``      2  the move (:data:`pydlshogi.kifu.move16.APERY`)
``gameResult``      1  bits 0 and 1: 0 draw, 1 Black won, 2 White won; other bits: how the
                       game ended, as in HCPE3
unused              1
==============  =====  ==================================================================

Integers are little-endian. The number of the move is not known. Source of the facts:
cshogi's ``HuffmanCodedPosAndEval`` and dlshogi's ``cppshogi.h``.
"""

from __future__ import annotations

import numpy

from pydlshogi.kifu.fixed import NO_RESULT, Columns, FixedFormat, seen_by_mover
from pydlshogi.kifu.hcp import HCP, PACKED_SIZE
from pydlshogi.kifu.move16 import APERY
from pydlshogi.positions import DRAW, LOSS, WIN

RECORD = numpy.dtype(
    [
        ("hcp", "u1", (PACKED_SIZE,)),
        ("eval", "<i2"),
        ("bestMove16", "<u2"),
        ("gameResult", "u1"),
        ("unused", "u1"),
    ]
)
assert RECORD.itemsize == 38

# dlshogi's mark of a game with too many moves, a draw. The number is hexadecimal, so it also sets
# the bits of "White won".
_TOO_MANY_MOVES = 0x16

# Our result for Black by the file's number. Bits 2–4 do not change it.
RESULTS = numpy.full(256, NO_RESULT, numpy.uint8)
for _ending in range(0, 32, 4):
    RESULTS[_ending : _ending + 3] = DRAW, WIN, LOSS
RESULTS[_TOO_MANY_MOVES] = DRAW
#: The file's number by our result for Black.
NUMBERS = numpy.zeros(4, numpy.uint8)
NUMBERS[[DRAW, WIN, LOSS]] = 0, 1, 2


def _split(records: numpy.ndarray) -> Columns:
    turns = records["hcp"][:, 0] & 1
    return Columns(
        packed=records["hcp"],
        evaluations=records["eval"],
        moves=records["bestMove16"],
        results=seen_by_mover(RESULTS[records["gameResult"]], turns),
        plies=numpy.zeros(len(records), numpy.uint16),
    )


def _join(columns: Columns, turns: numpy.ndarray) -> numpy.ndarray:
    records = numpy.zeros(len(turns), RECORD)
    records["hcp"] = columns.packed
    records["eval"] = columns.evaluations
    records["bestMove16"] = columns.moves
    records["gameResult"] = NUMBERS[seen_by_mover(columns.results, turns)]
    return records


HCPE = FixedFormat("HCPE", (".hcpe",), RECORD, HCP, APERY, _split, _join)
