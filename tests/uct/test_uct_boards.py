"""All boards say the same of every position."""

import functools
import importlib.metadata
import itertools
import json
import random
import sys
from pathlib import Path

import cshogi
import numpy
import pytest
import shogi
from uct_helpers import BOARDS, FAST_BOARDS, endgames, games, random_sfens, sfens_of

from pydlshogi import rules
from pydlshogi.features import make_input_features_from_board, make_output_label
from pydlshogi.uct import boards
from pydlshogi.uct.board import Mate
from pydlshogi.uct.cshogi_board import CshogiBoard
from pydlshogi.uct.inputs import write_planes
from pydlshogi.uct.move import from_usi, label_table, to_usi
from pydlshogi.uct.python_shogi_board import PythonShogiBoard, checks, is_mate, legal_moves


def planes(*boards):
    out = numpy.full((len(boards), 104, 9, 9), numpy.nan, numpy.float32)
    write_planes([board.sfen() for board in boards], [board.turn for board in boards], out)
    return out


def compare(sfen, others=BOARDS[1:]):
    fast = CshogiBoard(sfen)
    moves = sorted(fast.moves().tolist())
    for slow in (make(sfen) for make in others):
        assert fast.turn == slow.turn
        assert fast.in_check() == slow.in_check()
        assert fast.can_declare() == slow.can_declare()
        assert slow.moves().dtype == numpy.uint16
        assert moves == sorted(slow.moves().tolist()), sfen
        assert numpy.array_equal(planes(fast), planes(slow)), sfen
        assert sorted(fast.checks()) == sorted(slow.checks()), sfen
        assert (fast.mate(1) is None) == (slow.mate(1) is None), sfen
    for move in moves:
        assert label_table()[fast.turn, move] == label_of(move, fast.turn)


@functools.cache
def label_of(move, turn):
    return make_output_label(shogi.Move.from_usi(to_usi(move)), turn)


