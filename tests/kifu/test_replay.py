"""Games played by numpy against python-shogi's boards."""

import json
from pathlib import Path

import kifu_reference
import numpy
import pytest
import shogi
from hypothesis import given, settings
from hypothesis import strategies as st

from pydlshogi.common import SQUARE_NUM, SQUARES_R180
from pydlshogi.features import make_output_label
from pydlshogi.kifu.movement import ORIGIN_NUM
from pydlshogi.kifu.parsed_game import Game, Move
from pydlshogi.kifu.replay import Games, replay, rows_of
from pydlshogi.positions import (
    DRAW,
    LOSS,
    PIECE_NUM,
    PLY_MAX,
    PROMOTED,
    UNKNOWN,
    WIN,
    placement_of,
)

DATA = Path(__file__).parents[1] / "data"
SFENS = [position["sfen"] for position in json.loads((DATA / "labels.json").read_text())]


def as_columns(board, move):
    """Gives origin, target and piece of a python-shogi move, seen from its mover."""
    turn = (lambda square: square) if board.turn == shogi.BLACK else SQUARES_R180.__getitem__
    if move.drop_piece_type:
        return SQUARE_NUM + move.drop_piece_type - 1, turn(move.to_square), move.drop_piece_type
    piece = board.piece_type_at(move.from_square)
    piece = PROMOTED[piece] if move.promotion else piece
    return turn(move.from_square), turn(move.to_square), piece


def game_of(sfen, choices, result=WIN):
    """Makes a game whose moves are picked among python-shogi's pseudo-legal ones."""
    board = shogi.Board(sfen)
    game = Game(start=placement_of(board), turn=board.turn, result=result)
    usi = []
    for choice in choices:
        moves = [move for move in board.pseudo_legal_moves if not takes_king(board, move)]
        if not moves:
            break
        move = moves[choice % len(moves)]
        game.moves.append(Move(*as_columns(board, move), 0, len(usi) + 1))
        usi.append(move.usi())
        board.push(move)
    return game, usi


def takes_king(board, move):
    return board.piece_type_at(move.to_square) == shogi.KING


@pytest.mark.long
@pytest.mark.parametrize("sfen", SFENS[::8])
def test_possible_moves_are_the_pseudo_legal_ones(sfen):
    """Tries every origin, target and piece there is."""
    board = shogi.Board(sfen)
    start = numpy.frombuffer(placement_of(board), dtype=numpy.uint8)
    origin, target, piece = (
        column.ravel().astype(numpy.uint8)
        for column in numpy.indices((ORIGIN_NUM, SQUARE_NUM, PIECE_NUM))
    )
    piece += 1
    drop_of_another = (origin >= SQUARE_NUM) & (piece != origin - (SQUARE_NUM - 1))
    origin, target, piece = (column[~drop_of_another] for column in (origin, target, piece))
    count = len(origin)
    games = Games(
        origin=origin,
        target=target,
        piece=piece,
        claimed=numpy.zeros(count, dtype=numpy.uint8),
        evaluation=numpy.zeros(count, dtype=numpy.int16),
        lengths=numpy.ones(count, dtype=numpy.int64),
        starts=numpy.tile(start, (count, 1)),
        turns=numpy.full(count, board.turn, dtype=numpy.uint8),
        results=numpy.full(count, WIN, dtype=numpy.uint8),
    )
    positions, faults = replay(games)
    possible = numpy.ones(count, dtype=bool)
    possible[[fault.game for fault in faults]] = False
    found = {
        (int(origin[row]), int(target[row]), int(piece[row])): int(positions["label"][row])
        for row in numpy.flatnonzero(possible)
    }
    expected = {
        as_columns(board, move): make_output_label(move, board.turn)
        for move in board.pseudo_legal_moves
        if not takes_king(board, move)
    }
    assert found == expected


choices = st.lists(st.integers(0, 10_000), min_size=1, max_size=60)
results = st.sampled_from([WIN, LOSS, DRAW, UNKNOWN])


@settings(max_examples=25)
@given(st.lists(st.tuples(st.sampled_from(SFENS[:40]), choices, results), min_size=1, max_size=4))
def test_games_played_together_equal_python_shogi(games):
    played, expected = [], []
    for sfen, picks, result in games:
        game, usi = game_of(sfen, picks, result)
        if game.moves:
            played.append(game)
            expected.append(kifu_reference.play(shogi.Board(sfen), usi, result))
    if not played:
        return
    positions, faults = replay(Games.of(played))
    assert not faults
    assert positions.tobytes() == numpy.concatenate(expected).tobytes()


