"""The packed position, sequences of packed positions, and the visits of a search.

A position is seen from the side to move (:mod:`pydlshogi.common`) and takes 104 bytes:

==============  =====  ==========================================================
field           bytes  meaning
==============  =====  ==========================================================
``board``          81  one byte a square: 0 empty; 1..14 a piece of the side to
                       move in python-shogi's order (pawn … dragon); 15..28 the
                       same pieces of the opponent
``hands``          14  number of pieces in hand: pawn, lance, knight, silver, gold,
                       bishop, rook of the side to move, then of the opponent
``result``          1  result of the game for the side to move: ``LOSS``, ``WIN``,
                       ``DRAW`` or ``UNKNOWN``
``label``           2  the move played, 0..2186 (:mod:`pydlshogi.features`)
``ply``             2  number of the move in its game, from 1; 0 if unknown
``evaluation``      2  an engine's evaluation for the side to move, in centipawns,
                       ``-EVALUATION_MAX`` … ``EVALUATION_MAX``; ``NO_EVALUATION``
                       if unknown
``recent``          2  destinations of the last two moves, that of the opponent
                       first: 1 + the square, seen from the side to move; 0 if
                       there was no such move or it is unknown
==============  =====  ==========================================================

Integers are little-endian. The first 95 bytes, board and hands, are the *placement*. Text
records give whole games: there a position with ``ply`` > 1 follows its predecessor.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy
import shogi

from pydlshogi.common import SQUARE_NUM
from pydlshogi.errors import UserError

#: Number of piece types on the board, and of piece types that can be in hand.
PIECE_NUM = len(shogi.PIECE_TYPES)
HAND_NUM = 7

POSITION = numpy.dtype(
    [
        ("board", "u1", (SQUARE_NUM,)),
        ("hands", "u1", (2 * HAND_NUM,)),
        ("result", "u1"),
        ("label", "<u2"),
        ("ply", "<u2"),
        ("evaluation", "<i2"),
        ("recent", "u1", (2,)),
    ]
)
assert POSITION.itemsize == 104

#: Number of moves in ``recent``.
RECENT_NUM = 2

#: Largest move number that ``ply`` can hold. Longer games are refused.
PLY_MAX = int(numpy.iinfo(POSITION["ply"]).max)

#: Largest evaluation, in centipawns. Engines write a mate as 30,000 minus its length, 31,111,
#: 32,000 or 100,000. In the floodgate games of 2016, 0.05 % of the evaluations are between 20,000
#: and 29,000, and 9 % are above. Larger values therefore mean the same: a decided game.
EVALUATION_MAX = 30_000
#: Stands for an unknown evaluation.
NO_EVALUATION = -(1 << 15)

#: Results for one side: in ``POSITION`` for the side to move, in a game for Black.
LOSS, WIN, DRAW, UNKNOWN = range(4)

#: Number of bytes of a placement, the board and hands of a position.
PLACEMENT_SIZE = SQUARE_NUM + 2 * HAND_NUM

#: Code of the promoted piece for each piece that can promote.
PROMOTED = {plain: promoted for plain, promoted in enumerate(shogi.PIECE_PROMOTED) if promoted}

# Code of the same piece seen from the other side.
_OTHER_SIDE = bytes(
    [0, *range(PIECE_NUM + 1, 2 * PIECE_NUM + 1), *range(1, PIECE_NUM + 1)]
) + bytes(range(2 * PIECE_NUM + 1, 256))


class Positions(Sequence[numpy.void]):
    """A read-only sequence of packed positions, as the book's scripts expect.

    It works with ``random.sample``, ``random.choice``, ``len``, integer indices, slices and
    ``pickle``. An item is one ``POSITION`` record; ``make_features`` takes it.

    Attributes:
        array: The same positions as a ``POSITION`` array, (n,).
    """

    def __init__(self, array: numpy.ndarray) -> None:
        self.array = numpy.asarray(array, dtype=POSITION)

    def __len__(self) -> int:
        return len(self.array)

    @overload
    def __getitem__(self, index: int) -> numpy.void: ...

    @overload
    def __getitem__(self, index: slice) -> Positions: ...

    def __getitem__(self, index: int | slice) -> numpy.void | Positions:
        if isinstance(index, slice):
            return Positions(self.array[index])
        item: numpy.void = self.array[index]
        return item

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> numpy.ndarray:
        return numpy.array(self.array, dtype) if copy else numpy.asarray(self.array, dtype)

    def __repr__(self) -> str:
        return f"<Positions: {len(self)} packed positions>"

    def __reduce__(self) -> tuple[Any, ...]:
        # Plain bytes: numpy 1 cannot load an array that numpy 2 pickled.
        return unpickled, (POSITION.itemsize, raw_bytes(self.array).tobytes())


def unpickled(itemsize: int, content: bytes) -> Positions:
    """Rebuilds pickled positions; raises ``UserError`` if another version wrote the pickle."""
    if itemsize != POSITION.itemsize:
        raise UserError(
            "the pickled positions were written by another version of pydlshogi; "
            "delete the pickle file and read the records again"
        )
    return Positions(numpy.frombuffer(bytearray(content), dtype=POSITION))


def raw_bytes(positions: numpy.ndarray) -> numpy.ndarray:
    """Returns ``POSITION`` records (n,) as (n, 104) uint8: a view if they are contiguous."""
    positions = numpy.ascontiguousarray(positions, dtype=POSITION)
    return positions.view(numpy.uint8).reshape(len(positions), POSITION.itemsize)


def opponents_view(placement: bytes) -> bytes:
    """Rotates a placement of ``PLACEMENT_SIZE`` bytes by 180 degrees and swaps the sides."""
    board = placement[:SQUARE_NUM][::-1].translate(_OTHER_SIDE)
    own, other = placement[SQUARE_NUM:-HAND_NUM], placement[-HAND_NUM:]
    return board + other + own


def placement_of(board: shogi.Board) -> bytes:
    """Packs the pieces of a python-shogi board, seen from the side to move, as a placement."""
    packed = bytearray(PLACEMENT_SIZE)
    for square in shogi.SQUARES:
        piece = board.piece_at(square)
        if piece:
            packed[square] = piece.piece_type + (PIECE_NUM if piece.color == shogi.WHITE else 0)
    for color, start in ((shogi.BLACK, SQUARE_NUM), (shogi.WHITE, SQUARE_NUM + HAND_NUM)):
        for piece_type, count in board.pieces_in_hand[color].items():
            packed[start + piece_type - 1] = count
    placement = bytes(packed)
    return placement if board.turn == shogi.BLACK else opponents_view(placement)


#: Placement of the even game's start position. Both sides see the same.
EVEN_GAME = placement_of(shogi.Board())


def count_common(train: numpy.ndarray, test: numpy.ndarray) -> int:
    """Counts the training positions whose board, hands and side to move are also in the test set.

    It compares 64-bit hashes: ten million positions give a false match in one of 200,000 runs.
    """
    return int(numpy.isin(_placement_hashes(train), _placement_hashes(test)).sum())


def _placement_hashes(positions: numpy.ndarray, chunk: int = 16384) -> numpy.ndarray:
    """Hashes board and hands of each position; returns (n,) uint64."""
    factors = numpy.random.RandomState(64).randint(0, 1 << 63, 12, dtype=numpy.uint64)
    factors = factors << numpy.uint64(1) | numpy.uint64(1)
    words_size = len(factors) * 8
    assert words_size == PLACEMENT_SIZE + 1
    hashes = numpy.zeros(len(positions), dtype=numpy.uint64)
    rows = raw_bytes(positions)
    for start in range(0, len(positions), chunk):
        words = rows[start : start + chunk, :words_size].copy()
        words[:, PLACEMENT_SIZE:] = 0
        total = hashes[start : start + chunk]
        # A product carries differences to the high bits only. The shifts bring them back
        # to the low bits before the words are added.
        for factor, word in zip(factors, words.view("<u8").T):
            mixed = (word + factor) * factor
            mixed ^= mixed >> numpy.uint64(32)
            mixed *= factor
            mixed ^= mixed >> numpy.uint64(29)
            total += mixed
    return hashes


#: A move that was tried: its label (:mod:`pydlshogi.features`), and its number of visits.
CANDIDATE = numpy.dtype([("label", "<u2"), ("count", "<u2")])


@dataclass(frozen=True)
class Visits:
    """The candidates of some positions, which may have different numbers of them.

    The candidates of position ``i`` are ``starts[i]`` … ``starts[i + 1] - 1``.

    Attributes:
        starts: (n + 1,) int64.
        candidates: (c,) of :data:`CANDIDATE`.
    """

    starts: numpy.ndarray
    candidates: numpy.ndarray

    @classmethod
    def none(cls, count: int) -> Visits:
        """Makes the visits of ``count`` positions that were not searched."""
        return cls(numpy.zeros(count + 1, numpy.int64), numpy.empty(0, CANDIDATE))

    @property
    def labels(self) -> numpy.ndarray:
        """Label of each candidate, (c,) uint16."""
        return self.candidates["label"]

    @property
    def counts(self) -> numpy.ndarray:
        """Number of visits of each candidate, (c,) uint16."""
        return self.candidates["count"]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, rows: Any) -> Visits:
        """Copies the visits of some positions.

        Args:
            rows: Numbers of the positions, an array of integers or a slice.
        """
        numbers = numpy.arange(*rows.indices(len(self))) if isinstance(rows, slice) else rows
        lengths = self.starts[numbers + 1] - self.starts[numbers]
        starts = _starts_of(lengths)
        places = numpy.repeat(self.starts[numbers] - starts[:-1], lengths)
        return Visits(starts, self.candidates[places + numpy.arange(len(places))])

    def checksum(self) -> int:
        """Computes a CRC-32 of the content."""
        return zlib.crc32(self.candidates.tobytes(), zlib.crc32(self.starts.tobytes()))


def _starts_of(lengths: numpy.ndarray) -> numpy.ndarray:
    """Turns the numbers of candidates of n positions into ``starts``, (n + 1,) int64."""
    return numpy.concatenate([[0], numpy.cumsum(lengths, dtype=numpy.int64)])


def join_visits(parts: Sequence[Visits]) -> Visits:
    """Joins the visits of consecutive positions."""
    if not parts:
        return Visits.none(0)
    lengths = numpy.concatenate([numpy.diff(part.starts) for part in parts])
    return Visits(_starts_of(lengths), numpy.concatenate([part.candidates for part in parts]))
