"""The rules, compared with cshogi."""

import collections
import contextlib
import random

import cshogi
import pytest
import shogi
from uct_helpers import BOARDS, ENTERED, TWO_PIECES

from pydlshogi import rules
from pydlshogi.match import referee
from pydlshogi.player.position import make_board
from pydlshogi.rules import Repetition
from pydlshogi.uct.move import from_usi
from pydlshogi.usi.protocol import CommandError


def usi(moves):
    return sorted(move.usi() for move in moves)


def judged_legal(sfen):
    return sorted(cshogi.move_to_usi(move) for move in cshogi.Board(sfen).legal_moves)


def judged_mates(sfen):
    """Finds the mating moves by trying all moves."""
    board = cshogi.Board(sfen)
    mates = []
    for move in board.legal_moves:
        board.push(move)
        if board.is_check() and not list(board.legal_moves):
            mates.append(cshogi.move_to_usi(move))
        board.pop()
    return mates


def check_against_judge(board):
    sfen = board.sfen()
    legal = rules.legal_moves(board)
    assert usi(legal) == judged_legal(sfen)
    assert rules.has_legal_move(board) == bool(legal)
    assert rules.can_declare_win(board) == cshogi.Board(sfen).is_nyugyoku()
    mate = rules.mate_in_one(board, legal)
    mates = judged_mates(sfen)
    assert (mate.usi() in mates) if mate else not mates
    assert board.sfen() == sfen
    return legal


def play_out(positions, seed):
    """Checks the legal moves of the positions of random games."""
    chance = random.Random(seed)
    board = shogi.Board()
    for _ in range(positions):
        legal = check_against_judge(board)
        if legal and board.move_number < 300:
            board.push(chance.choice(legal))
        else:
            board = shogi.Board()


def board_field(men):
    """Writes pieces on squares as the first field of an sfen."""
    rows = ["".join(men.get(square, "1") for square in range(y, y + 9)) for y in range(0, 81, 9)]
    field = "/".join(rows)
    for blanks in range(9, 1, -1):
        field = field.replace("1" * blanks, str(blanks))
    return field


def hand_field(men):
    """Writes pieces in hand as the third field of an sfen."""
    counts = sorted(collections.Counter(men).items())
    return "".join(f"{number if number > 1 else ''}{man}" for man, number in counts) or "-"


def random_position(chance):
    """Places random pieces until the position is possible."""
    while True:
        men = list("RRBBGGGGSSSSNNNNLLLLPPPPPPPP")
        chance.shuffle(men)
        on_board, held = men[: chance.randrange(2, 20)], men[-chance.randrange(1, 5) :]
        squares = chance.sample(range(81), len(on_board) + 2)
        placed = dict(zip(squares, "Kk"))
        for square, man in zip(squares[2:], on_board):
            # Away from the edges every piece can move; promoted pawns may share a file.
            promoted = man == "P" or (man not in "G" and not 18 <= square < 63)
            piece = chance.choice([man, man.lower()])
            placed[square] = f"+{piece}" if promoted and man != "G" else piece
        if chance.random() < 0.7:
            held.append("P")
        sfen = f"{board_field(placed)} {chance.choice('bw')} {hand_field(held)} 1"
        if " w " in sfen:
            sfen = sfen.replace(hand_field(held), hand_field(held).lower())
        with contextlib.suppress(CommandError):
            return make_board(sfen, [])


@pytest.mark.long
def test_random_games_agree_with_the_judge():
    play_out(1500, seed=1)


@pytest.mark.slow
def test_many_random_games_agree_with_the_judge():
    play_out(20000, seed=2)


def check_random_positions(number, seed):
    chance = random.Random(seed)
    for _ in range(number):
        check_against_judge(random_position(chance))


@pytest.mark.long
def test_random_positions_agree_with_the_judge():
    check_random_positions(500, seed=3)


@pytest.mark.slow
def test_many_random_positions_agree_with_the_judge():
    check_random_positions(10000, seed=4)


# Mating by a pawn drop


