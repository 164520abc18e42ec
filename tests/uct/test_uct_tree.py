"""The tree follows the game, keeps what it knows and stays within its memory."""

import time

import numpy
import pytest
from uct_helpers import FakeNetwork, add_moves, make_search, nodes_of, run, shape

from pydlshogi.uct.core import (
    FREE_BLOCKS,
    FRESH_EDGE,
    FRESH_NODE,
    GARBAGE,
    WIN,
    Proof,
    blocks_of,
    reclaim,
)
from pydlshogi.uct.cshogi_board import CshogiBoard
from pydlshogi.uct.game import Game
from pydlshogi.uct.move import to_usi
from pydlshogi.uct.settings import Settings
from pydlshogi.uct.tree import BLOCK_BYTES, NODE_BYTES, Node, Tree


def searched_tree(visits=600, **settings):
    search = make_search(FakeNetwork(4), **settings)
    search.tree.move_to("start", [])
    run(search, visits)
    return search


def best(node):
    """Gives the most visited move and its node."""
    index = max(range(len(node.children)), key=lambda index: node.children[index].visits)
    return node.moves[index], node.children[index]


def all_bytes(tree):
    """Memory of the nodes that hang from the anchor."""
    nodes = list(nodes_of(Node(tree, tree._anchor)))
    blocks = sum(blocks_of(len(node.moves)) for node in nodes)
    return NODE_BYTES * len(nodes) + BLOCK_BYTES * blocks


def sweep(tree):
    while tree.pool[GARBAGE]:
        tree.sweep()


@pytest.mark.long
def test_a_reused_tree_is_the_subtree_that_it_came_from():
    search = searched_tree()
    first, child = best(search.root)
    second, grandchild = best(child)
    before = shape(grandchild)
    assert before[0] > 20
    search.tree.move_to("start", [first, second])
    assert search.root == grandchild
    assert shape(search.root) == before
    # The search goes on with it.
    moves = [to_usi(first), to_usi(second)]
    run(search, before[0] + 100, moves=moves)
    assert search.root.visits == before[0] + 100
    for node in nodes_of(search.root):
        if node.children:
            assert sum(child.visits for child in node.children) == node.visits - 1


def test_a_move_that_was_not_searched_starts_an_empty_tree():
    search = searched_tree(3)
    unvisited = search.root.moves[-1]
    search.tree.move_to("start", [unvisited])
    assert search.root.visits == 0


@pytest.mark.parametrize("start, moves", [("other", []), ("start", [1])])
def test_another_game_starts_an_empty_tree(start, moves):
    tree = Tree()
    tree.move_to("start", [7, 8])
    old = tree.root
    tree.move_to(start, moves)
    assert tree.root != old
    assert tree.can_shrink


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("is_in_tree", [False, True])
def test_the_rest_of_a_mate_is_kept(keep, is_in_tree):
    search = searched_tree()
    tree = search.tree
    first, child = best(tree.root)
    answer, grandchild = best(child)
    if not is_in_tree:
        tree.clear()
        tree.move_to("start", [])
    tree.set_mate(tree.root_index, [first, answer, 7, 8, 9])
    tree.move_to("start", [first, answer], keep=keep)
    assert (tree.root == grandchild) == is_in_tree
    assert (list(tree.root.mate), tree.root.proof) == ([7, 8, 9], Proof(WIN, 3))
    tree.move_to("start", [first, answer, 7, 8])
    assert (list(tree.root.mate), tree.root.proof) == ([9], Proof(WIN, 1))


@pytest.mark.parametrize("moves", [[1], [1, 3], [2, 3], [1, 2, 3], [1, 2, 3, 5], [5, 1, 2]])
def test_a_mate_that_is_not_played_is_forgotten(moves):
    tree = Tree()
    tree.move_to("start", [])
    tree.set_mate(tree.root_index, (1, 2, 3, 4, 5))
    tree.move_to("start", moves)
    assert not tree.root.mate and not tree.root.proof


def test_a_mate_of_another_game_is_forgotten():
    tree = Tree()
    tree.move_to("start", [])
    tree.set_mate(tree.root_index, (1, 2, 3))
    tree.move_to("other", [1, 2])
    assert not tree.root.mate and not tree.root.proof


def test_a_return_from_ponder_starts_a_new_tree():
    """What the ponder search found is missing in the nodes above it."""
    search = searched_tree()
    own, child = best(search.root)
    guess, _ = best(child)
    for moves in ([], [own]):
        search.tree.move_to("start", [])
        run(search, 600)
        old = search.root
        search.tree.move_to("start", [own, guess], keep=True)
        search.tree.move_to("start", moves)
        assert search.root != old and search.root.visits == 0


