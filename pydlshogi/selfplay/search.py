"""The search of one position of a game, one leaf at a time.

Its root is that of a Gumbel search (:mod:`pydlshogi.selfplay.gumbel`). Below it, PUCT selects as
in :mod:`pydlshogi.uct.search`, and the same functions of :mod:`pydlshogi.uct.core` keep the tree.
No leaf is ever pending beside another one of the same tree: the batch comes from many games.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy

from pydlshogi.selfplay.gumbel import completed, counts_of, softmax, visits_each, weighed
from pydlshogi.selfplay.settings import SelfPlaySettings
from pydlshogi.uct import core
from pydlshogi.uct.compiler import argument
from pydlshogi.uct.core import DRAW, LOSS, WIN
from pydlshogi.uct.game import Game
from pydlshogi.uct.judge import CHECKMATED, Verdict, judge
from pydlshogi.uct.move import label_table
from pydlshogi.uct.tree import Tree

#: Blocks of edges for which there is room at each visit: those of 84 moves.
_BLOCKS = 12

#: The longest line below the root.
_MOST_PLIES = 512

#: The least logit: a probability may be 0 in float32.
_LEAST = 1e-30


class Choice(NamedTuple):
    """The result of a search.

    Attributes:
        move: The move to play (:mod:`pydlshogi.uct.move`).
        value: Probability that the side to move wins.
        moves: (n,) all moves, if the search is a full one; else (0,).
        counts: (n,) the policy target, as whole numbers.
    """

    move: int
    value: float
    moves: numpy.ndarray
    counts: numpy.ndarray


class RootSearch:
    """Searches one position after the other. A known evaluation serves the next ones.

    Args:
        settings: The parameters.
        plane_num: Number of planes of the network's input.

    Attributes:
        tree: The tree of the present position.
        verdict: The result of the present position by the rules or a mate; None if unknown.
        evaluations: Number of positions given to the network so far.
    """

    def __init__(self, settings: SelfPlaySettings, plane_num: int) -> None:
        self._settings = settings
        self._of_search = settings.of_search()
        self._plane_num = plane_num
        self.tree = Tree()
        self.evaluations = 0
        self._puct = argument(numpy.array(2 * self._of_search.puct(is_root=False)))
        self._labels = label_table()
        self._line = argument(numpy.zeros(_MOST_PLIES, numpy.int32))

    def forget(self) -> None:
        """Drops all evaluations: the network has changed."""
        self.tree.forget()

    def begin(self, game: Game, rng: numpy.random.Generator | None, is_full: bool) -> None:
        """Begins to search a position.

        Args:
            game: The position. It is the same at each call until the search is over.
            rng: Draws the noise; None for a search without noise.
            is_full: Whether the search is a full one, not a cheap one.
        """
        settings, tree = self._settings, self.tree
        self._game, self._rng, self.is_full = game, rng, is_full
        self._visits = settings.visits if is_full else settings.cheap_visits
        self._most = min(settings.considered if is_full else settings.cheap_visits, self._visits)
        tree.clear()
        tree.sweep()
        tree.reserve(self._visits + self._most + 2, _BLOCKS * (self._visits + 2))
        self._children: list[int] = []
        self._queue: list[int] = []
        self._done = 0
        self.verdict = judge(game, self._of_search, is_root=True)
        if not self.verdict and not len(game.board.moves()):
            self.verdict = CHECKMATED

    def next_leaf(self, planes: numpy.ndarray) -> bool:
        """Makes visits until the network must evaluate a leaf.

        Args:
            planes: (plane_num, 9, 9) float32, receives the input of the leaf.

        Returns:
            Whether there is such a leaf, for :meth:`complete`. Else the search is over.
        """
        while not self.verdict:
            tree = self.tree
            root, nodes = tree.root_index, tree.nodes
            if nodes.moves[root] and not self._children:
                self._draw()
                continue
            if self._children and (
                self._done == self._visits or nodes.outcome[root] != core.UNKNOWN
            ):
                return False
            first: list[int] = []
            start = root
            if self._children:
                if not self._queue:
                    self._halve()
                row = self._queue.pop(0)
                start = self._children[row]
                first = [int(self._moves[row])]
                nodes.pending[root] += 1
                self._done += 1
            if self._visit(start, first, planes):
                return True
        return False

    def complete(self, logits: numpy.ndarray, value: numpy.ndarray) -> None:
        """Expands the leaf and backs up its value.

        Args:
            logits: (1, 2187) float32.
            value: (1,) float64, the probability that the side to move wins.
        """
        tree = self.tree
        leaf, key, turn, moves = self._leaf
        tree.reserve(0, core.blocks_of(len(moves)))
        core.complete(
            *tree.arrays,
            tree.table,
            tree.root_index,
            argument(numpy.array([leaf])),
            argument(numpy.array([key])),
            argument(numpy.array([turn])),
            argument(numpy.array([len(moves)])),
            numpy.ascontiguousarray(moves),
            self._labels,
            logits,
            argument(value),
            1.0,
        )

    def choose(self) -> Choice:
        """Returns the move to play, after the search is over.

        The position has a legal move: it was not declared, drawn or lost.
        """
        if self.verdict:  # a mate
            move = self.verdict.mate_move
            assert move is not None
            moves = numpy.array([move] if self.is_full else [], int)
            return Choice(move, 1.0, moves, numpy.ones(len(moves), int))
        values, visits = self._values()
        whole = completed(self._logits, values, visits, self._network_value())
        added = weighed(whole, visits, self._settings.c_visit, self._settings.c_scale)
        scores = self._logits + self._noise + added
        drawn = numpy.arange(len(self._children))
        best = drawn[visits[drawn] == visits[drawn].max()]
        row = int(best[scores[best].argmax()])
        won = self._shortest_win()
        if won is not None:
            row = won
        if not self.is_full:
            return Choice(int(self._moves[row]), float(values[row]), self._moves[:0], visits[:0])
        policy = softmax(self._logits + added)
        if won is not None:
            policy = (numpy.arange(len(policy)) == row).astype(float)
        return Choice(int(self._moves[row]), float(values[row]), self._moves, counts_of(policy))

    # The root

    def _draw(self) -> None:
        """Draws the moves to consider, after the root has been expanded, and adds their nodes."""
        tree = self.tree
        places = numpy.fromiter(tree.root.edges(), int)
        all_moves, priors = numpy.asarray(tree.edges.move), numpy.asarray(tree.edges.prior)
        order = numpy.argsort(all_moves[places])
        moves, prior = all_moves[places][order], priors[places][order]
        logits = numpy.log(numpy.maximum(prior, _LEAST).astype(float))
        noise = numpy.zeros(len(moves)) if self._rng is None else self._rng.gumbel(size=len(moves))
        # The moves drawn come first, as the moves with a node do in every node.
        order = numpy.argsort(-(logits + noise), kind="stable")
        self._moves, self._logits, self._noise = moves[order], logits[order], noise[order]
        all_moves[places], priors[places] = self._moves, prior[order]
        number = min(self._most, len(moves))
        if number == 1:
            self._visits = 1
        root, children = tree.root_index, numpy.asarray(tree.edges.child)
        node_fields, pool = tree.arrays[0], tree.arrays[2]
        self._children = [core.new_node(node_fields, pool, root) for _ in range(number)]
        children[places[:number]] = self._children
        tree.nodes.children[root] = number
        self._left = list(range(number))

    def _halve(self) -> None:
        """Begins the next round: the better half of the moves, or all in the first one."""
        if self._done:
            values, visits = self._values()
            whole = completed(self._logits, values, visits, self._network_value())
            added = weighed(whole, visits, self._settings.c_visit, self._settings.c_scale)
            scores = self._logits + self._noise + added
            self._left.sort(key=lambda row: -scores[row])
            del self._left[max(2, len(self._left) // 2) :]
        each = visits_each(self._visits, len(self._children), len(self._left))
        self._queue = (self._left * each)[: self._visits - self._done]

    def _values(self) -> tuple[numpy.ndarray, numpy.ndarray]:
        """Returns the values of all root moves for the side to move, and their visits, (n,)."""
        nodes = self.tree.nodes
        values, visits = numpy.zeros(len(self._moves)), numpy.zeros(len(self._moves), int)
        for row, child in enumerate(self._children):
            visits[row] = nodes.visits[child]
            outcome = nodes.outcome[child]
            if outcome != core.UNKNOWN:
                values[row] = (1 - outcome) / 2
            elif visits[row]:
                values[row] = 1 - nodes.total[child] / visits[row]
        return values, visits

    def _network_value(self) -> float:
        return float(self.tree.nodes.value[self.tree.root_index])

    def _shortest_win(self) -> int | None:
        """Returns the row of the move that wins soonest by proof; None without one."""
        nodes = self.tree.nodes
        won = [
            (nodes.plies[child], row)
            for row, child in enumerate(self._children)
            if nodes.outcome[child] == LOSS
        ]
        return min(won)[1] if won else None

    # One visit

    def _visit(self, start: int, first: list[int], planes: numpy.ndarray) -> bool:
        """Goes from the root or one of its children to a leaf, and values it.

        Args:
            start: The node.
            first: The move to it.
            planes: As for :meth:`next_leaf`.

        Returns:
            Whether the network must evaluate the leaf.
        """
        tree, game = self.tree, self._game
        leaf, depth = core.descend(*tree.arrays, start, self._puct, self._line)
        moves = first + self._line[:depth].tolist()
        game.play(moves)
        value = self._value(leaf, planes)
        game.pop(len(moves))
        if value is not None:
            core.back_up(tree.arrays[0], tree.root_index, leaf, value)
        return bool(self._leaf[0])

    def _value(self, leaf: int, planes: numpy.ndarray) -> float | None:
        """Values a leaf for its side to move; None if it is known or needs the network."""
        tree, game, nodes = self.tree, self._game, self.tree.nodes
        self._leaf = 0, 0, 0, planes
        if nodes.outcome[leaf] != core.UNKNOWN:
            return _value_of(nodes.outcome[leaf])
        if nodes.moves[leaf]:  # the longest line has ended
            return _value_of(DRAW)
        is_root = leaf == tree.root_index
        verdict = None if is_root else judge(game, self._of_search, is_root=False)
        if verdict:
            return self._settle(leaf, verdict)
        key = game.input_key(self._plane_num)
        if core.visit_known(*tree.arrays, tree.table, tree.root_index, leaf, key):
            return None
        moves = game.board.moves()
        if not len(moves):
            return self._settle(leaf, CHECKMATED)
        game.write_planes(planes)
        self._leaf = leaf, key, game.board.turn, moves
        self.evaluations += 1
        return None

    def _settle(self, leaf: int, verdict: Verdict) -> float:
        """Stores the proof of a leaf's result, if there is one, and returns its value."""
        if verdict.proof:
            self.tree.prove(leaf, verdict.proof)
        return _value_of(verdict.outcome)


def _value_of(outcome: int) -> float:
    """Value of an outcome for the side to move."""
    return {LOSS: 0.0, DRAW: 0.5, WIN: 1.0}[outcome]
