"""The mate search along the best line. The positions are from games of floodgate, 2016."""

import cshogi
import numpy
import pytest
from uct_helpers import BOARDS, add_moves, make_search, run

from pydlshogi.player.search_info import score_words
from pydlshogi.uct.core import LOSS, WIN, Proof, add_child
from pydlshogi.uct.cshogi_board import CshogiBoard
from pydlshogi.uct.game import Game
from pydlshogi.uct.line import best_lines
from pydlshogi.uct.mate import LineMate
from pydlshogi.uct.move import from_usi, label_table, to_usi
from pydlshogi.uct.settings import Settings
from pydlshogi.uct.tree import Tree

#: Each with a move that lets the opponent mate in 11, 13 or 9 plies.
BLUNDERS = [
    ("ln6l/6g2/p1psp2kp/3p1BNp1/5p2P/P3P1p2/2NP5/3SKG1r1/L+rP4NL w B2GSs5p 100", "S*3g", 11),
    ("3+B4l/pkgb2+S2/1s1gP+N3/Pppp2p1p/N8/2PP2P2/+ssKGpP1pP/4R4/L2g4L w R2N2Plp 116", "5g5h+", 13),
    ("ln2g2+Rl/3s5/p2p2kSp/3bpp3/2PN2p2/2pP5/P2GnP1pP/1+r1SK4/L2S1G1NL w G3Pb2p 90", "B*4c", 9),
]


class Fond:
    """A network that finds every position even and is fond of one move."""

    def __init__(self, move, turn):
        self._label = label_table()[turn][from_usi(move)]

    def __call__(self, planes):
        logits = numpy.zeros((len(planes), 2187), numpy.float32)
        logits[:, self._label] = 8
        return logits, numpy.full(len(planes), 0.5, numpy.float32)


def fond_search(sfen, move, visits=60, **settings):
    board = CshogiBoard(sfen)
    search = make_search(Fond(move, board.turn), batch_size=4, **settings)
    run(search, visits, sfen)
    return search


def moves_of(search):
    """Maps each visited move of the root to its number of visits and its node."""
    root = search.root
    return {to_usi(move): (child.visits, child) for move, child in zip(root.moves, root.children)}


@pytest.mark.parametrize(("sfen", "blunder", "plies"), BLUNDERS)
def test_a_move_into_a_long_mate_is_given_up(sfen, blunder, plies):
    without = fond_search(sfen, blunder, line_mate=False)
    assert to_usi(best_lines(without, 1)[0].moves[0]) == blunder
    search = fond_search(sfen, blunder)
    assert to_usi(best_lines(search, 1)[0].moves[0]) != blunder
    visits, node = moves_of(search)[blunder]
    assert visits < 10
    assert node.proof == Proof(WIN, plies)


@pytest.mark.parametrize(("sfen", "blunder", "plies"), BLUNDERS)
def test_the_mate_is_shown_to_its_end(sfen, blunder, plies):
    search = make_search(Fond(blunder, CshogiBoard(sfen).turn))
    root = run(search, 60, sfen, only=frozenset([from_usi(blunder)]))
    assert root.proof == Proof(LOSS, plies + 1)
    line = best_lines(search, 1)[0]
    assert score_words(line) == f"mate -{plies + 1}"
    board = cshogi.Board(sfen)
    for move in line.moves:
        full = board.move_from_move16(move)
        assert board.is_legal(full)
        board.push(full)
    assert len(line.moves) == plies + 1
    assert board.is_game_over() and board.is_check()


@pytest.mark.parametrize("root_mate", [True, False])
def test_a_mate_is_known_when_it_can_be_played(root_mate):
    sfen, blunder, plies = BLUNDERS[0]
    settings = {"batch_size": 4, "root_mate": root_mate}
    search = make_search(Fond(blunder, CshogiBoard(sfen).turn), **settings)
    search.tree.move_to("start", [])
    run(search, 60, sfen)
    search.tree.move_to("start", [from_usi(blunder)])
    search.begin(Game(CshogiBoard(sfen, [blunder])))
    line = best_lines(search, 1)[0]
    assert score_words(line) == f"mate {plies}"
    assert len(line.moves) == plies


def test_a_line_of_multipv_ends_in_the_mate():
    sfen, blunder, plies = BLUNDERS[0]
    lines = best_lines(fond_search(sfen, blunder), 600)
    line = next(line for line in lines if line.moves[0] == from_usi(blunder))
    assert score_words(line) == f"mate -{plies + 1}"
    assert len(line.moves) == plies + 1


