"""Mates that the mate search of a board misses, found by trying all checks and replies."""

from __future__ import annotations

from pydlshogi.uct.board import Mate, SearchBoard


def forced_mate(board: SearchBoard, plies: int) -> Mate | None:
    """Finds a check after which the board's mate search knows a mate for each reply.

    cshogi's mate search misses some mates that end with the check of a distant piece.

    Args:
        board: The position; the side to move mates. There is no mate in one.
        plies: Longest mate, an odd number.

    Returns:
        The mate; None if there is none, or the board's search misses it after a reply, too.
    """
    for move in board.checks():
        board.push(move)
        is_forced = all(_is_mated(board, reply, plies - 2) for reply in board.moves().tolist())
        board.pop()
        if is_forced:
            return Mate(move, plies)
    return None


def _is_mated(board: SearchBoard, reply: int, plies: int) -> bool:
    """Says whether a mate is found after a reply to a check."""
    board.push(reply)
    mate = board.mate(plies)
    board.pop()
    return mate is not None
