"""The tree as arrays of nodes and edges, and the steps of a playout on them.

A node is a position, reached by one path from the root. Node 0 stands for no node. These are the
fields of ``nodes``, a structured array:

=========  ==================================================================================
visits     number of visits, without the pending ones
pending    number of pending visits, which wait for the network
total      sum of the values backed up, each for the side to move here
parent     the node before the last move; of a dropped or free one, the next one in its list
first      first edge; 0 until the node is expanded
moves      number of edges; 0 until the node is expanded
children   number of edges that lead to a node
outcome    the proven result for the side to move, or ``UNKNOWN``
plies      number of plies to the end of the game, if the result is proven
mate       first move of a mate that was found; 0 for none
marks      ``SEARCHED``: a long mate was searched here. ``RESTRICTED``: some moves are left out.
value      the network's value
key        hash of the network's input
=========  ==================================================================================

An edge is a legal move. A node's edges stand in the order of their probabilities, the highest
first. So those with a child come first, in the order of their first visits. The fields of
``edges`` are

=========  ==================================================================================
move       the move (:mod:`pydlshogi.uct.move`)
prior      its probability by the policy
child      the node after it; 0 until a visit has begun there
=========  ==================================================================================

The edges of a node lie in blocks of ``BLOCK`` places. The last place of a block holds no move: its
``child`` is the first edge of the next block. So blocks of dropped nodes can be used again for
nodes of any number of moves.

``pool`` holds the numbers below, which say where there is room. ``table`` finds a node by its key.
All functions take these arrays. So several trees are possible, also in the same arrays: ``root``
says which one. Nodes and edges are given by their numbers.

numba compiles these functions. Without it they run as plain Python, and the fields are memoryviews
of the same arrays. All that is compiled for the tree is in this module, because numba's cache of
compiled functions only looks at changes of their own module.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy

from pydlshogi.uct.compiler import compiled

#: Outcomes for the side to move; ``UNKNOWN`` stands for no proven result.
LOSS, DRAW, WIN, UNKNOWN = -1, 0, 1, 2

#: Bits of the field ``marks``.
SEARCHED, RESTRICTED = 1, 2

#: Places of a block of edges, and the number of moves that it holds.
BLOCK = 8
MOVES_IN_BLOCK = BLOCK - 1

#: Bits of a move.
MOVE_BITS = 15
_MOVE_MASK = (1 << MOVE_BITS) - 1

#: Places of the table where a node with a certain key may stand.
_PLACES = 4

NODE = numpy.dtype(
    [
        ("key", "i8"),
        ("total", "f8"),
        ("value", "f4"),
        ("visits", "i4"),
        ("pending", "i4"),
        ("parent", "i4"),
        ("first", "i4"),
        ("moves", "i2"),
        ("children", "i2"),
        ("plies", "i2"),
        ("mate", "i2"),
        ("outcome", "i1"),
        ("marks", "u1"),
    ],
    align=True,
)
EDGE = numpy.dtype([("child", "i4"), ("prior", "f4"), ("move", "u2")], align=True)

#: The numbers of ``pool``: the first node and the first edge that were never used; the lists of
#: free nodes and blocks, and their lengths; the list of the nodes that were dropped, the oldest
#: first, whose evaluations are known until their room is needed; the list of dropped nodes whose
#: children must be dropped; the number of nodes and blocks in use; the length of ``edges``.
(
    FRESH_NODE,
    FRESH_EDGE,
    FREE_NODE,
    FREE_BLOCK,
    FREE_NODES,
    FREE_BLOCKS,
    FIRST_STALE,
    LAST_STALE,
    GARBAGE,
    USED_NODES,
    USED_BLOCKS,
    EDGE_NUM,
    POOL_SIZE,
) = range(13)


class Proof(NamedTuple):
    """The result of a position when both sides play their best.

    Attributes:
        outcome: :data:`LOSS`, :data:`DRAW` or :data:`WIN` for the side to move.
        plies: Number of plies to the end of the game.
    """

    outcome: int
    plies: int


# Selection: the move to visit next.
#
# A child's score is Q + U. Q is the mean of its values, and
#
#     U = c · P · √N / (1 + n),    c = ln((N + base + 1) / base) + init,
#
# where P is its prior probability, n its visits and N its parent's. An unvisited child's Q is its
# parent's less a reduction that grows with the prior probability already visited (FPU, "first play
# urgency"). All moves without a node have the same Q and no visit. So only the most probable of
# them can have the highest score, and the others are skipped.
#
# A pending visit counts in n and N. It lowers U of the children that are being evaluated, and the
# next playouts go elsewhere. It does not change Q, which is the mean of the known values. Many
# engines add a loss to Q for each pending visit (virtual loss). This makes good moves look bad. A
# search of few visits is weaker with it (benchmarks/RESULTS.md, "Pending visits").
#
# Sources: D. Silver et al., A general reinforcement learning algorithm that masters chess, shogi,
# and Go through self-play, Science 362 (2018); dlshogi for FPU; A. Liu et al., Watch the
# Unobserved: A Simple Approach to Parallelizing Monte Carlo Tree Search, ICLR 2020, for pending
# visits.


@compiled
def after(edges: Any, edge: int) -> int:
    """Returns the place after an edge: that of the node's next edge, if there is one."""
    edge += 1
    return edges.child[edge] if edge % BLOCK == MOVES_IN_BLOCK else edge


