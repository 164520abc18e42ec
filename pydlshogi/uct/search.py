"""Monte-Carlo tree search guided by a network with a policy and a value.

The search repeats a playout (:meth:`Search._playout`), which has four steps:

1. Select: from the root, follow the move with the highest PUCT score, down to a leaf.
2. Evaluate: the rules or a mate search may know the leaf's result
   (:mod:`pydlshogi.uct.judge`), another node with the same position its value. Else the network
   evaluates it.
3. Expand: the leaf receives its legal moves with their prior probabilities.
4. Back up: add the value to every node of the path.

The steps 1, 3 and 4 are functions of :mod:`pydlshogi.uct.core`, which also has the tree.

The network is fast only for batches of leaves (:mod:`pydlshogi.uct.evaluation`). A playout that
needs the network waits in step 2 until its batch is evaluated. Meanwhile it is pending, and the
selection sends the next playouts to other leaves.
"""

from __future__ import annotations

import collections
import functools
from typing import Callable

import numpy

from pydlshogi.features import LABEL_NUM, PLANE_NUM
from pydlshogi.uct import core
from pydlshogi.uct.board import SearchBoard
from pydlshogi.uct.boards import make_search_board
from pydlshogi.uct.compiler import IS_COMPILED, argument, call_first, is_in_cache
from pydlshogi.uct.core import DRAW, WIN, Proof
from pydlshogi.uct.evaluation import Answer, Batch, Evaluate, Evaluations
from pydlshogi.uct.game import Game
from pydlshogi.uct.judge import CHECKMATED, Verdict, judge
from pydlshogi.uct.mate import LineMate, RootMate
from pydlshogi.uct.move import label_table
from pydlshogi.uct.settings import Settings
from pydlshogi.uct.tree import Node, Tree

#: A batch has one position, and one more for each 8 visits of the root, pending ones included:
#: early playouts need each other's values.
_GROWTH = 8

#: Above this size, batches grow in multiples of it: on a CPU, 6 positions take nearly as long as 8.
_GROUP = 4

#: Playouts between two checks for a stop. One takes 0.1 ms, or 5 ms with a hard mate search.
_CHECK = 4

#: Longer mate searches can take 50 ms. Then, there is a check before each playout.
_FAST_MATE = 5

#: Longest line below the root, in plies. A longer one counts as a draw.
_MOST_PLIES = 4096

#: Blocks of edges for which there is room at each playout, and in addition once.
_BLOCKS, _MORE_BLOCKS = 12, 100


def never() -> bool:
    """Says that a search is not stopped."""
    return False


