"""The base class of the players with a network. A subclass chooses the move."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Callable, ClassVar

import numpy
import shogi

from pydlshogi import files, rules
from pydlshogi.device import DeviceError, select_device
from pydlshogi.features import make_output_label
from pydlshogi.network import own
from pydlshogi.network.backend import OWN, BackendError
from pydlshogi.network.cpu.threads import compute_with
from pydlshogi.network.evaluator import Evaluation, Evaluator
from pydlshogi.network.model_file import ModelFileError, UnnamedNetwork
from pydlshogi.player.clock import half_of_the_time
from pydlshogi.player.engine_player import EnginePlayer
from pydlshogi.player.options import POLICY_VALUE_MODEL, SHIPPED_MODELS
from pydlshogi.player.strategy import boltzmann, greedy, score
from pydlshogi.processors import processors, threads_of_environment
from pydlshogi.rules import Repetition
from pydlshogi.usi.options import Options
from pydlshogi.usi.process import PROGRAM_FOLDER
from pydlshogi.usi.protocol import FatalError, Go, info

#: Environment variable with the default model.
MODEL_VARIABLE = "PYDLSHOGI_MODEL"

#: Probability of winning by a move that ends the game by repetition. Perpetual check
#: loses, but only if a referee notices.
_WINS = {Repetition.WIN: 1.0, Repetition.DRAW: 0.5}


@dataclasses.dataclass(frozen=True)
class Task:
    """A choice to make.

    Attributes:
        moves: The legal moves that ``go`` allows.
        playable: The moves among them with the best result by repetition.
        settled: Probability of winning by the moves that end the game by repetition.
        is_over: Says whether the move is wanted now.
    """

    moves: list[shogi.Move]
    playable: list[shogi.Move]
    settled: dict[shogi.Move, float]
    is_over: Callable[[], bool]


@dataclasses.dataclass(frozen=True)
class Choice:
    """A move, and what the player thinks of the candidates.

    Attributes:
        move: The move to play.
        ranking: The candidates, best first; ``move`` is among them.
        probabilities: For each candidate the number that ``info string`` shows.
        wins: Probability of winning by a move, as far as the network knows.
        nodes: Number of positions that the network has evaluated.
    """

    move: shogi.Move
    ranking: list[shogi.Move]
    probabilities: dict[shogi.Move, float]
    wins: dict[shogi.Move, float]
    nodes: int


class NetworkPlayer(EnginePlayer):
    """A player with a network. A subclass implements :meth:`decide`.

    Args:
        options: Options with the names of :func:`pydlshogi.player.options.network_options`.
        send: Sends one line to the GUI.
        folder: Relative paths in the option ``modelfile`` start here.
        model: The default model. Without it the environment variable ``PYDLSHOGI_MODEL``
            names it, and without that it is the option's default.
    """

    #: Makes the options of a player that is made without arguments.
    default_options: ClassVar[Callable[[], Options]]

    #: How users choose another model file; the end of messages about an unsuitable one.
    model_hint: ClassVar[str] = "The option modelfile chooses it."

    def __init__(
        self,
        options: Options | None = None,
        send: Callable[[str], None] = print,
        folder: Path = PROGRAM_FOLDER,
        model: Path | None = None,
    ) -> None:
        super().__init__(type(self).default_options() if options is None else options, send)
        self._folder = folder
        self._default_model = model
        self._evaluator: Any = None
        self._loaded: tuple[Any, ...] = ()
        self._rng = numpy.random.default_rng()
        self._seed = -1

    def decide(self, task: Task) -> Choice:
        """Chooses one of ``task.playable``."""
        raise NotImplementedError

    def check_network(self) -> None:
        """Checks that the network has the heads that the player needs.

        Raises:
            FatalError: It lacks one.
        """

    def refuse_without_policy(self) -> None:
        """Refuses a network without a policy head.

        Raises:
            FatalError: It has none.
        """
        if not self._evaluator.has_policy:
            raise FatalError(
                f"model file {self.model_path()} is a value network and has no policy. Play it "
                "with search1_player, or choose another file with the option modelfile."
            )

    def backend(self) -> str:
        """Returns what computes the network on a CPU (:mod:`pydlshogi.network.backend`)."""
        return OWN

    def prepare(self) -> None:
        """Loads the network, unless it is loaded already."""
        path = self.model_path()
        wanted = (
            path,
            file_stamp(path),
            self.options["device"],
            self.options["reload_model"],
            self.options["Threads"],
            self.options["network_file"],
            self.backend(),
        )
        if wanted != self._loaded:
            self._loaded = ()  # the network may be refused
            self._load(path)
            self._loaded = wanted
        self._warn_of_resign_threshold()

    def _load(self, path: Path) -> None:
        """Loads a model file and tries it."""
        self._choose_threads(self.options["Threads"])
        try:
            if self.options["network_file"]:
                own.use(self._folder / self.options["network_file"])
            self.device = _choose_device(self.options["device"])
            self._evaluator = Evaluator(path, self.device, self.backend())
        except UnnamedNetwork as error:
            raise FatalError(str(error)) from None
        except ModelFileError as error:
            raise FatalError(f"{error} {self.model_hint}") from None
        except own.OwnNetworkError as error:
            raise FatalError(f"{error} The option network_file chooses it.") from None
        except BackendError as error:
            raise FatalError(str(error)) from None
        self.check_network()
        # The first pass is slow (buffers, a GPU's kernels): it must not cost game time.
        self.evaluate(shogi.Board())
        if self.device.xp is not numpy:
            self.warm_up()

    def _choose_threads(self, wanted: int) -> None:
        """Sets the number of threads, but not more than there are processors.

        Every step of the network waits for all threads, so more of them would only wait.

        Raises:
            ThreadsError: ``PYDLSHOGI_THREADS`` is not a number of threads. That is an error even
                if the option gives another number.
        """
        threads_of_environment()
        number = min(wanted, processors())
        if number < wanted:
            self.send(
                f"info string Threads {wanted} is more than the processors that the engine may "
                f"use: {number} {'thread computes' if number == 1 else 'threads compute'}"
            )
        compute_with(number)

    def warm_up(self) -> None:
        """Evaluates several positions: for them a GPU needs other kernels than for one."""
        self.evaluate_planes([self._evaluator.planes(shogi.Board())] * 2)

    def choose(self, go: Go) -> str:
        """Chooses a move: declares, mates, asks :meth:`decide`, or resigns."""
        start = time.perf_counter() if go.time is None else go.time
        board = self.board
        if self.options["declaration_win"] and rules.can_declare_win(board):
            self.send("info string the 27-point declaration holds")
            return "win"
        legal = rules.legal_moves(board)
        if not legal:
            return "resign"
        moves = self._allowed(legal, go.searchmoves)
        mate = rules.mate_in_one(board, moves) if self.options["mate_in_one"] else None
        if mate:
            self.send(info([mate.usi()], "mate 1", time_ms=_milliseconds_since(start), nodes=0))
            return mate.usi()
        if not self._loaded:  # a GUI without isready
            self.prepare()
        choice = self.decide(self._task(moves, go, start))
        self._show(choice, start)
        return "resign" if self._resigns(choice) else choice.move.usi()

    def _task(self, moves: list[shogi.Move], go: Go, start: float) -> Task:
        """Describes the choice to make."""
        seconds = half_of_the_time(go, self.board.turn)

        def is_over() -> bool:
            late = seconds is not None and time.perf_counter() - start >= seconds
            is_hit = go.ponder and not go.infinite and go.ponderhit.is_set()
            return late or go.stop.is_set() or is_hit

        return Task(moves, *self._without_bad_repetitions(moves), is_over)

    def _resigns(self, choice: Choice) -> bool:
        win = choice.wins.get(choice.move)
        return win is not None and win < self.options["resign_threshold"] / 100

    def evaluate(self, board: shogi.Board) -> tuple[numpy.ndarray | None, float | None]:
        """Evaluates a position.

        Returns:
            (2187,) float32, the logit of every label; and the probability that the side to
            move wins. None for a head that the network lacks.

        Raises:
            FatalError: The network returns numbers that are not finite.
        """
        logits, wins = self.evaluate_planes([self._evaluator.planes(board)])
        return None if logits is None else logits[0], None if wins is None else float(wins[0])

    def evaluate_planes(self, planes: Sequence[numpy.ndarray] | numpy.ndarray) -> Evaluation:
        """Evaluates positions, given the planes of each.

        Raises:
            FatalError: The network returns numbers that are not finite.
        """
        evaluation = self._evaluator.evaluate(planes)
        if not all(numpy.isfinite(part).all() for part in evaluation if part is not None):
            raise FatalError(
                f"model file {self.model_path()} answers with numbers that are not finite: its "
                "training diverged. The option modelfile chooses another."
            )
        return evaluation

    def logits_of(self, moves: list[shogi.Move], logits: numpy.ndarray) -> numpy.ndarray:
        """Returns the logits of moves, in their order.

        Args:
            moves: Moves in the position on the board.
            logits: (2187,), the logit of every label.
        """
        return logits[[make_output_label(move, self.board.turn) for move in moves]]

    def draw(self, logits: numpy.ndarray) -> int:
        """Returns the index of a logit, as the options of the choice say."""
        if not self._is_random():
            return greedy(logits)
        return boltzmann(logits, self.options["temperature"] / 100, self.random())

    def random(self) -> numpy.random.Generator:
        """Returns the random generator; a new value of ``random_seed`` starts it anew."""
        if self.options["random_seed"] != self._seed:
            self._seed = self.options["random_seed"]
            self._rng = numpy.random.default_rng(None if self._seed < 0 else self._seed)
        return self._rng

    def _is_random(self) -> bool:
        """Says whether this move is drawn: in the first ``random_plies`` moves of the game."""
        plies = self.options["random_plies"]
        if plies:
            return self.board.move_number <= plies
        return self.options["strategy"] == "boltzmann"

    def model_path(self) -> Path:
        """Returns the model file that the options choose."""
        name = self.options["modelfile"]
        default = self.options.default("modelfile")
        if name not in ("", default):
            return self._located(name)
        if self._default_model:
            return self._default_model
        if os.environ.get(MODEL_VARIABLE):
            return self._folder / os.environ[MODEL_VARIABLE]
        return self.default_path()

    def default_path(self) -> Path:
        """Returns the model file that the default of ``modelfile`` stands for.

        The shipped policy model takes the place of a shipped model with two heads that is
        missing.
        """
        default = self.options.default("modelfile")
        if default != POLICY_VALUE_MODEL:
            return self._located(default)
        return files.best_shipped_model()

    def _located(self, name: str) -> Path:
        """Returns the path of a model file; a shipped model may be in the wheel."""
        path = self._folder / name
        if name in SHIPPED_MODELS and not path.exists():
            return files.shipped_model(Path(name).name)
        return path

    def _warn_of_resign_threshold(self) -> None:
        """Says that a network without a value head cannot resign."""
        if self._evaluator.has_value or not self.options["resign_threshold"]:
            return
        self.send(
            "info string resign_threshold has no effect: the network has no value head. "
            "Choose a modelfile trained with --network policy_value."
        )

    def _allowed(self, legal: list[shogi.Move], searchmoves: tuple[str, ...]) -> list[shogi.Move]:
        """Returns the legal moves that ``searchmoves`` names, or all if it names none."""
        named = frozenset(searchmoves)
        moves = [move for move in legal if move.usi() in named]
        if searchmoves and not moves:
            self.send("info string go searchmoves names no legal move: all are looked at")
        return moves or legal

    def _without_bad_repetitions(
        self, moves: list[shogi.Move]
    ) -> tuple[list[shogi.Move], dict[shogi.Move, float]]:
        """Removes moves that end the game by repetition if there are better ones.

        A perpetual check, which loses, is always removed. A repetition that wins is always
        taken. The option ``repetition`` decides about draws.

        Returns:
            The other moves; and the probability of winning by those moves that end the
            game by repetition with a win or a draw.
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

    def _show(self, choice: Choice, start: float) -> None:
        """Shows as many candidates as the option ``MultiPV`` says.

        ``info string`` lines come best first, as a person reads them. ``multipv 1`` is the
        move played, and the last line: some programs look for that number, others take the
        last line with a score. A move without an evaluation has no score.
        """
        count = self.options["MultiPV"]
        shown = choice.ranking[:count]
        if choice.move not in shown:
            shown[-1] = choice.move
        for move in shown:
            self.send(f"info string {move.usi():5} : {choice.probabilities[move]:.5f}")
        time_ms = _milliseconds_since(start)
        lines = [choice.move, *(move for move in shown if move != choice.move)]
        for rank in range(len(lines), 0, -1):
            move = lines[rank - 1]
            cp = f"cp {score(choice.wins[move])}" if move in choice.wins else None
            self.send(info([move.usi()], cp, time_ms=time_ms, nodes=choice.nodes, multipv=rank))


def _choose_device(name: str) -> Any:
    """Returns the device that the option ``device`` names.

    Raises:
        FatalError: The GPU does not exist, or cannot be used.
    """
    if not name.startswith("gpu"):
        return select_device(-1 if name == "cpu" else None)
    try:
        return select_device(int(name[len("gpu") :]))
    except DeviceError as error:
        raise FatalError(
            f"device {name} cannot be used: {error.reason}. Set the option device to auto or cpu."
        ) from None


def file_stamp(path: Path) -> tuple[int, int] | None:
    """Returns the modification time and the size of a file."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size


def _milliseconds_since(start: float) -> int:
    return int(1000 * (time.perf_counter() - start))