@compiled
def select(
    nodes: Any, edges: Any, node: int, c_init: float, c_base: float, fpu_reduction: float
) -> int:
    """Chooses the edge with the highest score.

    Args:
        node: A node that is expanded and was visited.
        c_init: ``init`` of the formula above.
        c_base: ``base`` of the formula above.
        fpu_reduction: Reduction for unvisited children.
    """
    visits, pending, totals, outcomes = nodes.visits, nodes.pending, nodes.total, nodes.outcome
    children, priors, number = edges.child, edges.prior, nodes.children[node]
    begun = visits[node] + pending[node]
    exploration = (math.log((begun + c_base + 1) / c_base) + c_init) * math.sqrt(begun)
    best, best_score, visited = 0, -math.inf, 0.0
    new, highest = 0, -math.inf  # of the children without a value, the one with the highest U
    edge = nodes.first[node]
    for _ in range(number):
        child, prior = children[edge], priors[edge]
        visited += prior
        if outcomes[child] != WIN:  # else the opponent wins after this move
            n = visits[child]
            u = exploration * prior / (1 + n + pending[child])
            if n:
                score = 1 - totals[child] / n + u
                if score > best_score:
                    best, best_score = edge, score
            elif u > highest:  # a batch that is pending, or was given up, leaves such children
                new, highest = edge, u
        edge += 1
        if edge % BLOCK == MOVES_IN_BLOCK:
            edge = children[edge]
    if number < nodes.moves[node] and exploration * priors[edge] > highest:
        new, highest = edge, exploration * priors[edge]
    first_play = totals[node] / visits[node] - fpu_reduction * math.sqrt(visited)
    return new if new and first_play + highest > best_score else best


@compiled
def most_visited(nodes: Any, edges: Any, node: int) -> int:
    """Finds the edge of the most visited child without a proven result; 0 for none.

    Of children with equally many visits, it is the one that is best for the side to move here.
    """
    best, edge = 0, nodes.first[node]
    for _ in range(nodes.children[node]):
        child = edges.child[edge]
        is_better = not best or _is_preferred(nodes, child, edges.child[best])
        if nodes.outcome[child] == UNKNOWN and is_better:
            best = edge
        edge = after(edges, edge)
    return best


@compiled
def favourites(nodes: Any, edges: Any, node: int) -> tuple[int, int, int]:
    """Finds the two most visited children, without those after moves that are proven to lose.

    Of children with equally many visits, those that are better for the side to move here count as
    more visited.

    Returns:
        The two nodes, 0 for none, and the number of moves that are proven to lose.
    """
    first = second = lost = 0
    edge = nodes.first[node]
    for _ in range(nodes.children[node]):
        child = edges.child[edge]
        if nodes.outcome[child] == WIN:  # of the opponent
            lost += 1
        elif not first or _is_preferred(nodes, child, first):
            first, second = child, first
        elif not second or _is_preferred(nodes, child, second):
            second = child
        edge = after(edges, edge)
    return first, second, lost


@compiled
def _is_preferred(nodes: Any, node: int, other: int) -> bool:
    """Says whether one child has more visits than another, or as many and a better value."""
    if nodes.visits[node] != nodes.visits[other]:
        return nodes.visits[node] > nodes.visits[other]
    return nodes.total[node] < nodes.total[other]


