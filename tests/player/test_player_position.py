"""Positions from a GUI: possible ones are set up, impossible ones are refused."""

import json
import random
from pathlib import Path

import pytest
import shogi
from hypothesis import given, settings
from hypothesis import strategies as st

from pydlshogi import rules
from pydlshogi.player.engine_options import policy_options
from pydlshogi.player.engine_player import EnginePlayer
from pydlshogi.player.position import change_moves, make_board
from pydlshogi.usi.protocol import CommandError

LABELS = Path(__file__).resolve().parents[1] / "data" / "labels.json"


def test_real_positions_come_out_as_they_went_in():
    for entry in json.loads(LABELS.read_text()):
        assert make_board(entry["sfen"], []).sfen() == entry["sfen"]


def test_moves_are_played_and_stay_on_the_stack():
    board = make_board(None, ["7g7f", "3c3d", "8h2b+", "3a2b"])
    assert [move.usi() for move in board.move_stack] == ["7g7f", "3c3d", "8h2b+", "3a2b"]
    assert board.pieces_in_hand[shogi.BLACK][shogi.BISHOP] == 1


@pytest.mark.parametrize(
    "sfen",
    [
        "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b -",  # no move number
        "lnsgkgsnl/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",  # handicap
        "4k4/9/9/9/9/9/9/9/9 b 2R2B4G4S4N4L18P 1",  # mating problem
        "9/9/9/9/9/9/9/9/9 b - 0",
        "8l/1l+R2P3/p2pBG1pp/kps1p4/Nn1P2G2/P1P1P2PP/1PS6/1KSG3+r1/LN2+p3L w Sbgn3p 124",
    ],
)
def test_unusual_positions_are_allowed(sfen):
    assert make_board(sfen, []).sfen().split()[:3] == sfen.split()[:3]


@pytest.mark.parametrize(
    ("sfen", "reason"),
    [
        ("4k4/9/9/9/9/9/9/9/4K4 b", "needs"),
        ("4k4/9/9/9/9/9/9/9/4K4 b - 1 extra", "needs"),
        ("4k4/9/9/9/9/9/9/9 b - 1", "9 rows"),
        ("4k5/9/9/9/9/9/9/9/4K4 b - 1", "9 columns"),
        ("4k4/9/9/9/9/9/9/9/4K13 b - 1", "digits"),
        ("4k4/9/9/9/9/9/9/9/4+K4 b - 1", "board"),
        ("4k4/9/9/9/9/9/9/9/+8K b - 1", "board"),
        ("4k4/9/9/9/9/9/9/9/8K+ b - 1", "board"),
        ("4k4/9/9/9/9/9/9/9/4X4 b - 1", "board"),
        ("4k4/9/9/9/9/9/9/9/4K4 x - 1", "turn"),
        ("4k4/9/9/9/9/9/9/9/4K4 b K 1", "hands"),
        ("4k4/9/9/9/9/9/9/9/4K4 b 0P 1", "hands"),
        ("4k4/9/9/9/9/9/9/9/4K4 b 3 1", "hands"),
        ("4k4/9/9/9/9/9/9/9/4K4 b - -1", "move number"),
        ("4k4/9/9/9/9/9/9/9/4K4 b - x", "move number"),
        ("4k4/9/9/9/9/9/9/9/4K4", "needs also the side to move .b or w. and the hands"),
        ("4k4/9/9/9/9/9/9/9/4K4 w", "needs also the hands"),
        ("4k4/9/9/9/9/9/9/9/4K4 b 19P 1", "19 pawns, a set has 18"),
        ("4k4/9/9/9/9/9/9/9/4K4 b 19P5R 1", "19 pawns, a set has 18"),
        ("4k4/9/9/9/9/9/9/9/4K4 b 99g 1", "99 golds, a set has 4"),
        ("4k4/9/9/9/9/9/9/9/4K4 b PP 1", "name P twice"),
        ("4k4/9/9/9/9/9/9/9/4K4 b 2P3pR2P 1", "name P twice"),
        ("4k4/9/9/9/9/9/9/9/4K4 b 3R 1", "3 rooks"),
        ("4k4/9/9/9/9/9/9/9/+R3K4 b Rr 1", "3 rooks"),
        ("4k4/9/9/9/9/9/9/9/4K4 b 18Pp 1", "19 pawns"),
        ("4k4/9/9/9/9/9/9/9/KK7 b - 1", "two kings"),
        ("4k4/9/P8/P8/9/9/9/9/4K4 b - 1", "two pawns"),
        ("P3k4/9/9/9/9/9/9/9/4K4 b - 1", "9a could never move"),
        ("4k4/9/9/9/9/9/9/n8/4K4 b - 1", "9h could never move"),
        ("4k4/9/4R4/9/9/9/9/9/4K4 b - 1", "capture the king"),
    ],
)
def test_impossible_positions_are_refused(sfen, reason):
    with pytest.raises(CommandError, match=reason):
        make_board(sfen, [])


