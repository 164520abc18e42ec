"""The published way of reading kifu and making planes, in plain Python with python-shogi.

The tests and the benchmarks compare the fast code with it. It parses every record with
``shogi.CSA.Parser``, pushes every move on a ``shogi.Board``, makes a tuple of bitboards for each
position, and fills planes square by square. It corrects one published fault: a record's own
start position is used.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterable

import numpy
import shogi
import shogi.CSA

from pydlshogi.common import bb_rotate_180
from pydlshogi.features import HAND_MAX, PIECE_TYPE_NUM, PLANE_NUM, make_output_label
from pydlshogi.positions import EVALUATION_MAX, LOSS, NO_EVALUATION, POSITION, WIN

#: (piece_bb, occupied, pieces_in_hand, move_label, win), turned to the side to move.
Tuple = tuple[list[int], tuple[int, int], tuple[dict[int, int], dict[int, int]], int, int]


def read_positions(paths: Iterable[str]) -> list[Tuple]:
    """Reads CSA files to the published tuples."""
    positions = []
    for path in paths:
        record = shogi.CSA.Parser.parse_file(path)[0]
        board = shogi.Board(record["sfen"])
        winner = shogi.BLACK if record["win"] == "b" else shogi.WHITE
        for move in record["moves"]:
            if board.turn == shogi.BLACK:
                piece_bb = copy.deepcopy(board.piece_bb)
                occupied = (board.occupied[shogi.BLACK], board.occupied[shogi.WHITE])
                hands = (
                    copy.deepcopy(board.pieces_in_hand[shogi.BLACK]),
                    copy.deepcopy(board.pieces_in_hand[shogi.WHITE]),
                )
            else:
                piece_bb = [bb_rotate_180(bb) for bb in board.piece_bb]
                occupied = (
                    bb_rotate_180(board.occupied[shogi.WHITE]),
                    bb_rotate_180(board.occupied[shogi.BLACK]),
                )
                hands = (
                    copy.deepcopy(board.pieces_in_hand[shogi.WHITE]),
                    copy.deepcopy(board.pieces_in_hand[shogi.BLACK]),
                )
            label = make_output_label(shogi.Move.from_usi(move), board.turn)
            win = 1 if winner == board.turn else 0
            positions.append((piece_bb, occupied, hands, label, win))
            board.push_usi(move)
    return positions


def make_planes(position: Tuple) -> list[numpy.ndarray]:
    """Makes the 104 planes of a published tuple, each (9, 9) float64."""
    piece_bb, occupied, hands, _, _ = position
    planes = []
    for side in (0, 1):
        for piece_type in range(1, PIECE_TYPE_NUM + 1):
            bitboard = piece_bb[piece_type] & occupied[side]
            plane = numpy.zeros(81)
            for square in range(81):
                if bitboard & 1 << square:
                    plane[square] = 1
            planes.append(plane.reshape(9, 9))
        for piece_type, most in enumerate(HAND_MAX, 1):
            for number in range(most):
                held = hands[side].get(piece_type, 0)
                planes.append(numpy.ones((9, 9)) if number < held else numpy.zeros((9, 9)))
    assert len(planes) == PLANE_NUM
    return planes


def make_batch(positions: Iterable[Tuple]) -> numpy.ndarray:
    """Makes the planes of some positions, (n, 104, 9, 9) float32."""
    return numpy.array([make_planes(position) for position in positions], dtype=numpy.float32)


def pack(position: Tuple) -> numpy.ndarray:
    """Packs a published tuple as a ``POSITION`` record, its ply 0 and its evaluation unknown."""
    piece_bb, occupied, hands, label, win = position
    packed = numpy.zeros((), dtype=POSITION)
    for side in (0, 1):
        for piece_type in range(1, PIECE_TYPE_NUM + 1):
            bitboard = piece_bb[piece_type] & occupied[side]
            for square in range(81):
                if bitboard >> square & 1:
                    packed["board"][square] = piece_type + PIECE_TYPE_NUM * side
        for piece_type, count in hands[side].items():
            packed["hands"][7 * side + piece_type - 1] = count
    packed["label"] = label
    packed["evaluation"] = NO_EVALUATION
    packed["result"] = WIN if win else LOSS
    return packed


def evaluations(text: bytes) -> list[int]:
    """Reads floodgate's evaluations of an even game, one line after another.

    Returns:
        For each move the evaluation of its mover, limited to ``±EVALUATION_MAX``.
    """
    found = []
    ended = False
    for line in text.decode("latin-1").splitlines():
        words = line.replace("\t", " ").split(" ")
        if line[:1] in ("+", "-") and len(line) > 1:
            found.append(NO_EVALUATION)
        elif line.startswith("%"):
            ended = True
        elif words[0] == "'**" and found and not ended:
            word = next((word for word in words[1:] if word), "")
            if word.lstrip("+-").isdigit() and len(word) - len(word.lstrip("+-")) <= 1:
                value = max(-EVALUATION_MAX, min(EVALUATION_MAX, int(word)))
                found[-1] = value if len(found) % 2 else -value
    return found


def placement(board: shogi.Board) -> bytes:
    """Packs a board as the bytes of ``POSITION``'s board and hands, in the plainest way."""
    codes = [0] * 81
    for square in range(81):
        piece = board.piece_at(square)
        if piece is not None:
            own = piece.color == board.turn
            place = square if board.turn == shogi.BLACK else 80 - square
            codes[place] = piece.piece_type + (0 if own else PIECE_TYPE_NUM)
    hands = [
        board.pieces_in_hand[side].get(piece_type, 0)
        for side in (board.turn, 1 - board.turn)
        for piece_type in range(1, 8)
    ]
    return bytes(codes + hands)