@settings(max_examples=25)
@given(choices, st.data())
def test_an_impossible_move_spoils_its_own_game_only(picks, data):
    games = [game_of(shogi.STARTING_SFEN, picks)[0] for _ in range(3)]
    expected = replay(Games.of(games[:1]))[0]
    ply = data.draw(st.integers(0, len(games[1].moves) - 1))
    origin, target, piece = data.draw(
        st.tuples(st.integers(0, ORIGIN_NUM - 1), st.integers(0, 80), st.integers(1, PIECE_NUM))
    )
    piece = origin - SQUARE_NUM + 1 if origin >= SQUARE_NUM else piece
    games[1].moves[ply] = Move(origin, target, piece, 0, 1)
    positions, faults = replay(Games.of(games))
    length = len(expected)
    assert positions[:length].tobytes() == expected.tobytes()
    assert positions[2 * length :].tobytes() == expected.tobytes()
    assert {fault.game for fault in faults} <= {1}
    assert positions[length : length + ply].tobytes() == expected[:ply].tobytes()
    for fault in faults:
        assert fault.ply >= ply


@pytest.mark.parametrize(
    ("sfen", "move", "reason"),
    [
        (shogi.STARTING_SFEN, (40, 31, 1), "no piece on the square it leaves"),
        (shogi.STARTING_SFEN, (9, 18, 7), "no piece on the square it leaves"),
        (shogi.STARTING_SFEN, (54, 45, 2), "the piece there is FU"),
        (shogi.STARTING_SFEN, (70, 61, 7), "an own piece"),
        (shogi.STARTING_SFEN, (54, 36, 1), "does not move that way"),
        (shogi.STARTING_SFEN, (54, 45, 9), "outside the promotion zone"),
        (shogi.STARTING_SFEN, (64, 16, 7), "the piece there is KA"),
        (shogi.STARTING_SFEN, (64, 16, 6), "in between"),
        (shogi.STARTING_SFEN, (81, 40, 1), "no such piece is in the mover's hand"),
        ("4k4/9/4P4/9/9/9/9/9/4K4 b P 1", (81, 22, 1), "dropped onto another"),
        ("4k4/9/4P4/9/9/9/9/9/4K4 b P 1", (81, 0, 1), "never move again"),
        ("4k4/9/4P4/9/9/9/9/9/4K4 b P 1", (81, 67, 1), "second pawn"),
        ("4k4/3P5/9/9/9/9/9/9/4K4 b N 1", (12, 3, 1), "never move again"),
        ("4k4/3P5/9/9/9/9/9/9/4K4 b N 1", (83, 12, 3), "dropped onto another"),
        ("4k4/3P5/9/9/9/9/9/9/4K4 b N 1", (83, 13, 3), "never move again"),
        ("4k4/4P4/9/9/9/9/9/9/4K4 b - 1", (13, 4, 9), "captures the king"),
    ],
)
def test_reasons(sfen, move, reason):
    board = shogi.Board(sfen)
    game = Game(start=placement_of(board), turn=board.turn, moves=[Move(*move, 0, 1)])
    (fault,) = replay(Games.of([game]))[1]
    assert reason in fault.reason


def test_a_claimed_piece_must_be_the_one_that_stands_there():
    game = Game(moves=[Move(54, 45, 1, 9, 1)])
    (fault,) = replay(Games.of([game]))[1]
    assert fault.reason == "the piece there is FU, not TO"
    assert not replay(Games.of([Game(moves=[Move(54, 45, 1, 1, 1)])]))[1]


@pytest.mark.long
def test_a_game_too_long_to_be_numbered_is_refused():
    # Both golds move up and down again and again.
    moves = [
        Move(*columns, 0, 1) for columns in ((77, 68, 5), (77, 68, 5), (68, 77, 5), (68, 77, 5))
    ]
    whole = Game(moves=(moves * (PLY_MAX // 4 + 1))[:PLY_MAX])
    positions, faults = replay(Games.of([whole]))
    assert not faults
    assert positions["ply"][-1] == PLY_MAX
    whole.moves.append(moves[PLY_MAX % 4])
    (fault,) = replay(Games.of([whole]))[1]
    assert (fault.ply, "65535" in fault.reason) == (PLY_MAX, True)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.data())
def test_rows_of_picks_whole_games(lengths, data):
    order = data.draw(st.lists(st.sampled_from(range(len(lengths))), min_size=1))
    owner = numpy.repeat(numpy.arange(len(lengths)), lengths)
    rows = rows_of(numpy.array(lengths), numpy.array(order))
    expected = [row for game in order for row in numpy.flatnonzero(owner == game)]
    assert rows.tolist() == expected
