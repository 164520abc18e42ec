"""For batches of one position the tree equals that of a search written in the plainest way."""

import math

import cshogi
import numpy
import pytest
import shogi
from uct_helpers import FakeNetwork, games, searched, sfens_of

from pydlshogi.features import LABEL_NUM, make_input_features_from_board
from pydlshogi.uct.move import label_table

POSITIONS = [None] + [list(sfens_of(moves))[40] for _, moves in zip(range(5), games())]


class Plain:
    """A node of the plain search: every legal move has a child from the start."""

    def __init__(self, prior):
        self.prior, self.visits, self.total, self.children = prior, 0, 0.0, {}

    def best_move(self, is_root):
        init, base, reduction = (0.72, 25617, 0) if is_root else (0.9, 28288, 0.27)
        c = math.log((self.visits + base + 1) / base) + init
        known = sum(child.prior for child in self.children.values() if child.visits)
        first_play = self.total / self.visits - reduction * math.sqrt(known)

        def score(move):
            child = self.children[move]
            q = 1 - child.total / child.visits if child.visits else first_play
            return q + c * child.prior * math.sqrt(self.visits) / (1 + child.visits)

        return max(sorted(self.children, key=lambda m: -self.children[m].prior), key=score)

    def visit(self, board, evaluate, is_root=False):
        """Visits the node and returns the value for its side to move."""
        if not self.visits:
            logits, value = evaluate(board)
            powers = {move: math.exp(logit / 1.4) for move, logit in logits.items()}
            whole = sum(powers.values())
            self.children = {move: Plain(power / whole) for move, power in powers.items()}
        else:
            move = self.best_move(is_root)
            board.push(move)
            value = 1 - self.children[move].visit(board, evaluate)
            board.pop()
        self.visits += 1
        self.total += value
        return value


def plain_evaluate(network):
    """Gives a function from a cshogi board to the logits of its moves and its value."""

    def evaluate(board):
        planes = make_input_features_from_board(shogi.Board(board.sfen()))
        logits, wins = network(planes[numpy.newaxis])
        assert logits.shape == (1, LABEL_NUM)
        assert board.is_draw() == cshogi.NOT_REPETITION or board.move_number < 3
        labels = label_table()[board.turn]
        moves = list(board.legal_moves)
        assert moves
        return {move: float(logits[0, labels[move & 0x7FFF]]) for move in moves}, float(wins[0])

    return evaluate


def compare(node, plain):
    """Compares a tree with the plain one, node by node."""
    assert node.visits == plain.visits
    assert node.total == pytest.approx(plain.total, abs=1e-4)
    visited = {move & 0x7FFF: child for move, child in plain.children.items() if child.visits}
    assert set(node.moves[: len(node.children)]) == set(visited)
    for move, child in zip(node.moves, node.children):
        compare(child, visited[move])


@pytest.mark.parametrize("sfen", POSITIONS)
def test_the_tree_equals_that_of_the_plain_search(sfen):
    settings = dict.fromkeys(("mate_plies", "root_mate", "line_mate", "declaration"), False)
    search = searched(300, sfen, seed=3, batch_size=1, **settings)
    assert not any(node.proof for node in [search.root])
    plain, board = Plain(1.0), cshogi.Board(sfen or cshogi.STARTING_SFEN)
    for _ in range(300):
        plain.visit(board, plain_evaluate(FakeNetwork(3)), is_root=True)
    compare(search.root, plain)