def play(board: shogi.Board, moves: Iterable[str], black_result: int) -> numpy.ndarray:
    """Plays moves in USI and packs the position before each, ``POSITION`` (n,)."""
    rows = []
    for ply, usi in enumerate(moves, 1):
        row = numpy.zeros((), dtype=POSITION)
        packed = placement(board)
        row["board"] = list(packed[:81])
        row["hands"] = list(packed[81:])
        row["label"] = make_output_label(shogi.Move.from_usi(usi), board.turn)
        row["ply"] = ply
        row["evaluation"] = NO_EVALUATION
        squares = [move.to_square for move in list(board.move_stack)[:-3:-1]]
        turned = squares if board.turn == shogi.BLACK else [80 - square for square in squares]
        row["recent"][: len(squares)] = [square + 1 for square in turned]
        row["result"] = black_result
        if board.turn == shogi.WHITE:
            row["result"] = {WIN: LOSS, LOSS: WIN}.get(black_result, black_result)
        rows.append(row)
        board.push_usi(usi)
    return numpy.array(rows, dtype=POSITION)


def random_moves(sfen: str, most: int, seed: int) -> list[str]:
    """Plays random legal moves from a position; at most so many, in USI."""
    source = random.Random(seed)
    board = shogi.Board(sfen)
    moves: list[str] = []
    while len(moves) < most:
        candidates = list(board.pseudo_legal_moves)
        source.shuffle(candidates)
        move = next((move for move in candidates if board.is_legal(move)), None)
        if move is None:
            break
        moves.append(move.usi())
        board.push(move)
    return moves


def to_csa(sfen: str, moves: Iterable[str], mark: str = "%TORYO") -> str:
    """Writes a game as CSA with its start position in rows."""
    board = shogi.Board(sfen)
    signs = "+-"
    lines = ["V2.2", "N+A", "N-B"]
    for y in range(9):
        row = f"P{y + 1}"
        for x in range(9):
            piece = board.piece_at(9 * y + x)
            row += signs[piece.color] + _CSA[piece.piece_type] if piece else " * "
        lines.append(row)
    for color in (shogi.BLACK, shogi.WHITE):
        hand = board.pieces_in_hand[color].items()
        pieces = "".join(f"00{_CSA[kind]}" * count for kind, count in hand)
        if pieces:
            lines.append(f"P{signs[color]}{pieces}")
    lines.append(signs[board.turn])
    for usi in moves:
        move = shogi.Move.from_usi(usi)
        origin = "00" if move.from_square is None else _name(move.from_square)
        sign = signs[board.turn]
        board.push(move)
        piece = board.piece_type_at(move.to_square)
        lines.append(f"{sign}{origin}{_name(move.to_square)}{_CSA[piece]}")
    return "\n".join([*lines, mark, ""])


def _name(square: int) -> str:
    return f"{9 - square % 9}{square // 9 + 1}"


_CSA = shogi.CSA.PIECE_SYMBOLS
