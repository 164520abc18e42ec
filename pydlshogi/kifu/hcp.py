"""Boards packed into 32 bytes: the huffman-coded position and the packed sfen.

Both formats are a sequence of 256 bits, the least significant bit of each byte first:

====================  ===================================================================
1 bit                 side to move: 0 Black, 1 White
7 + 7 bits            squares of Black's and White's king; ``(file - 1) · 9 + rank - 1``
79 codes              the other squares in the same order, a Huffman code each
up to 38 codes        pieces in hand: Black's, White's, then pieces of neither side
====================  ===================================================================

A piece on a board and the same piece in hand differ by one bit, the code of an empty
square. A full set of pieces therefore always fills 256 bits. The two formats give some
pieces different codes, and they order colour and promotion differently (:data:`HCP`,
:data:`PACKED_SFEN`).

The decoder is an automaton that reads one byte of every board at a time. Its state is the
part of a code that the byte before has left over.

Sources of the facts: Apery's and YaneuraOu's formats, observed with cshogi 1.1.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy
import shogi

from pydlshogi.common import SQUARE_NUM
from pydlshogi.kifu.huffman import (
    ALL,
    FIRST_CODE,
    HCP,
    OTHER,
    OWN,
    PACKED_SFEN,
    SET,
    Code,
    automaton,
    bit_tables,
    fields,
    fields_of_codes,
)
from pydlshogi.positions import HAND_NUM, PIECE_NUM, PLACEMENT_SIZE

__all__ = ["FAULTS", "HCP", "PACKED_SFEN", "PACKED_SIZE", "Boards", "Code", "pack", "unpack"]

#: Number of bytes of a packed board.
PACKED_SIZE = 32

#: Why a board cannot be unpacked or packed, by the number in ``Boards.faults``.
FAULTS = (
    "",
    "a king is missing",
    "both kings are on one square",
    "the bits do not form a board and hands",
    "there are more pieces of a kind than in a set",
    "a pawn, lance or knight could never move again",
    "two pawns of one side are on one file",
    "a side has more than one king",
)
(
    _GOOD,
    _KING_MISSING,
    _SAME_SQUARE,
    _NO_CODE,
    _TOO_MANY,
    _STUCK,
    _TWO_PAWNS,
    _TWO_KINGS,
) = range(len(FAULTS))

_CODED_SQUARES = SQUARE_NUM - 2
_PAWN, _LANCE, _KNIGHT, _KING = shogi.PAWN, shogi.LANCE, shogi.KNIGHT, shogi.KING
# Columns of the squares that the automaton writes: up to 8 + 8 more than there are squares.
_WIDTH = _CODED_SQUARES + 17
# An end that no place reaches.
_NEVER = numpy.iinfo(numpy.intp).max


class Boards(NamedTuple):
    """Unpacked boards.

    Attributes:
        placements: Board and hands as in ``POSITION``, seen from the side to move,
            (n, PLACEMENT_SIZE) uint8. They are meaningless where there is a fault.
        turns: Side to move, (n,) uint8.
        faults: Number of the fault in :data:`FAULTS`, 0 for none, (n,) uint8.
    """

    placements: numpy.ndarray
    turns: numpy.ndarray
    faults: numpy.ndarray


def unpack(packed: numpy.ndarray, code: Code, chunk: int = 4096) -> Boards:
    """Unpacks boards, (n, 32) uint8, of a format, :data:`HCP` or :data:`PACKED_SFEN`.

    So many are unpacked together as fit in the CPU's caches, ``chunk``.
    """
    count = len(packed)
    boards = Boards(
        numpy.empty((count, PLACEMENT_SIZE), numpy.uint8),
        numpy.empty(count, numpy.uint8),
        numpy.empty(count, numpy.uint8),
    )
    for start in range(0, count, chunk):
        part = slice(start, start + chunk)
        _unpack(packed[part], code, Boards(*(array[part] for array in boards)))
    return boards


def _unpack(packed: numpy.ndarray, code: Code, out: Boards) -> None:
    """Unpacks some boards into ``out``."""
    head = packed[:, 0].astype(numpy.intp) | packed[:, 1].astype(numpy.intp) << 8
    turns = head & 1
    kings = numpy.stack([head >> 1 & 127, head >> 8 & 127])
    codes = _read_codes(packed, turns, code)
    board, hands = out.placements[:, :SQUARE_NUM], out.placements[:, SQUARE_NUM:]
    board[:] = _place_squares(codes.squares, turns, kings)
    hands[:, :HAND_NUM] = _counts(codes.sums[OWN])
    hands[:, HAND_NUM:] = _counts(codes.sums[OTHER])
    out.turns[:] = turns
    # Comparing is fastest where the boards lie side by side.
    ranks = numpy.ascontiguousarray(board.T).reshape(9, 9, -1)
    # Later lines overrule earlier ones.
    out.faults[:] = numpy.where(_has_two_pawns(ranks), _TWO_PAWNS, _GOOD)
    out.faults[_has_stuck(ranks)] = _STUCK
    out.faults[codes.sums[ALL] != fields(SET)] = _TOO_MANY
    out.faults[~codes.complete] = _NO_CODE
    out.faults[kings[0] == kings[1]] = _SAME_SQUARE
    out.faults[(kings >= SQUARE_NUM).any(axis=0)] = _KING_MISSING


class _Codes(NamedTuple):
    """What the automaton read.

    Attributes:
        squares: Piece codes of the squares except those of the kings, (n, _WIDTH) uint8. The
            codes are for the side to move, the order is that of the file. Columns after the
            first 79 have no meaning.
        sums: Numbers of pieces without kings: all, in the own hand, in the opponent's hand;
            (3, n) uint64 as :func:`fields` makes them.
        complete: Whether the bits are codes of 79 squares and of pieces in hand, and no bit
            is left; (n,) bool.
    """

    squares: numpy.ndarray
    sums: numpy.ndarray
    complete: numpy.ndarray


def _read_codes(packed: numpy.ndarray, turns: numpy.ndarray, code: Code) -> _Codes:
    """Reads the codes of squares and hands, one byte of every board at a time."""
    table = automaton(code)
    count = len(packed)
    squares = numpy.zeros((count, _WIDTH), numpy.uint8)
    # This view writes eight squares at once, beginning at any byte.
    eights = numpy.ndarray((count * _WIDTH - 7,), "<u8", squares, 0, (1,))
    place = numpy.arange(count, dtype=numpy.intp) * _WIDTH
    end = place + _CODED_SQUARES
    state = table.first.take(turns)
    sums = numpy.zeros((len(table.sums), count), numpy.uint64)
    for byte in packed[:, FIRST_CODE // 8 :].T.astype(numpy.intp):
        at = state + byte
        eights[place] = table.squares.take(at)
        place += table.number.take(at)
        done = numpy.flatnonzero(place >= end)
        if len(done):
            # The last square's code ends in this byte. Its other bits belong to the hands.
            last = at[done]
            needed = end[done] - place[done] + table.number[last]
            sums[ALL, done] += _sum_of_squares(table.squares[last], needed)
            at[done] = table.hands[turns[done], table.ends[last, needed - 1]] + byte[done]
            end[done] = _NEVER
        for total, addends in zip(sums, table.sums):
            total += addends.take(at)
        state = table.next.take(at)
    complete = (end == _NEVER) & (state == table.hands[turns, 0])
    return _Codes(squares, sums, complete)


def _sum_of_squares(eights: numpy.ndarray, needed: numpy.ndarray) -> numpy.ndarray:
    """Counts the pieces on the first squares of eight: (n,) uint64 as ``fields`` does."""
    squares = eights.astype("<u8").view(numpy.uint8).reshape(-1, 8)
    fields = fields_of_codes()[squares]
    fields[numpy.arange(8) >= needed[:, None]] = 0
    return fields.sum(axis=1)


def _place_squares(
    squares: numpy.ndarray, turns: numpy.ndarray, kings: numpy.ndarray
) -> numpy.ndarray:
    """Puts ``_Codes.squares`` in our order, seen from the side to move, and the kings among them.

    ``kings`` has the file's numbers of Black's and White's squares, (2, n). Returns (n, 81) uint8.
    """
    order = file_squares()[turns]
    low, high = kings.min(axis=0), kings.max(axis=0)
    low, high = low.astype(numpy.uint8), high.astype(numpy.uint8)
    column = order - (order > low[:, None]) - (order > high[:, None])
    row = numpy.arange(len(squares), dtype=numpy.intp) * _WIDTH
    # Columns of a board with both kings on one square can be wrong; nobody looks at it.
    board = squares.reshape(-1).take(column + row[:, None], mode="clip")
    for side, code in enumerate((_KING, _KING + PIECE_NUM)):
        king = kings[turns ^ side, numpy.arange(len(turns))]
        board[order == king.astype(numpy.uint8)[:, None]] = code
    return board


def _counts(fields: numpy.ndarray) -> numpy.ndarray:
    """Unpacks what :func:`fields` packs: (n, 7) uint8."""
    return fields.astype("<u8").view(numpy.uint8).reshape(-1, 8)[:, :HAND_NUM]


@functools.lru_cache(maxsize=1)
def file_squares() -> numpy.ndarray:
    """Returns the file's number of each of our squares: (2, 81) uint8, by the side to move."""
    squares = numpy.arange(SQUARE_NUM, dtype=numpy.uint8).reshape(9, 9)
    black = squares[::-1].T.reshape(-1)
    return numpy.stack([black, black[::-1]])


