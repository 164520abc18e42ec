"""A fake network, searches with it, and positions of real games and of random play."""

import itertools
import random
from pathlib import Path

import cshogi
import numpy
from cshogi import CSA

from pydlshogi.uct.cshogi_board import CshogiBoard
from pydlshogi.uct.game import Game
from pydlshogi.uct.python_shogi_board import PythonShogiBoard
from pydlshogi.uct.search import Search
from pydlshogi.uct.settings import Settings

try:
    from pydlshogi.uct.rsshogi_board import RsshogiBoard
except ImportError:
    RsshogiBoard = None

#: The boards that this machine has, and those with a fast mate search.
BOARDS = [board for board in (CshogiBoard, RsshogiBoard, PythonShogiBoard) if board]
FAST_BOARDS = BOARDS[:-1]

KIFU = Path(__file__).resolve().parents[1] / "kifu"


class FakeNetwork:
    """A small random function of the planes, the same for the same seed.

    Attributes:
        batches: Size of each batch that was evaluated.
    """

    def __init__(self, seed=1, hidden=8, planes=104):
        rng = numpy.random.default_rng(seed)
        self._trunk = 0.1 * rng.normal(size=(planes * 81, hidden)).astype(numpy.float32)
        self._policy = rng.normal(size=(hidden, 2187)).astype(numpy.float32)
        self._value = rng.normal(size=hidden).astype(numpy.float32)
        self.batches = []

    def __call__(self, planes):
        self.batches.append(len(planes))
        # One position at a time: BLAS rounds otherwise in batches of other sizes.
        hidden = numpy.stack([numpy.tanh(board.ravel() @ self._trunk) for board in planes])
        logits = numpy.stack([row @ self._policy for row in hidden])
        wins = numpy.array([1 / (1 + numpy.exp(-float(row @ self._value))) for row in hidden])
        return logits, wins


def make_search(evaluate=None, **settings):
    """Makes a search with a fake network."""
    return Search(evaluate or FakeNetwork(), Settings(**settings))


def run(search, visits, sfen=None, moves=(), board=CshogiBoard, only=None):
    """Searches a position until the root has a number of visits or a proven result."""
    game = Game(board(sfen, moves))
    search.begin(game, root_moves=only)
    while search.root.visits < visits and not search.root.proof:
        before = search.root.visits
        search.step(visits)
        assert search.root.visits > before
    search.finish()
    return search.root


def searched(visits, sfen=None, moves=(), seed=1, board=CshogiBoard, **settings):
    """Makes a search, runs it and returns it."""
    search = make_search(FakeNetwork(seed), **settings)
    run(search, visits, sfen, moves, board)
    return search


def nodes_of(node):
    """Yields a node and all nodes below it."""
    yield node
    for child in node.children:
        yield from nodes_of(child)


def shape(node):
    """Describes a tree: two equal trees have equal descriptions."""
    children = [
        (move, child.visits, shape(child)) for move, child in zip(node.moves, node.children)
    ]
    return node.visits, round(node.total, 9), node.proof, children


def games(folder="test"):
    """Yields the moves of real games, in USI notation."""
    for path in sorted((KIFU / folder).glob("*.csa")):
        yield [cshogi.move_to_usi(move) for move in CSA.Parser.parse_file(str(path))[0].moves]


def sfens_of(moves):
    """Yields the positions of a game."""
    board = cshogi.Board()
    yield board.sfen()
    for move in moves:
        board.push_usi(move)
        yield board.sfen()


def random_sfens(count, seed=1):
    """Yields positions of random play, in which captures and checks are frequent."""
    rng = random.Random(seed)
    while True:
        board = cshogi.Board()
        for _ in range(rng.randrange(300)):
            moves = list(board.legal_moves)
            if not moves:
                break
            yield board.sfen()
            count -= 1
            if not count:
                return
            sharp = [move for move in moves if cshogi.move_cap(move)] + list(board.check_moves)
            sharp = [move for move in sharp if board.is_legal(move)]
            board.push(rng.choice(sharp if sharp and rng.random() < 0.3 else moves))


def endgames(count, plies=8):
    """Yields positions of the last plies of real games."""
    sfens = (
        sfen
        for folder in ("test", "train")
        for moves in games(folder)
        for sfen in list(sfens_of(moves))[-plies:]
    )
    return itertools.islice(sfens, count)