def test_the_moves_of_a_mate_are_searched_only_once(monkeypatch):
    sfen = "4k4/9/4P4/9/9/9/9/9/4K4 b 2G 1"
    search = make_search(root_mate=False)
    run(search, 40, sfen)
    root = search.root.index
    search.tree.set_mate_moves(root, (from_usi("G*5b"),))
    search.tree.prove(root, Proof(WIN, 3))
    asked = []
    monkeypatch.setattr(
        "pydlshogi.uct.line.mate_line", lambda *args, **options: asked.append(args) or [1, 2, 3]
    )
    assert [best_lines(search, 1)[0].moves for _ in range(3)] == [[1, 2, 3]] * 3
    assert len(asked) == 1


def test_the_move_to_play_is_checked_though_it_has_few_visits():
    sfen, blunder, plies = BLUNDERS[0]
    search = fond_search(sfen, blunder, visits=3)
    visits, node = moves_of(search)[blunder]
    assert visits < 4
    assert node.proof == Proof(WIN, plies)
    search = fond_search(sfen, blunder, visits=3, line_mate=False)
    assert moves_of(search)[blunder][1].proof is None


def test_every_move_is_checked_that_may_be_played():
    """The best move is refuted by the last check, and so is the next one."""
    game = Game(CshogiBoard())
    tree = expanded_tree(game.board.moves()[:3].tolist(), visits=[2, 6, 4])
    node, children = tree.root, tree.root.children
    for child in children:
        add_moves(tree, child.index, [1])
    searched = []

    def search_mate(nodes, plies):
        searched.append(game.board.key())
        return [], True

    game.board.search_mate = search_mate
    line_mate = LineMate(game, Settings())
    line_mate.check_move(node)
    line_mate.check_move(node)
    assert len(searched) == 1
    tree.prove(children[1].index, Proof(WIN, 7))
    line_mate.check_move(node)
    tree.prove(children[2].index, Proof(WIN, 7))
    line_mate.check_move(node)
    assert len(set(searched)) == 3
    assert all(child.mate_searched for child in children)


def test_a_mate_after_the_last_ply_of_the_game_does_not_count():
    sfen, blunder, plies = BLUNDERS[0]
    proofs = [
        moves_of(fond_search(sfen, blunder, draw_ply=draw_ply))[blunder][1].proof
        for draw_ply in (plies + 1, plies)
    ]
    assert proofs == [Proof(WIN, plies), None]


def test_each_position_is_searched_once_and_one_with_a_step():
    board = CshogiBoard()
    keys, search_mate = [], board.search_mate

    def count(nodes, plies):
        keys.append(board.key())
        return search_mate(nodes, plies)

    board.search_mate = count
    search = make_search(batch_size=4, root_mate=False)
    search.begin(Game(board))
    start, most = board.key(), 0
    for _ in range(200):
        before = len(keys)
        search.step(10**9)
        most = max(most, len(keys) - before)
        assert board.key() == start
    assert most == 1
    assert 3 < len(keys) == len(set(keys))


#: A position, and a move that lets the opponent mate in three plies.
INTO_THREE = (
    "l2s2+S1l/9/k1ppp1n1p/p5pb1/1n2G4/2N1PG3/PP1P1+bP+pP/1+rPK5/L2G1+p1NL b 2Prg2sp 103",
    "6i5h",
)


@pytest.mark.parametrize("board", BOARDS)
def test_a_move_into_a_mate_in_three_is_given_up_on_every_board(board):
    sfen, blunder = INTO_THREE
    for line_mate in (False, True):
        settings = {"mate_plies": 1, "root_mate": False, "line_mate": line_mate}
        search = make_search(Fond(blunder, board(sfen).turn), batch_size=4, **settings)
        run(search, 30, sfen, board=board)
        assert (to_usi(best_lines(search, 1)[0].moves[0]) == blunder) == (not line_mate)


def expanded_tree(moves, visits):
    """Makes a tree of a root with a child after each move."""
    tree = Tree()
    tree.reserve(10, 10)
    add_moves(tree, tree.root_index, moves)
    for edge, number in zip(list(tree.root.edges()), visits):
        tree.nodes.visits[add_child(*tree.arrays, tree.root_index, edge)] = number
    return tree


def test_the_most_visited_child_is_one_without_a_proof():
    assert Tree().root.most_visited() is None
    tree = expanded_tree(range(4), visits=[3, 8, 5, 5])
    node, children = tree.root, tree.root.children
    assert node.most_visited() == (1, children[1])
    tree.prove(children[1].index, Proof(WIN, 3))
    assert node.most_visited() == (2, children[2])  # the more probable one of equals
    for child, total in zip(children, [0, 0, 3, 2.5]):
        tree.nodes.total[child.index] = total
    assert node.most_visited() == (3, children[3])
    for child in children:
        tree.prove(child.index, Proof(LOSS, 0))
    assert node.most_visited() is None
