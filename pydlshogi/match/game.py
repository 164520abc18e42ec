"""One game between two engines."""

from __future__ import annotations

import time
from dataclasses import dataclass

import cshogi

from pydlshogi.match.referee import Referee, Verdict
from pydlshogi.match.usi_client import EngineError, Limit, UsiClient


@dataclass(frozen=True)
class PlayedGame:
    """A game that has ended.

    Attributes:
        moves: The moves in CSA's notation, with the signs of the sides.
        seconds: What each move took, then what the answer took that ended the game
            without being a move, if there was one.
        verdict: How it ended.
    """

    moves: list[str]
    seconds: list[float]
    verdict: Verdict


def play_game(
    players: tuple[UsiClient, UsiClient], opening: list[str], limit: Limit, max_plies: int
) -> PlayedGame:
    """Plays a game.

    An engine that dies or says nothing when it is to move has lost; it is then no
    longer alive.

    Args:
        players: Black's and White's engine.
        opening: The first moves, in USI's notation, after which the game is not over.
        limit: What each further move may cost.
        max_plies: The game is drawn when it has this many moves.

    Raises:
        EngineError: an engine was not ready when the game should have begun.
    """
    for player in players:
        player.new_game()
    referee = Referee(max_plies)
    seconds = []
    verdict = None
    for move in opening:
        verdict = referee.hear(move)
        seconds.append(0.0)
    while verdict is None:
        start = time.monotonic()
        try:
            answer = players[referee.board.turn].best_move(referee.moves, limit)
        except EngineError as error:
            # CSA has no mark for an engine that died; it did not move in time either.
            verdict = referee.loss("%TIME_UP", str(error))
        else:
            verdict = referee.hear(answer)
        seconds.append(time.monotonic() - start)
    for colour, player in enumerate(players):
        player.game_over(_result(verdict.winner, colour))
    return PlayedGame(referee.csa_moves, seconds, verdict)


def _result(winner: int | None, colour: int) -> str:
    """Says what a game was for one side, in USI's words."""
    assert (cshogi.BLACK, cshogi.WHITE) == (0, 1)
    if winner is None:
        return "draw"
    return "win" if winner == colour else "lose"
