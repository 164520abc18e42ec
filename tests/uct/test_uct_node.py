"""The table of nodes that readers' own tree searches import."""

import shogi

from pydlshogi.uct.uct_node import *  # noqa: F403 (as the players of readers do)
from pydlshogi.uct.uct_node import NOT_EXPANDED, UCT_HASH_LIMIT, UCT_HASH_SIZE, NodeHash, UctNode


def added(table, board):
    return table.search_empty_index(board.zobrist_hash(), board.turn, board.move_number)


def found(table, board):
    return table.find_same_hash_index(board.zobrist_hash(), board.turn, board.move_number)


def test_a_position_is_found_after_it_was_added_and_only_then():
    table, board = NodeHash(), shogi.Board()
    assert found(table, board) == UCT_HASH_SIZE
    index = added(table, board)
    assert found(table, board) == index
    assert (table[index].color, table[index].moves, table[index].flag) == (shogi.BLACK, 1, True)
    table.initialize()
    assert found(table, board) == UCT_HASH_SIZE


def test_every_position_gets_an_index_of_its_own_until_the_table_is_full():
    table = NodeHash()
    indices = []
    for number in range(UCT_HASH_SIZE):
        assert table.enough_size == (number <= UCT_HASH_LIMIT)
        indices.append(table.search_empty_index(number, 0, 1))
    assert sorted(indices) == list(range(UCT_HASH_SIZE))
    assert table.get_usage_rate() == 1
    assert table.search_empty_index(UCT_HASH_SIZE, 0, 1) == UCT_HASH_SIZE


def test_only_the_positions_below_the_new_root_stay():
    table, board = NodeHash(), shogi.Board()
    nodes = [UctNode() for _ in range(UCT_HASH_SIZE)]

    def expand(moves):
        index = added(table, board)
        nodes[index].child_num = 2
        nodes[index].child_index = [NOT_EXPANDED, NOT_EXPANDED]
        for place, move in enumerate(moves):
            board.push_usi(move)
            nodes[index].child_index[place] = expand(["3c3d"] if len(moves) == 2 else [])
            board.pop()
        return index

    expand(["7g7f", "2g2f"])
    assert table.used == 5
    board.push_usi("7g7f")
    root = found(table, board)
    table.delete_old_hash(board, nodes)
    assert table.used == 2
    assert found(table, board) == root
    board.push_usi("3c3d")
    assert found(table, board) in nodes[root].child_index
    assert found(table, shogi.Board()) == UCT_HASH_SIZE
    table.delete_old_hash(shogi.Board(), nodes)
    assert table.used == 0