@pytest.mark.parametrize(
    "move", ["7g7c", "7g7f7", "", "0000", "p*5e", "K*5e", "7g7f+", "2f2e", "7z7f", "resign", "７七"]
)
def test_impossible_moves_are_named(move):
    with pytest.raises(CommandError, match="move 2, "):
        make_board(None, ["2g2f", move])


def state(board):
    """Returns the whole state of a board."""
    return {
        **{name: value for name, value in vars(board).items() if "legal_moves" not in name},
        "occupied": (board.occupied.by_color, vars(board.occupied)),
        # A Counter keeps counts of 0.
        "transpositions": board.transpositions,
    }


def walk(moves, length, rng):
    """Plays a list of moves and then random ones."""
    board = make_board(None, moves)
    moves = list(moves)
    for _ in range(length):
        legal = rules.legal_moves(board)
        if not legal:
            break
        moves.append(rng.choice(legal).usi())
        board.push(shogi.Move.from_usi(moves[-1]))
    return moves


@pytest.mark.long
@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6))
def test_changing_moves_is_setting_the_board_up_anew(seed):
    rng = random.Random(seed)
    before = walk([], rng.randrange(60), rng)
    after = walk(before[: rng.randrange(len(before) + 1)], rng.randrange(20), rng)
    board = make_board(None, before)
    change_moves(board, before, after)
    assert state(board) == state(make_board(None, after))
    with pytest.raises(CommandError, match=f"move {len(before) + 1}, "):
        change_moves(board, after, [*before, "7z7f"])
    assert state(board) == state(make_board(None, after))


def test_a_player_whose_position_is_refused_has_the_one_before():
    player = EnginePlayer(policy_options())
    moves = ["7g7f", "3c3d", "2g2f"]
    player.set_position(None, moves)
    for sfen, refused in ((None, ["2g2f", "7g7c"]), ("x", [])):
        with pytest.raises(CommandError):
            player.set_position(sfen, refused)
        assert state(player.board) == state(make_board(None, moves))
    player.set_position(None, ["7g7f", "3c3d", "8h2b+"])
    assert state(player.board) == state(make_board(None, ["7g7f", "3c3d", "8h2b+"]))
    sfen = "4k4/9/9/9/9/9/9/9/4K4 b P 1"
    player.set_position(sfen, ["P*5e"])
    assert state(player.board) == state(make_board(sfen, ["P*5e"]))


def test_a_pawn_drop_mate_that_a_gui_let_pass_stands():
    board = make_board("kbR6/6+R2/9/9/9/9/9/9/2K6 b P2p 1", ["P*9b"])
    assert board.turn == shogi.WHITE


@given(st.text(alphabet="plnsgbrkPLNSGBRK+123456789/ bw-", max_size=120), st.lists(st.text()))
def test_any_text_is_a_board_or_refused(sfen, moves):
    try:
        make_board(sfen, moves)
    except CommandError as error:
        assert str(error)
