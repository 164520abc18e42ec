"""The mate searches at the root."""

import itertools
import subprocess
import sys
import time
from pathlib import Path

import cshogi
import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from uct_helpers import BOARDS, FAST_BOARDS, FakeNetwork, endgames

from pydlshogi.uct.board import ends_in_mate
from pydlshogi.uct.core import WIN, Proof
from pydlshogi.uct.cshogi_board import CshogiBoard
from pydlshogi.uct.dfpn import MateSearch
from pydlshogi.uct.game import Game
from pydlshogi.uct.line import best_lines
from pydlshogi.uct.mate import RootMate, find_mate, mate_line
from pydlshogi.uct.move import from_usi
from pydlshogi.uct.python_shogi_board import PythonShogiBoard
from pydlshogi.uct.search import Search
from pydlshogi.uct.settings import Settings

#: A mate in three plies from a real game.
THREE = "l8/5s3/p3g3n/3s1p2l/1P4p1R/3k+s1gPK/P4P3/7B1/7L1 w RBNP2gs2nl10p 216"


def never():
    return False


def is_mating(sfen, line):
    board = cshogi.Board(sfen)
    for move in line:
        full = board.move_from_move16(move)
        assert board.is_legal(full)
        board.push(full)
    return board.is_check() and not list(board.legal_moves) and len(line) % 2 == 1


def limited(search, nodes):
    """Runs a search for a number of nodes."""
    return search.run(lambda: search.nodes > nodes)


@pytest.mark.long
def test_df_pn_agrees_with_cshogis():
    results = []
    for sfen in itertools.islice(endgames(400, plies=8), 0, None, 5):
        reference = cshogi.DfPn(depth=1000, nodes=20000)
        expected = reference.search(cshogi.Board(sfen))
        if not expected and reference.searched_node >= 20000:
            continue
        search = MateSearch(CshogiBoard(sfen))
        results.append(limited(search, 4000))
        assert results[-1] in (None, expected), sfen
        if results[-1]:
            assert is_mating(sfen, search.line()), sfen
    assert results.count(True) > 15
    assert results.count(False) > 15
    assert results.count(None) < 15


class Graph:
    """A board on a graph of checks and defences, given as a list of arrows."""

    def __init__(self, arrows):
        self._after = {}
        for arrow in arrows.split():
            origin, target = arrow.split(">")
            self._after.setdefault(origin, []).append(target)
        self._names = sorted({name for arrow in arrows.split() for name in arrow.split(">")})
        self._line = ["R"]

    def key(self):
        return self._names.index(self._line[-1])

    def checks(self):
        return [self._names.index(name) for name in self._after.get(self._line[-1], ())]

    def moves(self):
        return numpy.array(self.checks(), int)

    def mate(self, plies):
        return None

    def push(self, move):
        self._line.append(self._names[move])

    def pop(self):
        self._line.pop()


@pytest.mark.parametrize("first", ["A", "M"])
def test_a_disproof_by_a_repetition_counts_only_where_it_is_one(first):
    """N mates by A, but not where A came before: then the way back to A is a repetition."""
    second = "M" if first == "A" else "A"
    ways = f"R>D D>{first} D>{second} A>X X>N N>Y Y>A M>Z Z>N A>W"
    assert MateSearch(Graph(ways)).run(never) is True


def test_a_disproof_by_a_repetition_is_one():
    assert MateSearch(Graph("R>D D>A A>X X>R")).run(never) is False
    # Without the mate after A, every way leads round in a circle.
    assert MateSearch(Graph("R>D D>A D>M A>X X>N N>Y Y>A M>Z Z>N")).run(never) is False