@compiled
def descend(nodes: Any, edges: Any, pool: Any, root: int, puct: Any, line: Any) -> tuple[int, int]:
    """Goes from the root to a leaf, a node that is not expanded or is proven.

    The leaf and the nodes above it have a pending visit more.

    Args:
        puct: (6,) float64: the constants of :func:`select` at the root, and those below it.
        line: (n,) int32; receives the moves to the leaf. It ends the way after n moves.

    Returns:
        The leaf, and the number of moves.
    """
    node, depth, c_init, c_base, fpu_reduction = root, 0, puct[0], puct[1], puct[2]
    while nodes.moves[node] and nodes.outcome[node] == UNKNOWN and depth < len(line):
        edge = select(nodes, edges, node, c_init, c_base, fpu_reduction)
        nodes.pending[node] += 1
        line[depth] = edges.move[edge]
        child = edges.child[edge]
        node = child if child else add_child(nodes, edges, pool, node, edge)
        depth += 1
        c_init, c_base, fpu_reduction = puct[3], puct[4], puct[5]
    nodes.pending[node] += 1
    return node, depth


# Expansion: a node receives its legal moves and their probabilities.


@compiled
def add_child(nodes: Any, edges: Any, pool: Any, node: int, edge: int) -> int:
    """Adds the node after the first edge without one, and returns it."""
    child = new_node(nodes, pool, node)
    edges.child[edge] = child
    nodes.children[node] += 1
    return child


@compiled
def expand(
    nodes: Any, edges: Any, pool: Any, node: int, moves: Any, labels: Any, logits: Any,
    temperature: float,
) -> None:  # fmt: skip
    """Gives a node its moves, and their probabilities: the softmax of logits / temperature.

    Args:
        node: The node, without edges.
        moves: (n,) its moves.
        labels: (32768,) the labels of the moves of the side to move.
        logits: (2187,) float32.
        temperature: Divides the logits.
    """
    powers = logits[labels[moves]].astype(numpy.float64)
    powers = numpy.exp((powers - powers.max()) / temperature)
    add_edges(nodes, edges, pool, node, moves, (powers / powers.sum()).astype(numpy.float32))


@compiled
def add_edges(nodes: Any, edges: Any, pool: Any, node: int, moves: Any, priors: Any) -> None:
    """Gives a node its edges, the most probable move first.

    Of equally probable ones, the move with the smallest number comes first. So all boards agree on
    the order.

    Args:
        node: The node, without edges.
        moves: (n,) the moves.
        priors: (n,) float32, their probabilities.
    """
    bits = priors.view(numpy.int32).astype(numpy.int64)  # in the order of the probabilities
    keys = moves - (bits << MOVE_BITS)
    keys.sort()
    moves = (keys & _MOVE_MASK).astype(numpy.uint16)
    priors = (-(keys >> MOVE_BITS)).astype(numpy.int32).view(numpy.float32)
    edge = nodes.first[node] = new_block(edges, pool)
    for place in range(len(moves)):
        if edge % BLOCK == MOVES_IN_BLOCK:
            edges.child[edge] = new_block(edges, pool)
            edge = edges.child[edge]
        edges.move[edge], edges.prior[edge], edges.child[edge] = moves[place], priors[place], 0
        edge += 1
    nodes.moves[node] = len(moves)


@compiled
def complete(
    nodes: Any, edges: Any, pool: Any, table: Any, root: int, leaves: Any, keys: Any, turns: Any,
    ends: Any, moves: Any, labels: Any, logits: Any, values: Any, temperature: float,
) -> None:  # fmt: skip
    """Expands the leaves of a batch that the network has evaluated, and backs up their values.

    Args:
        leaves: (n,) the leaves. They and the nodes above have a pending visit for each.
        keys: (n,) the hashes of the network's inputs.
        turns: (n,) the sides to move.
        ends: (n,) the index in ``moves`` where the moves of each leaf end.
        moves: The legal moves of all leaves, one leaf after the other.
        labels: (2, 32768), the labels of the moves of each side.
        logits: (n, 2187) float32.
        values: (n,) float64: probabilities that the side to move wins.
        temperature: Of the policy.
    """
    start = 0
    for row in range(len(leaves)):
        leaf, end, side = leaves[row], ends[row], labels[turns[row]]
        expand(nodes, edges, pool, leaf, moves[start:end], side, logits[row], temperature)
        nodes.value[leaf] = values[row]
        nodes.key[leaf] = keys[row]
        remember(nodes, table, leaf)
        back_up(nodes, root, leaf, values[row])
        start = end


