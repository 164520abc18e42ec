"""Games of one or two networks against each other: many at once, one leaf of each in a batch."""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy
import shogi

from pydlshogi.errors import UserError
from pydlshogi.inference.evaluator import Evaluator
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
from pydlshogi.uct.inputs import Inputs
from pydlshogi.uct.judge import CHECKMATED

#: How games end.
MATED, RESIGNED, DECLARED = "mate", "resignation", "declaration"
REPEATED, CHECKED, TOO_LONG = "repetition", "perpetual check", "length"
ENDS = MATED, RESIGNED, DECLARED, REPEATED, CHECKED, TOO_LONG


class NotFiniteError(UserError):
    """The network gives no usable values."""


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
        searches: The searches of Black and White, which may be the same one.
        rng: Draws the noise and the kind of each search; None for full searches without noise.
        networks: Numbers of the networks of Black and White (:class:`Pool`).

    Attributes:
        began: When it began, as by ``time.perf_counter``.
        moves: The moves so far.
        end: How the game ended, one of :data:`ENDS`; "" while it goes on.
        winner: 0 for Black, 1 for White; None for a draw, and before the end.
        resigned: The side that would have resigned, or has; None if none has.
        evaluations: Evaluations of the network for this game.
    """

    def __init__(
        self, number: int, start: Start, searches: tuple[RootSearch, RootSearch],
        settings: SelfPlaySettings, rng: numpy.random.Generator | None,
        networks: tuple[int, int] = (0, 0),
    ) -> None:  # fmt: skip
        self.number, self.start, self.searches = number, start, searches
        self._settings, self._rng, self._networks = settings, rng, networks
        self._plays_on = bool(rng and rng.random() < settings.play_on_share)
        self._game = Game(make_search_board(start.sfen), start.moves)
        self.began = time.perf_counter()
        self.moves = [PlayedMove(move, None, []) for move in start.moves]
        self.end, self.winner = "", None  # type: str, int | None
        self.resigned: int | None = None
        self.evaluations = 0
        self._low = [0, 0]
        self._begin()

    @property
    def network(self) -> int:
        """The number of the network that is to move."""
        return self._networks[self._game.board.turn]

    @property
    def targets(self) -> int:
        """The number of positions with a policy target."""
        return sum(bool(move.candidates) for move in self.moves)

    def next_leaf(self, inputs: Inputs) -> bool:
        """Goes on until the network must evaluate a leaf, as :meth:`RootSearch.next_leaf` does.

        Without such a leaf, it plays the move, and the game may end.
        """
        search = self.searches[self._game.board.turn]
        if search.next_leaf(inputs):
            self.evaluations += 1
            return True
        self._play(search.choose())
        return False

    def complete(self, logits: numpy.ndarray, value: numpy.ndarray) -> None:
        """Gives the network's answer, as in :meth:`RootSearch.complete`."""
        self.searches[self._game.board.turn].complete(logits, value)

    def restart_move(self) -> None:
        """Begins the search of the present position again, with a new network."""
        for search in self.searches:
            search.tree.forget()
        self._begin()

    def encode(self) -> bytes:
        """Encodes the ended game for an HCPE3 file."""
        # A draw by length has no bit of its own: readers take dlshogi's mark for a win of White.
        bits = {DECLARED: DECLARATION, REPEATED: REPETITION, CHECKED: REPETITION}.get(self.end, 0)
        moves = [
            (move, 0 if value is None else score(value), candidates)
            for move, value, candidates in self.moves
        ]
        winner = 0 if self.winner is None else self.winner + 1
        return encode(_packed(self.start.sfen), bits | winner, moves)

    def _play(self, choice: Choice) -> None:
        """Notes and plays a move, unless its side resigns."""
        turn, settings = self._game.board.turn, self._settings
        self._low[turn] = self._low[turn] + 1 if choice.value < settings.resign_below else 0
        gives_up = settings.resign_moves and self._low[turn] >= settings.resign_moves
        if gives_up and self.resigned is None:
            self.resigned = turn
            if not self._plays_on:
                self.end, self.winner = RESIGNED, 1 - turn
                return
        targets = zip(choice.moves.tolist(), choice.counts.tolist())
        candidates = [(move, count) for move, count in targets if count]
        self.moves.append(PlayedMove(choice.move, choice.value, candidates))
        self._game.push(choice.move)
        self._begin()

    def _begin(self) -> None:
        """Begins the search of the position on the board, unless the game is over there."""
        turn, rng = self._game.board.turn, self._rng
        repetition = self._game.repetition(LAST_OCCURRENCE)
        if repetition:
            self.winner = {DRAW: None, WIN: turn, LOSS: 1 - turn}[repetition.outcome]
            self.end = REPEATED if self.winner is None else CHECKED
            return
        is_full = rng is None or rng.random() < self._settings.full_share
        search = self.searches[turn]
        search.begin(self._game, rng, is_full)
        verdict = search.verdict
        if verdict == CHECKMATED:
            self.end, self.winner = MATED, 1 - turn
        elif verdict and verdict.outcome == DRAW:
            self.end = TOO_LONG
        elif verdict and verdict.mate_move is None:
            self.end, self.winner = DECLARED, turn


@functools.lru_cache(maxsize=16)
def _packed(sfen: str) -> bytes:
    """Packs a position for an HCPE3 file."""
    board = shogi.Board(sfen)
    placement = numpy.frombuffer(placement_of(board), numpy.uint8).reshape(1, PLACEMENT_SIZE)
    packed, faults = pack(placement, numpy.array([board.turn], numpy.uint8), HCP)
    assert not faults.any()
    return packed.tobytes()


class _Batch:
    """The leaves that wait for one network."""

    def __init__(self, network: Evaluator, size: int) -> None:
        self.network = network
        self.games: list[LiveGame] = []
        self.inputs = Inputs(size, network.plane_num)

    def run(self) -> int:
        """Evaluates the leaves and completes them; returns their number."""
        number = len(self.games)
        if not number:
            return 0
        found = self.network.evaluate(self.inputs.planes())
        logits = numpy.require(found.logits, numpy.float32, ["C", "W"])
        values = numpy.array(found.wins, numpy.float64)
        if not (numpy.isfinite(values).all() and numpy.isfinite(logits).all()):
            raise NotFiniteError(
                "the network gives values that are not finite numbers. Choose another model, or "
                "train it again with a lower learning rate."
            )
        for row, game in enumerate(self.games):
            game.complete(logits[row : row + 1], values[row : row + 1])
        self.games.clear()
        self.inputs.clear()
        return number


class Pool:
    """Plays games until they end: ``games``, which are at most ``size``.

    The networks have both heads; a match has more than one.
    """

    def __init__(self, networks: Sequence[Evaluator], size: int) -> None:
        self._batches = [_Batch(network, size) for network in networks]
        self.size = size
        self.games: list[LiveGame] = []

    def replace(self, network: Evaluator) -> None:
        """Goes on with another network, of the same input, in the place of the first one."""
        self._batches[0].network = network
        for game in self.games:
            game.restart_move()

    def step(self) -> tuple[list[LiveGame], int]:
        """Makes one batch of each network.

        Returns:
            The games that ended, which are no longer in flight, and the number of evaluations.
        """
        for game in self.games:
            while not game.end:
                batch = self._batches[game.network]
                if game.next_leaf(batch.inputs):
                    batch.games.append(game)
                    break
        ended = [game for game in self.games if game.end]
        if ended:
            self.games = [game for game in self.games if not game.end]
        return ended, sum(batch.run() for batch in self._batches)
