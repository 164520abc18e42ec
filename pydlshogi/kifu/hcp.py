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
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy
import shogi

from pydlshogi.common import SQUARE_NUM
from pydlshogi.positions import HAND_NUM, PIECE_NUM, PLACEMENT_SIZE

#: Number of bytes of a packed board.
PACKED_SIZE = 32

#: Number of pieces of each kind in a set, pawn … rook.
SET = (18, 4, 4, 4, 4, 2, 2)

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
# The bits before the first code: one of the side to move and two kings' squares.
_FIRST_CODE = 1 + 7 + 7
_PAWN, _LANCE, _KNIGHT, _KING = shogi.PAWN, shogi.LANCE, shogi.KNIGHT, shogi.KING
_GOLD = shogi.GOLD
# Owner of a piece that is not in the game.
_NEITHER = 2
# Rows of the sums of pieces: all, in the own hand, in the opponent's hand.
_ALL, _OWN, _OTHER = range(3)
# Columns of the squares that the automaton writes: up to 8 + 8 more than there are squares.
_WIDTH = _CODED_SQUARES + 17
# An end that no place reaches.
_NEVER = numpy.iinfo(numpy.intp).max


@dataclass(frozen=True, eq=False)
class Code:
    """The Huffman codes of a format, as texts of bits in the order of the file.

    Attributes:
        name: Name of the format.
        board: By code of a square, seen from Black (0 empty, 1..28 a piece).
        hand: By kind (0 pawn … 6 rook) and owner (``shogi.BLACK``, ``shogi.WHITE``, or 2 for
            a piece that a handicap takes out of the game).
    """

    name: str
    board: dict[int, str]
    hand: dict[tuple[int, int], str]


def _board_codes(prefixes: tuple[str, ...], colour_first: bool) -> dict[int, str]:
    """Appends colour and promotion to the codes of pawn … rook."""
    codes = {0: "0"}
    for piece, prefix in enumerate(prefixes, 1):
        promoted = shogi.PIECE_PROMOTED[piece]
        for colour in shogi.COLORS:
            own = colour * PIECE_NUM
            if not promoted:
                codes[piece + own] = f"{prefix}{colour}"
                continue
            for promotion, kind in enumerate((piece, promoted)):
                flags = (colour, promotion) if colour_first else (promotion, colour)
                codes[kind + own] = f"{prefix}{flags[0]}{flags[1]}"
    return codes


def _hand_codes(
    prefixes: tuple[str, ...], neither: tuple[str, ...]
) -> dict[tuple[int, int], str]:
    """Appends the owner to the codes of pawn … rook in hand."""
    codes = {(kind, _NEITHER): code for kind, code in enumerate(neither)}
    for kind, prefix in enumerate(prefixes):
        for colour in shogi.COLORS:
            codes[kind, colour] = f"{prefix}{colour}"
    return codes


#: The huffman-coded position of Apery and dlshogi, in HCPE and HCPE3 files.
HCP = Code(
    "huffman-coded position",
    _board_codes(("10", "1100", "1110", "1101", "11110", "111110", "111111"), True),
    _hand_codes(
        ("00", "1000", "1100", "1010", "1110", "111110", "111111"),
        ("010", "10010", "11010", "10110", "10111", "1111000", "1111010"),
    ),
)

