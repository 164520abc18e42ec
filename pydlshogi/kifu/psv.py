"""PSV files: one position of 40 bytes after another, as YaneuraOu trains on.

===============  =====  =================================================================
``sfen``            32  the board (:data:`pydlshogi.kifu.hcp.PACKED_SFEN`)
``score``            2  centipawns for the side to move, int16
``move``             2  the move (:data:`pydlshogi.kifu.move16.YANEURAOU`)
``gamePly``          2  number of the move, from 1
``game_result``      1  for the side to move: 1 won, 0 draw, −1 lost
unused               1
===============  =====  =================================================================

Integers are little-endian. Source of the facts: cshogi's ``PackedSfenValue`` and
YaneuraOu's ``extra/sfen_packer.cpp``.
"""

from __future__ import annotations

import numpy

from pydlshogi.kifu.fixed import NO_RESULT, Columns, FixedFormat
from pydlshogi.kifu.hcp import PACKED_SFEN, PACKED_SIZE
from pydlshogi.kifu.move16 import YANEURAOU
from pydlshogi.positions import DRAW, LOSS, WIN

RECORD = numpy.dtype(
    [
        ("sfen", "u1", (PACKED_SIZE,)),
        ("score", "<i2"),
        ("move", "<u2"),
        ("gamePly", "<u2"),
        ("game_result", "i1"),
        ("unused", "u1"),
    ]
)
assert RECORD.itemsize == 40

# Our result by the file's number; -1 is the last one.
_RESULTS = numpy.full(256, NO_RESULT, numpy.uint8)
_RESULTS[[0, 1, -1]] = DRAW, WIN, LOSS
_NUMBERS = numpy.zeros(4, numpy.int8)
_NUMBERS[[DRAW, WIN, LOSS]] = 0, 1, -1


def _split(records: numpy.ndarray) -> Columns:
    return Columns(
        packed=records["sfen"],
        evaluations=records["score"],
        moves=records["move"],
        results=_RESULTS[records["game_result"]],
        plies=records["gamePly"],
    )


def _join(columns: Columns, turns: numpy.ndarray) -> numpy.ndarray:
    records = numpy.zeros(len(turns), RECORD)
    records["sfen"] = columns.packed
    records["score"] = columns.evaluations
    records["move"] = columns.moves
    records["gamePly"] = columns.plies
    records["game_result"] = _NUMBERS[columns.results]
    return records


PSV = FixedFormat("PSV", (".psv", ".bin"), RECORD, PACKED_SFEN, YANEURAOU, _split, _join)
