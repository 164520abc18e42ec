"""What holds of every tree, whatever the network says."""

import threading

import numpy
import pytest
from uct_helpers import (
    FakeNetwork,
    endgames,
    games,
    make_search,
    nodes_of,
    run,
    searched,
    sfens_of,
    shape,
)

from pydlshogi.features import HISTORY_PLANE_NUM
from pydlshogi.uct.core import WIN, select
from pydlshogi.uct.cshogi_board import CshogiBoard
from pydlshogi.uct.evaluation import Evaluations
from pydlshogi.uct.game import Game
from pydlshogi.uct.inputs import Inputs
from pydlshogi.uct.move import from_usi
from pydlshogi.uct.python_shogi_board import PythonShogiBoard
from pydlshogi.uct.search import Search
from pydlshogi.uct.tree import Tree

#: Positions from the middle of real games.
MIDDLE = [list(sfens_of(moves))[60] for _, moves in zip(range(4), games())]


def check_statistics(root):
    """Checks the sums of a tree without pending visits."""
    for node in nodes_of(root):
        assert not node.pending
        if node.visits:
            assert 0 <= node.value() <= 1
        assert 0 <= node.total <= node.visits
        if not node.children:
            continue
        assert visits_below(node) == node.visits - 1
        # The first visit brought the network's own value, the others those of the children.
        own = node.total - sum(child.visits - child.total for child in node.children)
        assert own == pytest.approx(network_value(node), abs=1e-6)


def visits_below(node):
    return sum(child.visits for child in node.children)


@pytest.mark.parametrize("sfen", [None, *MIDDLE])
@pytest.mark.parametrize("batch_size", [1, 8, 32])
def test_the_sums_of_visits_and_values_are_right(sfen, batch_size):
    check_statistics(searched(400, sfen, batch_size=batch_size).root)


@pytest.mark.parametrize("batches", [1, 2, 3])
def test_the_sums_are_right_with_several_pending_batches(batches):
    search = searched(500, MIDDLE[0], batches=batches)
    check_statistics(search.root)
    assert search.root.visits == 500


@pytest.mark.long
@pytest.mark.parametrize("batches", [1, 2])
def test_with_two_batches_the_next_is_collected_while_the_network_computes(monkeypatch, batches):
    begun = threading.Semaphore(0)
    begin = Evaluations.begin

    def noting(self, planes):
        begun.release()
        return begin(self, planes)

    monkeypatch.setattr(Evaluations, "begin", noting)
    network, has_next = FakeNetwork(), []

    def computing(planes):
        begun.acquire()  # this batch
        # With two batches, only the first and the last one wait to the end.
        has_next.append(begun.acquire(timeout=2 if batches == 2 else 0.05))
        if has_next[-1]:
            begun.release()
        return network(planes)

    root = run(make_search(computing, batches=batches, batch_size=8, root_mate=False), 200)
    check_statistics(root)
    # The first batch is the root alone, and nothing follows the last.
    assert sum(has_next) == (len(has_next) - 2 if batches == 2 else 0)


def test_completed_visits_never_decrease():
    """Pending visits are not counted: a search that is stopped gives them up."""
    network = FakeNetwork()
    stops = threading.Event()
    search = make_search(lambda planes: network(planes), batches=2, batch_size=32)
    seen = [0]

    def is_stopped():
        seen.append(search.root.visits)
        return stops.is_set()

    search.begin(Game(CshogiBoard(MIDDLE[0])))
    while search.root.visits < 300:
        search.step(1000, is_stopped)
        is_stopped()
    stops.set()
    search.step(1000, is_stopped)
    search.give_up()
    seen.append(search.root.visits)
    assert seen == sorted(seen)
    assert not search.root.pending


def test_the_sums_are_right_near_the_end_of_games():
    for sfen in endgames(40, plies=10):
        root = searched(150, sfen).root
        for node in nodes_of(root):
            assert 0 <= node.total <= node.visits
            if node.children:
                assert visits_below(node) == node.visits - 1


def test_the_roots_value_is_the_mean_of_what_was_backed_up():
    def values(node, is_roots_turn=True):
        yield network_value(node) if is_roots_turn else 1 - network_value(node)
        for child in node.children:
            yield from values(child, not is_roots_turn)

    settings = dict.fromkeys(("mate_plies", "root_mate", "line_mate"), False)
    root = searched(300, MIDDLE[1], **settings).root
    backed_up = list(values(root))
    assert len(backed_up) == root.visits == 300
    assert root.value() == pytest.approx(numpy.mean(backed_up))


@pytest.mark.parametrize("batch_size", [1, 16])
def test_the_same_seed_and_number_of_visits_give_the_same_tree(batch_size):
    one, two = (searched(400, MIDDLE[2], seed=5, batch_size=batch_size) for _ in range(2))
    assert shape(one.root) == shape(two.root)
    other = searched(400, MIDDLE[2], seed=6, batch_size=batch_size)
    assert shape(one.root) != shape(other.root)


