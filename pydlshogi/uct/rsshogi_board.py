"""The board of rsshogi, which has wheels where cshogi has none."""

from __future__ import annotations

import array
import functools
import itertools
from collections.abc import Sequence

import numpy
import shogi
from rsshogi.core import Board, Move
from rsshogi.types import Color, Piece, PieceType

from pydlshogi import rules
from pydlshogi.common import SQUARE_NUM
from pydlshogi.uct.board import Mate
from pydlshogi.uct.dfpn import search_mate
from pydlshogi.uct.move import MOVE_NUM, from_usi, network_square, to_usi

#: rsshogi's moves have the square moved to in bits 0–6, that moved from or the kind of a drop in
#: bits 7–13, then bits for a drop and a promotion. Moves of 32 bits have the moved piece, as it
#: is after the move, above these 16.
_SQUARE_BITS, _SQUARE_MASK = 7, 127
_DROP, _PROMOTION = 1 << 14, 1 << 15
_PIECE_BITS, _PIECE_NUM = 16, 32
_MOVE_MASK = (1 << _PIECE_BITS) - 1
_PIECE_MASK = _PIECE_NUM - 1 << _SQUARE_BITS
_ORIGIN_MASK = 2 * _SQUARE_MASK + 1  # with the bit for a drop

_COLORS = (Color.BLACK, Color.WHITE)
_FAR_RANKS = (range(3), range(6, 9))

#: rsshogi's kinds of pieces in the order of python-shogi.
_KINDS = (
    *("PAWN", "LANCE", "KNIGHT", "SILVER", "GOLD", "BISHOP", "ROOK", "KING"),
    *("PRO_PAWN", "PRO_LANCE", "PRO_KNIGHT", "PRO_SILVER", "HORSE", "DRAGON"),
)

#: Replies that a search for mates of three plies and more tries at most. To list the checks of a
#: position takes as long as some tries.
_MOST_TRIES, _TRIES_OF_CHECKS = 32, 8

#: Nodes of cshogi's mate search that take as long as one of ours on this board.
_NODES = 25

#: A piece attacks a square always if it is near. If it is far, it depends on the other pieces.
_NEVER, _PERHAPS, _ALWAYS = range(3)

_NOWHERE = bytes(_ORIGIN_MASK + 1)


def _our_moves() -> numpy.ndarray:
    """Returns our move for each of rsshogi's, (65536,) uint16."""
    theirs = numpy.arange(1 << _PIECE_BITS)
    ours = theirs & _DROP - 1
    ours += numpy.where(theirs & _DROP, SQUARE_NUM - 1 << _SQUARE_BITS, 0)
    ours += numpy.where(theirs & _PROMOTION, MOVE_NUM >> 1, 0)
    return ours.astype(numpy.uint16)


_OURS = _our_moves()
_OUR_NUMBERS = _OURS.tolist()


