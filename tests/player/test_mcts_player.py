"""The player that searches, with a fake network: what each option and each limit does."""

import gc
import math
import re
import sys
import threading
import time
import weakref
from pathlib import Path
from types import SimpleNamespace

import cshogi
import numpy
import pytest
import shogi
from uct_helpers import ENTERED, TWO_PIECES, FakeNetwork, endgames, searched

from pydlshogi import files
from pydlshogi.inference.evaluator import Evaluation
from pydlshogi.player import search_info
from pydlshogi.player.clock import Timer
from pydlshogi.player.levels import LEVELS, SECONDS
from pydlshogi.player.mcts_player import MCTSPlayer
from pydlshogi.player.opening_book import BookError, BookMove, write_book
from pydlshogi.player.parallel_mcts_player import ParallelMCTSPlayer
from pydlshogi.player.search_end import is_settled
from pydlshogi.player.search_info import Reports, info_lines, why_unknown
from pydlshogi.uct import boards
from pydlshogi.uct.core import DRAW, EDGE, LOSS, USED_BLOCKS, WIN, Proof, add_child
from pydlshogi.uct.cshogi_board import CshogiBoard
from pydlshogi.uct.dfpn import MateSearch
from pydlshogi.uct.judge import judge
from pydlshogi.uct.line import Candidate, Line, best_lines, candidates
from pydlshogi.uct.move import from_usi, to_usi
from pydlshogi.uct.search import Search
from pydlshogi.uct.tree import BLOCK_BYTES
from pydlshogi.usi.protocol import Clock, FatalError, Go

MATE_IN_ONE = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"
MATED = "4k4/4G4/4P4/9/9/9/9/9/4K4 w - 1"
LONG_MATE = "8l/S2Rlsg1k/1S2p1nL1/5+BGpp/1p3pp2/n1p1P4/KP3P3/3L1b3/1N4RN1 b 2G6Ps2p 157"
DECLARED = "KGGGGSSSS/RRBB5/9/9/9/9/9/9/8k b - 1"


@pytest.fixture(autouse=True)
def library():
    """Chooses the board before a test changes it: its first use tries its searches."""
    return boards.board_library()


@pytest.fixture(scope="module")
def lost():
    """A position in which the side to move can play, but is mated soon."""
    for sfen in endgames(200, plies=4):
        proof = searched(300, sfen).root.proof
        if proof and proof.outcome == LOSS and proof.plies:
            return sfen
    raise AssertionError


class FakeEvaluator:
    """The evaluator of a fake network.

    Attributes:
        asked: Number of positions evaluated.

    Args:
        win: Value of every position; None for those of the fake network.
    """

    plane_num = 104

    backend = "own"

    def __init__(self, has_policy=True, has_value=True, seconds=0.0, win=None):
        self.has_policy, self.has_value, self._seconds = has_policy, has_value, seconds
        self._win = win
        self._network = FakeNetwork()
        self.asked = 0

    def evaluate(self, planes):
        self.asked += len(planes)
        time.sleep(self._seconds)
        logits, wins = self._network(numpy.stack(planes))
        if self._win is not None:
            wins = numpy.full_like(wins, self._win)
        return Evaluation(logits, wins if self.has_value else None)


class CpuDevice:
    xp = numpy

    def use(self):
        pass


class Player(MCTSPlayer):
    """A player whose network is fake, and whose lines are kept.

    Attributes:
        said: The lines that were sent.
    """

    def __init__(self, **fake):
        self.said = []
        super().__init__(send=self.said.append)
        self._fake = fake

    def _load(self, path):
        self.device = CpuDevice()
        self._evaluator = FakeEvaluator(**self._fake)
        self.check_network()

    def set(self, **options):
        for name, value in options.items():
            self.options.set(name, str(value))


class CountedBoard(shogi.Board):
    """Counts the boards that exist."""

    alive = 0

    def __init__(self, *args):
        super().__init__(*args)
        type(self).alive += 1

    def __del__(self):
        type(self).alive -= 1


def make_player(sfen=None, moves=(), fake=None, **options):
    player = Player(**(fake or {}))
    player.set(**options)
    player.prepare()
    player.set_position(sfen, list(moves))
    return player


def number(player, name):
    """Returns a number of the last info line."""
    line = [line for line in player.said if line.startswith("info depth")][-1]
    return int(re.search(rf" {name} (-?\d+)", line)[1])


def asked(player):
    return player._evaluator.asked


def legal(answer, sfen=None, moves=()):
    """Checks a bestmove and its ponder move."""
    board = cshogi.Board(sfen or cshogi.STARTING_SFEN)
    for move in moves:
        board.push_usi(move)
    words = answer.split()
    for move in words[::2]:
        assert board.is_legal(board.move_from_usi(move)), answer
        board.push_usi(move)
    assert words[1:2] in ([], ["ponder"])
    return words[0]


def test_it_is_made_without_arguments():
    assert MCTSPlayer().name == "mcts_player"
    assert ParallelMCTSPlayer().name == "parallel_mcts_player"
    assert isinstance(ParallelMCTSPlayer(), MCTSPlayer)


