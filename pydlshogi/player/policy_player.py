"""The policy player: looks at a position once and plays what the network would play.

Source: 「将棋AIで学ぶディープラーニング」, chapter 7.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, Callable

import numpy
import shogi

from pydlshogi.compat import chainer
from pydlshogi.device import gpu_count, select_device
from pydlshogi.features import make_input_features_from_board, make_output_label
from pydlshogi.files import shipped_model
from pydlshogi.network.model_file import ModelFileError, load_model
from pydlshogi.network.policy import PolicyNetwork
from pydlshogi.player import rules
from pydlshogi.player.base_player import BasePlayer
from pydlshogi.player.policy_options import SHIPPED_MODEL, policy_options
from pydlshogi.player.rules import Repetition
from pydlshogi.player.strategy import boltzmann, confidence_score, greedy, softmax
from pydlshogi.usi.options import Options
from pydlshogi.usi.protocol import FatalError, Go, info

__all__ = ["PolicyPlayer", "boltzmann", "greedy"]


class PolicyPlayer(BasePlayer):
    """Plays the move of highest logit, or one drawn from the logits' softmax.

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
        self._device: Any = None
        self._network: Any = None
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
        if wanted == self._loaded:
            return
        self._device = _choose_device(self.options["device"])
        network = PolicyNetwork()
        try:
            load_model(path, network)
        except ModelFileError as error:
            raise FatalError(f"{error} The option modelfile chooses it.") from None
        self._device.use()
        network.to_device(self._device)
        self._network = network
        # The first pass is slow (buffers, a GPU's kernels): not on the clock of a game.
        if not numpy.isfinite(self.evaluate(shogi.Board())).all():
            raise FatalError(
                f"model file {path} answers with numbers that are not finite: its training "
                "diverged. The option modelfile chooses another."
            )
        self._loaded = wanted

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
        logits = self.evaluate(board)
        playable = self._without_bad_repetitions(moves)
        move = playable[self._choose(_logits_of(playable, board, logits))]
        self._show(move, legal, moves, logits, start)
        return move.usi()

    def evaluate(self, board: shogi.Board) -> numpy.ndarray:
        """Asks the network.

        Args:
            board: A position.

        Returns:
            (2187,) float32, the logit of every label.
        """
        planes = self._device.send(make_input_features_from_board(board)[numpy.newaxis])
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            logits = self._network(planes)
        return chainer.get_device("@numpy").send(logits.array)[0]

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

    def _without_bad_repetitions(self, moves: list[shogi.Move]) -> list[shogi.Move]:
        """Leaves out moves that end the game by repetition where there are better ones.

        Perpetual check, which loses, is always left out and a repetition that wins
        always taken; a draw is left out where the option ``repetition`` says so.
        """
        if not rules.may_repeat(self.board):
            return moves
        outcomes = [rules.repetition_after(self.board, move) for move in moves]
        if self.options["repetition"] == "allow":
            outcomes = [
                Repetition.NONE if outcome == Repetition.DRAW else outcome for outcome in outcomes
            ]
        return [move for move, outcome in zip(moves, outcomes) if outcome == min(outcomes)]

    def _choose(self, logits: numpy.ndarray) -> int:
        """Gives the index of the logit that the option ``strategy`` takes."""
        if self.options["strategy"] == "greedy":
            return greedy(logits)
        if self.options["random_seed"] != self._seed:
            self._seed = self.options["random_seed"]
            self._rng = numpy.random.default_rng(None if self._seed < 0 else self._seed)
        return boltzmann(logits, self.options["temperature"] / 100, self._rng)

    def _show(
        self,
        played: shogi.Move,
        legal: list[shogi.Move],
        moves: list[shogi.Move],
        logits: numpy.ndarray,
        start: float,
    ) -> None:
        """Shows the best candidates, as many as the option ``MultiPV`` says.

        The move played is always among them, in the last place if need be. The lines
        with scores come last, the best of them at the end: GUIs and tournament
        programs take the last one for the score of the move.
        """
        among_all = softmax(logits)
        among_legal = dict(zip(legal, softmax(_logits_of(legal, self.board, logits))))
        shown = sorted(moves, key=among_legal.__getitem__, reverse=True)
        shown = shown[: self.options["MultiPV"]]
        if played not in shown:
            shown[-1] = played
        for move in shown:
            probability = among_all[make_output_label(move, self.board.turn)]
            self.send(f"info string {move.usi():5} : {probability:.5f}")
        time_ms = _milliseconds_since(start)
        for rank in range(len(shown), 0, -1):
            move = shown[rank - 1]
            score = f"cp {confidence_score(among_legal[move])}"
            self.send(info([move.usi()], score, time_ms=time_ms, nodes=1, multipv=rank))


def _logits_of(moves: list[shogi.Move], board: shogi.Board, logits: numpy.ndarray) -> numpy.ndarray:
    """Picks the logits of moves, in their order."""
    return logits[[make_output_label(move, board.turn) for move in moves]]


def _choose_device(name: str) -> Any:
    """Finds the device that the option ``device`` names.

    Raises:
        FatalError: there is no such GPU.
    """
    if not name.startswith("gpu"):
        return select_device(-1 if name == "cpu" else None)
    number = int(name[len("gpu") :])
    count, reason = gpu_count()
    if number >= count:
        raise FatalError(
            f"device {name} cannot be used: {reason or f'there are {count}, numbered from 0'}. "
            "Set the option device to auto or cpu."
        )
    return select_device(number)


def _file_stamp(path: Path) -> tuple[int, int] | None:
    """Tells one content of a file from another, without reading it."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size


def _milliseconds_since(start: float) -> int:
    return int(1000 * (time.perf_counter() - start))
