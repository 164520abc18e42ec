"""The search of one position of a game, one leaf at a time.

At the root, it is a Gumbel search. g is a noise drawn from the Gumbel distribution. The m moves
with the highest logit + g are a sample of the network's policy without replacement. Sequential
halving visits all of them equally often, keeps the better half, and repeats this. Better means a
higher logit + g + σ(q), where q is the value of a move and σ(q) = (c_visit + N) · c_scale · q for
the N visits of the most visited move. The policy target is the softmax of logit + σ(q).

Below the root, PUCT selects as in :mod:`pydlshogi.uct.search`, and the same functions of
:mod:`pydlshogi.uct.core` keep the tree. No leaf is ever pending beside another one of the same
tree: the batch comes from many games.

Source: I. Danihelka, A. Guez, J. Schrittwieser and D. Silver, Policy improvement by planning with
Gumbel, ICLR 2022.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy

from pydlshogi.player.strategy import softmax
from pydlshogi.selfplay.settings import SelfPlaySettings
from pydlshogi.uct import core
from pydlshogi.uct.compiler import argument
from pydlshogi.uct.core import LOSS
from pydlshogi.uct.game import Game
from pydlshogi.uct.inputs import Inputs
from pydlshogi.uct.judge import CHECKMATED, Verdict, judge
from pydlshogi.uct.move import label_table
from pydlshogi.uct.tree import Tree

#: Blocks of edges for which there is room at each visit: those of 84 moves.
_BLOCKS = 12

#: The longest line below the root.
_MOST_PLIES = 512

#: The least probability of a move: float32 may have rounded it to 0.
_LEAST = 1e-30

#: About the sum of the counts of a policy target.
_WHOLE = 10_000


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

    Attributes:
        tree: The tree of the present position.
        verdict: The result of the present position by the rules or a mate; None if unknown.
    """

    def __init__(self, settings: SelfPlaySettings, plane_num: int) -> None:
        self._settings = settings
        self._of_search = settings.of_search()
        self._plane_num = plane_num
        self.tree = Tree()
        self._puct = argument(numpy.array(2 * self._of_search.puct(is_root=False)))
        self._labels = label_table()
        self._line = argument(numpy.zeros(_MOST_PLIES, numpy.int32))

    def begin(self, game: Game, rng: numpy.random.Generator | None, is_full: bool) -> None:
        """Begins to search a position, the same at each call until the search is over.

        ``rng`` draws the noise; None for a search without noise. ``is_full``: not a cheap search.
        """
        settings, tree = self._settings, self.tree
        self._game, self._rng, self._is_full = game, rng, is_full
        self._visits = settings.visits if is_full else settings.cheap_visits
        self._most = min(settings.considered if is_full else settings.cheap_visits, self._visits)
        tree.clear()
        while tree.pool[core.GARBAGE]:
            tree.sweep()
        tree.reserve(self._visits + self._most + 2, _BLOCKS * (self._visits + 2))
        self._children: list[int] = []
        self._queue: list[int] = []
        self._done = 0
        self.verdict = judge(game, self._of_search, is_root=True)
        if not self.verdict and not len(game.board.moves()):
            self.verdict = CHECKMATED

    def next_leaf(self, inputs: Inputs) -> bool:
        """Makes visits until the network must evaluate a leaf, which ``inputs`` receives.

        Returns whether there is such a leaf, for :meth:`complete`. Else the search is over.
        """
        root, nodes = self.tree.root_index, self.tree.nodes
        while not self.verdict:
            if nodes.moves[root] and not self._children:
                self._draw()
            start, first = root, []
            if self._children:
                if self._done == self._visits or nodes.outcome[root] != core.UNKNOWN:
                    return False
                if not self._queue:
                    self._halve()
                row = self._queue.pop(0)
                start, first = self._children[row], [int(self._moves[row])]
                nodes.pending[root] += 1
                self._done += 1
            if self._visit(start, first, inputs):
                return True
        return False

    def complete(self, logits: numpy.ndarray, value: numpy.ndarray) -> None:
        """Expands the leaf by its logits, (1, 2187) float32, and backs up its value.

        ``value`` is (1,) float64, the probability that the side to move wins.
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
            self._of_search.temperature,
        )

    def choose(self) -> Choice:
        """Returns the move to play, after the search is over.

        The position has a legal move: it was not declared, drawn or lost.
        """
        if self.verdict:  # a mate
            move = self.verdict.mate_move
            assert move is not None
            moves = numpy.array([move] if self._is_full else [], int)
            return Choice(move, 1.0, moves, numpy.ones(len(moves), int))
        values, visits, improved = self._improved()
        row = int(numpy.where(visits == visits.max(), improved + self._noise, -numpy.inf).argmax())
        policy, nodes = softmax(improved), self.tree.nodes
        won = [
            (nodes.plies[child], row)
            for row, child in enumerate(self._children)
            if nodes.outcome[child] == LOSS
        ]
        if won:
            row = min(won)[1]  # the shortest one
            policy = (numpy.arange(len(policy)) == row).astype(float)
        counts = numpy.rint(policy * _WHOLE).astype(int)
        shown = slice(None if self._is_full else 0)
        return Choice(int(self._moves[row]), float(values[row]), self._moves[shown], counts[shown])

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
            scores = self._improved()[2] + self._noise
            self._left.sort(key=lambda row: -scores[row])
            del self._left[max(2, len(self._left) // 2) :]
        rounds = max(1, math.ceil(math.log2(len(self._children))))
        each = max(1, self._visits // (rounds * len(self._left)))
        self._queue = (self._left * each)[: self._visits - self._done]

    def _improved(self) -> tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]:
        """Computes the improved policy, after at least one visit.

        Moves without a visit receive a mixed value. It is the mean of the network's value of the
        position, which counts once, and of the visited moves' values, weighted by their
        probabilities, which counts once a visit.

        Returns:
            (n,) the values of all moves for the side to move, if they have visits; (n,) their
            visits; (n,) the logits of the improved policy.
        """
        nodes, number = self.tree.nodes, len(self._children)
        visits, values = numpy.zeros(len(self._moves), int), numpy.zeros(len(self._moves))
        visits[:number] = numpy.asarray(nodes.visits)[self._children]
        outcomes = numpy.asarray(nodes.outcome)[self._children]
        means = numpy.asarray(nodes.total)[self._children] / numpy.maximum(visits[:number], 1)
        values[:number] = numpy.where(outcomes == core.UNKNOWN, 1 - means, (1 - outcomes) / 2)
        weights, whole = softmax(self._logits) * (visits > 0), visits.sum()
        mean = (weights @ values) / weights.sum()
        mixed = (nodes.value[self.tree.root_index] + whole * mean) / (1 + whole)
        weight = (self._settings.c_visit + visits.max()) * self._settings.c_scale
        return values, visits, self._logits + weight * numpy.where(visits > 0, values, mixed)

    def _visit(self, start: int, first: list[int], inputs: Inputs) -> bool:
        """Goes from the root or one of its children, after its move, to a leaf, and visits it.

        Returns:
            Whether the network must evaluate the leaf, which is in ``inputs``.
        """
        tree, game = self.tree, self._game
        leaf, depth = core.descend(*tree.arrays, start, self._puct, self._line)
        line = first + self._line[:depth].tolist()
        game.play(line)
        is_unknown, value = False, self._value(leaf)
        if value is None:
            key = game.input_key(self._plane_num)
            if not core.visit_known(*tree.arrays, tree.table, tree.root_index, leaf, key):
                moves = game.board.moves()
                is_unknown = bool(len(moves))
                if is_unknown:
                    inputs.add(game)
                    self._leaf = leaf, key, game.board.turn, moves
                else:
                    value = self._settle(leaf, CHECKMATED)
        game.pop(len(line))
        if value is not None:
            core.back_up(tree.arrays[0], tree.root_index, leaf, value)
        return is_unknown

    def _value(self, leaf: int) -> float | None:
        """Values a leaf for its side to move by a proof, the rules or a mate; else None."""
        nodes = self.tree.nodes
        if nodes.outcome[leaf] != core.UNKNOWN:
            return (1 + nodes.outcome[leaf]) / 2
        if nodes.moves[leaf]:  # the longest line has ended, a draw
            return 0.5
        is_root = leaf == self.tree.root_index
        verdict = None if is_root else judge(self._game, self._of_search, is_root=False)
        return self._settle(leaf, verdict) if verdict else None

    def _settle(self, leaf: int, verdict: Verdict) -> float:
        """Stores the proof of a leaf's result, if there is one, and returns its value."""
        if verdict.proof:
            self.tree.prove(leaf, verdict.proof)
        return (1 + verdict.outcome) / 2