def test_a_wrong_guess_at_the_answer_loses_nothing():
    search = searched_tree()
    own, child = best(search.root)
    guess, expected = best(child)
    others = [i for i in range(len(child.children)) if child.children[i] != expected]
    surprise = max(others, key=lambda index: child.children[index].visits)
    move = child.moves[surprise]
    known = shape(child.children[surprise])
    search.tree.move_to("start", [own, guess], keep=True)  # ponder
    assert search.root == expected
    search.tree.move_to("start", [own, move])
    assert shape(search.root) == known


def test_a_ponder_that_was_right_goes_on():
    search = searched_tree()
    own, child = best(search.root)
    guess, expected = best(child)
    search.tree.move_to("start", [own, guess], keep=True)
    run(search, expected.visits + 64, moves=[to_usi(own), to_usi(guess)])
    visits = search.root.visits
    search.tree.move_to("start", [own, guess])
    assert (search.root, search.root.visits) == (expected, visits)


def test_a_tree_drops_what_lies_above_the_game_though_every_guess_is_right():
    """Then a GUI sends ponder and ponderhit only, and no go without ponder."""
    search = searched_tree()
    tree, game = search.tree, []
    for _ in range(4):
        own, child = best(tree.root)
        guess, _ = best(child)
        game += [own, guess]
        tree.move_to("start", game, keep=True)
        sweep(tree)
        assert tree.size == all_bytes(tree)
        # The other replies to the own move are still there.
        assert tree._anchor == child.index
        run(search, tree.root.visits + 300, moves=list(map(to_usi, game)))


def test_the_size_is_that_of_the_nodes_and_what_is_dropped_counts_until_it_is_swept(monkeypatch):
    monkeypatch.setattr("pydlshogi.uct.tree._SLICE", 100)
    search = searched_tree(1500)
    tree = search.tree
    assert tree.size == all_bytes(tree)
    first, child = best(search.root)
    tree.move_to("start", [first])
    assert tree.size > all_bytes(tree)
    steps = 0
    while tree.can_shrink:
        before = tree.size
        tree.sweep()
        assert tree.size < before
        steps += 1
    assert steps > 3
    assert tree.size == all_bytes(tree)
    tree.clear()
    sweep(tree)
    assert tree.size == all_bytes(tree) == NODE_BYTES


def test_a_tree_at_its_limit_takes_the_room_of_dropped_nodes():
    search = searched_tree(3000)
    search.settings = search.settings.__class__(megabytes=1)
    search.tree.clear()
    search.begin(Game(CshogiBoard()))
    allocated = search.tree.allocated
    for _ in range(3):
        run(search, 2500)
        assert search.tree.allocated == allocated
        search.tree.clear()
    # What is left of the memory is still that of whole blocks, and of no node twice.
    run(search, 1000)
    for node in nodes_of(search.root):
        if node.children:
            assert sum(child.visits for child in node.children) == node.visits - 1


def test_dropped_nodes_are_remembered_until_their_room_is_needed():
    search = searched_tree(1500, batch_size=1, root_mate=False, line_mate=False)
    asked = search.evaluations
    search.tree.clear()
    run(search, 1500)
    assert search.evaluations < asked / 20
    search.forget()
    run(search, 1500)
    assert search.evaluations == asked


def test_another_temperature_forgets_the_probabilities_of_the_first():
    search = make_search(temperature=1.4)
    run(search, 1500)
    search.tree.clear()
    search.begin(Game(CshogiBoard()), Settings(temperature=1.0))
    assert shape(run(search, 4000)) == shape(run(make_search(temperature=1.0), 4000))


@pytest.mark.parametrize("times", [0, 1])
def test_a_tree_without_memory_to_grow_can_be_searched_later(monkeypatch, times):
    """The memory may be missing before a batch is collected, and when its answer has come."""
    search, allocate, growths = make_search(), Tree._allocate, []

    def allocate_or_fail(tree, nodes, blocks):
        if len(growths) == times:
            raise MemoryError
        growths.append(nodes)
        allocate(tree, nodes, blocks)

    run(search, 100)
    with monkeypatch.context() as patch:
        patch.setattr(Tree, "_missing", lambda tree, nodes, blocks: (1, 1))
        patch.setattr(Tree, "_allocate", allocate_or_fail)
        with pytest.raises(MemoryError):
            search.step(200)
        search.give_up()
    assert not any(node.pending for node in nodes_of(search.root))
    assert run(search, 300).visits == 300


