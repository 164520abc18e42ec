"""Full legality against the rules and python-shogi."""

import json
from pathlib import Path

import kifu_reference
import pytest
import shogi

from pydlshogi.kifu.csa import parse_game
from pydlshogi.kifu.legality import board_of, first_illegal
from pydlshogi.positions import placement_of

DATA = Path(__file__).parents[1] / "data"
SFENS = [position["sfen"] for position in json.loads((DATA / "labels.json").read_text())]


@pytest.mark.parametrize("sfen", SFENS[::10])
def test_a_placement_unpacks_to_the_same_board(sfen):
    board = shogi.Board(sfen)
    again = board_of(placement_of(board), board.turn)
    assert again.sfen().rsplit(" ", 1)[0] == board.sfen().rsplit(" ", 1)[0]
    assert placement_of(board) == kifu_reference.placement(board)


def illegal_ply(sfen, *csa_moves):
    """Reads a game, and gives the number of its first illegal move from 0."""
    game = parse_game(kifu_reference.to_csa(sfen, [], "\n".join(csa_moves)).encode())
    return first_illegal(game.start, game.turn, [move[:3] for move in game.moves])


@pytest.mark.parametrize(
    ("sfen", "moves", "ply"),
    [
        (shogi.STARTING_SFEN, ["+7776FU", "-3334FU", "+8822UM", "-3122GI"], None),
        # The king stays in check.
        (shogi.STARTING_SFEN, ["+7776FU", "-3334FU", "+8833UM", "-9394FU"], 3),
        # The king goes where it can be taken; a pinned piece moves away.
        ("4k4/9/9/9/9/9/9/4r4/4K4 b - 1", ["+5958OU", "-5152OU"], None),
        ("4k4/9/9/9/9/9/4p4/4r4/4K4 b - 1", ["+5958OU"], 0),
        ("4k4/9/9/9/9/9/9/5r3/4K4 b - 1", ["+5949OU"], 0),
        ("4k4/9/9/9/9/9/4r4/4G4/4K4 b - 1", ["+5848KI"], 0),
        # Two pawns on a file; on the file of a promoted one that is no fault.
        ("4k4/9/9/9/9/9/4P4/9/4K4 b P 1", ["+0053FU"], 0),
        ("4k4/9/9/9/9/9/4+P4/9/4K4 b P 1", ["+0053FU"], None),
        # Mate by a dropped pawn, and check by one.
        ("7lk/9/7G1/9/9/9/9/9/4K4 b P 1", ["+0012FU"], 0),
        ("8k/9/7G1/9/9/9/9/9/4K4 b P 1", ["+0012FU"], None),
        # Mate too: the lance that could take the pawn is pinned. python-shogi allows it.
        ("kbR6/6+R2/9/9/9/9/9/9/2K6 b P2p 1", ["+0092FU"], 0),
        # White's moves are seen from White's side.
        ("4k4/4g4/4R4/9/9/9/9/9/4K4 w - 1", ["-5242KI"], 0),
        ("4k4/4g4/4R4/9/9/9/9/9/4K4 w - 1", ["-5253KI", "+5958OU"], None),
    ],
)
def test_rules(sfen, moves, ply):
    assert illegal_ply(sfen, *moves) == ply


@pytest.mark.parametrize("seed", range(5))
def test_random_legal_games_are_legal(seed):
    sfen = SFENS[seed]
    moves = kifu_reference.random_moves(sfen, 60, seed)
    game = parse_game(kifu_reference.to_csa(sfen, moves).encode())
    assert first_illegal(game.start, game.turn, [move[:3] for move in game.moves]) is None
