"""The referee: every way in which a game ends."""

import functools
import random

import pytest
import shogi

from pydlshogi.match import referee as module
from pydlshogi.match.referee import CshogiBoard, RulesBoard


@pytest.fixture(params=[RulesBoard, CshogiBoard])
def Referee(request):
    """The referee with each of its boards."""
    if request.param is CshogiBoard:
        pytest.importorskip("cshogi")
    return functools.partial(module.Referee, make=request.param)


KINGS_AND_ROOK = "{}/9/9/9/4R4/9/9/9/4K4 {} - 1"


def play(referee, moves):
    """Plays moves of which only the last may end the game."""
    *first, last = moves.split()
    for move in first:
        assert referee.hear(move) is None
    return referee.hear(last)


def test_resigning_loses(Referee):
    referee = Referee(100)
    assert play(referee, "7g7f resign") == (shogi.BLACK, "%TORYO", "resigned")
    assert referee.moves == ["7g7f"]
    assert referee.csa_moves == ["+7776FU"]


@pytest.mark.parametrize(
    "answer", ["7g7c", "P*5e", "7g7f+", "3c3d", "", "0000", "(none)", "7G7F", "\x80" * 40]
)
def test_an_illegal_move_loses(Referee, answer):
    verdict = Referee(100).hear(answer)
    assert verdict[:2] == (shogi.WHITE, "%ILLEGAL_MOVE")
    assert verdict.is_fault
    assert verdict.reason.isascii() and len(verdict.reason) < 120


def test_mating_by_a_pawn_drop_loses(Referee):
    # Only a pinned piece could capture the pawn; python-shogi takes it for legal.
    referee = Referee(100, "kbR6/6+R2/9/9/9/9/9/9/2K6 b P2p 1")
    assert referee.hear("P*9b")[:2] == (shogi.WHITE, "%ILLEGAL_MOVE")


def test_a_cshogi_that_does_not_work_is_passed_over(monkeypatch):
    def fail(sfen):
        raise ValueError("numpy.dtype size changed, may indicate binary incompatibility")

    monkeypatch.setattr(module, "CshogiBoard", fail)
    assert isinstance(module.make_board(shogi.STARTING_SFEN), RulesBoard)


def test_every_kind_of_move_is_known(Referee):
    # Not promoting pawn, bishop or rook is legal, and seldom better.
    for move in ("2d2c", "2d2c+", "4d3c", "4d3c+", "8d8b", "8d8b+", "P*5e"):
        assert Referee(100, "4k4/9/9/1R3B1P1/9/9/9/9/4K4 b P 1").hear(move) is None


@pytest.mark.parametrize(
    "sfen, move",
    [
        ("4k4/9/4P4/9/9/9/9/9/4K4 b G 1", "G*5b"),
        ("k8/9/1K7/9/9/9/9/9/9 b G 1", "G*8b"),
        ("k8/2G6/9/1K7/9/9/9/9/9 b - 1", "8d8c"),  # stalemate: not in check
    ],
)
def test_the_side_without_a_legal_move_has_lost(Referee, sfen, move):
    # Even with the last move before the limit.
    assert Referee(1, sfen).hear(move) == (shogi.BLACK, "%TORYO", "no legal move")


def test_the_fourth_occurrence_is_a_draw(Referee):
    verdict = play(Referee(100), " ".join(["2h3h 8b7b 3h2h 7b8b"] * 3))
    assert verdict == (None, "%SENNICHITE", "fourfold repetition")


def test_a_repetition_with_checks_but_not_only_checks_is_a_draw(Referee):
    referee = Referee(100, KINGS_AND_ROOK.format("4k4", "w"))
    verdict = play(referee, " ".join(["5a4a 5e4e 4a5a 4e6e 5a4a 6e7e 4a5a 7e5e"] * 3))
    assert verdict[:2] == (None, "%SENNICHITE")


@pytest.mark.parametrize(
    "king, turn, cycle",
    [
        ("4k4", "w", "5a4a 5e4e 4a5a 4e5e"),  # the checking side completes it
        ("5k3", "b", "5e4e 4a5a 4e5e 5a4a"),  # the side in check does
    ],
)
def test_perpetual_check_loses(Referee, king, turn, cycle):
    referee = Referee(100, KINGS_AND_ROOK.format(king, turn))
    assert play(referee, " ".join([cycle] * 3)) == (
        shogi.WHITE,
        "%+ILLEGAL_ACTION",
        "perpetual check",
    )


def test_perpetual_check_by_white_loses_too(Referee):
    referee = Referee(100, "4k4/9/9/9/4r4/9/9/9/4K4 b - 1")
    verdict = play(referee, " ".join(["5i4i 5e4e 4i5i 4e5e"] * 3))
    assert verdict[:2] == (shogi.BLACK, "%-ILLEGAL_ACTION")


@pytest.mark.parametrize(
    "sfen, right",
    [
        ("RRBBK4/GGGGSS3/9/9/9/9/9/9/4k4 b 2P 1", True),
        ("RRBBK4/GGGGSS3/9/9/9/9/9/9/4k4 b P 1", False),  # 27 points
        ("RRBBK4/GGGG5/9/9/9/9/9/9/4k4 b 9P 1", False),  # eight pieces
        ("RRBB5/GGGGSS3/9/4K4/9/9/9/9/4k4 b 2P 1", False),  # king outside
        ("4K4/9/9/9/9/9/9/3ggggss/4krrbb w p 1", True),  # 27 are enough for White
        ("RRBBK3l/GGGGSS3/9/9/9/9/9/9/4k3r b 2P 1", True),
        ("RRBBK3r/GGGGSS3/9/9/9/9/9/9/4k4 b 2P 1", False),  # in check
    ],
)
def test_a_declaration_counts_if_the_rules_allow_it(Referee, sfen, right):
    referee = Referee(100, sfen)
    mover = referee.board.turn
    verdict = referee.hear("win")
    assert verdict.winner == (mover if right else 1 - mover)
    assert verdict.end_mark == ("%KACHI" if right else "%ILLEGAL_MOVE")


def test_the_limit_of_moves_is_a_draw(Referee):
    assert play(Referee(3), "7g7f 3c3d 2g2f") == (None, "%JISHOGI", "drawn after 3 moves")


@pytest.mark.long
def test_both_boards_say_the_same_of_random_games():
    pytest.importorskip("cshogi")
    generator = random.Random(1)
    for _ in range(4):
        boards = RulesBoard(shogi.STARTING_SFEN), CshogiBoard(shogi.STARTING_SFEN)
        for _ in range(80):
            answers = [
                (board.turn, board.sfen(), board.is_check(), board.is_lost(), board.may_declare())
                for board in boards
            ]
            assert answers[0] == answers[1]
            if answers[0][3]:
                break
            board = shogi.Board(answers[0][1])
            tried = [move.usi() for move in board.generate_pseudo_legal_moves()] + ["5a5b", "P*5e"]
            judged = [list(map(board.is_legal, tried)) for board in boards]
            assert judged[0] == judged[1]
            move = generator.choice([usi for usi, legal in zip(tried, judged[0]) if legal])
            assert boards[0].push(move) == boards[1].push(move)