def test_where_memory_is_copied_a_tree_grows_seldom_and_not_beyond_its_limit(monkeypatch):
    monkeypatch.setattr("pydlshogi.uct.tree._MOST_GROWTH", 1 << 30)
    tree, growths = Tree(limit=10**8), 0
    while tree.allocated < tree.limit:
        # As if all were in use.
        tree.pool[FRESH_NODE], tree.pool[FRESH_EDGE] = len(tree._nodes), len(tree._edges)
        tree.reserve(1, 1)
        growths += 1
    assert growths < 60
    assert tree.allocated < 1.05 * tree.limit


def test_restricted_moves_give_their_room_back():
    tree = Tree()
    tree.reserve(1, 30)
    add_moves(tree, tree.root_index, range(1, 101))
    tree.restrict(tree.root_index, frozenset(range(50, 60)))
    assert tree.root.moves == list(range(50, 60))
    assert sum(tree.root.priors) == pytest.approx(1)
    assert tree.size == all_bytes(tree)
    tree.clear()
    sweep(tree)
    assert tree.size == NODE_BYTES
    reclaim(*tree.arrays, 10**6, 10**6)
    assert tree.pool[FREE_BLOCKS] == blocks_of(100)


def test_a_search_stops_growing_at_its_limit():
    search = make_search(megabytes=16)
    search.settings = search.settings.__class__(megabytes=1)
    search.begin(Game(CshogiBoard()))
    while not search.is_full():
        search.step(10**9)
        assert search.root.visits < 5000
    assert 1 <= search.fullness() < 1.1


def test_the_memory_of_the_arrays_is_little_more_than_that_in_use():
    search = searched_tree(6000)
    tree = search.tree
    assert tree.size < tree.allocated < 1.4 * tree.size
    assert tree.allocated / search.evaluations < 900


def test_a_guess_that_was_not_searched_starts_a_tree_whose_memory_is_counted():
    search = searched_tree()
    tree = search.tree
    first, child = best(search.root)
    surprise = child.moves[-1]
    assert child.child_after(surprise) is None
    moves = [to_usi(first), to_usi(surprise)]
    for _ in range(3):
        tree.move_to("start", [first, surprise], keep=True)
        run(search, tree.root.visits + 64, moves=moves)
    assert tree.root.visits == 192
    pondered = tree.root
    tree.move_to("start", [first, surprise])
    assert tree.root == pondered
    sweep(tree)
    assert tree.size == all_bytes(tree)


def test_a_full_tree_drops_what_ponder_has_kept():
    search = searched_tree(1500)
    own, child = best(search.root)
    guess, expected = best(child)
    search.tree.move_to("start", [own, guess], keep=True)
    search.settings = search.settings.__class__(megabytes=0.6)
    moves = [to_usi(own), to_usi(guess)]
    search.begin(Game(CshogiBoard(None, moves)))
    assert search.fullness() > 1
    assert not search.is_full()
    visits = expected.visits
    while search.fullness() > 1 and not search.is_full():
        search.step(10**9)
    assert search.root == expected
    assert search.root.visits > visits
    sweep(search.tree)
    assert search.tree.size == all_bytes(search.tree)


@pytest.mark.slow
def test_with_a_million_evaluations_nothing_takes_long():
    """Neither growing, moving the root, dropping nor freeing. A busy machine does not count."""
    rng = numpy.random.default_rng(1)
    logits = 2 * rng.standard_normal((128, 2187), numpy.float32)
    wins = rng.uniform(0.3, 0.7, 128).astype(numpy.float32)

    def evaluate(planes):
        first = rng.integers(0, 64)
        return logits[first : first + len(planes)], wins[first : first + len(planes)]

    seconds = {}

    def timed(name, call, *arguments):
        start = time.thread_time()
        call(*arguments)
        seconds[name] = max(time.thread_time() - start, seconds.get(name, 0))

    search = make_search(
        evaluate, batch_size=64, megabytes=4096, mate_plies=1, root_mate=False, line_mate=False
    )
    tree = search.tree
    tree.move_to("start", [])
    search.begin(Game(CshogiBoard()))
    while search.evaluations < 1_000_000:
        timed("step", search.step, 10**9)
    search.finish()
    first, child = best(tree.root)
    second, _ = best(child)
    timed("move", tree.move_to, "start", [first, second])
    while tree.pool[GARBAGE]:
        timed("sweep", tree.sweep)
    guess, _ = best(tree.root)
    timed("ponder", tree.move_to, "start", [first, second, guess], True)
    timed("clear", tree.clear)
    timed("forget", search.forget)
    print({name: f"{1000 * spent:.1f} ms" for name, spent in seconds.items()})
    assert max(seconds.values()) < 0.05
