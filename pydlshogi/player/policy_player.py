"""The policy player: looks at a position once and plays what the network would play.

With a network that has a value head it can look one move ahead instead.

Source: 「将棋AIで学ぶディープラーニング」, chapter 7.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, Callable, NamedTuple

import numpy
import shogi

from pydlshogi import rules
from pydlshogi.device import DeviceError, select_device
from pydlshogi.features import make_output_label
from pydlshogi.files import shipped_model
from pydlshogi.network.cpu.threads import limit_blas
from pydlshogi.network.evaluator import Evaluation, Evaluator
from pydlshogi.network.model_file import ModelFileError
from pydlshogi.player.base_player import BasePlayer
from pydlshogi.player.policy_options import SHIPPED_MODEL, policy_options
from pydlshogi.player.strategy import boltzmann, greedy, score, softmax
from pydlshogi.rules import Repetition
from pydlshogi.usi.options import Options
from pydlshogi.usi.protocol import FatalError, Go, info

__all__ = ["PolicyPlayer", "boltzmann", "greedy"]

#: Moves looked ahead at once, between two looks at ``stop`` and the clock: enough for the
#: network's full speed, few enough to take about a twentieth of a second on two cores.
CHUNK = 32

#: The probability of winning by a move that ends the game by repetition. By perpetual
#: check one loses, but a referee has to notice.
_WINS = {Repetition.WIN: 1.0, Repetition.DRAW: 0.5}


class PolicyPlayer(BasePlayer):
    """Plays the move of highest logit, one drawn from the logits' softmax, or the best by value.

    Args:
        options: See :func:`pydlshogi.player.policy_options.policy_options`.
        send: Sends a line to the GUI.
        folder: Where a relative path of the option ``modelfile`` starts.
    """

    def __init__(
        self,
        options: Options | None = None,
        send: Callable[[str], None] = print,
        folder: Path = Path(),
    ) -> None:
        super().__init__(policy_options() if options is None else options, send)
        self._folder = folder
        self._evaluator: Any = None
        self._loaded: tuple[Any, ...] = ()
        self._rng = numpy.random.default_rng()
        self._seed = -1

    def isready(self) -> None:
        """Loads the network, unless the one that is loaded is still the one wanted."""
        path = self._model_path()
        wanted = (
            path,
            _file_stamp(path),
            self.options["device"],
            self.options["reload_model"],
        )
        if wanted != self._loaded:
            self._load(path)
            self._loaded = wanted
        self._miss_value_head()

    def _load(self, path: Path) -> None:
        """Loads a model file and tries it."""
        try:
            limit_blas()  # one position is a product of BLAS's own threads
        except ValueError as error:
            raise FatalError(f"{error}.") from None
        try:
            self._evaluator = Evaluator(path, _choose_device(self.options["device"]))
        except ModelFileError as error:
            raise FatalError(f"{error} The option modelfile chooses it.") from None
        # The first pass is slow (buffers, a GPU's kernels): not on the clock of a game.
        self.evaluate(shogi.Board())

    def go(self, go: Go) -> str:
        """Chooses a move; see :class:`BasePlayer`."""
        start = time.perf_counter()
        board = self.board
        if self.options["declaration_win"] and rules.can_declare_win(board):
            self.send("info string the 27-point declaration holds")
            return "win"
        legal = rules.legal_moves(board)
        if not legal:
            return "resign"
        moves = self._asked_for(legal, go.searchmoves)
        mate = rules.mate_in_one(board, moves) if self.options["mate_in_one"] else None
        if mate:
            time_ms = _milliseconds_since(start)
            self.send(info([mate.usi()], "mate 1", time_ms=time_ms, nodes=0))
            return mate.usi()
        if not self._loaded:  # a GUI that does without isready
            self.isready()
        self._miss_value_head()
        logits, win = self.evaluate(board)
        seconds = go.seconds(board.turn)

        def is_over() -> bool:
            late = seconds is not None and time.perf_counter() - start >= seconds
            return late or go.stop.is_set()

        choice = self._choose(moves, legal, logits, win, is_over)
        self._show(choice, logits, start)
        if choice.win is not None and choice.win < self.options["resign_threshold"] / 100:
            return "resign"
        return choice.move.usi()

    def evaluate(self, board: shogi.Board) -> tuple[numpy.ndarray, float | None]:
        """Asks the network about a position.

        Args:
            board: The position.

        Returns:
            (2187,) float32, the logit of every label; and the probability that the side to
            move wins, None of a network without a value head.

        Raises:
            FatalError: the network answers with numbers that are not finite.
        """
        logits, wins = self._evaluate([self._evaluator.planes(board)])
        return logits[0], None if wins is None else float(wins[0])

    def look_ahead(
        self, moves: list[shogi.Move], is_over: Callable[[], bool] = lambda: False
    ) -> list[float]:
        """Asks the network, which has a value head, about the positions after moves.

        Args:
            moves: Possible in the position on the board; those that matter most first.
            is_over: Says whether to leave it at those looked at so far; asked before each
                :data:`CHUNK` of moves.

        Returns:
            For each move, or the first of them, the probability that the side that makes
            it wins: what the opponent's lacks to 1.
        """
        wins: list[float] = []
        while len(wins) < len(moves) and not is_over():
            planes = []
            for move in moves[len(wins) : len(wins) + CHUNK]:
                self.board.push(move)
                planes.append(self._evaluator.planes(self.board))
                self.board.pop()
            opponents = self._evaluate(planes).wins
            assert opponents is not None
            wins += [1 - float(win) for win in opponents]
        return wins

    def _evaluate(self, planes: list[numpy.ndarray]) -> Evaluation:
        """Asks the network, and refuses an answer that is not finite."""
        evaluation = self._evaluator.evaluate(planes)
        if not all(numpy.isfinite(part).all() for part in evaluation if part is not None):
            raise FatalError(
                f"model file {self._model_path()} answers with numbers that are not finite: its "
                "training diverged. The option modelfile chooses another."
            )
        return evaluation

    def _miss_value_head(self) -> None:
        """Says so where options ask for a value head that the network lacks."""
        if self._evaluator is None or self._evaluator.has_value:
            return
        asked = []
        if self.options["strategy"] == "value1":
            asked.append("strategy value1")
        if self.options["resign_threshold"]:
            asked.append("resign_threshold")
        if asked:
            self.send(
                f"info string {' and '.join(asked)} cannot be followed: the network has no value "
                "head; choose a modelfile trained with --network policy_value, or strategy greedy "
                "(which is played meanwhile) and resign_threshold 0"
            )

    def _model_path(self) -> Path:
        """Finds the model file that the option names."""
        name = self.options["modelfile"]
        return shipped_model() if name in ("", SHIPPED_MODEL) else self._folder / name

    def _asked_for(self, legal: list[shogi.Move], searchmoves: tuple[str, ...]) -> list[shogi.Move]:
        """Keeps the legal moves that ``searchmoves`` names; all where it names none."""
        moves = [move for move in legal if move.usi() in searchmoves]
        if searchmoves and not moves:
            self.send("info string go searchmoves names no legal move: all are looked at")
        return moves or legal

    def _without_bad_repetitions(
        self, moves: list[shogi.Move]
    ) -> tuple[list[shogi.Move], dict[shogi.Move, float]]:
        """Leaves out moves that end the game by repetition where there are better ones.

        Perpetual check, which loses, is always left out and a repetition that wins
        always taken; a draw is left out where the option ``repetition`` says so.

        Returns:
            The moves that are left; and of those that win or draw the game by repetition
            the probability of winning, which no network has to guess.
        """
        if not rules.may_repeat(self.board):
            return moves, {}
        outcomes = {move: rules.repetition_after(self.board, move) for move in moves}
        settled = {move: _WINS[outcome] for move, outcome in outcomes.items() if outcome in _WINS}
        if self.options["repetition"] == "allow":
            for move, outcome in outcomes.items():
                outcomes[move] = Repetition.NONE if outcome == Repetition.DRAW else outcome
        best = min(outcomes.values())
        return [move for move, outcome in outcomes.items() if outcome == best], settled

    def _choose(
        self,
        moves: list[shogi.Move],
        legal: list[shogi.Move],
        logits: numpy.ndarray,
        win: float | None,
        is_over: Callable[[], bool],
    ) -> _Choice:
        """Chooses as the option ``strategy`` says.

        Args:
            moves: The legal moves that were asked for.
            legal: All legal moves.
            logits: (2187,), of every label.
            win: The probability that the side to move wins; None where it is not known.
            is_over: Says whether the move is wanted now.
        """
        playable, settled = self._without_bad_repetitions(moves)
        if win is not None and self.options["strategy"] == "value1":
            return self._choose_by_value(playable, settled, logits, win, is_over)
        move = playable[self._draw(_logits_of(playable, self.board, logits))]
        if win is not None:
            win = settled.get(move, win)
        confidence = dict(zip(legal, softmax(_logits_of(legal, self.board, logits))))
        ranking = sorted(moves, key=confidence.__getitem__, reverse=True)
        return _Choice(move, ranking, confidence if win is None else {move: win}, win, nodes=1)

    def _choose_by_value(
        self,
        playable: list[shogi.Move],
        settled: dict[shogi.Move, float],
        logits: numpy.ndarray,
        win: float,
        is_over: Callable[[], bool],
    ) -> _Choice:
        """Chooses the move after which the opponent stands worst, of those there is time for.

        The moves that the policy head prefers are looked at first, so that where time is
        short the choice is among them; without any time it is the first of them.
        """
        order = numpy.argsort(-_logits_of(playable, self.board, logits), kind="stable")
        by_policy = [playable[index] for index in order]
        wins = dict(zip(by_policy, self.look_ahead(by_policy, is_over)))
        if not wins:
            first = by_policy[0]
            win = settled.get(first, win)
            return _Choice(first, by_policy, {first: win}, win, nodes=1)
        wins.update((move, settled[move]) for move in settled if move in wins)
        looked_at = sorted(wins, key=wins.__getitem__, reverse=True)
        ranking = looked_at + by_policy[len(wins) :]
        return _Choice(ranking[0], ranking, wins, wins[ranking[0]], nodes=1 + len(wins))

    def _draw(self, logits: numpy.ndarray) -> int:
        """Gives the index of the largest logit or, by ``boltzmann``, of one drawn."""
        if self.options["strategy"] != "boltzmann":
            return greedy(logits)
        if self.options["random_seed"] != self._seed:
            self._seed = self.options["random_seed"]
            self._rng = numpy.random.default_rng(None if self._seed < 0 else self._seed)
        return boltzmann(logits, self.options["temperature"] / 100, self._rng)

    def _show(self, choice: _Choice, logits: numpy.ndarray, start: float) -> None:
        """Shows the best candidates, as many as the option ``MultiPV`` says.

        The move played is always among them, in the last place if need be. The lines
        with scores come last, the best of them at the end: GUIs and tournament
        programs take the last one for the score of the move.

        Args:
            choice: What was chosen.
            logits: (2187,), of every label.
            start: When ``go`` came, by ``time.perf_counter``.
        """
        among_all = softmax(logits)
        shown = choice.ranking[: self.options["MultiPV"]]
        if choice.move not in shown:
            shown[-1] = choice.move
        for move in shown:
            probability = among_all[make_output_label(move, self.board.turn)]
            self.send(f"info string {move.usi():5} : {probability:.5f}")
        time_ms = _milliseconds_since(start)
        scored = [move for move in shown if move in choice.chances]
        for rank in range(len(scored), 0, -1):
            move = scored[rank - 1]
            cp = f"cp {score(choice.chances[move])}"
            self.send(info([move.usi()], cp, time_ms=time_ms, nodes=choice.nodes, multipv=rank))


class _Choice(NamedTuple):
    """A move, and why.

    Attributes:
        move: The move.
        ranking: The candidates, best first.
        chances: What the score of a candidate is made of: the probability of winning by it
            or, where no value is known, its probability among the legal moves. Candidates
            that are not in it have no score.
        win: The probability that the side to move wins; None where it is not known.
        nodes: Positions that the network was asked about.
    """

    move: shogi.Move
    ranking: list[shogi.Move]
    chances: dict[shogi.Move, float]
    win: float | None
    nodes: int


def _logits_of(moves: list[shogi.Move], board: shogi.Board, logits: numpy.ndarray) -> numpy.ndarray:
    """Picks the logits of moves, in their order."""
    return logits[[make_output_label(move, board.turn) for move in moves]]


def _choose_device(name: str) -> Any:
    """Finds the device that the option ``device`` names.

    Raises:
        FatalError: there is no such GPU, or it cannot be used.
    """
    if not name.startswith("gpu"):
        return select_device(-1 if name == "cpu" else None)
    try:
        return select_device(int(name[len("gpu") :]))
    except DeviceError as error:
        raise FatalError(
            f"device {name} cannot be used: {error.reason}. Set the option device to auto or cpu."
        ) from None


def _file_stamp(path: Path) -> tuple[int, int] | None:
    """Tells one content of a file from another, without reading it."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size


def _milliseconds_since(start: float) -> int:
    return int(1000 * (time.perf_counter() - start))