#: The packed sfen of YaneuraOu, in PSV files.
PACKED_SFEN = Code(
    "packed sfen",
    _board_codes(("10", "1100", "1101", "1110", "11110", "111110", "111111"), False),
    _hand_codes(
        ("00", "1000", "1010", "1100", "1110", "111100", "111110"),
        ("010", "10010", "10110", "11010", "11011", "1111010", "1111110"),
    ),
)


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
    """Unpacks boards.

    Args:
        packed: (n, 32) uint8.
        code: Their format, :data:`HCP` or :data:`PACKED_SFEN`.
        chunk: Boards that are unpacked together. The default fits in the CPU's caches.
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
    hands[:, :HAND_NUM] = _counts(codes.sums[_OWN])
    hands[:, HAND_NUM:] = _counts(codes.sums[_OTHER])
    out.turns[:] = turns
    # Comparing is fastest where the boards lie side by side.
    ranks = numpy.ascontiguousarray(board.T).reshape(9, 9, -1)
    # Later lines overrule earlier ones.
    out.faults[:] = numpy.where(_has_two_pawns(ranks), _TWO_PAWNS, _GOOD)
    out.faults[_has_stuck(ranks)] = _STUCK
    out.faults[codes.sums[_ALL] != _fields(SET)] = _TOO_MANY
    out.faults[~codes.complete] = _NO_CODE
    out.faults[kings[0] == kings[1]] = _SAME_SQUARE
    out.faults[(kings >= SQUARE_NUM).any(axis=0)] = _KING_MISSING


class _Codes(NamedTuple):
    """What the automaton read.

    Attributes:
        squares: The squares without the kings', seen from the side to move but in the order
            of the file, (n, _WIDTH) uint8. Columns after the first 79 have no meaning.
        sums: Numbers of pieces without kings: all, in the own hand, in the opponent's hand;
            (3, n) uint64 as :func:`_fields` makes them.
        complete: Whether the bits are codes of 79 squares and of pieces in hand, and no bit
            is left; (n,) bool.
    """

    squares: numpy.ndarray
    sums: numpy.ndarray
    complete: numpy.ndarray


def _read_codes(packed: numpy.ndarray, turns: numpy.ndarray, code: Code) -> _Codes:
    """Reads the codes of squares and hands, one byte of every board at a time."""
    table = _automaton(code)
    count = len(packed)
    squares = numpy.zeros((count, _WIDTH), numpy.uint8)
    # This view writes eight squares at once, beginning at any byte.
    eights = numpy.ndarray((count * _WIDTH - 7,), "<u8", squares, 0, (1,))
    place = numpy.arange(count) * _WIDTH
    end = place + _CODED_SQUARES
    state = table.first.take(turns)
    sums = numpy.zeros((len(table.sums), count), numpy.uint64)
    for byte in packed[:, _FIRST_CODE // 8 :].T.astype(numpy.intp):
        at = state + byte
        eights[place] = table.squares.take(at)
        place += table.number.take(at)
        done = numpy.flatnonzero(place >= end)
        if len(done):
            # The last square's code ends in this byte. Its other bits belong to the hands.
            last = at[done]
            needed = end[done] - place[done] + table.number[last]
            sums[_ALL, done] += _sum_of_squares(table.squares[last], needed)
            at[done] = table.hands[turns[done], table.ends[last, needed - 1]] + byte[done]
            end[done] = _NEVER
        for total, addends in zip(sums, table.sums):
            total += addends.take(at)
        state = table.next.take(at)
    complete = (end == _NEVER) & (state == table.hands[turns, 0])
    return _Codes(squares, sums, complete)


def _sum_of_squares(eights: numpy.ndarray, needed: numpy.ndarray) -> numpy.ndarray:
    """Counts the pieces on the first squares of eight: (n,) uint64 as ``_fields`` does."""
    squares = eights.astype("<u8").view(numpy.uint8).reshape(-1, 8)
    fields = _fields_of_codes()[squares]
    fields[numpy.arange(8) >= needed[:, None]] = 0
    return fields.sum(axis=1)


def _place_squares(
    squares: numpy.ndarray, turns: numpy.ndarray, kings: numpy.ndarray
) -> numpy.ndarray:
    """Puts squares in our order, seen from the side to move, and the kings among them.

    Args:
        squares: As in ``_Codes``.
        turns: Side to move, (n,).
        kings: Squares of Black's and White's king in the order of the file, (2, n).

    Returns:
        (n, 81) uint8.
    """
    order = file_squares()[turns]
    low, high = kings.min(axis=0), kings.max(axis=0)
    low, high = low.astype(numpy.uint8), high.astype(numpy.uint8)
    column = order - (order > low[:, None]) - (order > high[:, None])
    row = numpy.arange(len(squares)) * _WIDTH
    board = squares.reshape(-1).take(column + row[:, None])
    for side, code in enumerate((_KING, _KING + PIECE_NUM)):
        king = kings[turns ^ side, numpy.arange(len(turns))]
        board[order == king.astype(numpy.uint8)[:, None]] = code
    return board


def _fields(counts: Iterable[int]) -> int:
    """Packs numbers of pawns … rooks into an integer, one byte each."""
    return sum(count << 8 * kind for kind, count in enumerate(counts))


def _counts(fields: numpy.ndarray) -> numpy.ndarray:
    """Unpacks what :func:`_fields` packs: (n, 7) uint8."""
    return fields.astype("<u8").view(numpy.uint8).reshape(-1, 8)[:, :HAND_NUM]


@functools.lru_cache(maxsize=1)
def _fields_of_codes() -> numpy.ndarray:
    """Returns a piece on a square as :func:`_fields` counts it, by code; kings count 0."""
    plain = {promoted: piece for piece, promoted in enumerate(shogi.PIECE_PROMOTED) if promoted}
    fields = numpy.zeros(256, numpy.uint64)
    for piece in shogi.PIECE_TYPES:
        if piece != _KING:
            kind = plain.get(piece, piece) - 1
            fields[[piece, piece + PIECE_NUM]] = 1 << 8 * kind
    return fields


@functools.lru_cache(maxsize=1)
def file_squares() -> numpy.ndarray:
    """Returns the file's number of each of our squares: (2, 81) uint8, by the side to move."""
    squares = numpy.arange(SQUARE_NUM, dtype=numpy.uint8).reshape(9, 9)
    black = squares[::-1].T.reshape(-1)
    return numpy.stack([black, black[::-1]])