class Search:
    """A search that keeps its tree from move to move.

    Args:
        evaluate: Runs the network.
        settings: The settings.

    Attributes:
        settings: The settings.
        tree: The tree; between two calls of :meth:`step` playouts may be pending.
        evaluations: Number of positions given to the network since :meth:`begin`.
        collisions: Number of playouts whose leaf was pending already.
        deepest: Length of the longest path from the root, in plies.
        plane_num: Number of planes of the network's input. Change it before :meth:`begin` only.
    """

    def __init__(self, evaluate: Evaluate, settings: Settings) -> None:
        self.settings = settings
        self.plane_num = PLANE_NUM
        self.tree = Tree(settings.tree_bytes())
        self._evaluations = Evaluations(evaluate)
        self._line = argument(numpy.zeros(_MOST_PLIES, numpy.int32))
        self._pending: collections.deque[Batch] = collections.deque()

    @property
    def root(self) -> Node:
        """The position searched."""
        return self.tree.root

    @property
    def board(self) -> SearchBoard:
        """The board, with the position searched."""
        return self._game.board

    def fullness(self) -> float:
        """Returns the used part of the tree's memory, 1 for all of it."""
        return self.tree.size / self.settings.tree_bytes()

    def is_full(self) -> bool:
        """Says whether the tree must not grow: it is full, and nothing of it can be freed."""
        return self.fullness() >= 1 and not self.tree.can_shrink

    def any_move(self) -> int:
        """Returns a legal move to choose from, for lack of the network's answer."""
        return next(move for move in self.board.moves().tolist() if self.may_choose(move))

    def forget(self) -> None:
        """Drops all evaluations: the network has changed."""
        self.tree.forget()

    def warm_up(self, planes: numpy.ndarray) -> None:
        """Evaluates planes in the background, as on a GPU: the first evaluation there is slow.

        Args:
            planes: (n, plane_num, 9, 9) float32.
        """
        self._evaluations.begin_search(in_background=True)
        self._evaluations.wait(self._evaluations.begin(planes), never)

    def close(self) -> None:
        """Ends the thread of the evaluations; a later search starts it again."""
        self._evaluations.close()

    # Control: a search is begun, goes on step by step, and is finished or given up.

    def begin(
        self,
        game: Game,
        settings: Settings | None = None,
        root_moves: frozenset[int] | None = None,
    ) -> None:
        """Begins to search the position that ``tree.root`` stands for.

        Args:
            game: The position with the moves that led to it. The search plays on it.
            settings: The settings from now on; None for those before. The tree must not have
                been made with others.
            root_moves: The legal moves to choose from; None for all. With a set, the tree must be
                new.
        """
        if settings and settings != self.settings:
            self._change(settings)
        settings = self.settings
        self.tree.limit = settings.tree_bytes()
        puct = (*settings.puct(is_root=True), *settings.puct(is_root=False))
        self._puct = argument(numpy.array(puct, numpy.float64))
        self._labels = label_table()
        self._evaluations.begin_search(in_background=settings.batches > 1)
        self._game = game
        self._root_moves = root_moves
        self._forget_result()
        plies_left = settings.plies_left(game.ply)
        self._root_mate = RootMate(game.board, plies_left, root_moves)
        self._line_mate = LineMate(game, settings)
        self.evaluations = self.collisions = self.deepest = 0

    def _forget_result(self) -> None:
        """Forgets a root's result from an earlier search if neither tree nor mate shows a move.

        The line of a mate that was found shows it, and so do the children from whose results a
        proof follows. A result by the rules, such as a fourth repetition, does not: it ended the
        game in the earlier search, but now the GUI asks for a move.
        """
        root, tree = self.root, self.tree
        if root.mate:
            return
        if not root.is_expanded:  # all its visits had the value of the result
            tree.nodes.visits[root.index], tree.nodes.total[root.index] = 0, 0.0
        if not root.children or root.derive_proof() != root.proof:
            tree.nodes.outcome[root.index] = core.UNKNOWN

    def _change(self, settings: Settings) -> None:
        """Changes the settings."""
        before = self.settings
        # The evaluations have probabilities with the old temperature.
        if settings.temperature != before.temperature or settings.megabytes < before.megabytes:
            self.tree.forget()
        self.settings = settings

    def step(self, max_visits: int, is_stopped: Callable[[], bool] = never) -> None:
        """Collects batches until enough are pending, and backs up the oldest one.

        Args:
            max_visits: Visits of the root at which to end.
            is_stopped: Says every few milliseconds whether to give up the batch.

        Raises:
            Exception: what ``evaluate`` or the board raised; :meth:`give_up` must follow, and
                :meth:`begin` with a new game before the next step.
        """
        while len(self._pending) < self.settings.batches and self._collect(max_visits, is_stopped):
            pass
        # The rest is done while the network computes, if it does so in another thread.
        if self.fullness() >= 1:
            self.tree.drop_unreachable()
        self.tree.sweep()
        self._search_mates()
        if self._pending:
            self._receive(is_stopped)

    def finish(self, is_stopped: Callable[[], bool] = never) -> None:
        """Completes all pending batches, and searches a mate after the best move.

        Args:
            is_stopped: Says, while the network computes, whether to give up the batches.
        """
        while self._pending:
            self._receive(is_stopped)
        if self.settings.line_mate and not self._is_proven():
            self._line_mate.check_move(self.root)

    def give_up(self) -> None:
        """Gives up all pending batches."""
        while self._pending:
            self._end(self._pending.pop())

    def _search_mates(self) -> None:
        """Searches a slice of the mate search at the root, or a position of the best line."""
        if self._is_proven():
            return
        root = self.root
        if self.settings.root_mate and not self._root_mate.is_complete:
            line = self._root_mate.step()
            if line:
                self.tree.set_mate(root.index, line)
        elif self.settings.line_mate:
            self._line_mate.step(root)

    def may_choose(self, move: int | None) -> bool:
        """Says whether a move is one of those to choose from at the root."""
        return self._root_moves is None or move in self._root_moves

    # Batches

    def _collect(self, max_visits: int, is_stopped: Callable[[], bool]) -> bool:
        """Collects a batch and begins its evaluation.

        Returns:
            Whether there is anything for the network to evaluate.
        """
        batch = Batch(self._next_size(), self.plane_num)
        self._pending.append(batch)
        is_ready = False
        try:
            is_ready = self._fill(batch, max_visits, is_stopped)
        finally:  # the board may raise an exception
            if not is_ready:
                self._end(self._pending.pop())
        if is_ready:
            batch.evaluation = self._evaluations.begin(batch.inputs.planes())
        return is_ready

    def _next_size(self) -> int:
        """Returns the largest number of positions for the next batch."""
        size = 1 + (self.root.visits + self.root.pending) // _GROWTH
        if size > _GROUP:
            size -= size % _GROUP
        return min(self.settings.batch_size, size)

    def _fill(self, batch: Batch, max_visits: int, is_stopped: Callable[[], bool]) -> bool:
        """Makes playouts until the batch is full; returns whether to evaluate it."""
        check = _CHECK if self.settings.mate_plies <= _FAST_MATE else 1
        # Bounded, because playouts to leaves with a known value could go on forever.
        most = 2 * batch.size
        tree = self.tree
        tree.reserve(most, _BLOCKS * most + _MORE_BLOCKS)
        root, nodes, leaves, size = tree.root_index, tree.nodes, batch.leaves, batch.size
        for number in range(most):
            begun = nodes.visits[root] + nodes.pending[root]
            if len(leaves) == size or begun >= max_visits or nodes.outcome[root] != core.UNKNOWN:
                break
            if number % check == check - 1 and is_stopped():
                return False
            self._playout(batch)
        self.evaluations += len(batch.leaves)
        self.collisions += len(batch.collisions)
        return bool(batch.leaves)

    def _receive(self, is_stopped: Callable[[], bool]) -> None:
        """Waits for the network's answer to the oldest batch, and completes the batch."""
        batch = self._pending[0]
        assert batch.evaluation is not None
        answer = self._evaluations.wait(batch.evaluation, is_stopped)
        if not answer:
            self._end(self._pending.popleft())
            return
        blocks = len(batch.leaves) + sum(map(len, batch.moves)) // core.MOVES_IN_BLOCK
        self.tree.reserve(0, blocks)  # without memory for them, the batch stays pending
        self._complete(self._pending.popleft(), answer)

    def _complete(self, batch: Batch, answer: Answer) -> None:
        """Expands the leaves of a batch and backs up their values."""
        self._remove_pending(batch.collisions)
        logits, wins = answer
        tree = self.tree
        ends = numpy.array([len(moves) for moves in batch.moves], numpy.int64).cumsum()
        if wins is None:
            wins = numpy.full(len(batch.leaves), 0.5)
        core.complete(
            *tree.arrays,
            tree.table,
            tree.root_index,
            argument(numpy.array(batch.leaves)),
            argument(numpy.array(batch.keys)),
            argument(numpy.array(batch.inputs.turns)),
            argument(ends),
            numpy.concatenate(batch.moves),
            self._labels,
            numpy.require(logits, numpy.float32, ["C", "W"]),
            argument(numpy.require(wins, numpy.float64, ["C", "W"])),
            self.settings.temperature,
        )
        if tree.root_index in batch.leaves:
            self._restrict_root()

    def _end(self, batch: Batch) -> None:
        """Removes the pending visits of a batch whose answer will not be used."""
        self._remove_pending(batch.collisions + batch.leaves)

    def _remove_pending(self, leaves: list[int]) -> None:
        for leaf in leaves:
            core.remove_pending(self.tree.arrays[0], self.tree.root_index, leaf)

    # One playout

    def _playout(self, batch: Batch) -> None:
        """Makes a playout. It joins the batch if only the network can value its leaf.

        If the board raises an exception, no visit is counted, but moves stay on the board.
        """
        tree, game = self.tree, self._game
        root, nodes = tree.root_index, tree.nodes
        leaf, depth = core.descend(*tree.arrays, root, self._puct, self._line)
        self.deepest = max(self.deepest, depth)
        awaited = nodes.pending[leaf] > 1 and nodes.outcome[leaf] == core.UNKNOWN
        if awaited and not nodes.moves[leaf]:  # the network is evaluating it
            batch.collisions.append(leaf)
            return
        try:
            game.play(self._line[:depth].tolist())
            value = self._evaluate(leaf, batch)
            game.pop(depth)
        except BaseException:
            self._remove_pending([leaf])
            raise
        if value is not None:
            core.back_up(tree.arrays[0], root, leaf, value)

    def _evaluate(self, leaf: int, batch: Batch) -> float | None:
        """Values a leaf for its side to move.

        Returns:
            The value; None if the leaf was added to the batch, or its visit is complete.
        """
        tree, game, nodes = self.tree, self._game, self.tree.nodes
        if nodes.outcome[leaf] != core.UNKNOWN:
            return self._value(nodes.outcome[leaf])
        if nodes.moves[leaf]:  # the longest line has ended
            return self._value(DRAW)
        is_root = leaf == tree.root_index
        verdict = judge(game, self.settings, is_root)
        # At the root, a mate by an excluded move does not count.
        if verdict and (not is_root or self.may_choose(verdict.mate_move)):
            return self._settle(leaf, verdict)
        key = game.input_key(self.plane_num)
        if core.visit_known(*tree.arrays, tree.table, tree.root_index, leaf, key):
            if is_root:
                self._restrict_root()
            return None
        moves = game.board.moves()
        if not len(moves):
            return self._settle(leaf, CHECKMATED)
        batch.add(leaf, key, game, moves)
        return None

    def _settle(self, leaf: int, verdict: Verdict) -> float:
        """Stores the proof of a leaf's result, if there is one, and returns its value."""
        if verdict.proof:
            if verdict.mate_move is not None:
                self.tree.set_mate_moves(leaf, (verdict.mate_move,))
            self.tree.prove(leaf, verdict.proof)
        return self._value(verdict.outcome)

    def _value(self, outcome: int) -> float:
        """Value of an outcome for the side to move."""
        if outcome == DRAW:
            return self.settings.draw_value(self._game.board.turn)
        return 1.0 if outcome == WIN else 0.0

    def _is_proven(self) -> bool:
        """Says whether the result of the root is proven."""
        return self.tree.nodes.outcome[self.tree.root_index] != core.UNKNOWN

    def _restrict_root(self) -> None:
        """Leaves the root, which has just been expanded, only the moves to choose from."""
        if self._root_moves is not None:
            self.tree.restrict(self.tree.root_index, self._root_moves)


