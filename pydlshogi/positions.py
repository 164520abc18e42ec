"""The packed position, and the cache file that keeps many of them.

A position is seen from the side to move (:mod:`pydlshogi.common`) and takes 100 bytes:

==========  =====  ==============================================================
``board``      81  a byte a square: 0 empty, 1..14 a piece of the side to move in
                   python-shogi's order (pawn … dragon), 15..28 the opponent's
                   (14 more)
``hands``      14  how many are in hand: own pawn, lance, knight, silver, gold,
                   bishop, rook, then the opponent's
``result``      1  how the game ended for the side to move: ``LOSS``, ``WIN``,
                   ``DRAW`` or ``UNKNOWN``
``label``       2  the move played, 0..2186 (:mod:`pydlshogi.features`)
``ply``         2  the number of the move in its game, from 1
==========  =====  ==============================================================

The cache, ``NAME.pickle`` beside ``NAME.txt``: one pickled tuple of plain objects
(magic, version, fingerprint, number of positions, their CRC-32, report), then the bytes
of the positions. Only files that begin with our magic are ours; no other is ever unpickled
or overwritten, and the unpickler admits no class at all. Numbers are little-endian
and no numpy object is pickled, so every numpy reads what another wrote.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy
import shogi

from pydlshogi.common import SQUARE_NUM
from pydlshogi.files import write_beside

#: Kinds of piece on the board, and kinds that can be in hand.
PIECE_NUM = len(shogi.PIECE_TYPES)
HAND_NUM = 7

POSITION = numpy.dtype(
    [
        ("board", "u1", (SQUARE_NUM,)),
        ("hands", "u1", (2 * HAND_NUM,)),
        ("result", "u1"),
        ("label", "<u2"),
        ("ply", "<u2"),
    ]
)
assert POSITION.itemsize == 100

#: Games with more moves than ``ply`` can number are refused.
PLY_MAX = int(numpy.iinfo(POSITION["ply"]).max)

#: Results for one side: in ``POSITION`` for the side to move, in a game for Black.
LOSS, WIN, DRAW, UNKNOWN = range(4)

#: Length of a placement: the bytes of a position that say where the pieces are.
PLACEMENT_SIZE = SQUARE_NUM + 2 * HAND_NUM

# Code of the same piece when the other side looks at it.
_OTHER_SIDE = bytes(
    [0, *range(PIECE_NUM + 1, 2 * PIECE_NUM + 1), *range(1, PIECE_NUM + 1)]
) + bytes(range(2 * PIECE_NUM + 1, 256))


def raw_bytes(positions: numpy.ndarray) -> numpy.ndarray:
    """Gives positions as bytes, which every device understands.

    Args:
        positions: ``POSITION`` array, (n,).

    Returns:
        (n, 100) uint8, a view where ``positions`` is contiguous.
    """
    positions = numpy.ascontiguousarray(positions, dtype=POSITION)
    return positions.view(numpy.uint8).reshape(len(positions), POSITION.itemsize)


def opponents_view(placement: bytes) -> bytes:
    """Turns a placement by 180 degrees and lets the colours swap places.

    Args:
        placement: ``PLACEMENT_SIZE`` bytes, board and hands as in ``POSITION``.

    Returns:
        The same pieces as the opponent sees them.
    """
    board = placement[:SQUARE_NUM][::-1].translate(_OTHER_SIDE)
    own, other = placement[SQUARE_NUM:-HAND_NUM], placement[-HAND_NUM:]
    return board + other + own


def placement_of(board: shogi.Board) -> bytes:
    """Packs the pieces of a python-shogi board, seen from its side to move.

    Args:
        board: Any position; it is not changed.

    Returns:
        ``PLACEMENT_SIZE`` bytes, board and hands as in ``POSITION``.
    """
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


def count_common(train: numpy.ndarray, test: numpy.ndarray) -> int:
    """Counts the training positions that also stand in the test set.

    Two positions are the same when board, hands and side to move are; results, moves
    played and move numbers do not matter. Positions are compared by 64-bit hashes: of
    ten million positions a false match is expected once in 200,000 runs.

    Args:
        train: ``POSITION`` array, (n,).
        test: ``POSITION`` array, (m,).

    Returns:
        How many of the n positions of ``train`` stand in ``test``.
    """
    return int(numpy.isin(_placement_hashes(train), _placement_hashes(test)).sum())


def _placement_hashes(positions: numpy.ndarray, chunk: int = 16384) -> numpy.ndarray:
    """Hashes board and hands of each position to a uint64, (n,)."""
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
        # Multiplying carries a difference to the high bits only; shifting brings it
        # back to the low ones before the words are added up.
        for factor, word in zip(factors, words.view("<u8").T):
            mixed = (word + factor) * factor
            mixed ^= mixed >> numpy.uint64(32)
            mixed *= factor
            mixed ^= mixed >> numpy.uint64(29)
            total += mixed
    return hashes


# --- the cache file -----------------------------------------------------------------

#: Changes whenever the file's layout, or the reading of records, does.
CACHE_VERSION = 6

_MAGIC = "pydlshogi positions"
# What protocol 3, which has no frames, writes first for a tuple of more than three.
_CACHE_START = b"\x80\x03(X" + len(_MAGIC).to_bytes(4, "little") + _MAGIC.encode()


class CacheError(Exception):
    """The cache cannot be used; the text says why.

    Attributes:
        ours: Whether the file is a cache of ours, which may be replaced.
    """

    def __init__(self, reason: str, *, ours: bool) -> None:
        super().__init__(reason)
        self.ours = ours


class Cached(NamedTuple):
    """What a cache file holds: a ``POSITION`` array (n,), and the report's plain form."""

    positions: numpy.ndarray
    report: dict[str, Any]


