"""A fake network, searches with it, and positions of real games and of random play."""

import itertools
import random
from pathlib import Path

import cshogi
import numpy
from cshogi import CSA

from pydlshogi.uct.core import add_edges
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


def add_moves(tree, node, moves):
    """Gives a node of a tree some moves with equal probabilities, by their numbers."""
    moves = numpy.array(moves, numpy.uint16)
    add_edges(*tree.arrays, node, moves, numpy.full(len(moves), 1 / len(moves), numpy.float32))


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


#: A game with a handicap of two pieces in which White has entered Black's camp with 10 pieces.
#: White, who is to move, may declare only because the missing pieces count.
TWO_PIECES = "lnsgkgsnl/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1"
_ENTERED = """
5a6b 4i5h 9a9b 3i3h 5c5d 6i7h 6b5c 5g5f 5c4d 1i1h 4d3e 9g9f 7c7d 2g2f 7a6b 7h6h 6b7c 5f5e 5d5e
9i9h 7d7e 6h7h 5e5f 7i6h 5f5g 5i6i 5g5h 9h9g G*9h 4g4f 9h8h 2h2g B*5i 6h5g 5i3g+ 6g6f 3g2g 7h6h
R*4h 9f9e 3e2f 4f4e 8h8i 6f6e N*6g 2i3g 4h3h+ 5g4h S*2i 9e9d 3h1h 4h5i L*5g 1g1f 2f3g 8g8f N*8g
4e4d 6g5i+ 6i7h S*7i 9g9f 9c9d 8f8e 4c4d 7h6g 7i6h 8e8d G*4i 1f1e
"""
ENTERED = _ENTERED.split()