@pytest.mark.parametrize("sfen", MIDDLE[:2])
def test_both_boards_give_the_same_tree(sfen):
    settings = {"mate_plies": 1, "root_mate": False}
    fast = searched(120, sfen, board=CshogiBoard, **settings)
    slow = searched(120, sfen, board=PythonShogiBoard, **settings)
    assert shape(fast.root) == shape(slow.root)


def test_a_batch_is_filled_and_grows_with_the_visits():
    network = FakeNetwork()
    run(make_search(network, batch_size=16), 1000)
    assert network.batches[:3] == [1, 1, 1]
    assert sorted(network.batches)[len(network.batches) // 2] == 16
    assert max(network.batches) == 16


def test_the_largest_batch_grows_in_groups_of_four():
    search = make_search(batch_size=18)
    sizes = []
    for visits in range(200):
        search.tree.nodes.visits[search.root.index] = visits
        sizes.append(search._next_size())
    assert sizes == sorted(sizes)
    assert sorted(set(sizes)) == [1, 2, 3, 4, 8, 12, 16, 18]
    assert all(size <= 1 + visits / 8 or size == 18 for visits, size in enumerate(sizes))


def test_the_limit_of_visits_is_exact():
    for visits in (1, 2, 17, 100):
        assert searched(visits, MIDDLE[0]).root.visits == visits


def test_a_stopped_batch_leaves_no_pending_visit():
    search = make_search()
    run(search, 200, MIDDLE[0])
    before = shape_of_visits(search.root)
    network = FakeNetwork()
    release = threading.Event()
    slow = make_search(lambda planes: release.wait(60) and network(planes))
    slow.tree = search.tree
    slow.begin(Game(CshogiBoard(MIDDLE[0])))
    slow.step(400, is_stopped=lambda: True)
    slow.give_up()
    release.set()
    assert shape_of_visits(search.root) == before
    # Children that were new in that batch have no visits; the search goes on from there.
    run(slow, 400, MIDDLE[0])
    assert slow.root.visits == 400
    for node in nodes_of(slow.root):
        assert not node.pending
        if node.children:
            assert visits_below(node) == node.visits - 1


def shape_of_visits(node):
    """Describes a tree without the children that have no visits."""
    children = [shape_of_visits(child) for child in node.children if child.visits]
    return node.visits, round(node.total, 9), children


def test_an_error_of_the_network_comes_out_and_leaves_no_pending_visit():
    network = FakeNetwork()

    def failing(planes):
        if sum(network.batches) > 100:
            raise RuntimeError("the network is gone")
        return network(planes)

    search = make_search(failing)
    with pytest.raises(RuntimeError, match="gone"):
        run(search, 1000)
    search.give_up()
    check_statistics_after_error(search.root)


@pytest.mark.parametrize("method", ["push", "moves", "key", "sfen"])
@pytest.mark.parametrize("calls", [30, 31, 32, 33, 60])
def test_an_error_of_the_board_leaves_no_pending_visit(method, calls):
    def failing_board(*args):
        board, left = CshogiBoard(*args), iter(range(calls))
        works = getattr(board, method)

        def fail(*args):
            if next(left, None) is None:
                raise RuntimeError("the board is gone")
            return works(*args)

        setattr(board, method, fail)
        return board

    search = make_search(batches=2)
    with pytest.raises(RuntimeError, match="gone"):
        run(search, 1000, board=failing_board)
    search.give_up()
    check_statistics_after_error(search.root)
    assert not search.root.pending
    check_statistics(run(search, search.root.visits + 100))


def check_statistics_after_error(root):
    for node in nodes_of(root):
        assert not node.pending
        if node.children:
            assert visits_below(node) == node.visits - 1


def test_children_stand_in_the_order_of_their_probabilities():
    for node in nodes_of(searched(300, MIDDLE[3]).root):
        if not node.is_expanded:
            continue
        priors, number = node.priors, len(node.children)
        assert priors[: number + 1] == sorted(priors, reverse=True)[: number + 1]
        assert sum(priors) == pytest.approx(1, abs=1e-5)


def best_by_formula(node, c_init, c_base, reduction):
    """The formula over all moves, visited or not; returns the index of the best one."""
    begun = node.visits + node.pending
    c = numpy.log((begun + c_base + 1) / c_base) + c_init
    priors, number = numpy.array(node.priors), len(node.children)
    first_play = node.total / node.visits - reduction * numpy.sqrt(priors[:number].sum())
    means = numpy.full(len(priors), first_play)
    counts = numpy.zeros(len(means))
    for index, child in enumerate(node.children):
        if child.visits:
            means[index] = 1 - child.total / child.visits
        counts[index] = child.visits + child.pending
        if child.proof and child.proof.outcome == WIN:
            priors[index] = -numpy.inf
    return int(numpy.argmax(means + c * priors * numpy.sqrt(begun) / (1 + counts)))


def selected(node):
    """Returns the index of the edge that is selected."""
    edge = select(*node.tree.arrays[:2], node.index, 0.9, 28288, 0.27)
    return list(node.edges()).index(edge)


def test_selection_looks_at_one_unvisited_child_and_misses_nothing():
    for node in nodes_of(searched(600, MIDDLE[0], batch_size=1).root):
        if node.children and not node.proof:
            assert selected(node) == best_by_formula(node, 0.9, 28288, 0.27)


def test_a_pending_visit_lowers_the_exploration_and_not_the_mean():
    search = make_search(batches=2, batch_size=32, root_mate=False)
    search.begin(Game(CshogiBoard(MIDDLE[0])))
    while search.root.visits < 600:
        search.step(1000)
    waiting = [node for node in nodes_of(search.root) if node.children and node.pending]
    assert len(waiting) > 5
    for node in waiting:
        assert visits_below(node) == node.visits - 1
        assert sum(child.pending for child in node.children) == node.pending
        assert selected(node) == best_by_formula(node, 0.9, 28288, 0.27)
    search.give_up()
    check_statistics_after_error(search.root)


def test_only_the_moves_asked_for_are_visited():
    only = frozenset(map(from_usi, ["7g7f", "9g9f", "1i1h"]))
    root = run(make_search(), 200, only=only)
    assert set(root.moves) == only
    assert sum(root.priors) == pytest.approx(1)
    check_statistics(root)


def test_moves_to_choose_from_without_any_probability_are_all_visited():
    only = frozenset(map(from_usi, ["9g9f", "1g1f"]))
    root = run(make_search(temperature=0.001), 50, only=only)
    assert sorted(root.priors) == [0.5, 0.5]
    assert min(child.visits for child in root.children) > 5


def test_a_mate_is_not_played_where_its_move_is_excluded():
    sfen = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"
    root = run(make_search(), 50, sfen, only=frozenset([from_usi("5i4i")]))
    assert root.visits == 50
    assert not root.proof or root.proof.outcome < 1


def test_a_network_without_values_is_worth_a_half_everywhere():
    network = FakeNetwork()
    search = make_search(lambda planes: (network(planes)[0], None))
    assert run(search, 100).value() == 0.5


def test_transpositions_share_an_evaluation():
    network = FakeNetwork()
    search = make_search(network)
    root = run(search, 2000)
    assert sum(network.batches) == search.evaluations < root.visits


def network_value(node):
    return node.tree.nodes.value[node.index]


def values_along(node, game, network):
    """Yields for each evaluated node its value and that of the network for its path."""
    if node.is_expanded:
        inputs = Inputs(1, HISTORY_PLANE_NUM)
        inputs.add(game)
        yield network_value(node), network(inputs.planes())[1][0]
    for move, child in zip(node.moves, node.children):
        game.push(move)
        yield from values_along(child, game, network)
        game.pop()


def test_a_network_with_a_history_is_asked_about_each_order_of_the_moves():
    network = FakeNetwork(planes=106)
    search = make_search(network)
    search.plane_num = 106
    root = run(search, 2000)
    pairs = list(values_along(root, Game(CshogiBoard()), network))
    assert len(pairs) > 1500
    numpy.testing.assert_allclose(*zip(*pairs), rtol=1e-6)


def test_a_new_node_knows_nothing():
    node = Tree().root
    assert (node.visits, node.value(), node.children, node.proof) == (0, 0.5, [], None)


@pytest.mark.parametrize("mate_plies, most", [(5, 4), (7, 1)])
def test_a_stop_waits_for_few_mate_searches(monkeypatch, mate_plies, most):
    search = searched(2000, MIDDLE[0], batch_size=64, mate_plies=mate_plies)
    since_look = [0]

    def playout(self, batch):
        since_look[0] += 1
        assert since_look[0] <= most
        return original(self, batch)

    def is_stopped():
        since_look[0] = 0
        return False

    original = Search._playout
    monkeypatch.setattr(Search, "_playout", playout)
    search._collect(10**6, is_stopped)
    search.give_up()


def test_a_large_batch_is_given_up_while_it_is_collected():
    search = searched(2000, MIDDLE[0], batch_size=1024, mate_plies=1)
    visits, asked, looks = search.root.visits, search.evaluations, []

    def is_stopped():
        looks.append(search.root.visits)
        return len(looks) == 3

    search.step(10**6, is_stopped)
    assert looks[2] - looks[0] <= 64
    assert search.evaluations == asked
    assert visits <= search.root.visits <= visits + 64
    check_statistics(search.root)