@pytest.mark.parametrize(
    "arrows",
    [
        "R>d0 a0>d0 a0>d2 a0>d1 a1>d1 a1>d2 a1>d0 a2>d1 a2>d0 a2>d2 d0>a0 d0>a2 d0>a1 d1>a0 d2>a1 "
        "d2>a2",
        "R>d0 a0>d2 a0>d1 a1>d1 a1>d2 a1>d0 a2>d2 a2>d1 d0>a0 d0>a2 d0>a1 d1>a2 d1>a0 d2>a0",
        "R>d0 a0>d1 a0>d3 a1>d2 a1>d1 a2>d2 a3>d0 a3>d3 d0>a0 d0>a3 d1>a3 d1>a2 d2>a0 d3>a1",
    ],
)
def test_a_search_of_lines_that_run_in_circles_ends(arrows):
    """Positions in these graphs change each other's numbers for ever."""
    search = MateSearch(Graph(arrows))
    assert search.run(lambda: search.nodes > 10_000) is False


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@given(st.data())
def test_df_pn_agrees_with_an_exhaustive_search_of_a_graph(data):
    """The attacker moves at a0, a1, …, the defender at d0, d1, …, to positions of the other."""
    size = data.draw(st.integers(2, 6))
    arrows = ["R>d0"]
    for side, other in ("ad", "da"):
        for number in range(size):
            targets = data.draw(st.lists(st.integers(0, size - 1), max_size=3, unique=True))
            arrows += [f"{side}{number}>{other}{target}" for target in targets]
    graph = " ".join(arrows)
    after = {}
    for arrow in graph.split():
        origin, target = arrow.split(">")
        after.setdefault(origin, []).append(target)

    def mates(name, attacks, path):
        if name in path:
            return False
        results = [mates(target, not attacks, path | {name}) for target in after.get(name, ())]
        return any(results) if attacks else all(results)

    search = MateSearch(Graph(graph))
    assert search.run(lambda: search.nodes > 10_000) is mates("R", True, frozenset())


def test_a_mate_search_asks_at_every_position_whether_to_stop():
    asked = []
    search = MateSearch(PythonShogiBoard(THREE))
    assert search.run(lambda: asked.append(search.nodes)) is True
    assert asked == list(range(1, search.nodes + 1))


def test_the_table_of_a_mate_search_is_freed_in_slices():
    search = MateSearch(CshogiBoard(THREE))
    search.run(never)
    table = search._table
    table.update((-key, None) for key in range(1, 20_001))
    search.free()
    assert not search._table
    end = time.monotonic() + 60
    while table and time.monotonic() < end:
        time.sleep(0.01)
    assert not table


def test_a_mate_found_at_the_root_is_the_shortest_up_to_seven_plies():
    sfen = "l1l+N2+N2/1p1G5/pk2p3p/2+b6/9/1P1G+B4/2PP4P/2LK5/8L b 2G4S2N8P2r2p 161"
    board = CshogiBoard(sfen)
    df_pn = next(line for nodes in (1000, 2000, 4000) if (line := board.search_mate(nodes, 31)[0]))
    assert len(df_pn) > 7
    search = RootMate(board, 31)
    line = next(line for _ in range(3) if (line := search.step()))
    assert len(line) == 7 and is_mating(sfen, line)


def test_the_librarys_no_is_no_proof(monkeypatch):
    """cshogi's df-pn overlooks mates because of repetitions and of its limit of plies."""
    monkeypatch.setattr(CshogiBoard, "search_mate", lambda self, nodes, plies: ([], True))
    monkeypatch.setattr(CshogiBoard, "start_mate_process", lambda self, memory: None)
    assert is_mating(THREE, find_mate(MateSearch(CshogiBoard(THREE)), never))
    # It says so of this mate.
    sfen = "7k1/5+Bp2/7Ss/9/9/9/1n7/9/9 b 2rb4g2s3n4l17p 1"
    end = time.monotonic() + 1
    line = find_mate(MateSearch(CshogiBoard(sfen)), lambda: time.monotonic() > end)
    assert line is None or is_mating(sfen, line)


#: A mate that cshogi finds in a third of a second, and our own search not in ten.
LONG = "3+R1gknl/4+B1s2/6pp1/5p3/8p/9/9/9/9 b RSNPb3g2s2n3l13p 1"


@pytest.mark.long
def test_a_long_mate_is_found_in_a_process_of_its_own():
    end = time.monotonic() + 60
    search = MateSearch(CshogiBoard(LONG))
    line = find_mate(search, lambda: time.monotonic() > end)
    assert is_mating(LONG, line)
    assert len(line) >= 15


DEEP = "9/9/9/4k4/9/9/9/9/4K4 b RB2G2S2N2L9Prb2g2s2n2l9p 1"  # no mate in 10 s