@pytest.mark.parametrize(
    ("sfen", "move", "legal"),
    [
        # The lance that attacks the pawn is pinned. python-shogi calls the drop legal.
        ("kbR6/6+R2/9/9/9/9/9/9/2K6 b P2p 1", "P*9b", False),
        ("kbR6/6+R2/9/9/9/9/9/9/2K6 b L2p 1", "L*9b", True),
        # No piece can capture the pawn, and the king has no square.
        ("3lkl3/3p1p3/4G4/9/9/9/9/9/4K4 b P 1", "P*5b", False),
        ("4k4/9/9/9/9/9/4g4/3P1P3/3LKL3 w p 1", "P*5h", False),
        # The king can capture the pawn or move away, or a bishop can capture the pawn.
        ("3lkl3/3p1p3/9/9/9/9/9/9/4K4 b P 1", "P*5b", True),
        ("3lk4/3p1p3/4G4/9/9/9/9/9/4K4 b P 1", "P*5b", True),
        ("3lkl3/3p1p3/4G4/9/7b1/9/9/9/4K4 b P 1", "P*5b", True),
        # A pawn on the board may move and mate.
        ("k8/9/PGG6/9/9/9/9/9/4K4 b - 1", "9c9b", True),
    ],
)
def test_pawn_drop_mates(sfen, move, legal):
    board = make_board(sfen, [])
    assert (move in judged_legal(sfen)) == legal
    assert rules.is_legal(board, shogi.Move.from_usi(move)) == legal
    assert usi(rules.legal_moves(board)) == judged_legal(sfen)


def test_python_shogi_still_lets_the_pinned_capturer_pass():
    # If this fails, python-shogi has corrected its rule, and rules.py can be shorter.
    board = shogi.Board("kbR6/6+R2/9/9/9/9/9/9/2K6 b P2p 1")
    assert board.is_legal(shogi.Move.from_usi("P*9b"))


# Illegal moves of every kind


@pytest.mark.parametrize(
    ("sfen", "move"),
    [
        ("4k4/9/9/9/4r4/9/9/4G4/4K4 b - 1", "5h4h"),  # pinned on a file
        ("4k4/9/9/9/8b/9/6G2/9/4K4 b - 1", "3g3f"),  # pinned on a diagonal
        ("4k4/P8/9/9/9/9/9/9/4K4 b - 1", "9b9a"),  # must promote
        ("4k4/9/N8/9/9/9/9/9/4K4 b - 1", "9c8a"),  # must promote
        ("4k4/9/9/9/9/9/9/9/4K4 b P 1", "P*9a"),  # could never move
        ("4k4/9/9/9/9/9/9/9/4K4 b N 1", "N*9b"),  # could never move
        ("4k4/9/9/P8/9/9/9/9/4K4 b P 1", "P*9e"),  # two pawns on a file
        ("4k4/9/9/9/9/9/9/9/4K4 b P 1", "P*5a"),  # onto a piece of the opponent's
        ("4k4/9/9/9/9/9/9/9/4K4 b P 1", "P*5i"),  # onto a piece of its own
        ("4k4/9/9/9/9/9/9/9/4K4 b - 1", "P*5e"),  # not in hand
        ("4k4/9/9/9/9/9/9/9/4K4 b p 1", "P*5e"),  # in the other hand
        ("4k4/9/9/9/9/9/4r4/9/4K4 b P 1", "P*9e"),  # leaves the king in check
        ("4k4/9/9/9/9/9/9/9/R3K4 b - 1", "5a5b"),  # the opponent's piece
        ("4k4/9/9/9/9/9/9/9/R3K4 b - 1", "9h9g"),  # an empty square
        ("4k4/9/9/9/9/9/9/9/R3K4 b - 1", "9i4i"),  # through a piece
        ("4k4/9/9/9/9/9/9/9/R3K4 b - 1", "9i9h+"),  # promotion out of place
        ("4k4/9/9/9/9/9/9/9/R3K4 b - 1", "9i8h"),  # not a move of a rook
    ],
)
def test_what_is_illegal_is_called_so(sfen, move):
    board = make_board(sfen, [])
    assert move not in judged_legal(sfen)
    assert not rules.is_legal(board, shogi.Move.from_usi(move))
    assert not rules.is_possible(board, shogi.Move.from_usi(move))
    assert board.sfen() == make_board(sfen, []).sfen()


def test_a_pawn_next_to_a_promoted_one_may_be_dropped():
    board = make_board("4k4/9/9/+P8/9/9/9/9/4K4 b P 1", [])
    assert rules.is_legal(board, shogi.Move.from_usi("P*9e"))


def test_the_most_moves_that_a_position_can_have():
    board = make_board("R8/2K1S1SSk/4B4/9/9/9/9/9/1L1L1L3 b RBGSNLP3g3n17p 1", [])
    assert len(rules.legal_moves(board)) == 593


def test_kings_may_be_missing():
    board = make_board("4k4/9/4P4/9/9/9/9/9/9 b G 1", [])
    assert rules.mate_in_one(board, rules.legal_moves(board)).usi() == "G*5b"
    board = make_board("9/9/9/9/9/9/9/9/4K4 b 2P 1", [])
    assert rules.mate_in_one(board, rules.legal_moves(board)) is None
    assert not rules.can_declare_win(make_board("9/9/9/9/9/9/9/9/9 b 2R 1", []))