def _has_stuck(ranks: numpy.ndarray) -> numpy.ndarray:
    """Says whether a pawn, lance or knight of either side could never move again.

    ``ranks`` has codes by rank, file and board, (9, 9, n) uint8.
    """
    first, last = ranks[:2], ranks[:-3:-1]
    stuck = numpy.zeros(ranks.shape[2], bool)
    for edge, own in ((first, 0), (last, PIECE_NUM)):
        stuck |= (edge == _KNIGHT + own).any(axis=(0, 1))
        stuck |= (edge[0] == _PAWN + own).any(axis=0)
        stuck |= (edge[0] == _LANCE + own).any(axis=0)
    return stuck


def _has_two_pawns(ranks: numpy.ndarray) -> numpy.ndarray:
    """Says whether a side has two unpromoted pawns on a file; ``ranks`` as above."""
    found = numpy.zeros(ranks.shape[1:], bool)
    for pawn in (_PAWN, _PAWN + PIECE_NUM):
        seen = numpy.zeros_like(found)
        for rank in ranks == pawn:
            found |= seen & rank
            seen |= rank
    return numpy.logical_or.reduce(found)


# --- packing ------------------------------------------------------------------------


def pack(
    placements: numpy.ndarray, turns: numpy.ndarray, code: Code, chunk: int = 4096
) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Packs boards (n, PLACEMENT_SIZE) uint8, as in ``POSITION``, seen from the side to move.

    Returns:
        (n, 32) uint8, and the number of each board's fault in :data:`FAULTS`, (n,) uint8. A
        board with a fault is packed to zeros.
    """
    packed = numpy.zeros((len(placements), PACKED_SIZE), numpy.uint8)
    faults = numpy.zeros(len(placements), numpy.uint8)
    for start in range(0, len(placements), chunk):
        part = slice(start, start + chunk)
        unused, faults[part] = _examine(placements[part])
        good = numpy.flatnonzero(faults[part] == _GOOD)
        if len(good):
            packed[start + good] = _pack(
                placements[part][good], turns[part][good].astype(numpy.intp), unused[good], code
            )
    return packed, faults


def _examine(placements: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Counts the pieces of a set that are missing, (n, 7), and finds faults, (n,)."""
    board, hands = placements[:, :SQUARE_NUM], placements[:, SQUARE_NUM:].astype(numpy.intp)
    pieces = _counts(fields_of_codes()[board].sum(axis=1)) + hands[:, :HAND_NUM]
    unused = numpy.array(SET) - pieces - hands[:, HAND_NUM:]
    ranks = numpy.ascontiguousarray(board.T).reshape(9, 9, -1)
    kings = numpy.stack([(ranks == king).sum(axis=(0, 1)) for king in (_KING, _KING + PIECE_NUM)])
    # Later lines overrule earlier ones.
    faults = numpy.where(_has_two_pawns(ranks), _TWO_PAWNS, _GOOD)
    faults[_has_stuck(ranks)] = _STUCK
    faults[(unused < 0).any(axis=1)] = _TOO_MANY
    faults[(kings > 1).any(axis=0)] = _TWO_KINGS
    faults[(kings < 1).any(axis=0)] = _KING_MISSING
    return unused, faults