def test_a_search_in_a_process_ends_at_once_when_it_is_stopped():
    process = CshogiBoard(DEEP).start_mate_process(10**9)
    time.sleep(0.5)
    assert not process.has_ended()
    start = time.monotonic()
    process.close()
    assert time.monotonic() - start < 0.3
    assert process.has_ended() and not process.mate()


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone ends such a process")
def test_a_search_in_a_process_ends_when_its_parent_is_killed():
    code = (
        "import time; from pydlshogi.uct.mate_process import MateProcess\n"
        f"process = MateProcess('{DEEP}', 10**9)\n"
        "print(process._process.pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    child = Path(f"/proc/{int(parent.stdout.readline())}/stat")
    time.sleep(2)  # now each search takes seconds
    assert is_running(child)
    parent.kill()
    parent.communicate()
    end = time.monotonic() + 1
    while is_running(child) and time.monotonic() < end:
        time.sleep(0.02)
    assert not is_running(child)


def is_running(stat):
    """Says whether the process of a file stat of Linux runs."""
    try:
        return stat.read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_process_that_cannot_start_leaves_our_own_search(monkeypatch):
    def refuse(*arguments, **options):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr("pydlshogi.uct.mate_process.subprocess.Popen", refuse)
    monkeypatch.setattr(CshogiBoard, "search_mate", lambda self, nodes, plies: ([], False))
    line = find_mate(MateSearch(CshogiBoard(THREE)), never)
    assert len(line) == 3 and is_mating(THREE, line)


def test_a_mate_is_shortened_before_it_is_shown():
    sfen = "5pk2/7P1/4+R1+P1+b/8b/6R2/9/9/9/9 b 4g4s4n4l15p 1"
    assert len(CshogiBoard(sfen).search_mate(1000, 400)[0]) > 5
    line = find_mate(MateSearch(CshogiBoard(sfen)), never)
    assert len(line) == 5 and is_mating(sfen, line)


@pytest.mark.parametrize("make", BOARDS)
def test_df_pn_needs_no_fast_board(make):
    search = MateSearch(make(THREE))
    assert search.run(never) is True
    assert is_mating(THREE, search.line())


@pytest.fixture(scope="module")
def hard():
    """A position with a mate that takes df-pn hundreds of nodes."""
    return next(
        sfen
        for sfen in endgames(1000, plies=12)
        if limited(search := MateSearch(CshogiBoard(sfen)), 5000) and search.nodes > 600
    )


def test_df_pn_can_be_stopped_and_goes_on(hard):
    board = CshogiBoard(hard)
    key = board.key()
    search = MateSearch(board)
    stops = 0
    while limited(search, search.nodes + 60) is None:
        stops += 1
        assert board.key() == key
    assert stops > 3
    assert board.key() == key
    assert is_mating(hard, search.line())


def test_df_pn_stops_when_its_memory_is_full(hard):
    search = MateSearch(CshogiBoard(hard), memory=0)
    assert search.run(never) is None


def test_no_mate_is_told_from_a_stopped_search():
    assert find_mate(MateSearch(CshogiBoard()), never) == []
    assert find_mate(MateSearch(PythonShogiBoard()), never) == []
    assert find_mate(MateSearch(CshogiBoard("9/9/9/9/9/9/9/9/9 b G 1")), never) == []
    middle = list(endgames(1, plies=40))[0]
    assert find_mate(MateSearch(PythonShogiBoard(middle)), lambda: True) is None


class SlicedBoard(CshogiBoard):
    """A board whose mate search finds nothing, and writes down how many nodes it may visit.

    Attributes:
        now: A clock, in seconds.
        node_seconds: Time of a node.
        slices: The numbers of nodes.
    """

    def __init__(self, node_seconds=0.0):
        super().__init__()
        self.now = 0.0
        self.node_seconds = node_seconds
        self.slices = []

    def search_mate(self, nodes, plies):
        self.slices.append(nodes)
        self.now += nodes * self.node_seconds
        return [], False


@pytest.mark.parametrize(
    ("node_seconds", "most"), [(0, 32000), (1e-6, 32000), (4e-6, 8000), (30e-6, 1000)]
)
def test_no_slice_of_a_mate_search_is_long(monkeypatch, node_seconds, most):
    board = SlicedBoard(node_seconds)
    monkeypatch.setattr(time, "thread_time", lambda: board.now)
    assert find_mate(MateSearch(board), never) == []
    assert max(board.slices) == most
    assert board.slices == sorted(board.slices)


def test_a_pause_of_the_process_does_not_end_a_mate_search():
    class PausedBoard(SlicedBoard):
        def search_mate(self, nodes, plies):
            time.sleep(0.03)
            return super().search_mate(nodes, plies)

    board = PausedBoard()
    search = RootMate(board, 31)
    while not search.is_complete:
        search.step()
    assert board.slices == [1000, 2000, 4000]


def test_a_mate_that_comes_after_the_limit_of_plies_is_not_reported():
    """cshogi's df-pn finds a mate in seven plies although it is limited to five."""
    sfen = "l6k1/3g1G3/p1np3g1/2R6/3Pp1KL1/4sP1Pr/P1P+l2P2/6S+n1/L+p3G3 b B2S2N8Pb 143"
    for plies in (5, 7):
        search = RootMate(CshogiBoard(sfen), plies)
        lines = [search.step() for _ in range(3)]
        assert max(map(len, lines)) == (7 if plies == 7 else 0)


def test_a_mate_search_stops_between_two_slices():
    board = SlicedBoard()
    find_mate(MateSearch(board), lambda: True)
    assert board.slices == [1000]


@pytest.mark.parametrize("make", FAST_BOARDS)
def test_mates_are_found_with_their_lines(make):
    found = 0
    for sfen in endgames(40, plies=5):
        line = find_mate(MateSearch(make(sfen)), lambda: True)
        if line:
            found += 1
            assert is_mating(sfen, line)
    assert found > 5


@pytest.mark.parametrize("make", FAST_BOARDS)
def test_the_root_is_searched_in_slices_that_end(make):
    found = 0
    for sfen in endgames(60, plies=8):
        board = make(sfen)
        search = RootMate(board, 31)
        lines = [search.step() for _ in range(7)]
        assert lines[3:] == [[]] * 4
        for line in filter(None, lines):
            found += 1
            assert is_mating(sfen, line)
    assert found > 5


@pytest.mark.parametrize("make", BOARDS)
def test_a_mate_is_found_at_the_root_on_every_board(make):
    """Its defender has few replies, so a small part of the nodes of a fast library suffices."""
    sfen = "l2s2+S1l/9/k1ppp1n1p/p5pb1/1n2G4/2N1PG3/PP1P1+bP+pP/1+rPKG4/L4+p1NL w 2Prg2sp 104"
    search = RootMate(make(sfen), 31)
    line = next(filter(None, (search.step() for _ in range(3))))
    assert len(line) == 3 and is_mating(sfen, line)


@pytest.mark.parametrize("make", FAST_BOARDS)
def test_a_mate_line_is_the_longest_defence(make):
    found = 0
    for sfen in endgames(120, plies=8):
        mate = make(sfen).mate(5)
        if mate:
            found += 1
            line = mate_line(make(sfen), 5)
            assert len(line) == mate.plies
            assert is_mating(sfen, line)
    assert found > 5


#: Mates in three that cshogi's search for three plies misses: the last check is a distant one.
#: After the check 3h2h, White's rook captures and does not promote. Then P*1i, the only way to
#: mate, is a mate by a dropped pawn, which is illegal.
NOT_PROMOTING = "9/9/K8/9/9/5B3/7bp/2r3Gpk/4R4 b P 1"


@pytest.mark.parametrize("make", BOARDS)
def test_a_mate_that_a_reply_without_promotion_refutes_is_none(make):
    board = make(NOT_PROMOTING)
    assert board.mate(5) is None and board.mate(7) is None
    assert board.search_mate(10**5, 31)[0] == []
    assert find_mate(MateSearch(board), lambda: False) == []
    line = list(map(from_usi, ["3h2h", "7h2h+", "P*1i", "2h1i", "5i1i"]))
    assert not ends_in_mate(board, line)
    assert ends_in_mate(make(NOT_PROMOTING, ["3h2h", "7h2h+"]), line[2:])


class Wrong:
    """A process that has found the mate that a reply refutes."""

    def mate(self):
        return list(map(from_usi, ["3h2h", "7h2h+", "P*1i", "2h1i", "5i1i"]))

    def has_ended(self):
        return True

    def close(self):
        pass


def test_a_mate_of_the_other_process_that_a_reply_refutes_does_not_end_the_search(monkeypatch):
    monkeypatch.setattr(CshogiBoard, "start_mate_process", lambda board, memory: Wrong())
    assert find_mate(MateSearch(CshogiBoard(NOT_PROMOTING)), lambda: False) == []


class Changing(Wrong):
    """A process that finds a mate, and then a shorter one that is none."""

    def __init__(self, sound):
        self.found = sound

    def mate(self):
        return self.found

    def has_ended(self):
        self.found = self.found[:1]
        return True


def test_a_mate_stays_though_the_process_then_finds_a_shorter_one_that_is_none(monkeypatch):
    mate = mate_line(CshogiBoard(THREE), 3)
    monkeypatch.setattr(CshogiBoard, "start_mate_process", lambda *arguments: Changing(mate))
    monkeypatch.setattr(CshogiBoard, "search_mate", lambda self, nodes, plies: ([], False))
    assert find_mate(MateSearch(CshogiBoard(THREE)), lambda: False) == mate


DISTANT = [
    "kp7/2+R6/1P7/9/9/4R4/9/9/5L3 b Pb 1",
    "7p1/7gk/3+B2B2/9/9/9/9/6+P2/5+R3 b 2P 1",
    "8k/6R1s/9/9/9/9/R8/9/9 b P 1",
]


@pytest.mark.parametrize("sfen", DISTANT)
@pytest.mark.parametrize("plies", [5, 7])
@pytest.mark.parametrize("make", FAST_BOARDS)
def test_a_mate_with_a_distant_check_has_its_shortest_length_and_its_line(sfen, plies, make):
    line = mate_line(make(sfen), plies)
    assert len(line) == 3 and is_mating(sfen, line)
    search = Search(FakeNetwork(), Settings(mate_plies=plies))
    search.begin(Game(make(sfen)))
    search.step(8)
    (shown,) = best_lines(search, 3)
    assert len(shown.moves) == 3 and is_mating(sfen, shown.moves)
    assert shown.proof == search.root.proof == Proof(WIN, 3)
    # A longer mate with the only move allowed, as if the board knew one, is not exchanged for it.
    other = next(move for move in make(sfen).moves().tolist() if move != shown.moves[0])
    search.begin(Game(make(sfen)), root_moves=frozenset([other]))
    root = search.root
    search.tree.prove(root.index, Proof(WIN, 5))
    search.tree.set_mate_moves(root.index, [other])
    assert best_lines(search, 3)[0].moves[0] == other


def test_a_line_goes_on_where_the_boards_search_misses_the_rest(monkeypatch):
    five = next(s for s in endgames(500) if (m := CshogiBoard(s).mate(5)) and m.plies == 5)
    board = CshogiBoard(five)
    mate = board.mate
    monkeypatch.setattr(board, "mate", lambda plies: None if plies == 3 else mate(plies))
    line = mate_line(board, 5)
    assert len(line) == 5 and is_mating(five, line)


def test_a_root_mate_begins_only_with_the_moves_to_choose_from(monkeypatch):
    excluded = 0  # not a move
    monkeypatch.setattr("pydlshogi.uct.mate.mate_line", lambda board, plies: [excluded])
    line = RootMate(CshogiBoard(THREE), 31).step()
    assert is_mating(THREE, line)  # the shorter line does not mate
    monkeypatch.setattr("pydlshogi.uct.mate.ends_in_mate", lambda board, line: bool(line))
    assert RootMate(CshogiBoard(THREE), 31).step() == [excluded]
    assert RootMate(CshogiBoard(THREE), 31, frozenset(line)).step() == line
    board = CshogiBoard(THREE)
    others = frozenset(board.moves().tolist()) - {line[0]}
    assert RootMate(board, 31, others).step() == []


def test_no_check_is_tried_where_no_mate_is_known(monkeypatch):
    monkeypatch.setattr("pydlshogi.uct.mate.forced_mate", lambda *_: pytest.fail("tried"))
    assert mate_line(CshogiBoard(), 7) == []


@pytest.mark.parametrize("plies", [0, 1])
def test_no_line_where_the_mate_is_longer(plies):
    three = next(s for s in endgames(500) if (m := CshogiBoard(s).mate(5)) and m.plies == 3)
    assert mate_line(CshogiBoard(three), plies) == []


@pytest.mark.parametrize("make", FAST_BOARDS)
def test_mates_are_searched_up_to_any_number_of_plies(make):
    board = make(THREE)
    found = [board.mate(plies) for plies in range(10)]
    assert found[:3] == [None] * 3
    assert {mate.plies for mate in found[3:]} == {3}
    nodes = 1000 if make is CshogiBoard else 4000
    assert [len(board.search_mate(nodes, plies)[0]) for plies in range(1, 6)] == [0, 0, 3, 3, 3]