def _has_stuck(ranks: numpy.ndarray) -> numpy.ndarray:
    """Says whether a pawn, lance or knight of either side could never move again.

    Args:
        ranks: Codes by rank, file and board, (9, 9, n) uint8.
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
    return found.any(axis=0)


# --- packing ------------------------------------------------------------------------


def pack(
    placements: numpy.ndarray, turns: numpy.ndarray, code: Code, chunk: int = 4096
) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Packs boards.

    Args:
        placements: Board and hands as in ``POSITION``, seen from the side to move,
            (n, PLACEMENT_SIZE) uint8.
        turns: Side to move, (n,) uint8.
        code: The format, :data:`HCP` or :data:`PACKED_SFEN`.
        chunk: Boards that are packed together.

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
        packed[start + good] = _pack(
            placements[part][good], turns[part][good].astype(numpy.intp), unused[good], code
        )
    return packed, faults


def _examine(placements: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Counts the pieces of a set that are missing, (n, 7), and finds faults, (n,)."""
    board, hands = placements[:, :SQUARE_NUM], placements[:, SQUARE_NUM:].astype(numpy.intp)
    pieces = _counts(_fields_of_codes()[board].sum(axis=1)) + hands[:, :HAND_NUM]
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
    """Packs boards without faults: (n, 32) uint8."""
    table = _bit_tables(code)
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
        size = max(self._rows.size - 7, 0)
        self._eights = numpy.ndarray((size,), "<u8", self._rows, 0, (1,)) if size else None
        self._first = numpy.arange(count) * self._STRIDE
        self._bit = numpy.zeros(count, numpy.intp)

    def write(self, bits: numpy.ndarray, length: numpy.ndarray | int) -> None:
        """Appends bits, the lowest first.

        Args:
            bits: (n,) integers.
            length: Number of bits, up to 57, of each row or of all.
        """
        if self._eights is None:
            return
        at = self._first + (self._bit >> 3)
        self._eights[at] |= bits.astype(numpy.uint64) << (self._bit & 7).astype(numpy.uint64)
        self._bit += length

    def packed(self) -> numpy.ndarray:
        """Returns the rows, (n, 32) uint8."""
        assert (self._bit == 8 * PACKED_SIZE).all()
        return self._rows[:, :PACKED_SIZE]