def _pack(
    placements: numpy.ndarray, turns: numpy.ndarray, unused: numpy.ndarray, code: Code
) -> numpy.ndarray:
    """Packs boards without faults, at least one: (n, 32) uint8."""
    table = bit_tables(code)
    writer = _BitWriter(len(placements))
    order = our_squares()[turns]
    board = numpy.take_along_axis(placements, order, axis=1).T
    writer.write(turns, 1)
    for side in shogi.COLORS:
        king = numpy.where(turns == side, _KING, _KING + PIECE_NUM)
        writer.write((board == king).argmax(axis=0), 7)
    row = turns * (2 * PIECE_NUM + 1)
    for squares in board:
        writer.write(table.squares.take(row + squares), table.squares_length.take(row + squares))
    hands = placements[:, SQUARE_NUM:].reshape(-1, 2, HAND_NUM)
    each = numpy.arange(len(hands))
    for owner, counts in enumerate((hands[each, turns], hands[each, 1 - turns], unused)):
        for kind, count in enumerate(counts.T):
            bits, length = table.hands[owner, kind], table.hands_length[owner, kind]
            writer.write(bits.take(count), length.take(count))
    return writer.packed()


class _BitWriter:
    """Writes bits to the rows of an array, the least significant bit of a byte first."""

    # The space behind a row takes what eight bytes at its end reach.
    _STRIDE = PACKED_SIZE + 8

    def __init__(self, count: int) -> None:
        self._rows = numpy.zeros((count, self._STRIDE), numpy.uint8)
        self._eights = numpy.ndarray((self._rows.size - 7,), "<u8", self._rows, 0, (1,))
        self._first = numpy.arange(count, dtype=numpy.intp) * self._STRIDE
        self._bit = numpy.zeros(count, numpy.intp)

    def write(self, bits: numpy.ndarray, length: numpy.ndarray | int) -> None:
        """Appends the lowest ``length`` bits, up to 57, of each of (n,) integers."""
        at = self._first + (self._bit >> 3)
        self._eights[at] |= bits.astype(numpy.uint64) << (self._bit & 7).astype(numpy.uint64)
        self._bit += length

    def packed(self) -> numpy.ndarray:
        """Returns the rows, (n, 32) uint8."""
        assert (self._bit == 8 * PACKED_SIZE).all()
        return self._rows[:, :PACKED_SIZE]


@functools.lru_cache(maxsize=1)
def our_squares() -> numpy.ndarray:
    """Returns our number of each of the file's squares: (2, 81), by the side to move."""
    return numpy.argsort(file_squares(), axis=1)