# Repetition


def repetition(sfen, cycle, times):
    """Plays a cycle of four moves several times, and returns the result of its last move."""
    words = cycle.split()
    played = (words * times)[:-1]
    board = make_board(sfen, played)
    before = board.sfen()
    outcome = rules.repetition_after(board, shogi.Move.from_usi(words[-1]))
    assert board.sfen() == before
    return board, outcome


START = "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1"
QUIET = "2h3h 8b7b 3h2h 7b8b"
#: Black's rook checks from two files; White's king moves back and forth.
CHECKS = "5i4i 4a5a 4i5i 5a4a"
CHECKING = "5k3/9/9/9/9/9/9/9/K3R4 b - 1"


@pytest.mark.parametrize(("times", "expected"), [(1, "NONE"), (2, "NONE"), (3, "DRAW")])
def test_the_fourth_occurrence_is_a_draw(times, expected):
    board, outcome = repetition(START, QUIET, times)
    assert outcome == Repetition[expected]
    assert rules.may_repeat(board) == (times == 3)


def test_who_checks_for_ever_loses():
    # The last move of the cycle is White's. Black has only given check, so White wins.
    board, outcome = repetition(CHECKING, CHECKS, 3)
    assert outcome == Repetition.WIN
    # One move later Black repeats the position, with a check.
    board = make_board(CHECKING, CHECKS.split() * 3)
    assert rules.repetition_after(board, shogi.Move.from_usi("5i4i")) == Repetition.LOSS


def test_one_quiet_move_within_makes_it_a_draw():
    # Between the first and the fourth occurrence Black has once not given check.
    quiet = "5i3i 4a5a 3i5i 5a4a"
    words = CHECKS.split() * 2 + quiet.split() + CHECKS.split()
    board = make_board(CHECKING, words[:-1])
    outcome = rules.repetition_after(board, shogi.Move.from_usi(words[-1]))
    assert outcome == Repetition.DRAW


def test_the_judge_agrees_on_perpetual_check():
    board = cshogi.Board(CHECKING)
    for move in CHECKS.split() * 3:
        board.push_usi(move)
    assert board.is_draw() == cshogi.REPETITION_LOSE  # for Black, who is to move and checks
    board.push_usi("5i4i")
    assert board.is_draw() == cshogi.REPETITION_WIN


# Declaration


@pytest.mark.parametrize(
    ("sfen", "holds"),
    [
        ("KGGGGSSSS/RRBB5/9/9/9/9/9/9/8k b - 1", True),  # 28 points, 12 pieces
        ("KGGGGSSS1/RRBB5/9/9/9/9/9/9/8k b - 1", False),  # 27
        ("KGGGGSSS1/RRBB5/9/9/9/9/9/9/8k b P 1", True),  # 28 with the hand
        ("K8/9/9/9/9/9/9/5bbrr/kggggsss1 w - 1", True),  # 27 suffice for White
        ("K8/9/9/9/9/9/9/5bbrr/kggggss2 w - 1", False),  # 26
        ("KGGGGSSS1/1PP6/9/9/9/9/9/9/8k b 2R2B 1", False),  # 9 pieces, 29 points
        ("KGGGGSSS1/1PPP5/9/9/9/9/9/9/8k b 2R2B 1", True),  # 10 pieces, the king apart
        ("1GGGGSSSS/RRBB5/9/K8/9/9/9/9/8k b - 1", False),  # the king not far enough
        ("KGGGGSSSS/1RBB5/r8/9/9/9/9/9/8k b 9P 1", False),  # in check
        ("KGGGGSSSS/9/9/BBRR5/9/9/9/9/8k b 9P 1", False),  # 9 pieces far enough
    ],
)
def test_declarations(sfen, holds):
    assert cshogi.Board(sfen).is_nyugyoku() == holds
    assert rules.can_declare_win(make_board(sfen, [])) == holds


def random_entered_position(chance):
    """Places random pieces so that a declaration nearly holds."""
    men = list("RRBBGGGGSSSSNNNNLLLLPPPPPPPPP")
    chance.shuffle(men)
    number = chance.randrange(8, 14)
    placed = {80: "k"}
    for square, man in zip(
        chance.sample(range(chance.choice([27, 30])), number + 1), "K" + "".join(men)
    ):
        placed[square] = man if man in "KG" else f"+{man}"
    held = men[number : number + chance.randrange(14)]
    if chance.random() < 0.5:
        return f"{board_field(placed)} b {hand_field(held)} 1"
    turned = {80 - square: man.swapcase() for square, man in placed.items()}
    return f"{board_field(turned)} w {hand_field(held).lower()} 1"


