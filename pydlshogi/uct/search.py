"""The search: batches of leaves are collected, evaluated and backed up.

One visit goes down from the root to a leaf (:mod:`pydlshogi.uct.selection`). A leaf whose
result is known (:mod:`pydlshogi.uct.judge`) is backed up at once. The others are pending: they
keep a virtual loss on their path until the network has answered for their batch.
"""

from __future__ import annotations

import collections
from concurrent.futures import Future
from typing import Callable, NamedTuple

import numpy

from pydlshogi.features import PLANE_NUM
from pydlshogi.uct.backup import Path, back_up, give_back, prove
from pydlshogi.uct.board import SearchBoard
from pydlshogi.uct.cache import Cache
from pydlshogi.uct.evaluation import Answer, Evaluate, Evaluations
from pydlshogi.uct.game import Game
from pydlshogi.uct.judge import Verdict, judge
from pydlshogi.uct.mate import RootMate
from pydlshogi.uct.move import label_table
from pydlshogi.uct.node import LISTS_BYTES, NODE_BYTES, Node
from pydlshogi.uct.policy import Policy
from pydlshogi.uct.proof import DRAW, LOSS, WIN, Proof
from pydlshogi.uct.selection import select
from pydlshogi.uct.settings import Settings
from pydlshogi.uct.tree import Tree

#: Part of the memory for the tree; the cache has the rest, and its entries this many bytes.
_TREE_PART, _CACHE_ENTRY = 0.875, 1000

#: A batch has at most one eighth of the root's visits: early visits need each other's values.
_GROWTH = 8

#: Visits between two checks for a stop. A visit takes 0.1 ms, or 5 ms with a hard mate search.
_CHECK = 4

#: Nodes freed while the network computes, which takes about 5 ms.
_FREED = 700


class Leaf(NamedTuple):
    """A position that the network is asked about.

    Attributes:
        path: The path to it.
        node: Its node.
        key: Its hash.
        turn: Its side to move.
        moves: Its legal moves, (n,) uint16.
    """

    path: Path
    node: Node
    key: int
    turn: int
    moves: numpy.ndarray


class Batch(NamedTuple):
    """Pending visits.

    Attributes:
        leaves: Positions that the network is asked about.
        collisions: Paths to leaves that were pending already.
        planes: Input of the network, (batch size, plane_num, 9, 9) float32; a row for each
            leaf.
    """

    leaves: list[Leaf]
    collisions: list[tuple[Path, Node]]
    planes: numpy.ndarray

    def visits(self) -> int:
        """Number of visits."""
        return len(self.leaves) + len(self.collisions)

    def paths(self) -> list[Path]:
        """The path of each visit."""
        return [*(leaf.path for leaf in self.leaves), *(path for path, _ in self.collisions)]


