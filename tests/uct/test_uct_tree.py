"""The tree follows the game, keeps what it knows and stays within its memory."""

import gc
import time
import tracemalloc

import pytest
from uct_helpers import FakeNetwork, make_search, nodes_of, run, shape

from pydlshogi.uct.cache import Cache
from pydlshogi.uct.cshogi_board import CshogiBoard
from pydlshogi.uct.game import Game
from pydlshogi.uct.garbage_collector import no_garbage_collection
from pydlshogi.uct.move import to_usi
from pydlshogi.uct.proof import WIN, Proof
from pydlshogi.uct.tree import Tree, size_of


def searched_tree(visits=600, **settings):
    search = make_search(FakeNetwork(4), **settings)
    search.tree.move_to("start", [])
    run(search, visits)
    return search


def best(node):
    """Gives the most visited move and its node."""
    index = max(range(len(node.children)), key=node.child_visits.__getitem__)
    return node.move(index), node.children[index]


def all_bytes(tree):
    return sum(map(size_of, nodes_of(tree._anchor)))


def test_a_reused_tree_is_the_subtree_that_it_came_from():
    search = searched_tree()
    first, child = best(search.root)
    second, grandchild = best(child)
    before = shape(grandchild)
    assert before[0] > 20
    search.tree.move_to("start", [first, second])
    assert search.root is grandchild
    assert shape(search.root) == before
    # The search goes on with it.
    moves = [to_usi(first), to_usi(second)]
    run(search, before[0] + 100, moves=moves)
    assert search.root.visits == before[0] + 100
    for node in nodes_of(search.root):
        if node.children is not None:
            assert sum(node.child_visits) == node.visits - 1


def test_a_move_that_was_not_searched_starts_an_empty_tree():
    search = searched_tree(3)
    unvisited = int(search.root.policy.moves[-1])
    search.tree.move_to("start", [unvisited])
    assert search.root.visits == 0


@pytest.mark.parametrize("start, moves", [("other", []), ("start", [1])])
def test_another_game_starts_an_empty_tree(start, moves):
    tree = Tree()
    tree.move_to("start", [7, 8])
    old = tree.root
    tree.move_to(start, moves)
    assert tree.root is not old
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
    tree.root.mate = [first, answer, 7, 8, 9]
    tree.root.proof = Proof(WIN, 5)
    tree.move_to("start", [first, answer], keep=keep)
    assert (tree.root is grandchild) == is_in_tree
    assert (list(tree.root.mate), tree.root.proof) == ([7, 8, 9], Proof(WIN, 3))
    tree.move_to("start", [first, answer, 7, 8])
    assert (list(tree.root.mate), tree.root.proof) == ([9], Proof(WIN, 1))


@pytest.mark.parametrize("moves", [[1], [1, 3], [2, 3], [1, 2, 3], [1, 2, 3, 5], [5, 1, 2]])
def test_a_mate_that_is_not_played_is_forgotten(moves):
    tree = Tree()
    tree.move_to("start", [])
    tree.root.mate, tree.root.proof = (1, 2, 3, 4, 5), Proof(WIN, 5)
    tree.move_to("start", moves)
    assert not tree.root.mate and not tree.root.proof


def test_a_mate_of_another_game_is_forgotten():
    tree = Tree()
    tree.move_to("start", [])
    tree.root.mate, tree.root.proof = (1, 2, 3), Proof(WIN, 3)
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
        assert search.root is not old and search.root.visits == 0


def test_a_wrong_guess_at_the_answer_loses_nothing():
    search = searched_tree()
    own, child = best(search.root)
    guess, expected = best(child)
    others = [i for i in range(len(child.children)) if child.children[i] is not expected]
    surprise = max(others, key=child.child_visits.__getitem__)
    known = shape(child.children[surprise])
    search.tree.move_to("start", [own, guess], keep=True)  # ponder
    assert search.root is expected
    search.tree.move_to("start", [own, child.move(surprise)])
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
        while tree._garbage:
            tree.free(100)
        assert tree.size == all_bytes(tree)
        # The other replies to the own move are still there.
        assert tree._anchor is child
        run(search, tree.root.visits + 300, moves=list(map(to_usi, game)))


