"""Leaves whose result is known without the network."""

from __future__ import annotations

from typing import NamedTuple

from pydlshogi.uct.game import Game
from pydlshogi.uct.proof import DRAW, LOSS, WIN, Proof
from pydlshogi.uct.settings import Settings


class Verdict(NamedTuple):
    """The result of a position.

    Attributes:
        outcome: For the side to move.
        proof: The proof; None for a forecast that holds on this visit only.
        mate_move: First move of a mate; None without a mate.
    """

    outcome: int
    proof: Proof | None
    mate_move: int | None = None


def judge(game: Game, settings: Settings, is_root: bool) -> Verdict | None:
    """Judges a position, first by repetition, then by declaration, then by a mate search.

    Args:
        game: The position with the moves that led to it.
        settings: The constants.
        is_root: Whether it is the root, where a repetition does not end the search.

    Returns:
        The verdict; None where the network has to be asked.
    """
    repetition = None if is_root else game.repetition(settings.occurrences)
    if repetition:
        proof = Proof(repetition.outcome, 0) if repetition.is_final else None
        return Verdict(repetition.outcome, proof)
    if settings.declaration and game.board.can_declare():
        return Verdict(WIN, Proof(WIN, 1))
    return _judge_mate(game, settings)


def _judge_mate(game: Game, settings: Settings) -> Verdict | None:
    """Judges a position by a mate that ends before the game is drawn by its length."""
    plies = settings.mate_plies
    if settings.draw_ply:
        plies = min(plies, settings.draw_ply - game.ply)
    mate = game.board.mate(plies)
    if mate:
        return Verdict(WIN, Proof(WIN, mate.plies), mate.move)
    if settings.draw_ply and game.ply >= settings.draw_ply:
        outcome = DRAW if len(game.board.moves()) else LOSS
        return Verdict(outcome, Proof(outcome, 0))
    return None
