"""The base class of the players with a network. A subclass chooses the move."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Callable, ClassVar

import numpy
import shogi

from pydlshogi import files
from pydlshogi.device import DeviceError, select_device
from pydlshogi.inference.backend import OWN, BackendError
from pydlshogi.inference.evaluator import Evaluation, Evaluator
from pydlshogi.layers.cpu.threads import compute_with
from pydlshogi.model_files.model_file import ModelFileError, UnnamedNetwork
from pydlshogi.network import own
from pydlshogi.player.engine_options import POLICY_VALUE_MODEL, SHIPPED_MODELS
from pydlshogi.player.engine_player import EnginePlayer
from pydlshogi.processors import processors, threads_of_environment
from pydlshogi.usi.engine import PROGRAM_FOLDER
from pydlshogi.usi.options import Options, unquoted
from pydlshogi.usi.protocol import FatalError

#: Environment variable with the default model.
MODEL_VARIABLE = "PYDLSHOGI_MODEL"


class NetworkPlayer(EnginePlayer):
    """A player with a network. A subclass implements :meth:`choose`.

    Args:
        options: Options with the names of :func:`pydlshogi.player.engine_options.network_options`.
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

    def check_network(self) -> None:
        """Raises FatalError if the network lacks a head that the player needs."""

    def refuse_without_policy(self) -> None:
        """Raises FatalError if the network has no policy head."""
        if not self._evaluator.has_policy:
            raise FatalError(
                f"model file {self.model_path()} is a value network and has no policy. Play it "
                "with search1_player, or choose another file with the option modelfile."
            )

    def backend(self) -> str:
        """Returns what computes the network on a CPU (:mod:`pydlshogi.inference.backend`)."""
        return OWN

    def prepare(self) -> None:
        """Loads the network, unless it is loaded already."""
        path = self.model_path()
        wanted = (
            path,
            files.file_stamp(path),
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
        except (UnnamedNetwork, BackendError) as error:
            raise FatalError(str(error)) from None
        except ModelFileError as error:
            raise FatalError(f"{error} {self.model_hint}") from None
        except own.OwnNetworkError as error:
            raise FatalError(f"{error} The option network_file chooses it.") from None
        self.check_network()
        # The first pass is slow (buffers, a GPU's kernels): it must not cost game time.
        self.evaluate(shogi.Board())
        if self.device.xp is not numpy:
            self.warm_up()

    def _choose_threads(self, wanted: int) -> None:
        """Sets the number of threads, but not more than there are processors.

        Every step of the network waits for all threads, so more of them would only wait. A wrong
        ``PYDLSHOGI_THREADS`` raises ThreadsError even if the option gives another number.
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

    def evaluate(self, board: shogi.Board) -> tuple[numpy.ndarray | None, float | None]:
        """Returns the logits, (2187,) float32, and the probability that the side to move wins.

        A head that the network lacks gives None. Numbers that are not finite raise FatalError.
        """
        logits, wins = self.evaluate_planes([self._evaluator.planes(board)])
        return None if logits is None else logits[0], None if wins is None else float(wins[0])

    def evaluate_planes(self, planes: Sequence[numpy.ndarray] | numpy.ndarray) -> Evaluation:
        """Evaluates positions, given the planes of each. Raises FatalError as :meth:`evaluate`."""
        evaluation = self._evaluator.evaluate(planes)
        if not all(numpy.isfinite(part).all() for part in evaluation if part is not None):
            raise FatalError(
                f"model file {self.model_path()} answers with numbers that are not finite: its "
                "training diverged. The option modelfile chooses another."
            )
        return evaluation

    def random(self) -> numpy.random.Generator:
        """Returns the random generator; a new value of ``random_seed`` starts it anew."""
        if self.options["random_seed"] != self._seed:
            self._seed = self.options["random_seed"]
            self._rng = numpy.random.default_rng(None if self._seed < 0 else self._seed)
        return self._rng

    def model_path(self) -> Path:
        """Returns the model file that the options choose."""
        name, default = self.options["modelfile"], self.options.default("modelfile")
        if name not in ("", default):
            return self._located(name)
        if self._default_model:
            return self._default_model
        if os.environ.get(MODEL_VARIABLE):
            return self._folder / unquoted(os.environ[MODEL_VARIABLE])  # set X="a b" keeps quotes
        return files.shipped_model() if default == POLICY_VALUE_MODEL else self._located(default)

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
            "Choose a modelfile of the network policy_value."
        )

    def _allowed(self, legal: list[shogi.Move], searchmoves: tuple[str, ...]) -> list[shogi.Move]:
        """Returns the legal moves that ``searchmoves`` names, or all if it names none."""
        named = frozenset(searchmoves)
        moves = [move for move in legal if move.usi() in named]
        if searchmoves and not moves:
            self.send("info string go searchmoves names no legal move: all are looked at")
        return moves or legal


def _choose_device(name: str) -> Any:
    """Returns the device that an option names; raises FatalError if it cannot be used."""
    if not name.startswith("gpu"):
        return select_device(-1 if name == "cpu" else None)
    try:
        return select_device(int(name[len("gpu") :]))
    except DeviceError as error:
        raise FatalError(
            f"device {name} cannot be used: {error.reason}. Set the option device to auto or cpu."
        ) from None
