"""The Huffman codes of packed boards, and the tables that read and write them.

:mod:`pydlshogi.kifu.hcp` describes the formats.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy
import shogi

from pydlshogi.positions import HAND_NUM, PIECE_NUM

#: Number of pieces of each kind in a set, pawn … rook.
SET = (18, 4, 4, 4, 4, 2, 2)
#: Bits before the first code: the side to move and the kings' squares.
FIRST_CODE = 1 + 7 + 7
#: Rows of sums of pieces: all, in the own hand, in the opponent's hand.
ALL, OWN, OTHER = range(3)

# Owner of a piece that is not in the game.
_NEITHER = 2


@dataclass(frozen=True, eq=False)
class Code:
    """The Huffman codes of a format, as texts of bits in the order of the file.

    Attributes:
        name: Name of the format.
        board: By code of a square, seen from Black (0 empty, 1..28 a piece).
        hand: By kind (0 pawn … 6 rook) and owner (``shogi.BLACK``, ``shogi.WHITE``, or 2).
            Owner 2 stands for a piece that a handicap takes out of the game.
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


def _hand_codes(prefixes: tuple[str, ...], neither: tuple[str, ...]) -> dict[tuple[int, int], str]:
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


def fields(counts: Iterable[int]) -> int:
    """Packs numbers of pawns … rooks into an integer, one byte each."""
    return sum(count << 8 * kind for kind, count in enumerate(counts))


@functools.lru_cache(maxsize=1)
def fields_of_codes() -> numpy.ndarray:
    """Returns a piece on a square as :func:`fields` counts it, by code; kings count 0."""
    plain = {promoted: piece for piece, promoted in enumerate(shogi.PIECE_PROMOTED) if promoted}
    fields = numpy.zeros(256, numpy.uint64)
    for piece in shogi.PIECE_TYPES:
        if piece != shogi.KING:
            kind = plain.get(piece, piece) - 1
            fields[[piece, piece + PIECE_NUM]] = 1 << 8 * kind
    return fields


def _as_black_sees(square: int, turn: int) -> int:
    """Gives the code of a square for Black, given its code for the side to move."""
    return (square + turn * PIECE_NUM - 1) % (2 * PIECE_NUM) + 1 if square else 0


class Automaton(NamedTuple):
    """The automaton that reads a format, as tables.

    ``state + byte`` is the index of most of them. A state depends on the side to move.

    Attributes:
        first: State before the byte with the first code, by side to move.
        hands: State that reads pieces in hand, by side to move and by the number of bits of
            the byte before them, 0..8.
        next: The next state.
        number: Number of squares whose code ends in the byte.
        squares: Codes of these squares for the side to move, one byte each from the lowest.
        ends: Number of bits read at the end of each of these squares, (…, 8).
        sums: Pieces that end in the byte: all, in the own hand, in the opponent's hand, as
            :func:`fields` counts them.
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


@functools.cache
def automaton(code: Code) -> Automaton:
    """Makes the tables of a format, on first use."""
    tree = _Tree(code)
    first = tree.after(tree.BOARD, FIRST_CODE % 8)[-1]
    hands = tree.after(tree.HAND, 8)
    sides = [_byte_tables(tree, turn) for turn in shogi.COLORS]
    nodes = len(tree.next)
    # The states of the two sides follow one another.
    starts = numpy.array([[0], [nodes]])
    number, squares, ends, *sums = (
        numpy.concatenate(parts) for parts in zip(*(side[1:] for side in sides))
    )
    return Automaton(
        first=(starts[:, 0] + first) * 256,
        hands=(starts + numpy.array(hands)) * 256,
        next=numpy.concatenate([side[0] + turn * nodes for turn, side in enumerate(sides)]) * 256,
        number=number,
        squares=squares,
        ends=ends,
        sums=tuple(sums),
    )


def _byte_tables(tree: _Tree, turn: int) -> tuple[numpy.ndarray, ...]:
    """Reads every byte from every node of the trees.

    Returns:
        The next node, and ``number``, ``squares``, ``ends`` and the three ``sums`` of
        :class:`Automaton`.
    """
    is_square, codes, addends = _symbol_tables(tree, turn)
    following, symbols = numpy.array(tree.next, int), numpy.array(tree.symbol, int)
    node, byte = (array.reshape(-1) for array in numpy.indices((len(following), 256)))
    number = numpy.zeros_like(node)
    squares = numpy.zeros(len(node), numpy.uint64)
    ends = numpy.zeros((len(node), 8), numpy.uint8)
    sums = [numpy.zeros(len(node), numpy.uint64) for _ in addends]
    for bit in range(8):
        value = byte >> bit & 1
        symbol = symbols[node, value]
        node = following[node, value]
        squares |= codes[symbol] << (8 * number).astype(numpy.uint64)
        for total, field in zip(sums, addends):
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
    addends = numpy.zeros((3, count), numpy.uint64)
    for number, (what, owner) in enumerate(tree.symbols, 1):
        if owner is None:
            is_square[number] = True
            codes[number] = _as_black_sees(what, turn)  # which is its own inverse
            addends[ALL, number] = fields_of_codes()[what]
            continue
        addends[ALL, number] = 1 << 8 * what
        if owner != _NEITHER:
            addends[OWN if owner == turn else OTHER, number] = 1 << 8 * what
    return is_square, codes, addends


class BitTables(NamedTuple):
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


@functools.cache
def bit_tables(code: Code) -> BitTables:
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
    return BitTables(
        numpy.array([int(bits[::-1] or "0", 2) for bits in squares], numpy.uint64),
        numpy.array([len(bits) for bits in squares]),
        numpy.array(values, numpy.uint64).reshape(shape),
        numpy.array([len(bits) for bits in hands]).reshape(shape),
    )
