"""One game between two engines."""

from __future__ import annotations

import time
from dataclasses import dataclass

import shogi

from pydlshogi.match.engine_spec import Limit
from pydlshogi.match.referee import Referee, Verdict
from pydlshogi.match.usi_client import EngineError, UsiClient


@dataclass(frozen=True)
class PlayedGame:
    """A finished game.

    Attributes:
        moves: Moves in CSA notation, with the signs of the sides.
        seconds: Time of each move. If an answer that is no move ended the game, its time
            is the last element.
        evaluations: Evaluation of the position before each element of ``seconds``, by its
            mover, in centipawns for Black; None if the engine sent none.
    """

    moves: list[str]
    seconds: list[float]
    evaluations: list[int | None]
    verdict: Verdict


def play_game(
    players: tuple[UsiClient, UsiClient], opening: list[str], limit: Limit, max_plies: int
) -> PlayedGame:
    """Plays a game of the engines of Black and White, from the first moves of an opening.

    An engine that dies or does not answer when it is to move loses; its process is then
    ended. A game of ``max_plies`` moves is drawn.
    """
    referee = Referee(max_plies)
    seconds = [0.0] * len(opening)
    evaluations: list[int | None] = [None] * len(opening)
    verdict = None
    for move in opening:
        verdict = referee.hear(move)
    while verdict is None:
        start = time.monotonic()
        mover = referee.board.turn
        evaluation = None
        try:
            move, evaluation = players[mover].best_move(referee.moves, limit)
        except EngineError as error:
            # CSA has no mark for a dead engine.
            verdict = referee.loss("%TIME_UP", str(error))
        else:
            verdict = referee.hear(move)
        seconds.append(time.monotonic() - start)
        if evaluation is not None and mover == shogi.WHITE:
            evaluation = -evaluation
        evaluations.append(evaluation)
    for colour, player in enumerate(players):
        player.game_over(_result(verdict.winner, colour))
    return PlayedGame(referee.csa_moves, seconds, evaluations, verdict)


def _result(winner: int | None, colour: int) -> str:
    """Returns the USI word for the result of one side."""
    if winner is None:
        return "draw"
    return "win" if winner == colour else "lose"