def test_random_declarations_agree_with_the_judge():
    chance = random.Random(5)
    found = []
    while len(found) < 1000:
        sfen = random_entered_position(chance)
        with contextlib.suppress(CommandError):
            found.append(rules.can_declare_win(make_board(sfen, [])))
            assert found[-1] == cshogi.Board(sfen).is_nyugyoku(), sfen
            assert {board(sfen).can_declare() for board in BOARDS} == {found[-1]}, sfen
    assert 0.1 < sum(found) / len(found) < 0.9


#: The ten handicaps, and the points of the missing pieces.
HANDICAPS = {
    "lnsgkgsn1/1r5b1/ppppppppp": 1,
    "1nsgkgsnl/1r5b1/ppppppppp": 1,
    "lnsgkgsnl/1r7/ppppppppp": 5,
    "lnsgkgsnl/7b1/ppppppppp": 5,
    "lnsgkgsn1/7b1/ppppppppp": 6,
    "lnsgkgsnl/9/ppppppppp": 10,
    "1nsgkgsn1/9/ppppppppp": 12,
    "2sgkgs2/9/ppppppppp": 14,
    "3gkg3/9/ppppppppp": 16,
    "4k4/9/ppppppppp": 18,
}
BELOW = "/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1"


def points_of(board):
    return sum(
        5 if kind in (shogi.BISHOP, shogi.ROOK) else 1
        for piece in (board.piece_at(square) for square in shogi.SQUARES)
        if piece and (kind := piece.piece_type) != shogi.KING
    )


@pytest.mark.parametrize("ranks", HANDICAPS)
def test_the_missing_points_are_those_of_the_pieces_that_the_handicap_takes_away(ranks):
    missing = points_of(shogi.Board()) - points_of(shogi.Board(ranks + BELOW))
    assert rules.missing_points(ranks + BELOW) == missing == HANDICAPS[ranks]


@pytest.mark.parametrize(
    "sfen",
    [
        None,
        shogi.STARTING_SFEN,
        "lnsgkgsnl/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1",  # Black moves first
        "lnsgkgsnl/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w 2r 1",
        "lnsgkgsnl/9/ppppppppp/9/9/2P6/PP1PPPPPP/1B5R1/LNSGKGSNL w - 1",
        "lnsgk4/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",  # none of the ten
    ],
)
def test_no_points_are_missing_in_other_positions(sfen):
    assert rules.missing_points(sfen) == 0


def test_missing_pieces_count_for_white_at_a_declaration():
    board = make_board(TWO_PIECES, ENTERED)
    before = board.sfen()
    assert rules.can_declare_win(board)
    assert (board.sfen(), [move.usi() for move in board.move_stack]) == (before, ENTERED)
    needed = [rules.can_declare_win(board, missing) for missing in range(19)]
    assert needed == sorted(needed)
    assert not needed[0]
    assert needed[10]


def test_missing_pieces_count_in_no_game_that_starts_from_another_position():
    later = make_board(TWO_PIECES, ENTERED[:1]).sfen()
    assert not rules.can_declare_win(make_board(later, ENTERED[1:]))
    assert not rules.can_declare_win(make_board(make_board(TWO_PIECES, ENTERED).sfen(), []))


def test_missing_pieces_do_not_count_for_black():
    for sfen in ("KGGGGSSS1/RRBB5/9/9/9/9/9/9/8k b - 1", "KGGGGSSS1/RRB6/9/9/9/9/9/9/8k b - 1"):
        assert not rules.can_declare_win(make_board(sfen, []), 18)


@pytest.mark.parametrize("make", BOARDS)
def test_the_boards_of_the_search_count_missing_pieces_as_the_rules_do(make):
    board = make(TWO_PIECES)
    reference = make_board(TWO_PIECES, [])
    for move in ENTERED:
        assert board.can_declare() == rules.can_declare_win(reference)
        board.push(from_usi(move))
        reference.push_usi(move)
    assert board.can_declare()
    board.pop()
    assert not board.can_declare()
    assert not make(make_board(TWO_PIECES, ENTERED[:1]).sfen(), ENTERED[1:]).can_declare()


def test_the_referee_accepts_a_declaration_with_missing_pieces_in_a_handicap_game_only():
    for start, moves, accepted in (
        (TWO_PIECES, ENTERED, True),
        (make_board(TWO_PIECES, ENTERED[:1]).sfen(), ENTERED[1:], False),
    ):
        board = referee.make_board(start)
        for move in moves:
            assert board.is_legal(move)
            board.push(move)
        assert board.may_declare() == accepted