class _BitTables(NamedTuple):
    """Codes of a format as integers, the first bit lowest, and their numbers of bits.

    Attributes:
        squares, squares_length: By side to move and the square's code for that side, flat.
        hands, hands_length: By owner, kind and number of pieces, (3, 7, 19). The codes of
            several pieces follow one another.
    """

    squares: numpy.ndarray
    squares_length: numpy.ndarray
    hands: numpy.ndarray
    hands_length: numpy.ndarray


@functools.lru_cache(maxsize=None)
def _bit_tables(code: Code) -> _BitTables:
    """Makes the tables of a format, on first use."""
    codes = 2 * PIECE_NUM + 1
    # Kings have no code: their squares come first.
    squares = [
        code.board.get(_as_black_sees(square, turn), "")
        for turn in shogi.COLORS
        for square in range(codes)
    ]
    hands = [
        code.hand[kind, owner] * count
        for owner in (*shogi.COLORS, _NEITHER)
        for kind in range(HAND_NUM)
        for count in range(max(SET) + 1)
    ]
    shape = 3, HAND_NUM, max(SET) + 1
    # More pieces than a set has do not fit, and do not occur.
    values = [int(bits[::-1] or "0", 2) if len(bits) < 58 else 0 for bits in hands]
    return _BitTables(
        numpy.array([int(bits[::-1] or "0", 2) for bits in squares], numpy.uint64),
        numpy.array([len(bits) for bits in squares]),
        numpy.array(values, numpy.uint64).reshape(shape),
        numpy.array([len(bits) for bits in hands]).reshape(shape),
    )


def _as_black_sees(square: int, turn: int) -> int:
    """Gives the code of a square for Black, given its code for the side to move."""
    return (square + turn * PIECE_NUM - 1) % (2 * PIECE_NUM) + 1 if square else 0


@functools.lru_cache(maxsize=1)
def our_squares() -> numpy.ndarray:
    """Returns our number of each of the file's squares: (2, 81), by the side to move."""
    return numpy.argsort(file_squares(), axis=1)


# --- the automaton ------------------------------------------------------------------


class _Automaton(NamedTuple):
    """The automaton that reads a format, as tables.

    ``state + byte`` is the index of most of them. A state depends on the side to move.

    Attributes:
        first: State before the byte with the first code, by side to move.
        hands: State that reads pieces in hand after so many other bits of a byte, by side
            to move and number of bits, 0..8.
        next: The next state.
        number: Number of squares whose code ends in the byte.
        squares: Codes of these squares for the side to move, one byte each from the lowest.
        ends: Number of bits read at the end of each of these squares, (…, 8).
        sums: Pieces that end in the byte: all, in the own hand, in the opponent's hand, as
            :func:`_fields` counts them.
    """

    first: numpy.ndarray
    hands: numpy.ndarray
    next: numpy.ndarray
    number: numpy.ndarray
    squares: numpy.ndarray
    ends: numpy.ndarray
    sums: tuple[numpy.ndarray, ...]


class _Tree:
    """The code trees of a format, bit by bit.

    Attributes:
        next: Next node of each node, by bit. The root follows after a whole code.
        symbol: Number of the symbol whose code that bit ends, 0 for none.
        symbols: By number less one: a square's code seen from Black and None, or a kind and
            an owner.
    """

    BOARD, HAND, DEAD = range(3)

    def __init__(self, code: Code) -> None:
        self.next = [[self.DEAD, self.DEAD] for _ in range(3)]
        self.symbol = [[0, 0] for _ in range(3)]
        self.symbols: list[tuple[int, int | None]] = []
        for square, bits in code.board.items():
            self._add(self.BOARD, bits, (square, None))
        for piece, bits in code.hand.items():
            self._add(self.HAND, bits, piece)

    def _add(self, root: int, bits: str, symbol: tuple[int, int | None]) -> None:
        self.symbols.append(symbol)
        node = root
        for bit in map(int, bits[:-1]):
            if self.next[node][bit] == self.DEAD:
                self.next[node][bit] = self._node(self.DEAD)
            node = self.next[node][bit]
        last = int(bits[-1])
        assert self.next[node][last] == self.DEAD, "no code begins with another"
        self.next[node][last], self.symbol[node][last] = root, len(self.symbols)

    def _node(self, following: int) -> int:
        self.next.append([following, following])
        self.symbol.append([0, 0])
        return len(self.next) - 1

    def after(self, root: int, bits: int) -> list[int]:
        """Adds nodes that skip bits; returns the one that skips 0, 1, …, ``bits``."""
        nodes = [root]
        for _ in range(bits):
            nodes.append(self._node(nodes[-1]))
        return nodes


