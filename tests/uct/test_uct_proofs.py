"""Proven results agree with an exhaustive search."""

import cshogi
import pytest
from uct_helpers import add_moves, endgames, make_search, nodes_of, run, searched

from pydlshogi.uct.core import DRAW, LOSS, WIN, Proof, add_child
from pydlshogi.uct.cshogi_board import CshogiBoard
from pydlshogi.uct.dfpn import MateSearch
from pydlshogi.uct.line import best_lines
from pydlshogi.uct.tree import Tree

WINS = (Proof(LOSS, 4), Proof(LOSS, 2), Proof(WIN, 1), None)


def combine(proofs, all_moves):
    """Returns the result of a node whose children have certain results."""
    tree = Tree()
    tree.reserve(100, 100)
    root, number = tree.root_index, len(proofs) + (not all_moves)
    if number:
        add_moves(tree, root, range(number))
    for edge, proof in zip(list(tree.root.edges()), proofs):
        child = add_child(*tree.arrays, root, edge)
        if proof:
            tree.nodes.outcome[child], tree.nodes.plies[child] = proof
    return tree.root.derive_proof()


def test_the_shortest_win_and_the_longest_loss_count():
    assert combine(WINS, all_moves=False) == Proof(WIN, 3)
    losses = [Proof(WIN, 1), Proof(WIN, 7), Proof(WIN, 3)]
    assert combine(losses, all_moves=True) == Proof(LOSS, 8)
    assert combine(losses, all_moves=False) is None
    assert combine([*losses, None], all_moves=True) is None
    assert combine([*losses, Proof(DRAW, 5)], all_moves=True) == Proof(DRAW, 6)
    assert combine([], all_moves=True) == Proof(LOSS, 0)


def wins_within(board, plies):
    """Says whether the side to move can win within plies, by looking at every move."""
    for move in board.legal_moves:
        board.push(move)
        wins = loses_within(board, plies - 1)
        board.pop()
        if wins:
            return True
    return False


def loses_within(board, plies):
    moves = list(board.legal_moves)
    if not moves or plies <= 0:
        return not moves
    for move in moves:
        board.push(move)
        wins = wins_within(board, plies - 1)
        board.pop()
        if not wins:
            return False
    return True


def check_certificate(board, node):
    """Checks a proven node by its children, down to positions that a mate search can judge.

    Returns:
        Number of proven nodes.
    """
    if not node.proof:
        return sum(check_below(board, node))
    outcome, plies = node.proof
    if node.mate and plies > 5:
        assert outcome == WIN
        assert len(node.mate) == plies
        assert MateSearch(CshogiBoard(board.sfen())).run(lambda: False)
        return 1 + sum(check_below(board, node))
    if node.mate or not node.children:
        assert plies <= 5
        if outcome == WIN:
            assert mates_within(board, plies)
        else:
            assert outcome == LOSS and plies == 0
            assert not list(board.legal_moves)
        return 1
    proofs = [child.proof for child in node.children]
    if outcome == WIN:
        assert plies == 1 + min(p.plies for p in proofs if p and p.outcome == LOSS)
    elif outcome == LOSS:
        assert len(node.children) == len(list(board.legal_moves))
        assert plies == 1 + max(p.plies for p in proofs)
        assert all(p.outcome == WIN for p in proofs)
    else:
        assert len(node.children) == len(list(board.legal_moves))
        assert DRAW in {p.outcome for p in proofs} <= {WIN, DRAW}
    return 1 + sum(check_below(board, node))


def check_below(board, node):
    for move, child in zip(node.moves, node.children):
        board.push_move16(move)
        yield check_certificate(board, child)
        board.pop()


_known = {}


def mates_within(board, plies):
    """Says whether the side to move mates by checks: every check and every defence is tried."""
    key = board.zobrist_hash(), plies
    if key not in _known:
        checks = [move for move in board.check_moves if board.is_legal(move)]
        _known[key] = plies > 0 and any(mates_by(board, move, plies) for move in checks)
    return _known[key]


def mates_by(board, move, plies):
    board.push(move)
    mates = all(mates_after(board, reply, plies - 2) for reply in list(board.legal_moves))
    board.pop()
    return mates


def mates_after(board, reply, plies):
    board.push(reply)
    mates = mates_within(board, plies)
    board.pop()
    return mates


def check_position(sfen, visits):
    search = searched(visits, sfen, root_mate=False, batch_size=4)
    root = search.root
    found = check_certificate(cshogi.Board(sfen), root)
    board = cshogi.Board(sfen)
    if root.proof and root.proof.outcome == WIN and root.proof.plies <= 3:
        assert wins_within(board, root.proof.plies)
        assert root.proof.plies == 1 or not wins_within(board, 1)
    elif root.proof and root.proof.outcome == LOSS and root.proof.plies <= 2:
        assert loses_within(board, root.proof.plies)
    else:
        assert not wins_within(board, 1)
    return found, root.proof