def real_sfens(count):
    everything = itertools.chain.from_iterable(map(sfens_of, games("train")))
    return itertools.islice(everything, 0, None, max(1, 25000 // count))


@pytest.mark.long
def test_all_boards_agree_on_random_positions():
    for sfen in random_sfens(500):
        compare(sfen)


def test_all_boards_agree_on_positions_of_games():
    for sfen in itertools.islice(real_sfens(300), 300):
        compare(sfen)


@pytest.mark.long
def test_all_boards_agree_on_the_positions_of_the_fuzz_tests():
    labels = Path(__file__).parents[1] / "data" / "labels.json"
    for sfen in {entry["sfen"] for entry in json.loads(labels.read_text(encoding="utf-8"))}:
        compare(sfen)


@pytest.mark.long
def test_fast_boards_agree_on_more_positions_and_on_their_keys():
    keys = [{} for _ in FAST_BOARDS[1:]]
    for sfen in itertools.chain(random_sfens(1700, seed=7), endgames(300)):
        compare(sfen, FAST_BOARDS[1:])
        for make, keys_of in zip(FAST_BOARDS[1:], keys):
            key = make(sfen).key()
            assert keys_of.setdefault(CshogiBoard(sfen).key(), key) == key, sfen
    for keys_of in keys:
        assert len(set(keys_of.values())) == len(keys_of)


@pytest.mark.parametrize("board", BOARDS)
def test_a_mate_by_a_distant_check_is_one_in_one_ply(board):
    """cshogi's own search for a mate in one ply misses the dragon's move along the rank."""
    sfen = "snsk3p1/5+N3/l1Ggp2Pr/1pp2p+R2/p7p/P2S1+BP2/1P2P3L/LB1G1Gl1P/1NK4NS b 3P2p 113"
    for plies in (1, 2, 3, 5):
        assert board(sfen).mate(plies) == Mate(from_usi("3d3a"), 1)


@pytest.mark.long
def test_a_mate_is_told_from_a_check_on_python_shogis_board():
    found = set()
    for sfen in itertools.chain(random_sfens(60, seed=5), endgames(60, plies=3)):
        board = shogi.Board(sfen)
        for move in checks(board, legal_moves(board)):
            board.push(move)
            found.add(is_mate(board))
            assert is_mate(board) == (not rules.has_legal_move(board)), (sfen, move)
            board.pop()
    assert found == {True, False}


@pytest.mark.slow
def test_all_boards_agree_on_a_hundred_thousand_positions():
    keys = {}
    for sfen in itertools.chain(random_sfens(77000, seed=2), real_sfens(25000)):
        compare(sfen)
        found = [make(sfen).key() for make in FAST_BOARDS]
        assert keys.setdefault(found[0], found) == found, sfen
    assert all(len(set(of_a_board)) == len(keys) for of_a_board in zip(*keys.values()))


@pytest.mark.parametrize("make", BOARDS)
def test_push_and_pop_leave_the_position_and_its_key(make):
    rng = random.Random(1)
    board = make()
    for _ in range(60):
        before = board.key(), board.turn, planes(board).tobytes()
        move = rng.choice(board.moves().tolist())
        board.push(move)
        assert (board.key(), board.turn) != before[:2]
        board.pop()
        assert (board.key(), board.turn, planes(board).tobytes()) == before
        board.push(move)


def test_keys_tell_positions_apart_and_know_equal_ones():
    for make in BOARDS:
        one = make(None, ["7g7f", "3c3d", "2g2f"])
        other = make(None, ["2g2f", "3c3d", "7g7f"])
        assert one.key() == other.key()
        assert one.key() != make(None, ["7g7f", "3c3d"]).key()


@pytest.mark.parametrize("make", BOARDS)
def test_keys_tell_hands_of_other_games_apart(make):
    hands = ["-", "P", "p", "2p", "r", "rp", "R", "Rr", "b", "g", "n", "l", "s"]
    keys = {make(f"4k4/9/9/9/9/9/9/9/4K4 {turn} {hand} 1").key() for hand in hands for turn in "bw"}
    assert len(keys) == 2 * len(hands)


def test_python_shogis_board_does_not_keep_positions_that_it_left():
    board = PythonShogiBoard()
    for move in board.moves().tolist():
        board.push(move)
        board.mate(1)
        board.pop()
    assert len(board._hashes._hashes) == 1


#: 593 moves with a White king, the most that are possible; 599 without it.
MOST_MOVES = "R8/2K1S1SS1/4B4/9/9/9/9/9/1L1L1L3 b RBGSNLP3g3n17p 1"


def board_to_search(sfen, *moves):
    searched = shogi.Board(sfen)
    for move in moves:
        searched.push_usi(move)
    return boards.make_search_board(sfen, searched)


def test_more_moves_than_cshogi_has_memory_for():
    assert len(rules.legal_moves(shogi.Board(MOST_MOVES))) > 593
    assert isinstance(board_to_search(MOST_MOVES, "9a8a"), PythonShogiBoard)
    before = "g7R/2K1S1SS1/4B4/9/9/9/9/9/1L1L1L3 b RBSNLP3g3n17p 1"  # two moves before 595 moves
    assert isinstance(board_to_search(before), PythonShogiBoard)
    problem = "4k4/9/9/9/9/9/9/9/9 b P2r2b4g4s4n4l17p 1"  # the defender has 535 moves
    assert isinstance(board_to_search(problem), CshogiBoard)


#: After 1i1g, White has 98 evasions: more than cshogi's mate searches have memory for.
MOST_EVASIONS = "K8/9/9/9/bln1n1n1l/2sgsgsg1/k8/9/8R b rbgsnlp 1"


def test_more_evasions_than_cshogi_has_memory_for():
    assert len(CshogiBoard(MOST_EVASIONS, ["1i1g"]).moves()) == 98
    assert isinstance(board_to_search(MOST_EVASIONS), PythonShogiBoard)
    captures = MOST_EVASIONS.replace("R b rbgsnlp", "R b RBGSNLP")  # White may capture them
    assert isinstance(board_to_search(captures), PythonShogiBoard)
    fewer = "K8/9/9/9/b1n3n1l/2s6/k8/9/8R b rbgsnlp 1"
    assert isinstance(board_to_search(fewer), CshogiBoard)
    turned = "r8/9/8K/1GSGSGS2/L1N1N1NLB/9/9/9/8k w RBGSNLP 1"
    assert isinstance(board_to_search(turned), PythonShogiBoard)


@pytest.mark.parametrize("sfen", [MOST_MOVES, MOST_EVASIONS])
def test_boards_without_such_a_limit_agree_on_these_positions(sfen):
    one, *others = (make(sfen) for make in BOARDS[1:])
    for board in others:
        assert sorted(one.moves().tolist()) == sorted(board.moves().tolist())
        assert sorted(one.checks()) == sorted(board.checks())
        assert numpy.array_equal(planes(one), planes(board))


def test_the_position_after_the_moves_decides():
    before = "K8/9/9/9/bln1n1n1l/3g1g1g1/ks1s1s3/9/8R w rbgsnlp 1"
    assert isinstance(board_to_search(before), CshogiBoard)
    moves = ["8g7f", "9a8a", "6g5f", "8a9a", "4g3f"]
    assert isinstance(board_to_search(before, *moves), PythonShogiBoard)


def test_cshogi_has_memory_for_positions_of_games():
    for sfen in random_sfens(300, seed=6):
        assert isinstance(board_to_search(sfen), CshogiBoard)


@pytest.mark.parametrize("make", BOARDS)
def test_planes_of_a_batch_are_those_of_the_features(make):
    sfens = [*random_sfens(50, seed=4)]
    expected = [make_input_features_from_board(shogi.Board(sfen)) for sfen in sfens]
    assert numpy.array_equal(planes(*map(make, sfens)), expected)


def test_moves_keep_their_meaning_in_every_notation():
    for sfen in random_sfens(200, seed=3):
        board = cshogi.Board(sfen)
        for move in board.legal_moves:
            text = cshogi.move_to_usi(move)
            assert from_usi(text) == move & 0x7FFF
            assert to_usi(from_usi(text)) == text


@pytest.mark.parametrize(
    "sfen",
    [
        "4k4/9/4P4/9/9/9/9/9/9 b G 1",  # the attacker has no king
        "9/9/9/9/9/9/9/9/4K4 b G 1",  # the defender has none
        "9/9/9/9/9/9/9/9/9 b G 1",
    ],
)
def test_a_side_without_a_king_is_never_mated(sfen):
    compare(sfen)
    for make in BOARDS:
        board = make(sfen)
        assert (board.mate(5) is not None) == ("k" in sfen)
        if "k" not in sfen:
            assert board.checks() == []
            assert board.search_mate(1000, 31)[0] == []


@pytest.mark.parametrize("make", BOARDS)
def test_a_mate_in_one_is_found_also_in_check(make):
    board = make("4k4/4r4/3G5/5N3/9/9/9/9/4K4 b - 1")
    assert board.in_check()
    move, plies = board.mate(1)
    assert plies == 1
    assert to_usi(move) in ("6c5b", "4d5b+")


def test_the_shortest_mate_is_found():
    found = set()
    for sfen in endgames(160, plies=10):
        mate = CshogiBoard(sfen).mate(5)
        if mate:
            found.add(mate.plies)
            assert CshogiBoard(sfen).mate(mate.plies - 2) is None
            assert CshogiBoard(sfen).mate(mate.plies) == mate
    assert found == {1, 3, 5}


@pytest.fixture
def choose():
    """Chooses the board anew; returns the names of the library and of the board's class."""

    def choose():
        boards._implementation.cache_clear()
        return boards.board_library(), type(boards.make_search_board()).__name__

    yield choose
    boards._implementation.cache_clear()


@pytest.mark.parametrize("lack", ["cshogi", "AVX2"])
@pytest.mark.parametrize("has_rsshogi", [True, False])
def test_without_cshogi_another_board_is_used(lack, has_rsshogi, choose, monkeypatch):
    if has_rsshogi:
        pytest.importorskip("rsshogi")
    else:
        monkeypatch.setitem(sys.modules, "pydlshogi.uct.rsshogi_board", None)
    if lack == "cshogi":
        monkeypatch.setitem(sys.modules, "pydlshogi.uct.cshogi_board", None)
    else:
        monkeypatch.setattr(boards, "has_avx2", lambda: False)
    found = ("rsshogi", "RsshogiBoard") if has_rsshogi else ("python-shogi", "PythonShogiBoard")
    assert choose() == found
    assert boards.libraries_passed_over() == []
    monkeypatch.undo()
    assert choose() == ("cshogi", "CshogiBoard")


class OtherVersion:
    """A board of a library of another version: a function is gone, or answers otherwise."""

    def __init__(self, make, name, answer):
        self._make, self._name, self._answer = make, name, answer

    def __call__(self, sfen=None):
        return Other(self._make(sfen), self._name, self._answer)


class Other:
    def __init__(self, board, name, answer):
        self._board, self._name, self._answer = board, name, answer

    def __getattr__(self, name):
        if name != self._name:
            return getattr(self._board, name)
        if self._answer is AttributeError:
            raise AttributeError(f"no attribute {name!r}")
        return lambda *arguments: self._answer


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        *((name, AttributeError) for name in ("key", "in_check", "can_declare", "sfen")),
        ("mate", None),
        ("can_declare", True),
        ("moves", numpy.zeros(1, numpy.uint16)),
        ("checks", []),
        ("search_mate", ([], True)),
        ("sfen", ""),
        ("pop", None),
    ],
)
@pytest.mark.parametrize("make", FAST_BOARDS)
def test_a_library_of_another_version_is_passed_over_with_a_sentence(
    make, name, answer, choose, monkeypatch
):
    library = make.__name__.removesuffix("Board").lower()
    if library == "rsshogi":
        monkeypatch.setitem(sys.modules, "pydlshogi.uct.cshogi_board", None)
    monkeypatch.setattr(
        sys.modules[make.__module__], make.__name__, OtherVersion(make, name, answer)
    )
    assert choose()[0] != library
    (sentence,) = boards.libraries_passed_over()
    assert sentence.startswith(f"{library} {importlib.metadata.version(library)} is not used")
    assert "\n" not in sentence


def test_a_module_that_is_gone_from_a_library_is_named(choose, monkeypatch):
    pytest.importorskip("rsshogi")
    monkeypatch.setitem(sys.modules, "pydlshogi.uct.cshogi_board", None)
    monkeypatch.delitem(sys.modules, "pydlshogi.uct.rsshogi_board")
    monkeypatch.setitem(sys.modules, "rsshogi.core", None)
    assert choose() == ("python-shogi", "PythonShogiBoard")
    (sentence,) = boards.libraries_passed_over()
    assert "rsshogi.core" in sentence