# Backup: the value or the proof of a leaf is carried to the root.


@compiled
def back_up(nodes: Any, root: int, leaf: int, value: float) -> None:
    """Turns a pending visit of a leaf and of all nodes above it into a visit with a value.

    Args:
        value: Probability that the side to move at the leaf wins.
    """
    node = leaf
    while True:
        nodes.pending[node] -= 1
        nodes.visits[node] += 1
        nodes.total[node] += value
        if node == root:
            return
        node, value = nodes.parent[node], 1 - value


@compiled
def remove_pending(nodes: Any, root: int, leaf: int) -> None:
    """Removes a pending visit of a leaf and of all nodes above it."""
    node = leaf
    nodes.pending[node] -= 1
    while node != root:
        node = nodes.parent[node]
        nodes.pending[node] -= 1


@compiled
def prove(nodes: Any, edges: Any, root: int, leaf: int, outcome: int, plies: int) -> None:
    """Stores the proven result of a leaf, and the results that follow for the nodes above it."""
    node = leaf
    nodes.outcome[node], nodes.plies[node] = outcome, plies
    while node != root:
        node = nodes.parent[node]
        outcome, plies = derive(nodes, edges, node)
        if outcome == UNKNOWN:
            return
        if outcome == nodes.outcome[node] and plies == nodes.plies[node]:
            return
        nodes.outcome[node], nodes.plies[node] = outcome, plies


@compiled
def derive(nodes: Any, edges: Any, node: int) -> tuple[int, int]:
    """Derives the result of a node from those of its children.

    The winner takes the shortest line, the loser the longest.

    Returns:
        The outcome for the side to move, and the number of plies to the end of the game.
    """
    win, draw, loss, known = -1, -1, -1, 0  # plies of a child; −1 for none
    edge = nodes.first[node]
    for _ in range(nodes.children[node]):
        child = edges.child[edge]
        outcome, plies = nodes.outcome[child], nodes.plies[child]
        if outcome == LOSS:
            win = plies if win < 0 else min(win, plies)
        elif outcome == DRAW:
            draw = plies if draw < 0 else min(draw, plies)
        elif outcome == WIN:
            loss = max(loss, plies)
        known += outcome != UNKNOWN
        edge = after(edges, edge)
    if win >= 0:
        return WIN, win + 1
    if known < nodes.moves[node]:
        return UNKNOWN, 0
    return (DRAW, draw + 1) if draw >= 0 else (LOSS, loss + 1)


# Known evaluations: nodes with the same input of the network share its answer.


@compiled
def visit_known(
    nodes: Any, edges: Any, pool: Any, table: Any, root: int, leaf: int, key: int
) -> bool:
    """Visits a leaf with the evaluation of another node, if there is one with the same key.

    Returns:
        Whether there is one, and room for its moves.
    """
    known = find(nodes, table, key)
    room = pool[FREE_BLOCKS] + (pool[EDGE_NUM] - pool[FRESH_EDGE]) // BLOCK
    if not known or room < blocks_of(nodes.moves[known]):
        return False
    number, edge = nodes.moves[known], nodes.first[known]
    moves, priors = numpy.empty(number, numpy.uint16), numpy.empty(number, numpy.float32)
    for place in range(number):
        moves[place], priors[place] = edges.move[edge], edges.prior[edge]
        edge = after(edges, edge)
    add_edges(nodes, edges, pool, leaf, moves, priors)
    nodes.value[leaf], nodes.key[leaf] = nodes.value[known], key
    back_up(nodes, root, leaf, nodes.value[leaf])
    return True


@compiled
def find(nodes: Any, table: Any, key: int) -> int:
    """Finds an expanded node with all its moves by its key; 0 for none."""
    for place in range(key, key + _PLACES):
        node = table[place & (len(table) - 1)]
        if not node:  # remember would have taken this place
            break
        if nodes.key[node] == key and nodes.moves[node] and not nodes.marks[node] & RESTRICTED:
            return node
    return 0


@compiled
def remember(nodes: Any, table: Any, node: int) -> None:
    """Writes an expanded node into the table, if need be in the place of another one."""
    key = nodes.key[node]
    for place in range(key, key + _PLACES):
        other = table[place & (len(table) - 1)]
        if not nodes.moves[other] or nodes.key[other] == key:
            table[place & (len(table) - 1)] = node
            return
    table[key & (len(table) - 1)] = node