def test_the_default_model_is_the_policy_model_until_there_is_one_with_two_heads(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(files, "shipped_file", lambda name: tmp_path / name)
    player = MCTSPlayer()
    assert player.model_path() == tmp_path / "model_policy"
    (tmp_path / "model_policy_value").touch()
    assert player.model_path() == tmp_path / "model_policy_value"
    player.options.set("modelfile", "/other")
    assert player.model_path() == Path("/other")


def test_the_board_that_a_script_has_changed_is_searched():
    player = make_player(moves=["7g7f"], nodes=20)
    player.board.push_usi("3c3d")
    legal(player.choose(Go()), moves=["7g7f", "3c3d"])
    player.board = shogi.Board(MATE_IN_ONE)
    assert player.choose(Go()) == "G*5b"
    assert player.find_mate(Go(mate=True)) == "G*5b"


def test_a_board_of_a_script_is_left_as_it_is():
    player = make_player()
    for _ in range(2):
        board = player.board = shogi.Board(MATE_IN_ONE)
        player.set_position(None, ["7g7f"])
        assert len(list(board.legal_moves)) > 1
        player.board = board
        player.set_position(None, [])
        assert len(list(board.legal_moves)) > 1


def test_without_isready_the_network_answers_even_a_short_first_move(monkeypatch):
    player = Player(seconds=0.2)
    prepare = player.prepare

    def slow():
        time.sleep(0.3)
        prepare()

    monkeypatch.setattr(player, "prepare", slow)
    legal(player.choose(Go(black=Clock(byoyomi=200))))
    assert not any("not answered" in line for line in player.said)


def test_the_books_go_visits_as_often_as_the_books_player(capsys):
    player = Player()
    player.isready()
    player.position(["startpos", "moves", "7g7f"])
    player.go()
    assert number(player, "nodes") == 300
    assert legal(player.said[-1].partition(" ")[2], moves=["7g7f"])


# Limits


@pytest.mark.parametrize("nodes", [1, 2, 50, 333])
def test_nodes_are_visited_exactly(nodes):
    player = make_player()
    legal(player.choose(Go(nodes=nodes)))
    assert number(player, "nodes") == nodes
    assert asked(player) <= nodes


def test_the_option_nodes_limits_every_search():
    player = make_player(nodes=40)
    player.choose(Go(black=Clock(byoyomi=10**6)))
    assert number(player, "nodes") == 40
    player.choose(Go(nodes=30))
    assert number(player, "nodes") == 30


def test_depth_is_that_of_the_line():
    player = make_player()
    player.choose(Go(depth=3))
    assert number(player, "depth") == 3


def test_a_line_that_ends_in_a_repetition_ends_a_search_to_a_depth(monkeypatch):
    cycle = ["2h3h", "8b7b", "3h2h", "7b8b"]
    player = make_player(moves=[*cycle * 3][:-1], Draw_Value_White=1000, fake={"win": 0.5})
    steps = iter(range(500))
    step = player._search.step
    monkeypatch.setattr(player._search, "step", lambda *args: (next(steps), step(*args)))
    player.choose(Go(depth=50))
    assert player.said[-1].endswith("pv 7b8b")


def test_an_only_move_into_a_draw_ends_a_search_to_a_depth(monkeypatch):
    """The draw's only visit proves the only move, too, so that there is no second one."""
    # After the other move, White has hundreds of replies.
    player = make_player("8k/9/9/9/9/9/9/9/K8 b RGrbgsnlp 1", Draw_Ply=2)
    steps = iter(range(60))
    step = player._search.step
    monkeypatch.setattr(player._search, "step", lambda *args: (next(steps), step(*args)))
    player.choose(Go(depth=50, searchmoves=("G*1b", "G*5e")))
    assert player.said[-1].endswith("pv G*1b 1a1b")


def test_a_move_without_an_answer_of_the_network_is_legal_and_the_gui_is_told():
    player = make_player(fake={"seconds": 0.5})
    start = time.perf_counter()
    legal(player.choose(Go(movetime=0)))
    assert time.perf_counter() - start < 0.4
    assert any("has not answered in time" in line for line in player.said)
    assert not any("score" in line for line in player.said)


@pytest.mark.parametrize("limit", [{"depth": 0}, {"depth": -1}, {"nodes": 0}])
def test_a_limit_of_nothing_still_plays_the_most_probable_move(limit):
    expected = make_player().choose(Go(depth=1))
    player = make_player(USI_Ponder="false")
    assert player.choose(Go(**limit)) == expected.split()[0]
    assert asked(player) == 1


def fill(tree, size):
    """Makes a tree believe that it has a size."""
    tree.pool[USED_BLOCKS] = int(size / BLOCK_BYTES)


def test_a_full_tree_does_not_keep_the_network_from_choosing_the_move():
    expected = make_player().choose(Go(depth=1))
    player = make_player(USI_Ponder="false", USI_Hash=16)
    player._begin(Go(nodes=100))
    fill(player._search.tree, 20e6)
    assert player._search.is_full()
    assert player.choose(Go(nodes=100)) == expected.split()[0]
    assert asked(player) == 1


def test_a_position_that_a_search_judged_as_a_repetition_is_searched_at_the_root():
    cycle = ["2h3h", "8b7b", "3h2h", "7b8b"]
    player = make_player(moves=[*cycle * 3][:-1])
    analyse = Go(infinite=True, nodes=100)  # the fourth occurrence ends the game
    child = None
    while child is None:
        player.choose(analyse)
        child = player._search.root.child_after(from_usi(cycle[-1]))
    assert child.proof == Proof(DRAW, 0)
    player.set_position(None, cycle * 3)
    player.said.clear()
    legal(player.choose(analyse), moves=cycle * 3)
    assert player._search.root == child
    assert number(player, "nodes") == 100


def test_byoyomi_is_used_and_kept():
    player = make_player(Byoyomi_Margin=100)
    start = time.perf_counter()
    player.choose(Go(black=Clock(remaining=0, byoyomi=700)))
    assert 0.3 < time.perf_counter() - start < 0.7


def test_movetime_is_used_and_kept():
    player = make_player(Byoyomi_Margin=200, Softmax_Temperature=1)  # one move gets all visits
    start = time.perf_counter()
    player.choose(Go(movetime=500))
    assert 0.3 <= time.perf_counter() - start < 0.5


def test_a_slow_network_is_waited_for_while_the_clock_allows_it():
    expected = make_player(USI_Ponder="false").choose(Go(depth=1))
    player = make_player(USI_Ponder="false", fake={"seconds": 0.15}, Byoyomi_Margin=300)
    start = time.perf_counter()
    assert player.choose(Go(black=Clock(byoyomi=300))) == expected
    assert time.perf_counter() - start < 0.3
    assert not any("has not answered in time" in line for line in player.said)


def test_moves_that_lose_do_not_decide_how_long_to_think():
    """The favourite has been refuted, and two others have nearly the same number of visits."""
    go = Go(black=Clock(remaining=300_000))
    player = make_player()
    player.choose(Go(nodes=400))
    root = player._search.root
    nodes = root.tree.nodes

    def set_visits(child, visits, wins):
        nodes.visits[child.index], nodes.total[child.index] = visits, visits - wins

    for child in root.children:
        set_visits(child, 0, 0.0)
    third = root.children[2]
    for child, visits, wins in zip(root.children, [300, 50, 49], [150.0, 25.0, 24.0]):
        set_visits(child, visits, wins)
    timer = Timer(go, 0, 0, 0.3)
    timer.spent = lambda: 1.01 * timer.budget().planned
    assert is_settled(root, go, timer, root.visits)
    root.tree.prove(root.children[0].index, Proof(WIN, 5))  # for the opponent
    assert not is_settled(root, go, timer, root.visits)
    set_visits(third, 5, 2.0)
    assert is_settled(root, go, timer, root.visits)
    set_visits(third, 5, 4.5)  # a higher value than that of the most visited move
    assert not is_settled(root, go, timer, root.visits)


def test_the_only_move_that_does_not_lose_is_played_at_once(monkeypatch):
    def step(self, max_visits, is_stopped):
        monkeypatch.undo()
        self.step(max_visits, is_stopped)
        self.step(max_visits, is_stopped)
        while not self.root.children:
            self.step(max_visits, is_stopped)
        tree, root = self.tree, self.root
        tree.reserve(1000, 0)
        for edge in list(root.edges())[:-1]:
            child = tree.edges.child[edge] or add_child(*tree.arrays, root.index, edge)
            tree.nodes.outcome[child] = WIN  # of the opponent
        monkeypatch.setattr(Search, "step", lambda self, *arguments: time.sleep(0.01))

    player = make_player(Byoyomi_Margin=0, Mate_Root_Search="false", Mate_PV_Search="false")
    monkeypatch.setattr(Search, "step", step)
    start = time.perf_counter()
    player.choose(Go(black=Clock(byoyomi=3000)))
    assert time.perf_counter() - start < 1


def test_the_clock_is_that_of_the_side_to_move():
    player = make_player(moves=["7g7f"])
    start = time.perf_counter()
    player.choose(Go(black=Clock(byoyomi=10**6), white=Clock(byoyomi=400)))
    assert time.perf_counter() - start < 1


def test_a_forced_move_is_played_at_once():
    sfen = "4k4/9/9/9/9/9/9/3r5/r3K4 b - 1"
    assert len(list(cshogi.Board(sfen).legal_moves)) == 1
    player = make_player(sfen)
    start = time.perf_counter()
    legal(player.choose(Go(black=Clock(byoyomi=10**5))), sfen)
    assert time.perf_counter() - start < 5


@pytest.mark.long
@pytest.mark.parametrize("batch_size", [1, 16, 128])
@pytest.mark.parametrize("kind", [{"infinite": True}, {"ponder": True}, {}])
def test_stop_does_not_wait_for_the_network(kind, batch_size):
    go = Go(**kind)
    player = make_player(batch_size=batch_size)
    player.choose(Go(nodes=2000))  # batches are large from the start
    player._evaluator = FakeEvaluator(seconds=1.0)
    # The dataclass is frozen, but its events are not.
    threading.Timer(0.5, go.stop.set).start()
    start = time.perf_counter()
    legal(player.choose(go))
    # A tenth of a second on an idle machine; the network takes a whole one.
    assert 0.45 < time.perf_counter() - start < 0.8


def test_a_search_that_is_stopped_before_it_begins_has_a_move():
    player = make_player(fake={"seconds": 1.0})
    go = Go(infinite=True)
    go.stop.set()
    start = time.perf_counter()
    legal(player.choose(go))
    assert time.perf_counter() - start < 0.2


@pytest.mark.parametrize("option", [0, 300])
def test_after_a_bare_ponderhit_the_option_nodes_is_the_limit(option):
    player = make_player(nodes=option)
    go = Go(ponder=True)
    go.ponderhit.set()
    player.choose(go)
    visits = player._search.root.visits
    assert visits == 300 if option else visits < 100


def test_ponderhit_switches_the_clock_on_and_is_no_stop():
    player = make_player(Byoyomi_Margin=100)
    go = Go(ponder=True, black=Clock(byoyomi=600))
    threading.Timer(0.4, go.ponderhit.set).start()
    start = time.perf_counter()
    legal(player.choose(go))
    # At 0.9 s, or earlier if the second move cannot catch up, but at least a tenth of 0.5 s later.
    assert 0.45 <= time.perf_counter() - start < 1.05


def test_searchmoves_are_the_only_ones():
    player = make_player(MultiPV=10)
    for moves in (["1g1f"], ["9g9f", "1i1h"]):
        answer = player.choose(Go(nodes=100, searchmoves=tuple(moves)))
        assert legal(answer) in moves
        lines = [line for line in player.said if line.startswith("info depth")]
        shown = {re.search(r" pv (\S+)", line)[1] for line in lines[-len(moves) :]}
        assert shown == set(moves)
    player.choose(Go(nodes=10, searchmoves=("5a5b",)))
    assert "names no legal move" in " ".join(player.said)


def test_a_single_searchmove_is_searched_for_the_time_given():
    player = make_player(Byoyomi_Margin=0)
    start = time.perf_counter()
    assert player.choose(Go(movetime=300, searchmoves=("2g2f",))).startswith("2g2f")
    assert time.perf_counter() - start > 0.2


def test_searchmoves_hold_also_if_the_network_has_not_answered():
    player = make_player(fake={"seconds": 0.3})
    assert player.choose(Go(movetime=0, searchmoves=("2g2f",))) == "2g2f"


# What the GUI sees


def test_info_comes_every_interval_and_at_the_end():
    player = make_player(PV_Interval=100)
    player.choose(Go(movetime=900))
    times = [int(re.search(r" time (\d+)", line)[1]) for line in player.said if " time " in line]
    assert 4 <= len(times) <= 9
    assert all(40 < b - a < 400 for a, b in zip(times[:-1], times[1:-1]))
    player.said.clear()
    player.set(PV_Interval=0)
    player.choose(Go(movetime=500))
    assert len(player.said) == 1


def test_the_first_lines_come_early_and_late_ones_on_time():
    """ShogiHome's analysis takes the last line before ``stop``: not one of half the time."""
    now, reported = 0.0, []
    timer = SimpleNamespace(elapsed=lambda: now)
    reports = Reports(timer, 0.5, lambda: reported.append(now))
    while now < 60:
        now += 0.013
        reports.send_if_due()
    expected = [0.1, 0.2, 0.4, 0.8, *(0.5 * number + 0.3 for number in range(2, 120))]
    assert reported == pytest.approx(expected, abs=0.014)
    assert Reports(timer, 0.05, print)._due == 0.05


@pytest.mark.long
def test_nodes_never_decrease_when_a_batch_is_given_up():
    player = make_player(PV_Interval=20, batch_size=128, fake={"seconds": 0.1})
    player.choose(Go(nodes=1500))  # batches are large from the start
    player.said.clear()
    go = Go(infinite=True)
    threading.Timer(0.5, go.stop.set).start()
    player.choose(go)
    nodes = [int(re.search(r" nodes (\d+)", line)[1]) for line in player.said]
    assert nodes == sorted(nodes)
    assert len(nodes) > 5


def test_multipv_shows_lines_best_last_and_legal():
    player = make_player(MultiPV=4)
    best = legal(player.choose(Go(nodes=300)))
    lines = [line for line in player.said if line.startswith("info depth")][-4:]
    assert [int(re.search(r"multipv (\d)", line)[1]) for line in lines] == [4, 3, 2, 1]
    for line in lines:
        assert re.fullmatch(
            r"info depth \d+ seldepth \d+ time \d+ nodes 300 nps \d+ hashfull \d+ multipv \d "
            r"score cp -?\d+ pv \S+( \S+)*",
            line,
        )
        board = cshogi.Board()
        for move in line.partition(" pv ")[2].split():
            assert board.is_legal(board.move_from_usi(move))
            board.push_usi(move)
    assert lines[-1].partition(" pv ")[2].split()[0] == best


def scores(player):
    """Returns the scores of the last search, the best move's first."""
    lines = [line for line in player.said if " score cp " in line]
    return [int(re.search(r" score cp (-?\d+)", line)[1]) for line in reversed(lines)]


def test_a_move_without_a_visit_has_no_better_score_than_the_others():
    # Every position is worth 0.8 for its side to move, so every move seems to be bad.
    player = make_player(MultiPV=30, PV_Interval=0, fake={"win": 0.8})
    player.choose(Go(nodes=12))
    assert 5 < len(player._search.root.children) < 30
    shown = scores(player)
    assert len(shown) == 30
    assert shown[-1] == min(shown)


def test_a_proven_draw_has_the_value_of_a_draw():
    bare_kings = "8k/9/9/9/9/9/9/9/K8 b - 1"
    for value in (100, 500, 900):
        player = make_player(bare_kings, Draw_Ply=2, Draw_Value_Black=value, PV_Interval=0)
        player.choose(Go(nodes=500))
        assert player._search.root.proof == Proof(DRAW, 2)
        assert scores(player) == [round(600 * math.log(value / (1000 - value)))]
        player.set(resign_threshold=50)
        assert player.choose(Go(nodes=500)) != "resign"


def test_after_a_pause_the_lines_that_were_missed_do_not_follow_one_another():
    player = make_player(PV_Interval=100)
    player.choose(Go(nodes=10))
    go = Go(infinite=True)
    is_over = player._make_stop_check(Timer(go, 0, 0, 0.0), 0)
    player.said.clear()
    time.sleep(0.5)
    for _ in range(5):
        is_over()
    assert len(player.said) == 1


def test_pending_visits_are_no_losses_in_what_is_shown():
    # All positions are even. Batches of 64 are pending most of the time.
    options = {"mate_plies": 0, "Mate_Root_Search": "false", "declaration_win": "false"}
    player = make_player(
        PV_Interval=1, batch_size=64, MultiPV=5, fake={"seconds": 0.03, "win": 0.5}, **options
    )
    go = Go(infinite=True)
    threading.Timer(1, go.stop.set).start()
    player.choose(go)
    scores = [re.search(r"score (\S+ \S+)", line)[1] for line in player.said if " score " in line]
    assert len(scores) > 20
    assert set(scores) == {"cp 0"}


def test_a_search_that_is_stopped_at_its_first_batch_does_not_resign():
    player = make_player(resign_threshold=20, fake={"seconds": 0.3, "win": 0.5})
    go = Go(infinite=True)
    threading.Timer(0.45, go.stop.set).start()  # the root is answered, its first child is not
    legal(player.choose(go))
    assert number(player, "score cp") == 0


def test_no_line_is_deeper_than_the_selective_depth(monkeypatch):
    # A line that ends with the moves of a mate search is longer than any playout.
    lines = [Line(moves, 0.5, None) for moves in ([1], [1, 2, 3, 4, 5], [1, 2])]
    monkeypatch.setattr(search_info, "to_usi", str)
    search = SimpleNamespace(deepest=3, fullness=lambda: 0.0)
    said = list(info_lines(search, lines, seconds=1, nodes=1, has_value=True))
    assert [line.split()[2] for line in said] == ["2", "5", "1"]
    assert {line.split()[4] for line in said} == {"5"}


@pytest.mark.parametrize(
    ("rows", "order"),
    [
        # The second line is worth more than the first, which is played.
        ([(900, 0.4), (800, 0.6), (500, 0.5)], [0, 1, 2]),
        ([(900, 0.5), (500, 0.3), (400, 0.4), (90, 0.6)], [0, 3, 2, 1]),
        # Too few visits for a comparison: a tenth of the most, and ten.
        ([(900, 0.5), (500, 0.3), (89, 0.9), (80, 0.95)], [0, 1, 2, 3]),
        ([(30, 0.5), (10, 0.3), (9, 0.9)], [0, 1, 2]),
        ([], []),
    ],
)
def test_the_lines_after_the_first_are_sorted_by_value_if_they_have_enough_visits(
    monkeypatch, rows, order
):
    found = [Candidate(move, *row, None, 0.0, None) for move, row in enumerate(rows)]
    monkeypatch.setattr(search_info, "candidates", lambda root: found)
    lines = [Line([move], value, None) for move, (_, value) in enumerate(rows)]
    shown = search_info.ordered(lines, SimpleNamespace(root=None))
    assert [line.moves[0] for line in shown] == order


def test_a_lost_line_stays_the_last(monkeypatch):
    lines = [Line([1], 0.5, None), Line([2], 0.1, None), Line([3], 0.9, Proof(-1, 4))]
    found = [Candidate(move, 100, 0.5, None, 0.0, None) for move in (1, 2, 3)]
    monkeypatch.setattr(search_info, "candidates", lambda root: found)
    assert search_info.ordered(lines, SimpleNamespace(root=None)) == lines


def test_a_mate_is_played_and_shown():
    player = make_player(MATE_IN_ONE)
    assert player.choose(Go(black=Clock(byoyomi=10**5))).split() == ["G*5b"]
    assert "score mate 1 pv G*5b" in player.said[-1]


def test_a_lost_position_is_shown_as_a_mate_against_us(lost):
    player = make_player(lost)
    legal(player.choose(Go(nodes=3000)), lost)
    assert re.search(r"score mate -\d+", player.said[-1]), player.said[-1]


def test_no_legal_move_resigns_and_a_declaration_wins():
    assert make_player(MATED).choose(Go()) == "resign"
    assert make_player(DECLARED).choose(Go()) == "win"
    sfen = DECLARED
    legal(make_player(sfen, declaration_win="false").choose(Go(nodes=50)), sfen)


def test_the_board_is_named_once_at_isready(monkeypatch):
    player = make_player()
    player.prepare()
    assert player.said.count("info string the search uses the board of cshogi") == 1
    for library in ("cshogi", "rsshogi"):
        monkeypatch.setitem(sys.modules, f"pydlshogi.uct.{library}_board", None)
    boards._implementation.cache_clear()
    try:
        slow = make_player()
        assert "info string the search uses the board of python-shogi" in slow.said
        legal(slow.choose(Go(nodes=60)))
        assert slow.find_mate(Go(mate=True)) == "nomate"
    finally:
        boards._implementation.cache_clear()


def test_ponder_moves_are_named_only_where_the_gui_ponders():
    assert " ponder " in make_player().choose(Go(nodes=200))
    assert " ponder " not in make_player(USI_Ponder="false").choose(Go(nodes=200))


# Networks


def test_a_network_without_values_plays_by_the_policy_alone():
    player = make_player(fake={"has_value": False}, MultiPV=3)
    said = [line for line in player.said if "no value head" in line]
    assert len(said) == 1
    answer = player.choose(Go(black=Clock(byoyomi=10**5)))
    legal(answer)
    assert asked(player) == 1
    assert not [line for line in player.said if " score " in line]
    mate = make_player(MATE_IN_ONE, fake={"has_value": False})
    assert mate.choose(Go()) == "G*5b"


def test_a_network_without_policy_is_refused():
    with pytest.raises(FatalError, match="value network and has no policy"):
        make_player(fake={"has_policy": False})


def test_numbers_that_are_not_finite_are_refused():
    player = make_player()
    answer = FakeEvaluator().evaluate(numpy.zeros((1, 104, 9, 9), numpy.float32))
    spoiled = Evaluation(answer.logits, numpy.array([numpy.nan], numpy.float32))
    player._evaluator.evaluate = lambda planes: spoiled
    with pytest.raises(FatalError, match="not finite"):
        player.choose(Go(nodes=10))


def test_a_player_that_is_closed_leaves_no_thread_and_can_go_on():
    before = set(threading.enumerate())
    player = make_player()
    for _ in range(2):
        player.choose(Go(nodes=10))
        assert len(set(threading.enumerate()) - before) == 1
        player.quit()
        deadline = time.monotonic() + 10
        while set(threading.enumerate()) - before and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not set(threading.enumerate()) - before


def test_a_player_that_nobody_refers_to_is_freed_without_the_garbage_collector():
    before = set(threading.enumerate())
    player = make_player()
    player.choose(Go(nodes=10))
    assert len(set(threading.enumerate()) - before) == 1
    evaluator = weakref.ref(player._evaluator)
    gc.disable()
    try:
        del player
        assert evaluator() is None
        deadline = time.monotonic() + 10
        while set(threading.enumerate()) - before and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not set(threading.enumerate()) - before
    finally:
        gc.enable()


@pytest.mark.parametrize("library", ["cshogi", "python-shogi"])
def test_no_board_of_an_earlier_search_stays_in_memory(monkeypatch, library):
    if library == "python-shogi":
        monkeypatch.setattr(boards, "_implementation", boards._python_shogi)
    threads = set(threading.enumerate())
    player = make_player()
    monkeypatch.setattr(shogi, "Board", CountedBoard)
    alive = []
    for number in range(1, 20):
        player.set_position(f"4k4/9/4P4/9/9/9/9/9/4K4 b - {number}", [])
        player.choose(Go(nodes=5))
        alive.append(CountedBoard.alive)
    player.close()
    for thread in set(threading.enumerate()) - threads:
        thread.join(10)
    assert alive[-1] == alive[3] <= 3


# Options


def test_the_tree_is_kept_for_the_next_move_and_forgotten_for_a_new_game():
    player = make_player()
    first, _, answer = player.choose(Go(nodes=500)).split()
    player.set_position(None, [first, answer])
    player.choose(Go(nodes=1))
    assert player._search.root.visits > 10
    player.new_game()
    player.choose(Go(nodes=1))
    assert player._search.root.visits == 1


def test_the_tree_is_kept_through_ponder():
    player = make_player()
    first, _, answer = player.choose(Go(nodes=300)).split()
    player.set_position(None, [first, answer])
    go = Go(ponder=True)
    threading.Timer(0.5, go.stop.set).start()
    player.choose(go)
    known = player._search.root.visits
    player.choose(Go(nodes=1))
    assert player._search.root.visits == known + 1


def test_an_analysis_does_not_use_the_trees_of_a_game():
    player = make_player()
    player.choose(Go(nodes=200))
    go = Go(infinite=True)
    go.stop.set()
    player.choose(go)
    assert player._search.root.visits <= 2


@pytest.mark.long
def test_a_full_hash_ends_a_game_move_and_is_told():
    player = make_player(USI_Hash=16, PV_Interval=0)
    fill(player._search.tree, 15.9e6)
    legal(player.choose(Go(black=Clock(byoyomi=10**5))))
    assert number(player, "hashfull") == 1000


def test_resign_threshold(lost):
    legal(make_player(resign_threshold=0).choose(Go(nodes=50)))
    player = make_player(lost, resign_threshold=1)
    assert player.choose(Go(nodes=3000)) == "resign"


def test_a_won_position_is_not_resigned():
    """The tree proves a win late, when the mean value is still low."""
    player, go = make_player(resign_threshold=5), Go(nodes=200)
    player.choose(go)
    root, timer = player._search.root, Timer(go, 0, 0, 0.3)
    for child in root.children:
        root.tree.nodes.total[child.index] = 0.99 * child.visits
    assert player._bestmove(go, timer, 200) == "resign"
    root.tree.prove(root.children[1].index, Proof(LOSS, 8))
    assert root.proof == Proof(WIN, 9)
    assert legal(player._bestmove(go, timer, 200)) == to_usi(root.moves[1])
    assert " score mate 9 " in player.said[-1]


def test_a_mate_found_at_the_root_is_found_again():
    player = make_player(LONG_MATE, USI_Ponder="false")
    go = Go(nodes=10**6)
    first = player.choose(go)
    mate = number(player, "mate")
    assert mate > 5
    player.said.clear()
    assert player.choose(go) == first
    assert number(player, "mate") == mate


def test_an_announced_mate_is_played_to_its_end(monkeypatch):
    """Nothing is searched again: only the first search finds the mate."""
    player = make_player(LONG_MATE)
    player.choose(Go(nodes=10**6))
    line = player.said[-1].split(" pv ")[1].split()
    assert len(line) == number(player, "mate") > 5
    monkeypatch.setattr("pydlshogi.uct.search.RootMate.step", lambda self: [])
    monkeypatch.setattr("pydlshogi.uct.cshogi_board.CshogiBoard.mate", lambda self, plies: None)
    for played in range(2, len(line), 2):
        player.set_position(LONG_MATE, line[:played])
        answer = player.choose(Go(nodes=1)).split()
        assert answer[0] == line[played]
        assert player.said[-1].split(" pv ")[1].split() == line[played:]
        assert number(player, "mate") == len(line) - played


def test_an_announced_mate_is_played_where_some_moves_are_left_out():
    player = make_player(LONG_MATE)
    player.choose(Go(nodes=10**6))
    line = player.said[-1].split(" pv ")[1].split()
    player.set_position(LONG_MATE, line[:2])
    player.choose(Go(nodes=1, searchmoves=(line[2],)))
    assert number(player, "nodes") == 0 and number(player, "mate") == len(line) - 2
    other = next(move.usi() for move in player.board.legal_moves if move.usi() != line[2])
    assert player.choose(Go(nodes=1, searchmoves=(other,))).split()[0] == other


def test_an_announced_mate_is_played_after_ponder(monkeypatch):
    player = make_player(LONG_MATE)
    line = player.choose(Go(nodes=10**6)).split()[::2]
    mate = number(player, "mate")
    monkeypatch.setattr("pydlshogi.uct.search.RootMate.step", lambda self: [])
    player.set_position(LONG_MATE, line)
    go = Go(ponder=True)
    go.stop.set()
    player.choose(go)
    assert number(player, "mate") == mate - 2


def test_draw_values_are_those_of_the_side_at_the_root():
    for turn, option in (([], "Draw_Value_Black"), (["7g7f"], "Draw_Value_White")):
        for value in (100, 900):
            player = make_player(None, turn, Draw_Ply=len(turn) + 1, **{option: value})
            player.choose(Go(nodes=300))
            score = number(player, "cp")
            assert (score > 1000) == (value == 900)
            assert (score < -1000) == (value == 100)


def test_draw_ply_counts_from_the_move_number_of_the_position():
    sfen = f"{cshogi.STARTING_SFEN[:-1]}100"
    player = make_player(sfen, Draw_Ply=100, Draw_Value_Black=900)
    player.choose(Go(nodes=200))
    assert number(player, "cp") > 1000


def test_a_game_beyond_draw_ply_is_searched_as_if_there_were_none():
    sfen = f"{cshogi.STARTING_SFEN[:-1]}101"
    answers = []
    for limit in (0, 100):
        player = make_player(sfen, Draw_Ply=limit)
        answers.append(player.choose(Go(nodes=200)))
        assert number(player, "nodes") == 200
    assert answers[0] == answers[1]


def test_the_constants_of_the_search_come_from_the_options():
    player = make_player(
        C_init=200, C_base=1000, C_fpu_reduction=50, C_init_root=90, C_base_root=2000,
        C_fpu_reduction_root=10, Softmax_Temperature=100, batch_size=7, mate_plies=3,
        Mate_Root_Search="false", Mate_PV_Search="false",
    )  # fmt: skip
    player.choose(Go(nodes=1))
    settings = player._search.settings
    assert (settings.c_init, settings.c_base, settings.fpu_reduction) == (2.0, 1000, 0.5)
    assert (settings.c_init_root, settings.c_base_root) == (0.9, 2000)
    assert (settings.fpu_reduction_root, settings.temperature) == (0.1, 1.0)
    assert (settings.batch_size, settings.mate_plies) == (7, 3)
    assert (settings.root_mate, settings.line_mate) == (False, False)
    assert player._search.settings.batches == 1


@pytest.mark.parametrize(
    ("go", "nodes", "endless"),
    [
        (Go(), 0, True),
        (Go(searchmoves=("7g7f",)), 0, True),
        (Go(), 300, False),
        (Go(mate=True), 300, True),  # the option is for searches of a move
        (Go(mate=True, mate_ms=100), 0, False),
        (Go(mate=True, nodes=5), 0, True),  # a mate search has no limit of nodes
        (Go(depth=3), 0, False),
        (Go(white=Clock(byoyomi=0)), 0, False),
    ],
)
def test_a_search_without_a_limit_is_endless(go, nodes, endless):
    assert make_player(nodes=nodes).is_endless(go) == endless


def test_a_random_opening_follows_the_seed():
    def moves(seed, **options):
        player = make_player(random_seed=seed, **options)
        found = []
        for _ in range(4):
            player.new_game()
            found.append(player.choose(Go(nodes=60)).split()[0])
        return found

    assert moves(1, random_plies=1) == moves(1, random_plies=1)
    assert len(set(moves(1, random_plies=1))) > 1
    assert len(set(moves(1, random_plies=0))) == 1


@pytest.mark.parametrize("has_value, nodes", [(False, None), (True, 1)])
def test_a_random_opening_after_one_visit_is_drawn_by_the_policy(has_value, nodes):
    moves = set()
    for seed in range(10):
        player = make_player(fake={"has_value": has_value}, random_seed=seed, random_plies=1)
        moves.add(player.choose(Go(nodes=nodes)).split()[0])
    assert len(moves) > 2


def test_a_random_opening_may_draw_but_not_lose():
    player = make_player(random_plies=10, random_seed=1)
    player.choose(Go(nodes=300))
    root = player._search.root
    assert len(root.children) > 2
    for child in root.children:  # the opponent, who is to move there, wins
        root.tree.nodes.outcome[child.index] = WIN
    root.tree.nodes.outcome[root.children[1].index] = DRAW
    picked = {player._picked_by_visits() for _ in range(50)}
    assert picked == {root.moves[1]}


def test_a_random_move_is_the_first_line_and_is_named_if_another_is_better():
    player = make_player(random_seed=2, random_plies=1, MultiPV=4)
    found = set()
    for _ in range(10):
        player.said.clear()
        player.new_game()
        move, _, ponder = player.choose(Go(nodes=60)).partition(" ponder ")
        lines = [line for line in player.said if " multipv " in line][-4:]
        assert [re.search(r" multipv (\d)", line)[1] for line in lines] == ["4", "3", "2", "1"]
        pv = lines[-1].split(" pv ")[1].split()
        assert [move, ponder or None] == (pv[:2] if len(pv) > 1 else [*pv, None])
        assert len({line.split(" pv ")[1].split()[0] for line in lines}) == 4
        best = best_lines(player._search, 1)[0].moves[0]
        assert " multipv 1 " in player.said[-1]
        named = f"info string random_plies: {move} is picked by the visits" in player.said
        assert named == (move != to_usi(best))
        found.add(named)
    assert found == {True, False}


def test_the_limit_0_of_go_counts_though_the_option_nodes_allows_more():
    player = make_player(nodes=500)
    player.choose(Go(nodes=0))
    assert number(player, "nodes") == 1


def test_without_memory_for_more_the_best_move_so_far_is_played(monkeypatch):
    player = make_player()
    player.choose(Go(nodes=300))

    def fail(tree, nodes, blocks):
        raise MemoryError

    monkeypatch.setattr("pydlshogi.uct.tree.Tree._allocate", fail)
    legal(player.choose(Go(nodes=10**6)))
    assert "info string the memory is full: the search ends. Lower USI_Hash" in player.said
    assert number(player, "nodes") > 0


def test_without_memory_in_a_playout_the_move_is_one_of_the_position(monkeypatch):
    player = make_player()
    playouts = iter(range(200))

    def judge_or_fail(game, settings, is_root):
        if next(playouts, None) is None:
            raise MemoryError
        return judge(game, settings, is_root)

    monkeypatch.setattr("pydlshogi.uct.search.judge", judge_or_fail)
    legal(player.choose(Go(nodes=10**6)))
    assert "info string the memory is full: the search ends. Lower USI_Hash" in player.said
    assert player._search.board.sfen() == CshogiBoard().sfen()


def test_an_analysis_shows_the_best_move_whatever_random_plies_says():
    for seed in range(6):
        player = make_player(random_seed=seed, random_plies=100)
        go = Go(infinite=True)
        threading.Timer(0.2, go.stop.set).start()
        move = player.choose(go).split()[0]
        assert move == to_usi(best_lines(player._search, 1)[0].moves[0])
        assert not any("random_plies" in line for line in player.said)


def test_the_book_is_played_and_can_be_switched_off(tmp_path):
    start = "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b -"
    write_book(tmp_path / "my book.db", {start: [BookMove("9i9h", "1a1b"), BookMove("9i1a")]})
    player = make_player(Book_File=tmp_path / "my book.db")
    assert player.choose(Go(black=Clock(byoyomi=10**5))) == "9i9h ponder 1a1b"
    assert player.choose(Go(ponder=True)) == "9i9h ponder 1a1b"  # the engine holds it back
    assert asked(player) == 0
    assert player.choose(Go(nodes=50, searchmoves=("7g7f",))).startswith("7g7f")
    stopped = Go(infinite=True)
    threading.Timer(0.2, stopped.stop.set).start()
    player.choose(stopped)
    assert asked(player) > 50
    player.set(OwnBook="false")
    assert not player.choose(Go(nodes=50)).startswith("9i9h")
    player.set(OwnBook="true")
    player.set_position(None, ["7g7f"])
    legal(player.choose(Go(nodes=50)), moves=["7g7f"])


def test_a_book_that_has_changed_is_read_again(tmp_path):
    start = "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b -"
    write_book(tmp_path / "book.db", {start: [BookMove("9i9h")]})
    player = make_player(Book_File=tmp_path / "book.db")
    player.prepare()
    write_book(tmp_path / "book.db", {start: [BookMove("1i1h", "9a9b")]})
    assert player.choose(Go(nodes=50)) == "9i9h"
    player.prepare()
    assert player.choose(Go(nodes=50)) == "1i1h ponder 9a9b"


def test_a_book_that_cannot_be_read_is_refused_at_every_isready(tmp_path):
    player = make_player()
    player.set(Book_File=tmp_path / "missing.db")
    for _ in range(2):
        with pytest.raises(BookError, match="cannot be read"):
            player.prepare()
    player.set(OwnBook="false")
    player.prepare()
    assert "missing.db" in player.said[-1]
    player.set(OwnBook="true")
    with pytest.raises(BookError, match="cannot be read"):
        player.prepare()


@pytest.mark.parametrize(
    ("move", "shown"),
    [
        (BookMove("9i9h", "1a1b", score=-30, depth=12), "depth 12 # score cp -30 pv 9i9h 1a1b"),
        (BookMove("9i9h", "9i9h", times=7), "# pv 9i9h"),
        (BookMove("9i9h", score=40), "# score cp 40 pv 9i9h"),
    ],
)
def test_a_book_move_is_shown_as_a_line(tmp_path, move, shown):
    """ShogiHome shows and keeps only scores of lines that begin with the move played."""
    start = "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b -"
    write_book(tmp_path / "book.db", {start: [move]})
    player = make_player(Book_File=tmp_path / "book.db", USI_Ponder="false")
    assert player.choose(Go(nodes=50)) == "9i9h"
    assert player.said[-2] == f"info string book move 9i9h, played {move.times} times"
    assert player.said[-1] == "info " + shown.replace("#", "time 0 nodes 0 multipv 1")


def test_a_book_move_with_a_low_evaluation_is_not_played(tmp_path):
    start = "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b -"
    moves = [("9i9h", 50), ("2g2f", 45), ("1g1f", 10), ("1i1h", -900)]
    book = [BookMove(move, score=score, times=100 - score) for move, score in moves]
    write_book(tmp_path / "book.db", {start: book})
    player = make_player(Book_File=tmp_path / "book.db", random_seed=1)
    played = {player.choose(Go(nodes=50)) for _ in range(40)}
    assert played == {"9i9h", "2g2f"}


@pytest.mark.parametrize("answer", ["9i9h", "1i1h", "5e5d", "P*5e"])
def test_an_answer_of_the_book_that_cannot_be_played_is_left_out(tmp_path, answer):
    start = "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b -"
    write_book(tmp_path / "book.db", {start: [BookMove("9i9h", answer)]})
    player = make_player(Book_File=tmp_path / "book.db")
    assert player.choose(Go(nodes=50)) == "9i9h"
    assert not player.board.move_stack


@pytest.mark.parametrize(
    "sfen",
    [
        "kp7/2+R6/1P7/9/9/4R4/9/9/5L3 b Pb 1",
        "7p1/7gk/3+B2B2/9/9/9/9/6+P2/5+R3 b 2P 1",
        "8k/6R1s/9/9/9/9/R8/9/9 b P 1",
    ],
)
def test_a_mate_that_ends_with_a_distant_check_is_played(sfen):
    player = make_player(sfen)
    move = player.choose(Go(nodes=50)).split()[0]
    line = player.said[-1].split(" pv ")[1].split()
    assert " score mate 3 " in player.said[-1]
    assert len(line) == 3 and line[0] == move
    board = shogi.Board(sfen)
    for word in line:
        board.push_usi(word)
    assert board.is_checkmate()


def test_perpetual_check_is_avoided_at_the_fourth_time():
    sfen, chase = "4k4/9/9/9/9/9/9/9/R3K4 b - 1", ["9a9b", "5b5a", "9b9a", "5a5b"]
    moves = ["9i9a", "5a5b", *chase * 2, *chase[:2]]
    for fake in ({}, {"has_value": False}):
        player = make_player(sfen, [*moves, "9b9a", "5a5b"], fake=fake)
        assert legal(player.choose(Go(nodes=50)), sfen, [*moves, "9b9a", "5a5b"]) != "9a9b"


# Mates


def test_find_mate():
    assert make_player(MATE_IN_ONE).find_mate(Go(mate=True)) == "G*5b"
    assert make_player().find_mate(Go(mate=True, mate_ms=1000)) == "nomate"


@pytest.mark.parametrize("used, left", [(0.3, 5.6), (0.5, 4), (0.9, 4), (1.0, 4)])
def test_find_mate_has_at_least_half_of_the_memory(monkeypatch, used, left):
    given = []

    class Watched(MateSearch):
        def __init__(self, board, memory):
            super().__init__(board, memory)
            given.append(memory / 10**6)

    monkeypatch.setattr("pydlshogi.player.mcts_player.MateSearch", Watched)
    monkeypatch.setattr("pydlshogi.player.mcts_player.find_mate", lambda *_: [])
    player = make_player(USI_Hash=16)
    player.choose(Go(nodes=100))
    tree = player._search.tree
    root = tree.root
    missing = int(used * 16e6) - tree.allocated
    tree._edges.resize(len(tree._edges) + missing // EDGE.itemsize, refcheck=False)
    player.find_mate(Go(mate=True))
    assert given == [pytest.approx(left, abs=0.001)]
    # A small tree is kept, a large one dropped and its memory given back.
    is_kept = used <= 1 / 2
    assert root.is_expanded == is_kept
    assert is_kept or tree.allocated < 16e5


def test_a_mate_search_says_that_its_memory_is_full(monkeypatch):
    monkeypatch.setattr("pydlshogi.uct.dfpn._ENTRY_BYTES", 100_000)
    monkeypatch.setattr(CshogiBoard, "search_mate", lambda self, nodes, plies: ([], False))
    monkeypatch.setattr(CshogiBoard, "start_mate_process", lambda self, memory: None)
    many_checks = "4k4/9/9/9/9/9/9/9/4K4 b RB2G2S2N2L9Prb2g2s2n2l9p 1"
    player = make_player(many_checks, USI_Hash=16)
    assert player.find_mate(Go(mate=True)) == "timeout"
    assert player.said[-2].split(" hashfull ")[1] == "1000"
    assert player.said[-1].endswith(" a mate: the memory of USI_Hash is full")


@pytest.fixture
def endless_mate_search(monkeypatch):
    """No mate search ends without a stop."""

    def endless(self, is_stopped):
        while not is_stopped():
            self.nodes += 1
            time.sleep(0.001)

    monkeypatch.setattr(CshogiBoard, "search_mate", lambda self, nodes, plies: ([], False))
    monkeypatch.setattr(MateSearch, "run", endless)


def test_a_mate_search_shows_its_progress_and_the_mate(endless_mate_search):
    player = make_player(PV_Interval=50)
    player.said.clear()
    assert player.find_mate(Go(mate=True, mate_ms=400)) == "timeout"
    pattern = r"info time (\d+) nodes (\d+) nps \d+ hashfull 0"
    assert player.said.pop() == (
        "info string it is unknown whether there is a mate: the 400 ms are over"
    )
    shown = [tuple(map(int, re.fullmatch(pattern, line).groups())) for line in player.said]
    assert 3 <= len(shown) <= 10
    assert shown == sorted(shown)
    assert shown[0][1] < shown[-1][1]  # on a busy machine, the first one may be 0
    assert 390 <= shown[-1][0] < 600


def test_without_an_interval_a_mate_search_shows_only_its_end(endless_mate_search):
    player = make_player(PV_Interval=0)
    player.said.clear()
    player.find_mate(Go(mate=True, mate_ms=200))
    assert [line.split()[1] for line in player.said] == ["time", "string"]


def test_a_mate_search_says_why_it_knows_no_result(endless_mate_search):
    player = make_player()
    stopped = Go(mate=True)
    stopped.stop.set()
    assert player.find_mate(stopped) == "timeout"
    assert player.said[-1].endswith(" unknown whether there is a mate: the search was stopped")
    too_deep = SimpleNamespace(fullness=lambda: 0.5, was_too_deep=True)
    assert why_unknown(too_deep, Go(mate=True)).startswith("no mate in 400 plies was found")


def test_the_mate_is_shown_with_its_line():
    player = make_player(MATE_IN_ONE)
    player.said.clear()
    assert player.find_mate(Go(mate=True)) == "G*5b"
    (line,) = player.said
    assert line.startswith("info depth 1 time ")
    assert line.endswith(" score mate 1 pv G*5b")


def test_find_mate_keeps_its_time(endless_mate_search):
    player = make_player()
    start = time.perf_counter()
    assert player.find_mate(Go(mate=True, mate_ms=300)) == "timeout"
    assert 0.25 < time.perf_counter() - start < 0.6
    go = Go(mate=True)
    threading.Timer(0.2, go.stop.set).start()
    start = time.perf_counter()
    assert player.find_mate(go) == "timeout"
    assert time.perf_counter() - start < 0.5


class FakeGpu(CpuDevice):
    xp = None


@pytest.mark.parametrize(("threads", "size"), [(1, 4), (2, 8), (3, 12), (4, 16), (64, 16)])
def test_a_cpu_computes_four_positions_in_each_thread_and_at_most_sixteen(
    monkeypatch, threads, size
):
    monkeypatch.setattr("pydlshogi.player.batch_sizes.get_threads", lambda: threads)
    player = make_player()
    player.choose(Go(nodes=400))
    assert max(player._evaluator._network.batches) == size


@pytest.mark.parametrize(("threads", "size"), [(1, 8), (2, 16), (64, 32)])
def test_in_bfloat16_a_thread_computes_eight_positions(monkeypatch, threads, size):
    monkeypatch.setattr("pydlshogi.player.batch_sizes.get_threads", lambda: threads)
    monkeypatch.setattr(FakeEvaluator, "backend", "openvino_bfloat16")
    player = make_player()
    assert "info string the network is computed by openvino_bfloat16" in player.said
    player.choose(Go(nodes=800))
    assert max(player._evaluator._network.batches) == size


@pytest.mark.parametrize("nodes", [20, 80, 100])
def test_on_a_gpu_nodes_are_visited_exactly(nodes):
    """Few moves are probable, so that pending batches contain collisions."""
    options = {"mate_plies": 0, "Mate_Root_Search": "false"}
    player = make_player(Softmax_Temperature=10, batch_size=16, **options)
    player.device = FakeGpu()
    player.choose(Go(nodes=nodes))
    assert number(player, "nodes") == nodes


def test_on_a_gpu_the_thread_of_the_search_evaluates_a_batch_before_the_game(monkeypatch):
    evaluated = []

    def evaluate(self, planes):
        name, *_ = threading.current_thread().name.split("_")
        evaluated.append((name, len(planes)))
        return Evaluation(*self._network(planes))

    player = make_player()
    monkeypatch.setattr(
        player._evaluator, "planes", lambda board: numpy.zeros((104, 9, 9), "f"), raising=False
    )
    monkeypatch.setattr(FakeEvaluator, "evaluate", evaluate)
    player.device = FakeGpu()
    player.warm_up()
    player.set(batch_size=7)
    player.warm_up()
    assert evaluated == [("evaluation", 128), ("evaluation", 7)]


# Levels


def test_a_level_up_to_10_evaluates_one_position_and_varies_its_moves():
    player = make_player(Level=3, random_seed=1)
    moves = {legal(player.choose(Go(movetime=60_000))) for _ in range(20)}
    assert len(moves) > 5
    assert number(player, "nodes") == 1
    assert not any(" ponder " in line for line in player.said)


def test_a_level_picks_by_the_policy_as_the_network_gives_it():
    player = make_player(Level=1, Softmax_Temperature=300)
    player.choose(Go(movetime=60_000))
    priors = [row.prior for row in candidates(player._search.root)]
    player.new_game()
    player.set(Level=20, Softmax_Temperature=100)
    player.choose(Go(nodes=1))
    assert priors == [row.prior for row in candidates(player._search.root)]


def test_the_same_seed_gives_the_moves_of_a_level_again():
    first, second = (make_player(Level=3, random_seed=7) for _ in range(2))
    go = Go(movetime=60_000)
    assert [first.choose(go) for _ in range(8)] == [second.choose(go) for _ in range(8)]


@pytest.mark.parametrize("level", [11, 13, 15])
def test_a_level_above_10_searches_its_visits_in_every_move(level):
    player = make_player(Level=level)
    for moves in ([], ["7g7f", "3c3d"], ["7g7f", "3c3d", "2g2f", "8c8d"]):
        player.set_position(None, moves)  # the tree of the move before is no help
        legal(player.choose(Go(movetime=60_000)), moves=moves)
        assert number(player, "nodes") == LEVELS[level].visits


def test_the_option_nodes_limits_a_level_too():
    player = make_player(Level=15, nodes=5)
    player.choose(Go(movetime=60_000))
    assert number(player, "nodes") == 5


def test_a_level_answers_a_go_without_limits():
    assert not Player().is_endless(Go(movetime=1))
    player = make_player(Level=12)
    assert not player.is_endless(Go())
    assert legal(player.choose(Go()))


def test_a_level_ends_after_its_time_if_it_has_not_made_its_visits():
    player = make_player(fake={"seconds": 0.05}, Level=19)
    start = time.perf_counter()
    legal(player.choose(Go(movetime=60_000)))
    assert SECONDS <= time.perf_counter() - start < 10
    assert number(player, "nodes") < LEVELS[19].visits


def test_a_level_uses_no_more_time_than_the_clock_allows():
    player = make_player(fake={"seconds": 0.02}, Level=19, Byoyomi_Margin=0)
    start = time.perf_counter()
    legal(player.choose(Go(movetime=100)))
    assert time.perf_counter() - start < SECONDS


@pytest.mark.parametrize("go", [Go(nodes=60), Go(infinite=True)])
def test_a_level_has_no_effect_on_a_number_of_nodes_and_on_an_analysis(go):
    player = make_player(Level=1)
    if go.infinite:
        stopping = threading.Timer(0.5, go.stop.set)
        stopping.start()
    legal(player.choose(go))
    assert number(player, "nodes") >= 60
    player.new_game()
    assert player.choose(Go(nodes=60)) == make_player(Level=20).choose(Go(nodes=60))


def test_a_level_has_no_effect_on_a_mate_search():
    player = make_player(MATE_IN_ONE, Level=1)
    assert player.find_mate(Go(mate=True)) == "G*5b"


def test_from_level_8_on_a_mate_in_one_is_played():
    for level in range(8, 20):
        player = make_player(MATE_IN_ONE, Level=level)
        assert player.choose(Go(movetime=60_000)) == "G*5b"
    below = [make_player(MATE_IN_ONE, Level=level, random_seed=1) for level in range(1, 8)]
    assert any(player.choose(Go(movetime=60_000)) != "G*5b" for player in below for _ in range(9))


def test_a_level_declares():
    assert make_player(DECLARED, Level=1).choose(Go(movetime=100)) == "win"


def test_a_level_with_a_search_plays_the_best_move_of_a_network_without_a_value():
    player = make_player(fake={"has_value": False}, Level=14)
    told = [line for line in player.said if "Level 14" in line]
    assert len(told) == 1
    best = make_player(fake={"has_value": False}).choose(Go(movetime=60_000))
    assert {player.choose(Go(movetime=60_000)) for _ in range(5)} == {best}
    below = make_player(fake={"has_value": False}, Level=3, random_seed=1)
    assert not any("Level 3" in line for line in below.said)
    assert len({below.choose(Go(movetime=60_000)) for _ in range(20)}) > 5


def test_a_level_ponders_and_moves_after_the_hit():
    for level in (2, 13):
        player = make_player(Level=level)
        go = Go(ponder=True, movetime=60_000)
        go.ponderhit.set()
        legal(player.choose(go))
        assert number(player, "nodes") == LEVELS[level].visits


def test_in_a_handicap_game_the_engine_declares_with_the_missing_pieces():
    player = make_player(TWO_PIECES, ENTERED[:-2])
    assert player.choose(Go(nodes=10)) != "win"
    player.set_position(TWO_PIECES, ENTERED)
    assert player.choose(Go(nodes=10)) == "win"
    # The last move of each line is White's; the search knows that the declaration follows.
    player.set_position(TWO_PIECES, ENTERED[:-1])
    player.choose(Go(nodes=200))
    lost = [row for row in candidates(player._search.root) if row.proof == Proof(LOSS, 2)]
    assert from_usi(ENTERED[-1]) in [row.move for row in lost]