class RsshogiBoard:
    """A :class:`pydlshogi.uct.board.SearchBoard` on top of rsshogi.

    Args:
        sfen: The start position; None for that of a game.
        moves: Legal moves from there, in USI's notation.
    """

    def __init__(self, sfen: str | None = None, moves: Sequence[str] = ()) -> None:
        board = Board(sfen)
        self._board = board
        self._missing = rules.missing_points(sfen)
        self._legal: list[int] = []
        self._legal_key: int | None = None
        self._tries = 0
        self.pop = board.pop
        self.key = board.zobrist_hash
        self.sfen = board.to_sfen
        self.in_check = board.is_in_check
        for move in moves:
            self.push(from_usi(move))

    @property
    def turn(self) -> int:
        """The side to move."""
        return int(self._board.turn)

    def push(self, move: int) -> None:
        """Plays a legal move."""
        self._board.push_move(_rsshogi_move(move))

    def moves(self) -> numpy.ndarray:
        """Lists the legal moves."""
        # numpy takes the numbers from an array faster than from a list.
        return _OURS[numpy.frombuffer(array.array("I", self._legal_moves()), numpy.uint16)[::2]]

    def checks(self) -> list[int]:
        """Lists the legal moves that give check."""
        board, us = self._board, self.turn
        king = int(board.king_square(_COLORS[us ^ 1]))
        if king >= SQUARE_NUM:
            return []
        attacks, in_line, line = _attacks_on(king)
        sliders = int(board.bishop_horse()) | int(board.rook_dragon())
        sliders |= int(board.pieces_by_type(PieceType.LANCE))
        if not sliders & line & int(board.pieces_by_color(_COLORS[us])):
            in_line = _NOWHERE  # no piece can uncover an attack
        # Names of the module would take twice as long in the loop.
        shift, pieces, squares = _PIECE_BITS - _SQUARE_BITS, _PIECE_MASK, _SQUARE_MASK
        origin_shift, origins = _SQUARE_BITS, _ORIGIN_MASK
        possible = [
            (_OUR_NUMBERS[move & _MOVE_MASK], attack)
            for move in self._legal_moves()
            if (attack := attacks[move >> shift & pieces | move & squares])
            or in_line[move >> origin_shift & origins]
        ]
        return [move for move, attack in possible if attack == _ALWAYS or self._gives_check(move)]

    def can_declare(self) -> bool:
        """Says whether the side to move wins by the 27-point declaration.

        rsshogi has no such rule. It is asked of python-shogi's board where the king is far enough.
        """
        us = self.turn
        king = int(self._board.king_square(_COLORS[us]))
        if king >= SQUARE_NUM or king % 9 not in _FAR_RANKS[us]:
            return False
        board = shogi.Board(self.sfen())
        rules.untie(board)
        return rules.can_declare_win(board, self._missing)

    def mate(self, plies: int) -> Mate | None:
        """Finds the shortest mate in at most ``plies`` plies, unless there are too many moves."""
        self._tries = _MOST_TRIES
        return self._mate(plies) if plies > 0 else None

    def search_mate(self, nodes: int, plies: int) -> tuple[list[int], bool]:
        """Searches a mate by our df-pn, as long as cshogi's would take for so many nodes."""
        return search_mate(self, nodes // _NODES, plies)

    def start_mate_process(self, memory: int) -> None:
        """Starts nothing: our df-pn needs no process of its own."""

    def _legal_moves(self) -> list[int]:
        """Lists the legal moves as rsshogi's of 32 bits, kept until another position is asked."""
        key = self.key()
        if key != self._legal_key:
            self._legal = list(map(int, self._board.legal_moves_move32()))
            self._legal_key = key
        return self._legal

    def _gives_check(self, move: int) -> bool:
        self.push(move)
        result = self.in_check()
        self.pop()
        return result

    def _mate(self, plies: int) -> Mate | None:
        """Finds the shortest mate with the tries that are left."""
        move = self._board.solve_mate_in_one()
        if move is not None:
            return Mate(from_usi(move.to_usi()), 1)
        if plies < 3 or self._tries < 0:
            return None
        self._tries -= _TRIES_OF_CHECKS
        checks = self.checks()
        for length in range(3, plies + 1, 2):
            for check in checks:
                if self._is_forced(check, length):
                    return Mate(check, length)
        return None

    def _is_forced(self, check: int, plies: int) -> bool:
        """Says whether a check leads to mate after every reply, as far as the tries reach."""
        board = self._board
        board.push_move(_rsshogi_move(check))
        is_forced = True
        for reply in board.legal_moves():
            self._tries -= 1
            board.push_move(reply)
            is_forced = self._tries >= 0 and self._mate(plies - 2) is not None
            board.pop()
            if not is_forced:
                break
        board.pop()
        return is_forced


@functools.cache
def _rsshogi_move(move: int) -> Move:
    """Converts a move to rsshogi's."""
    return Move.from_usi(to_usi(move))


@functools.cache
def _attacks_on(king: int) -> tuple[bytes, bytes, int]:
    """Tells from where a king can be attacked.

    Returns:
        - 32 · 128 bytes: whether a piece on a square attacks the king.
        - 256 bytes: not 0 for the squares in line with the king, 0 for drops.
        - The bitboard of the squares in line with the king.
    """
    attacks = _attacks()[:, :, king]
    lines = attacks[int(PieceType.ROOK)] | attacks[int(PieceType.BISHOP)]
    in_line = lines.tobytes().ljust(len(_NOWHERE), b"\0")
    line = sum(1 << int(square) for square in lines.nonzero()[0])
    return attacks.tobytes(), in_line, line


@functools.cache
def _attacks() -> numpy.ndarray:
    """Tells whether a piece attacks a square from another, (32, 128, 81) uint8."""
    attacks = numpy.zeros((_PIECE_NUM, _SQUARE_MASK + 1, SQUARE_NUM), numpy.uint8)
    squares = [network_square(square, shogi.BLACK) for square in range(SQUARE_NUM)]
    rows = ("9", "P" * 9)  # pieces see far on an empty board, and one square on a full one
    boards = [shogi.Board("/".join([row] * 9) + " b - 1").occupied for row in rows]
    for kind, name in enumerate(_KINDS, shogi.PAWN):
        for color in shogi.COLORS:
            piece = int(Piece.from_color_type(_COLORS[color], getattr(PieceType, name)))
            for origin, occupied in itertools.product(range(SQUARE_NUM), boards):
                bits = int(shogi.Board.attacks_from(kind, squares[origin], occupied, color))
                seen = numpy.frombuffer(bits.to_bytes(11, "little"), numpy.uint8)
                attacks[piece, origin] += numpy.unpackbits(seen, bitorder="little")[squares]
    return attacks
