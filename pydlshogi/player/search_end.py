"""When a search ends before its time is over."""

from __future__ import annotations

from pydlshogi.player.clock import Timer
from pydlshogi.uct.core import DRAW
from pydlshogi.uct.line import best_lines, line_of
from pydlshogi.uct.search import Search
from pydlshogi.uct.tree import Node
from pydlshogi.usi.protocol import Go

#: The choice is clear if the second move has at most this part of the best move's visits.
_CLEAR = 0.6

#: Part of the planned time after which a search may end early.
_LEAST = 0.1


def is_done(search: Search, go: Go, max_visits: int) -> bool:
    """Says whether the result is proven, or visits, depth or memory are at their limit."""
    root = search.root
    if root.proof or root.visits >= max_visits:
        return True
    if not root.is_expanded:
        return False  # without the network's answer, every move would be as good as another
    return search.is_full() or (go.depth is not None and _reaches(search, go.depth))


def is_settled(root: Node, go: Go, timer: Timer, nodes: int) -> bool:
    """Says whether to move early, because the choice is clear or cannot change any more.

    ``movetime`` is the time that the user wants the search to take. So it is used, unless only
    one move does not lose. ``nodes`` are the visits since ``go``.
    """
    budget = timer.budget()
    if budget is None or root.visits < 2:
        return False
    ((first, first_value), (second, second_value)), lost = root.favourites()
    if not go.searchmoves and root.move_num - lost == 1:
        return True
    # Early in the search, the number of visits to come is unknown.
    if go.movetime is not None or timer.spent() < _LEAST * budget.planned:
        return False
    is_clear = second <= _CLEAR * first and second_value <= first_value
    rate = nodes / max(timer.elapsed(), 1e-3)
    # A choice that is not clear gets more time.
    left = (budget.planned if is_clear else budget.extended) - timer.spent()
    return left <= 0 or first - second > rate * left


def _reaches(search: Search, depth: int) -> bool:
    """Says whether the best line has ``depth`` moves, or ends in a draw and cannot get longer."""
    moves = next((line.moves for line in best_lines(search, 1)), ())
    if len(moves) >= depth:
        return True
    _, leaf = line_of(search.root)
    # A leaf with a second visit and no moves was judged by the rules. If it is a proven win or
    # loss, more visits lead away from it. A repetition can stay the best line for ever. A proven
    # draw may get no second visit: it also proves an only move that leads to it.
    return not leaf.is_expanded and (leaf.proof.outcome == DRAW if leaf.proof else leaf.visits > 1)
