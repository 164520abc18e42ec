"""A game of one or two networks against each other, advanced leaf by leaf."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy
import shogi

from pydlshogi.kifu.hcp import HCP, pack
from pydlshogi.kifu.hcpe3 import DECLARATION, REPETITION, encode
from pydlshogi.player.strategy import score
from pydlshogi.positions import PLACEMENT_SIZE, placement_of
from pydlshogi.selfplay.search import Choice, RootSearch
from pydlshogi.selfplay.settings import SelfPlaySettings
from pydlshogi.selfplay.starts import Start
from pydlshogi.uct.boards import make_search_board
from pydlshogi.uct.core import DRAW, LOSS, WIN
from pydlshogi.uct.game import LAST_OCCURRENCE, Game
from pydlshogi.uct.judge import CHECKMATED

#: How games end.
MATED, RESIGNED, DECLARED = "mate", "resignation", "declaration"
REPEATED, CHECKED, TOO_LONG = "repetition", "perpetual check", "length"
ENDS = MATED, RESIGNED, DECLARED, REPEATED, CHECKED, TOO_LONG


class PlayedMove(NamedTuple):
    """A move of a game.

    Attributes:
        move: The move (:mod:`pydlshogi.uct.move`).
        value: Probability that its side wins; None for a move of the start.
        candidates: The policy target; empty without one.
    """

    move: int
    value: float | None
    candidates: list[tuple[int, int]]


class LiveGame:
    """A game that is being played.

    Args:
        number: Its number.
        start: Where it begins.
        searches: The searches of Black and White, which may be the same one.
        settings: The parameters.
        rng: Draws the noise and the kind of each search; None for full searches without noise.

    Attributes:
        number, start, searches: As above.
        moves: The moves so far.
        end: How the game ended, one of :data:`ENDS`; "" while it goes on.
        winner: 0 for Black, 1 for White; None for a draw, and before the end.
        resigned: The side that would have resigned, or has; None if none has.
        searched: Number of moves that were searched.
        evaluations: Evaluations of the network for this game.
    """

    def __init__(
        self,
        number: int,
        start: Start,
        searches: tuple[RootSearch, RootSearch],
        settings: SelfPlaySettings,
        rng: numpy.random.Generator | None,
    ) -> None:
        self.number, self.start, self.searches = number, start, searches
        self._settings, self._rng = settings, rng
        self._plays_on = bool(rng and rng.random() < settings.play_on_share)
        self._game = Game(make_search_board(start.sfen), start.moves)
        self.moves = [PlayedMove(move, None, []) for move in start.moves]
        self.end, self.winner = "", None  # type: str, int | None
        self.resigned: int | None = None
        self.evaluations = 0
        self._low = [0, 0]
        self._begin()

    @property
    def turn(self) -> int:
        """The side to move."""
        return self._game.board.turn

    def next_leaf(self, planes: numpy.ndarray) -> bool:
        """Goes on, but not beyond the present move, until the network must evaluate a leaf.

        Args:
            planes: Receives the input, as in :meth:`RootSearch.next_leaf`.

        Returns:
            Whether there is such a leaf. Else the side to move has changed, or the game ended.
        """
        search = self.searches[self.turn]
        if search.next_leaf(planes):
            self.evaluations += 1
            return True
        self._play(search.choose())
        return False

    def complete(self, logits: numpy.ndarray, value: numpy.ndarray) -> None:
        """Gives the network's answer, as in :meth:`RootSearch.complete`."""
        self.searches[self.turn].complete(logits, value)

    def restart_move(self) -> None:
        """Begins the search of the present position again, for example with a new network."""
        for search in self.searches:
            search.forget()
        self._begin()

    def result(self) -> int:
        """Returns the byte ``result`` of the ended game in an HCPE3 file."""
        # A draw by length has no bit of its own: readers take dlshogi's mark for a win of White.
        bits = {DECLARED: DECLARATION, REPEATED: REPETITION, CHECKED: REPETITION}.get(self.end, 0)
        return bits | (0 if self.winner is None else self.winner + 1)

    def encode(self) -> bytes:
        """Encodes the ended game for an HCPE3 file."""
        moves = [
            (move, 0 if value is None else score(value), candidates)
            for move, value, candidates in self.moves
        ]
        return encode(_packed(self.start.sfen), self.result(), moves)

    def _play(self, choice: Choice) -> None:
        """Notes and plays a move, unless its side resigns."""
        turn = self.turn
        is_low = choice.value < self._settings.resign_below
        self._low[turn] = self._low[turn] + 1 if is_low else 0
        limit = self._settings.resign_moves
        if limit and self._low[turn] >= limit and self.resigned is None:
            self.resigned = turn
            if not self._plays_on:
                self._end(RESIGNED, 1 - turn)
                return
        targets = zip(choice.moves.tolist(), choice.counts.tolist())
        candidates = [(move, count) for move, count in targets if count]
        self.moves.append(PlayedMove(choice.move, choice.value, candidates))
        self._game.push(choice.move)
        self._begin()

    def _begin(self) -> None:
        """Begins the search of the position on the board, unless the game is over there."""
        turn = self.turn
        repetition = self._game.repetition(LAST_OCCURRENCE)
        if repetition:
            winner = {DRAW: None, WIN: turn, LOSS: 1 - turn}[repetition.outcome]
            self._end(REPEATED if winner is None else CHECKED, winner)
            return
        search, rng = self.searches[turn], self._rng
        is_full = rng is None or rng.random() < self._settings.full_share
        search.begin(self._game, rng, is_full)
        verdict = search.verdict
        if verdict == CHECKMATED:
            self._end(MATED, 1 - turn)
        elif verdict and verdict.outcome == DRAW:
            self._end(TOO_LONG, None)
        elif verdict and verdict.mate_move is None:
            self._end(DECLARED, turn)

    def _end(self, end: str, winner: int | None) -> None:
        self.end, self.winner = end, winner


@functools.lru_cache(maxsize=16)
def _packed(sfen: str) -> bytes:
    """Packs a position for an HCPE3 file."""
    board = shogi.Board(sfen)
    placement = numpy.frombuffer(placement_of(board), numpy.uint8).reshape(1, PLACEMENT_SIZE)
    packed, faults = pack(placement, numpy.array([board.turn], numpy.uint8), HCP)
    assert not faults.any()
    return packed.tobytes()