class _PlainUnpickler(pickle.Unpickler):
    """Builds numbers, strings, lists, tuples and dicts, and nothing that runs code."""

    def find_class(self, module: str, name: str) -> Any:
        raise CacheError(f"it asks for {module}.{name}", ours=False)


def cache_path(kifu_list_file: str | os.PathLike[str]) -> Path:
    """Names the cache of a list: ``./a.b.txt`` has ``./a.b.pickle``.

    Only ``.txt``, in any case, is taken away: ``games.train`` and ``games.test`` must
    not share a cache, and a list that is called ``….pickle`` itself must survive.
    """
    path = Path(kifu_list_file)
    name = path.name[: -len(".txt")] if path.name.lower().endswith(".txt") else path.name
    return path.with_name(f"{name}.pickle")


def fingerprint(parts: Iterable[bytes]) -> str:
    """Digests what a cache was made from, so that a change of it is noticed.

    Args:
        parts: Anything in bytes: the list, sizes and times of files, options.

    Returns:
        A hexadecimal digest.
    """
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


def save_cache(path: Path, mark: str, positions: numpy.ndarray, report: dict[str, Any]) -> None:
    """Writes a cache, beside and renamed.

    Args:
        path: The file to make or replace.
        mark: The fingerprint of what the positions were made from.
        positions: ``POSITION`` array, (n,).
        report: Plain objects only.

    Raises:
        OSError: the folder cannot be written.
    """
    content = raw_bytes(positions).data
    with write_beside(path) as file:
        header = (_MAGIC, CACHE_VERSION, mark, len(positions), zlib.crc32(content), report)
        pickle.dump(header, file, protocol=3)
        file.write(content)


def load_cache(path: Path, mark: str) -> Cached:
    """Reads a cache straight into memory, without a second copy.

    Args:
        path: The file.
        mark: The fingerprint that it must carry.

    Returns:
        The positions and the report.

    Raises:
        FileNotFoundError: there is no such file.
        CacheError: it is not ours, damaged, or made from something else.
    """
    try:
        with open(path, "rb") as file:
            return _read_cache(file, mark)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise CacheError(f"it cannot be read ({error.strerror})", ours=False) from error


def _read_cache(file: BinaryIO, mark: str) -> Cached:
    start = file.read(len(_CACHE_START))
    if start != _CACHE_START[: len(start)]:
        raise CacheError("it was not made by this program", ours=False)
    file.seek(0)
    try:
        magic, version, found_mark, *rest = _PlainUnpickler(file).load()
    except CacheError:
        raise
    except Exception as error:  # a damaged pickle fails in every way there is
        raise CacheError("it is damaged", ours=True) from error
    if version != CACHE_VERSION or found_mark != mark:
        raise CacheError("the list, a file of it, an option or the version changed", ours=True)
    if [type(part) for part in rest] != [int, int, dict]:
        raise CacheError("it is damaged", ours=True)
    count, checksum, report = rest
    left = os.fstat(file.fileno()).st_size - file.tell()
    if left != count * POSITION.itemsize:
        raise CacheError("it is cut short", ours=True)
    positions = numpy.empty(count, dtype=POSITION)
    if file.readinto(positions.view(numpy.uint8).data) != left:  # type: ignore[attr-defined]
        raise CacheError("it is cut short", ours=True)
    # A flipped bit would train on another position, or point past the end of a table.
    if zlib.crc32(raw_bytes(positions).data) != checksum:
        raise CacheError("it is damaged", ours=True)
    return Cached(positions, report)