class Search:
    """A search that keeps its tree from move to move.

    Args:
        evaluate: Asks the network.
        settings: The constants.

    Attributes:
        settings: The constants.
        tree: The tree; between two calls of :meth:`step` visits may be pending.
        evaluations: Number of positions that the network was asked about since :meth:`begin`.
        collisions: Number of visits that met a pending leaf.
        deepest: Longest path from the root, in plies.
        mate: The moves of a mate that the mate search at the root has found; else empty.
        plane_num: Number of planes of the network's input. Change it before :meth:`begin` only.
    """

    def __init__(self, evaluate: Evaluate, settings: Settings) -> None:
        self.settings = settings
        self.plane_num = PLANE_NUM
        self.tree = Tree()
        self._evaluations = Evaluations(evaluate)
        self._cache = Cache(_cache_capacity(settings))
        self._pending: collections.deque[tuple[Batch, Future[Answer]]] = collections.deque()
        self._pending_visits = 0
        self._filling: Batch | None = None

    @property
    def root(self) -> Node:
        """The position searched."""
        return self.tree.root

    @property
    def board(self) -> SearchBoard:
        """The board, with the position searched."""
        return self._game.board

    def visits(self) -> int:
        """Number of the root's completed visits; it never decreases during a search."""
        return self.root.visits - self._pending_visits

    def pending_moves(self) -> collections.Counter[int]:
        """Counts the pending visits by way of each child of the root, by its index."""
        batches = [batch for batch, _ in self._pending]
        if self._filling:
            batches.append(self._filling)
        return collections.Counter(
            path[0][1] for batch in batches for path in batch.paths() if path
        )

    def fullness(self) -> float:
        """Returns how much of its memory the tree uses, 1 for all of it."""
        return self.tree.size / (_TREE_PART * 10**6 * self.settings.megabytes)

    def is_full(self) -> bool:
        """Says whether the tree must not grow."""
        return self.fullness() >= 1 and not self.tree.has_garbage

    def forget(self) -> None:
        """Drops all evaluations: the network has changed."""
        self.tree.clear()
        self._cache.clear()

    def begin(
        self, game: Game, settings: Settings | None = None, only: frozenset[int] | None = None
    ) -> None:
        """Begins to search the position that ``tree.root`` stands for.

        Args:
            game: The position with the moves that led to it; played on during the search.
            settings: The constants from now on; None for those before. The tree must not have
                been made with others.
            only: The moves to choose from, legal ones; None for all. The tree must be new.
        """
        if settings and settings != self.settings:
            self._change(settings)
        self._game = game
        self._only = only
        self._root_mate = RootMate(game.board, _plies_left(game, self.settings))
        self.mate: list[int] = []
        self.evaluations = self.collisions = self.deepest = 0

    def _change(self, settings: Settings) -> None:
        """Changes the constants."""
        if settings.temperature != self.settings.temperature:
            self._cache.clear()
        self._cache.resize(_cache_capacity(settings))
        self.settings = settings

    def step(self, most: int, is_stopped: Callable[[], bool] = lambda: False) -> None:
        """Collects batches until the network has enough of them, and backs up the oldest.

        Args:
            most: Visits of the root at which to end.
            is_stopped: Says every few milliseconds whether to give up the batch.

        Raises:
            Exception: what ``evaluate`` or the board raised; :meth:`give_up` must follow, and
                :meth:`begin` with a new game before the next step.
        """
        while len(self._pending) < self.settings.batches and self._collect(most, is_stopped):
            pass
        self.tree.free(_FREED)
        if self.settings.root_mate and not self.root.proof:
            self._search_root_mate()
        if self._pending:
            self._receive(is_stopped)

    def finish(self, is_stopped: Callable[[], bool] = lambda: False) -> None:
        """Backs up all pending batches.

        Args:
            is_stopped: Says, while the network computes, whether to give them up.
        """
        while self._pending:
            self._receive(is_stopped)

    def give_up(self) -> None:
        """Gives up all pending batches."""
        while self._pending:
            batch, _ = self._pending.pop()
            self._give_up(batch)

    def _receive(self, is_stopped: Callable[[], bool]) -> None:
        """Backs up the oldest pending batch."""
        answer = self._evaluations.wait(self._pending[0][1], is_stopped)
        batch, _ = self._pending.popleft()
        if answer is None:
            self._give_up(batch)
        else:
            self._take_up(batch, answer)

    def _search_root_mate(self) -> None:
        """Searches a slice of the mate search at the root."""
        line = self._root_mate.step()
        if line and (self._only is None or line[0] in self._only):
            self.mate = line
            self.root.proof = Proof(WIN, len(line))

    def _collect(self, most: int, is_stopped: Callable[[], bool]) -> bool:
        """Collects a batch and begins its evaluation.

        Returns:
            Whether there is anything to ask the network.
        """
        size = min(self.settings.batch_size, 1 + self.root.visits // _GROWTH)
        batch = Batch([], [], numpy.empty((size, self.plane_num, 9, 9), numpy.float32))
        self._filling = batch
        try:
            is_stopped_now = self._fill(batch, most, is_stopped)
        except BaseException:
            self._give_up(batch)
            raise
        finally:
            self._filling = None
        if not is_stopped_now:
            self.collisions += len(batch.collisions)
            self.evaluations += len(batch.leaves)
        if is_stopped_now or not batch.leaves:
            self._give_up(batch)
            return False
        answer = self._evaluations.begin(batch.planes[: len(batch.leaves)])
        self._pending.append((batch, answer))
        return True

    def _fill(self, batch: Batch, most: int, is_stopped: Callable[[], bool]) -> bool:
        """Adds visits to a batch; returns whether the search was stopped meanwhile."""
        size = len(batch.planes)
        # Bounded, since visits to leaves whose value is known could go on for ever.
        for number in range(2 * size):
            if len(batch.leaves) == size or self.root.visits >= most or self.root.proof:
                break
            if number % _CHECK == _CHECK - 1 and is_stopped():
                return True
            self._add_visit(batch)
        return False

    def _add_visit(self, batch: Batch) -> None:
        """Makes a visit, and adds it to the batch if its value is not known at once.

        If the board raises an exception, the visit is undone, but its moves stay on the board.
        """
        path: Path = []
        node: Node | None = None
        try:
            node = self._descend(path)
            is_collision = node.pending
            leaf = None if is_collision else self._visit(path, node)
        except BaseException:
            give_back(path, node)
            raise
        if is_collision:
            batch.collisions.append((path, node))
            self._pending_visits += 1
        elif leaf:
            batch.leaves.append(leaf)
            self._pending_visits += 1
            self._write_planes(batch.planes[len(batch.leaves) - 1])
        for _ in path:
            self._game.pop()

    def _write_planes(self, out: numpy.ndarray) -> None:
        """Writes the network's input for the position on the board."""
        self._game.board.write_planes(out[:PLANE_NUM])
        if self.plane_num > PLANE_NUM:
            out[PLANE_NUM:] = self._game.history_planes()

    def _descend(self, path: Path) -> Node:
        """Goes from the root to a leaf and plays the moves; each visit counts as a loss.

        Args:
            path: An empty path, which is filled.
        """
        settings, game = self.settings, self._game
        constants = settings.c_init_root, settings.c_base_root, settings.fpu_reduction_root
        node = self.root
        while node.policy and not node.proof:
            if node.children is None:
                node.expand(settings.temperature)
                self.tree.size += LISTS_BYTES
            index = select(node, *constants)
            if index == len(node.child_visits):
                child = node.add_child()
                self.tree.size += NODE_BYTES
            else:
                child = node.children[index]  # type: ignore[index]
            game.push(node.move(index))
            node.visits += 1
            node.child_visits[index] += 1
            path.append((node, index))
            node = child
            constants = settings.c_init, settings.c_base, settings.fpu_reduction
        node.visits += 1
        self.deepest = max(self.deepest, len(path))
        return node

    def _visit(self, path: Path, node: Node) -> Leaf | None:
        """Backs up a leaf whose value is known; returns one that the network has to value."""
        if not node.proof:
            verdict = self._judge(is_root=not path)
            if verdict and verdict.proof:
                node.mate_move = verdict.mate_move
                prove(path, node, verdict.proof)
            elif verdict:
                back_up(path, node, self._value(verdict.outcome))
                return None
        if node.proof:
            back_up(path, node, self._value(node.proof.outcome))
            return None
        return self._look_up(path, node)

    def _judge(self, is_root: bool) -> Verdict | None:
        """Judges a leaf; at the root not by a mate whose move is excluded."""
        verdict = judge(self._game, self.settings, is_root)
        if is_root and verdict and self._only is not None and verdict.mate_move not in self._only:
            return None
        return verdict

    def _look_up(self, path: Path, node: Node) -> Leaf | None:
        """Backs up a leaf that the cache knows or that has no moves; returns any other."""
        board = self._game.board
        key = self._cache_key()
        policy = self._cache.get(key)
        if policy:
            self._set_policy(node, policy)
            back_up(path, node, policy.value)
            return None
        moves = board.moves()
        if not len(moves):
            prove(path, node, Proof(LOSS, 0))
            back_up(path, node, self._value(LOSS))
            return None
        node.pending = True
        return Leaf(path, node, key, board.turn, moves)

    def _cache_key(self) -> int:
        """Hashes all that the network sees of the position on the board."""
        key = self._game.board.key()
        has_history = self.plane_num > PLANE_NUM
        return hash((key, *self._game.recent_squares())) if has_history else key

    def _value(self, outcome: int) -> float:
        """Value of an outcome for the side to move."""
        if outcome == DRAW:
            return self.settings.draw_value(self._game.board.turn)
        return 1.0 if outcome == WIN else 0.0

    def _take_up(self, batch: Batch, answer: Answer) -> None:
        """Backs up what the network answered."""
        self._pending_visits -= batch.visits()
        logits, wins = answer
        for path, node in batch.collisions:
            give_back(path, node)
        labels = label_table()
        for number, leaf in enumerate(batch.leaves):
            value = 0.5 if wins is None else float(wins[number])
            policy = Policy(leaf.moves, logits[number, labels[leaf.turn, leaf.moves]], value)
            self._cache.put(leaf.key, policy)
            leaf.node.pending = False
            self._set_policy(leaf.node, policy)
            back_up(leaf.path, leaf.node, value)

    def _give_up(self, batch: Batch) -> None:
        """Takes back the virtual losses of a batch; the network's answer is discarded."""
        self._pending_visits -= batch.visits()
        for path, node in batch.collisions:
            give_back(path, node)
        for leaf in batch.leaves:
            leaf.node.pending = False
            give_back(leaf.path, leaf.node)

    def _set_policy(self, node: Node, policy: Policy) -> None:
        """Stores the moves of a leaf."""
        if self._only is not None and node is self.root:
            policy.sort(self.settings.temperature)
            policy = policy.restrict(self._only)
        node.policy = policy
        self.tree.size += policy.size()


def _cache_capacity(settings: Settings) -> int:
    """Number of positions that the cache has memory for."""
    return int((1 - _TREE_PART) * 10**6 * settings.megabytes / _CACHE_ENTRY)


def _plies_left(game: Game, settings: Settings) -> int:
    """Number of plies until the game is drawn by its length."""
    return settings.draw_ply - game.ply if settings.draw_ply else 10**6