@functools.lru_cache(maxsize=None)
def _automaton(code: Code) -> _Automaton:
    """Makes the tables of a format, on first use."""
    tree = _Tree(code)
    first = tree.after(tree.BOARD, _FIRST_CODE % 8)[-1]
    hands = tree.after(tree.HAND, 8)
    sides = [_byte_tables(tree, turn) for turn in shogi.COLORS]
    nodes = len(tree.next)
    # The states of the two sides follow one another.
    starts = numpy.array([[0], [nodes]])
    number, squares, ends, *sums = (
        numpy.concatenate(parts) for parts in zip(*(side[1:] for side in sides))
    )
    return _Automaton(
        first=(starts[:, 0] + first) << 8,
        hands=(starts + hands) << 8,
        next=numpy.concatenate([(side[0] + turn * nodes) << 8 for turn, side in enumerate(sides)]),
        number=number,
        squares=squares,
        ends=ends,
        sums=tuple(sums),
    )


def _byte_tables(tree: _Tree, turn: int) -> tuple[numpy.ndarray, ...]:
    """Reads every byte from every node of the trees.

    Returns:
        The next node, and ``number``, ``squares``, ``ends`` and the three ``sums`` of
        :class:`_Automaton`.
    """
    is_square, codes, fields = _symbol_tables(tree, turn)
    following, symbols = numpy.array(tree.next), numpy.array(tree.symbol)
    node, byte = (array.reshape(-1) for array in numpy.indices((len(following), 256)))
    number = numpy.zeros_like(node)
    squares = numpy.zeros(len(node), numpy.uint64)
    ends = numpy.zeros((len(node), 8), numpy.uint8)
    sums = [numpy.zeros(len(node), numpy.uint64) for _ in fields]
    for bit in range(8):
        value = byte >> bit & 1
        symbol = symbols[node, value]
        node = following[node, value]
        squares |= codes[symbol] << (8 * number).astype(numpy.uint64)
        for total, field in zip(sums, fields):
            total += field[symbol]
        square = numpy.flatnonzero(is_square[symbol])
        ends[square, number[square]] = bit + 1
        number[square] += 1
    return node, number, squares, ends, *sums


def _symbol_tables(tree: _Tree, turn: int) -> tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]:
    """Describes the symbols of a format for a side to move, by number.

    Returns:
        Whether it is a square; its code for that side, 0 for a piece in hand, uint64; and
        what it adds to the three sums, (3, symbols) uint64.
    """
    count = len(tree.symbols) + 1
    is_square = numpy.zeros(count, bool)
    codes = numpy.zeros(count, numpy.uint64)
    fields = numpy.zeros((3, count), numpy.uint64)
    for number, (what, owner) in enumerate(tree.symbols, 1):
        if owner is None:
            is_square[number] = True
            codes[number] = _as_black_sees(what, turn)  # which is its own inverse
            fields[_ALL, number] = _fields_of_codes()[what]
            continue
        fields[_ALL, number] = 1 << 8 * what
        if owner != _NEITHER:
            fields[_OWN if owner == turn else _OTHER, number] = 1 << 8 * what
    return is_square, codes, fields
