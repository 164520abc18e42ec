"""The board of python-shogi, which runs everywhere."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

import numpy
import shogi

from pydlshogi import rules
from pydlshogi.features import make_input_features_from_board
from pydlshogi.uct.board import Mate
from pydlshogi.uct.dfpn import search_mate
from pydlshogi.uct.move import from_usi, to_usi
from pydlshogi.uct.python_shogi_moves import checks, is_mate, legal_moves

#: What this board is called in messages.
LIBRARY = "python-shogi"

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

    def write_planes(self, out: numpy.ndarray) -> None:
        """Writes the network's input."""
        out[...] = make_input_features_from_board(self._board)

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
