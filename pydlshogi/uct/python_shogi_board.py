"""The board of python-shogi, which runs everywhere.

Legal moves and checks are found without trying each move on the board. Pins tell whether a piece
may move. The squares from which a piece attacks the king tell whether it gives check.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence

import numpy
import shogi

from pydlshogi import rules
from pydlshogi.uct.board import Mate
from pydlshogi.uct.dfpn import search_mate
from pydlshogi.uct.move import from_usi, to_usi

#: Nodes of cshogi's mate search for one of ours on this board.
_NODES = 250


class PythonShogiBoard:
    """A :class:`pydlshogi.uct.board.SearchBoard` on top of python-shogi.

    Args:
        sfen: The start position; None for that of a game.
        moves: Legal moves from there, in USI's notation.
    """

    def __init__(self, sfen: str | None = None, moves: Sequence[str] = ()) -> None:
        self._board = shogi.Board(sfen)
        rules.untie(self._board)
        self._legal: list[shogi.Move] | None = None
        self._pieces = _hash_of_pieces(self._board)
        self._hashes = self._board.transpositions = _Hashes(self._board.zobrist_hash())
        self.in_check = self._board.is_check
        self.sfen = self._board.sfen
        for move in moves:
            self._board.push(shogi.Move.from_usi(move))

    @property
    def turn(self) -> int:
        """The side to move."""
        return self._board.turn

    def push(self, move: int) -> None:
        """Plays a legal move."""
        self._board.push(_shogi_move(move))
        self._legal = None

    def pop(self) -> None:
        """Takes back the last move."""
        self._board.pop()
        self._legal = None

    def key(self) -> int:
        """Hash of the position, the side to move and the hands."""
        return self._hashes.last() ^ self._pieces

    def moves(self) -> numpy.ndarray:
        """Lists the legal moves."""
        return numpy.array(_numbers(self._legal_moves()), numpy.uint16)

    def checks(self) -> list[int]:
        """Lists the legal moves that give check."""
        return _numbers(checks(self._board, self._legal_moves()))

    def can_declare(self) -> bool:
        """Says whether the side to move wins by the 27-point declaration."""
        return rules.can_declare_win(self._board)

    def mate(self, plies: int) -> Mate | None:
        """Finds a mate in one; a search for longer ones would take too long."""
        if plies < 1:
            return None
        for move in checks(self._board, self._legal_moves()):
            self._board.push(move)
            is_found = is_mate(self._board)
            self._board.pop()
            if is_found:
                return Mate(from_usi(move.usi()), 1)
        return None

    def search_mate(self, nodes: int, plies: int) -> tuple[list[int], bool]:
        """Searches a mate by our df-pn, in a small part of the nodes: one takes about 3 ms."""
        return search_mate(self, nodes // _NODES, plies)

    def start_mate_process(self, memory: int) -> None:
        """Starts nothing."""

    def _legal_moves(self) -> list[shogi.Move]:
        """The legal moves, kept until the position changes."""
        if self._legal is None:
            self._legal = legal_moves(self._board)
        return self._legal


class _Hashes:
    """Keeps python-shogi's hashes of the positions from the start to the present one.

    It takes the place of python-shogi's counter of positions. That one would keep an entry for
    every position that was ever on the board.

    Args:
        first: Hash of the start position.
    """

    def __init__(self, first: int) -> None:
        self._hashes = [first]

    def last(self) -> int:
        """Returns the hash of the present position."""
        return self._hashes[-1]

    def update(self, hashes: Iterable[int]) -> None:
        """Adds the hash of a position; the board calls it after a move."""
        self._hashes += hashes

    def subtract(self, hashes: Iterable[int]) -> None:
        """Removes the last hash; the board calls it before it takes back a move."""
        self._hashes.pop()


def _hash_of_pieces(board: shogi.Board) -> int:
    """Hash of the pieces in the game. python-shogi's own hash ignores White's hand."""
    rows = board.sfen().split()[0].upper()
    kinds = ((shogi.PIECE_SYMBOLS[kind].upper(), kind) for kind in range(shogi.PAWN, shogi.KING))
    hands = board.pieces_in_hand
    return hash(tuple(rows.count(name) + sum(hand[kind] for hand in hands) for name, kind in kinds))


@functools.cache
def _shogi_move(move: int) -> shogi.Move:
    return shogi.Move.from_usi(to_usi(move))


def _numbers(moves: list[shogi.Move]) -> list[int]:
    """Numbers moves."""
    return [
        _number(move.from_square, move.to_square, move.promotion, move.drop_piece_type)
        for move in moves
    ]


@functools.cache
def _number(origin: int | None, to: int, promotion: bool, drop: int | None) -> int:
    return from_usi(shogi.Move(origin, to, promotion, drop).usi())


def legal_moves(board: shogi.Board) -> list[shogi.Move]:
    """Lists the legal moves, like :func:`pydlshogi.rules.legal_moves`."""
    if board.is_check():
        return rules.legal_moves(board)
    us = board.turn
    king = board.king_squares[us]
    pins = {} if king is None else _lines_with_one_piece(board, king, attacker=us ^ 1, piece=us)
    return [
        move for move in board.generate_pseudo_legal_moves() if _is_legal(board, move, king, pins)
    ]


def checks(board: shogi.Board, moves: list[shogi.Move]) -> list[shogi.Move]:
    """Picks the moves that give check.

    Args:
        board: The position.
        moves: Legal moves of it.
    """
    us = board.turn
    king = board.king_squares[us ^ 1]
    if king is None:
        return []
    # From these squares a piece of each kind attacks the king.
    near = [
        shogi.Board.attacks_from(kind, king, board.occupied, us ^ 1)
        for kind in (shogi.NONE, *shogi.PIECE_TYPES)
    ]
    behind = _lines_with_one_piece(board, king, attacker=us, piece=us)
    return [
        move
        for move in moves
        if near[_kind_after(board, move)] >> move.to_square & 1
        or (move.from_square in behind and not behind[move.from_square] >> move.to_square & 1)
    ]


def is_mate(board: shogi.Board) -> bool:
    """Says whether the side to move, which is in check, has no legal move.

    The king can leave most checks, so its moves are tried first.
    """
    return not _king_can_move(board) and not rules.has_legal_move(board)


def _king_can_move(board: shogi.Board) -> bool:
    """Says whether the king of the side to move has a legal move."""
    us = board.turn
    king = board.king_squares[us]
    targets = shogi.Board.attacks_from(shogi.KING, king, board.occupied, us) & ~board.occupied[us]
    return any(rules.is_possible(board, shogi.Move(king, to)) for to in _squares(targets))


def _is_legal(board: shogi.Board, move: shogi.Move, king: int | None, pins: dict[int, int]) -> bool:
    """Judges a pseudo-legal move of a side that is not in check."""
    if move.drop_piece_type:
        return not rules.drops_pawn_with_check(board, move) or rules.is_legal(board, move)
    if move.from_square == king:
        return not board.is_attacked_by(board.turn ^ 1, move.to_square)
    return move.from_square not in pins or bool(pins[move.from_square] >> move.to_square & 1)


def _kind_after(board: shogi.Board, move: shogi.Move) -> int:
    """The kind of the moved piece after the move."""
    if move.drop_piece_type:
        return move.drop_piece_type
    kind = board.pieces[move.from_square]
    return shogi.PIECE_PROMOTED[kind] if move.promotion else kind


def _lines_with_one_piece(
    board: shogi.Board, king: int, attacker: int, piece: int
) -> dict[int, int]:
    """Finds lines from a far-reaching piece of a color to a king with one ``piece`` between them.

    Returns:
        For the square of each such piece the bitboard of the line, its far end included.
    """
    occupied = board.occupied.bits
    lines = {}
    for square in _far_reaching(board, king, attacker):
        line = _between(king, square)
        blockers = line & occupied
        if blockers and not blockers & (blockers - 1) and blockers & board.occupied[piece]:
            lines[blockers.bit_length() - 1] = line | 1 << square
    return lines


def _far_reaching(board: shogi.Board, king: int, attacker: int) -> Iterator[int]:
    """Lists the squares of the pieces that would attack a king on an empty board."""
    ours = board.occupied[attacker]
    straight, diagonal, file = rules.lines_through(king)
    rooks = (board.piece_bb[shogi.ROOK] | board.piece_bb[shogi.PROM_ROOK]) & straight
    bishops = (board.piece_bb[shogi.BISHOP] | board.piece_bb[shogi.PROM_BISHOP]) & diagonal
    # Black's lances attack upwards, towards smaller squares.
    below = -1 << king if attacker == shogi.BLACK else (1 << king) - 1
    lances = board.piece_bb[shogi.LANCE] & file & below
    return _squares((rooks | bishops | lances) & ours)


def _squares(bitboard: int) -> Iterator[int]:
    """Yields the squares of a bitboard."""
    while bitboard:
        lowest = bitboard & -bitboard
        yield lowest.bit_length() - 1
        bitboard ^= lowest


@functools.cache
def _between(one: int, other: int) -> int:
    """Bitboard of the squares between two that are in line."""
    y, x = divmod(one, 9)
    dy, dx = other // 9 - y, other % 9 - x
    steps = max(abs(dx), abs(dy))
    step = 9 * (dy // steps) + dx // steps
    return sum(1 << one + n * step for n in range(1, steps))
