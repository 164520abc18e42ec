"""Judge: results of leaves that the rules or a mate search know without the network."""

from __future__ import annotations

from typing import NamedTuple

from pydlshogi.uct.core import DRAW, LOSS, WIN, Proof
from pydlshogi.uct.game import Game
from pydlshogi.uct.settings import Settings


class Verdict(NamedTuple):
    """The result of a position.

    Attributes:
        outcome: For the side to move.
        proof: The proof; None for a forecast, which holds for the present path only.
        mate_move: First move of a mate; None without a mate.
    """

    outcome: int
    proof: Proof | None
    mate_move: int | None = None


#: The side to move has no legal move.
CHECKMATED = Verdict(LOSS, Proof(LOSS, 0))


def judge(game: Game, settings: Settings, is_root: bool) -> Verdict | None:
    """Judges a position, by repetition, declaration, a mate search, and the limit of plies.

    Args:
        game: The position with the moves that led to it.
        settings: The settings of the search.
        is_root: Whether it is the root, where a repetition does not end the search.

    Returns:
        The verdict; None if the network must evaluate the position.
    """
    board = game.board
    mate_plies, plies_left = settings.mate_plies, settings.plies_left(game.ply)
    repetition = None if is_root else game.repetition(settings.occurrences)
    # A game that is drawn by its length has no ply left for a repetition that is only foreseen, a
    # declaration or a mate.
    if repetition and (repetition.is_final or plies_left > 0):
        proof = Proof(repetition.outcome, 0) if repetition.is_final else None
        return Verdict(repetition.outcome, proof)
    if settings.declaration and plies_left > 0 and board.can_declare():
        return Verdict(WIN, Proof(WIN, 1))
    mate = board.mate(mate_plies if mate_plies < plies_left else plies_left)
    if mate:
        return Verdict(WIN, Proof(WIN, mate.plies), mate.move)
    if plies_left <= 0:
        return Verdict(DRAW, Proof(DRAW, 0)) if len(board.moves()) else CHECKMATED
    return None