@compiled
def remember_all(nodes: Any, table: Any, first: int, end: int) -> None:
    """Writes the expanded nodes of the numbers first … end − 1 into the table."""
    for node in range(first, end):
        if nodes.moves[node]:
            remember(nodes, table, node)


# Memory


@compiled
def new_node(nodes: Any, pool: Any, parent: int) -> int:
    """Takes a free node and prepares it."""
    node = pool[FREE_NODE]
    if node:
        pool[FREE_NODE] = nodes.parent[node]
        pool[FREE_NODES] -= 1
    else:
        node = pool[FRESH_NODE]
        pool[FRESH_NODE] += 1
    pool[USED_NODES] += 1
    nodes.visits[node] = nodes.pending[node] = nodes.first[node] = nodes.moves[node] = 0
    nodes.children[node] = nodes.plies[node] = nodes.mate[node] = nodes.marks[node] = 0
    nodes.total[node] = 0.0
    nodes.key[node] = 0
    nodes.outcome[node], nodes.parent[node] = UNKNOWN, parent
    return node


@compiled
def new_block(edges: Any, pool: Any) -> int:
    """Takes a free block and returns its first edge."""
    edge = pool[FREE_BLOCK]
    if edge:
        pool[FREE_BLOCK] = edges.child[edge + MOVES_IN_BLOCK]
        pool[FREE_BLOCKS] -= 1
    else:
        edge = pool[FRESH_EDGE]
        pool[FRESH_EDGE] += BLOCK
    pool[USED_BLOCKS] += 1
    edges.child[edge + MOVES_IN_BLOCK] = 0
    return edge


@compiled
def free_blocks_from(edges: Any, pool: Any, block: int) -> None:
    """Frees a block, given by its first edge, and those that follow it; 0 for no block."""
    while block:
        following = edges.child[block + MOVES_IN_BLOCK]
        edges.child[block + MOVES_IN_BLOCK] = pool[FREE_BLOCK]
        pool[FREE_BLOCK] = block
        pool[FREE_BLOCKS] += 1
        block = following


@compiled
def blocks_of(moves: int) -> int:
    """Returns the number of blocks for a number of moves."""
    return (moves + MOVES_IN_BLOCK - 1) // MOVES_IN_BLOCK


@compiled
def drop(nodes: Any, pool: Any, node: int) -> None:
    """Drops a node with all nodes below it; :func:`sweep` does the work."""
    nodes.parent[node] = pool[GARBAGE]
    pool[GARBAGE] = node


@compiled
def sweep(nodes: Any, edges: Any, pool: Any, most: int) -> None:
    """Goes through dropped nodes: they do not count as used any more, nor do those below them.

    Args:
        most: Largest number of nodes to go through.
    """
    for _ in range(most):
        node = pool[GARBAGE]
        if not node:
            return
        pool[GARBAGE] = nodes.parent[node]
        edge = nodes.first[node]
        for _ in range(nodes.children[node]):
            drop(nodes, pool, edges.child[edge])
            edge = after(edges, edge)
        nodes.children[node] = nodes.parent[node] = 0
        if pool[LAST_STALE]:
            nodes.parent[pool[LAST_STALE]] = node
        else:
            pool[FIRST_STALE] = node
        pool[LAST_STALE] = node
        pool[USED_NODES] -= 1
        pool[USED_BLOCKS] -= blocks_of(nodes.moves[node])


@compiled
def reclaim(nodes: Any, edges: Any, pool: Any, free_nodes: int, free_blocks: int) -> None:
    """Frees the nodes that were dropped first, until so many nodes and blocks are free."""
    while pool[FREE_NODES] < free_nodes or pool[FREE_BLOCKS] < free_blocks:
        node = pool[FIRST_STALE]
        if not node:
            return
        pool[FIRST_STALE] = nodes.parent[node]
        if not pool[FIRST_STALE]:
            pool[LAST_STALE] = 0
        free_blocks_from(edges, pool, nodes.first[node])
        nodes.moves[node] = nodes.first[node] = 0
        nodes.parent[node] = pool[FREE_NODE]
        pool[FREE_NODE] = node
        pool[FREE_NODES] += 1