@pytest.mark.long
def test_proven_positions_agree_with_an_exhaustive_search():
    results = [check_position(sfen, visits=300) for sfen in endgames(45)]
    assert sum(found for found, _ in results) > 250
    outcomes = {proof.outcome for _, proof in results if proof}
    assert outcomes == {WIN, LOSS}


@pytest.mark.slow
def test_proven_positions_agree_with_an_exhaustive_search_on_five_hundred_positions():
    proven = 0
    for sfen in endgames(10**6, plies=6):
        proven += check_position(sfen, visits=500)[1] is not None
        if proven == 500:
            return
    pytest.fail(f"only {proven} proven positions")


@pytest.mark.long
def test_without_a_mate_search_the_tree_finds_mates_itself():
    proven = 0
    for sfen in endgames(40, plies=3):
        search = searched(1500, sfen, mate_plies=0, root_mate=False)
        if search.root.proof:
            proven += 1
            outcome, plies = search.root.proof
            board = cshogi.Board(sfen)
            if outcome == WIN and plies <= 3:
                assert wins_within(board, plies)
            elif outcome == LOSS and plies <= 2:
                assert loses_within(board, plies)
    assert proven > 12


@pytest.mark.long
def test_a_mate_found_at_the_root_is_shown_to_its_end():
    lengths = set()
    for sfen in endgames(80, plies=12):
        search = searched(100, sfen)
        proof = search.root.proof
        if not proof or not proof.plies:
            continue
        line = best_lines(search, 1)[0]
        assert line.proof == proof
        board = cshogi.Board(sfen)
        for move in line.moves:
            full = board.move_from_move16(move)
            assert board.is_legal(full)
            board.push(full)
        assert not list(board.legal_moves)
        assert (len(line.moves) % 2 == 1) == (proof.outcome == WIN)
        lengths.add(len(line.moves))
    assert max(lengths) > 5


def test_a_mate_in_one_is_played_though_a_longer_one_is_seen_too():
    sfen = "4k4/9/4P4/9/9/9/9/9/4K4 b 2G2S 1"
    for root_mate in (True, False):
        search = searched(200, sfen, root_mate=root_mate)
        assert search.root.proof == Proof(WIN, 1)
        assert len(best_lines(search, 1)[0].moves) == 1


def test_a_declaration_wins_in_the_tree_only_where_it_is_allowed():
    sfen = "KGGGGSSSS/RRBB5/9/9/9/9/9/9/8k b - 1"
    assert searched(10, sfen).root.proof == Proof(WIN, 1)
    assert searched(10, sfen, declaration=False, mate_plies=0, root_mate=False).root.proof is None


def test_a_declaration_after_the_last_ply_of_the_game_is_too_late():
    sfen = "KGGGGSSSS/RRBB5/9/9/9/9/9/9/8k w - 1"  # after any move of White, Black can declare
    assert searched(100, sfen, draw_ply=1).root.proof == Proof(DRAW, 1)
    assert searched(100, sfen, draw_ply=2).root.proof == Proof(LOSS, 2)


@pytest.mark.parametrize("left", [1, 2, 3])
def test_the_game_is_drawn_after_its_last_ply(left):
    board = CshogiBoard()
    search = make_search(draw_ply=left, draw_black=0.9, batch_size=1)
    root = run(search, 5000, board=lambda *_: board)
    if left == 1:
        # All 30 moves have been visited, and each of them draws.
        assert root.proof == Proof(DRAW, 1)
    for node in nodes_of(root):
        if node.proof and not node.children:
            assert node.proof == Proof(DRAW, 0)
    assert all(depth <= left for depth in depths(root))


def depths(node, depth=0):
    yield depth
    for child in node.children:
        yield from depths(child, depth + 1)


def test_a_mate_with_the_last_ply_counts_and_a_later_one_does_not():
    mate = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"
    assert searched(50, mate, draw_ply=1).root.proof == Proof(WIN, 1)
    three = next(
        sfen
        for sfen in endgames(1000, plies=10)
        if (found := CshogiBoard(sfen).mate(5)) and found.plies == 3
    )
    assert searched(2, three, draw_ply=3).root.proof == Proof(WIN, 3)
    assert searched(2, three, draw_ply=2).root.proof is None


def test_draw_values_are_those_of_the_sides():
    kings = "4k4/9/9/9/9/9/9/9/4K4"
    for turn, draw_black, value in (("b", 0.9, 0.9), ("b", 0.2, 0.2), ("w", 0.9, 0.1)):
        root = searched(200, f"{kings} {turn} - 1", draw_ply=1, draw_black=draw_black).root
        means = [1 - child.value() for child in root.children]
        assert means == pytest.approx([value] * len(means))
        assert means