def test_the_size_is_that_of_the_nodes_and_what_is_dropped_is_freed_in_slices():
    search = searched_tree(1500)
    tree = search.tree
    assert tree.size == all_bytes(tree)
    first, child = best(search.root)
    tree.move_to("start", [first])
    assert tree.size > all_bytes(tree)
    steps = 0
    while tree.can_shrink:
        before = tree.size
        tree.free(100)
        assert tree.size < before
        steps += 1
    assert steps > 3
    assert tree.size == all_bytes(tree)
    tree.clear()
    while tree.can_shrink:
        tree.free(100)
    assert tree.size == all_bytes(tree) == size_of(tree.root)


def test_a_search_stops_growing_at_its_limit():
    search = make_search(megabytes=16)
    search.settings = search.settings.__class__(megabytes=1)
    search.begin(Game(CshogiBoard()))
    while not search.is_full():
        search.step(10**9)
        assert search.root.visits < 5000
    assert 1 <= search.fullness() < 1.1


@pytest.mark.long
def test_the_estimate_of_memory_is_near_the_truth():
    searched_tree(10)  # tables that are made once
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        search = searched_tree(4000)
        used = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert 0.8 < search.tree.size / used < 1.25
    assert used / search.evaluations < 2500


def test_the_cache_forgets_the_oldest():
    cache = Cache(3)
    for key in range(5):
        cache.put(key, str(key))
    assert [cache.get(key) for key in range(5)] == [None, None, "2", "3", "4"]
    cache.resize(1)
    cache.trim(1)
    assert [cache.get(key) for key in range(2, 5)] == [None, "3", "4"]
    cache.trim(5)
    assert (len(cache), cache.get(4)) == (1, "4")
    cache.clear()
    assert len(cache) == 0
    Cache(0).put(1, "1")


def test_a_cache_that_is_made_smaller_is_emptied_in_slices():
    search = searched_tree(1500)
    cache = search._cache
    known = len(cache)
    cache.resize(10)
    assert len(cache) == known > 720
    search.step(10**9)
    assert known - len(cache) <= 700
    while len(cache) > 10:
        before = len(cache)
        search.step(10**9)
        assert len(cache) < before
    assert len(cache) == 10


def test_a_guess_that_was_not_searched_starts_a_tree_whose_memory_is_counted():
    search = searched_tree()
    tree = search.tree
    first, child = best(search.root)
    surprise = int(child.policy.moves[-1])
    assert child.child_after(surprise) is None
    moves = [to_usi(first), to_usi(surprise)]
    for _ in range(3):
        tree.move_to("start", [first, surprise], keep=True)
        run(search, tree.root.visits + 64, moves=moves)
    assert tree.root.visits == 192
    pondered = tree.root
    tree.move_to("start", [first, surprise])
    assert tree.root is pondered
    while tree.can_shrink:
        tree.free(100)
    assert tree.size == all_bytes(tree)


def test_a_full_tree_drops_what_ponder_has_kept():
    search = searched_tree(1500)
    own, child = best(search.root)
    guess, expected = best(child)
    search.tree.move_to("start", [own, guess], keep=True)
    search.settings = search.settings.__class__(megabytes=1)
    moves = [to_usi(own), to_usi(guess)]
    search.begin(Game(CshogiBoard(None, moves)))
    assert search.fullness() > 1
    assert not search.is_full()
    visits = expected.visits
    while search.fullness() > 1 and not search.is_full():
        search.step(10**9)
    assert search.root is expected
    assert search.root.visits > visits
    while search.tree.can_shrink:
        search.tree.free(100)
    assert search.tree.size == all_bytes(search.tree)


def test_the_collector_stays_away_from_the_tree():
    with no_garbage_collection():
        assert not gc.isenabled()
        search = searched_tree(6000)
    assert gc.isenabled()
    start = time.perf_counter()
    gc.collect()
    frozen = time.perf_counter() - start
    gc.unfreeze()
    start = time.perf_counter()
    gc.collect()
    assert frozen < time.perf_counter() - start
    assert search.root.visits == 6000