def must_compile() -> bool:
    """Says whether :func:`compile_search` will take seconds, because no process has called it."""
    return IS_COMPILED and not is_in_cache(core.complete)


@functools.cache
def compile_search() -> None:
    """Calls all compiled functions of the search once.

    Numba compiles them at the first call in seconds, and keeps them on the disk. Later processes
    load them in a part of a second. Without numba this does nothing.
    """
    if not IS_COMPILED:
        return

    def evaluate(planes: numpy.ndarray) -> Answer:
        number = len(planes)
        return numpy.zeros((number, LABEL_NUM), numpy.float32), numpy.full(number, 0.5)

    def search() -> None:
        search = Search(evaluate, Settings(megabytes=1, root_mate=False, batch_size=4))
        board = make_search_board()
        search.begin(Game(board), root_moves=frozenset(board.moves().tolist()))
        while search.root.visits < 60:  # some of them with known evaluations
            search.step(60)
        tree, root = search.tree, search.root
        leaf, _ = core.descend(*tree.arrays, root.index, search._puct, search._line)
        core.remove_pending(tree.arrays[0], root.index, leaf)
        core.back_up(tree.arrays[0], root.index, leaf, 0.5)
        root.favourites()
        root.derive_proof()
        tree.prove(root.children[0].index, Proof(WIN, 1))
        tree.clear()
        tree.sweep()
        core.reclaim(*tree.arrays, 10, 10)
        core.remember_all(tree.arrays[0], tree.table, 1, 2)

    call_first(search)
