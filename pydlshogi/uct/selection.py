"""Selection: the child to visit next, by PUCT.

A child's score is Q + U: Q is the mean of its values, and

    U = c · P · √N / (1 + n),    c = ln((N + base + 1) / base) + init,

where P is its prior probability, n its visits and N its parent's. An unvisited child's Q is
its parent's less a reduction that grows with the prior probability already visited (FPU,
"first play urgency"). All moves without a node have the same Q and no visit. So only the most
probable of them can have the highest score, and the others are skipped.

A pending visit counts in n and N. It lowers U of the children that are being evaluated, and the
next playouts go elsewhere. It does not change Q, which is the mean of the known values. Many
engines add a loss to Q for each pending visit (virtual loss). This makes good moves look bad. A
search of few visits is weaker with it (benchmarks/RESULTS.md, "Pending visits").

Sources: D. Silver et al., A general reinforcement learning algorithm that masters chess,
shogi, and Go through self-play, Science 362 (2018); dlshogi for FPU; A. Liu et al., Watch the
Unobserved: A Simple Approach to Parallelizing Monte Carlo Tree Search, ICLR 2020, for pending
visits.
"""

from __future__ import annotations

import math

from pydlshogi.uct.node import Node


def select(node: Node, c_init: float, c_base: float, fpu_reduction: float) -> int:
    """Chooses the child with the highest score.

    Args:
        node: Expanded, and visited at least once before.
        c_init: ``init`` of the formula above.
        c_base: ``base`` of the formula above.
        fpu_reduction: Reduction for unvisited children.

    Returns:
        Index of the child; the number of children for the first move without a node.
    """
    begun = node.visits + node.pending
    exploration = (math.log((begun + c_base + 1) / c_base) + c_init) * math.sqrt(begun)
    first_play = node.total / node.visits - fpu_reduction * math.sqrt(node.prior_sum)
    best, best_score = 0, -math.inf
    index = 0
    children = zip(node.child_visits, node.child_pending, node.child_totals, node.child_priors)
    for n, pending, total, prior in children:
        # A batch that is pending, or was given up, leaves children without a visit.
        score = (total / n if n else first_play) + exploration * prior / (1 + n + pending)
        if score > best_score:
            best, best_score = index, score
        index += 1
    priors = node.policy.priors  # type: ignore[union-attr]
    if index < len(priors) and first_play + exploration * priors.item(index) > best_score:
        return index
    return best
