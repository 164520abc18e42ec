"""A network on its device, asked about positions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy
import shogi

from pydlshogi.compat import chainer
from pydlshogi.features import make_input_features_from_board
from pydlshogi.network.model_file import load_network


class Evaluation(NamedTuple):
    """What a network says of positions.

    Attributes:
        logits: (n, 2187) float32, the logit of every label.
        wins: (n,) float32, the probability that the side to move wins; None of a network
            without a value head.
    """

    logits: numpy.ndarray
    wins: numpy.ndarray | None


class Evaluator:
    """The network of a model file.

    Args:
        path: The model file, of any network.
        device: The ``chainer.backend.Device`` to compute on; it becomes the current one.

    Attributes:
        has_value: Whether the network has a value head.

    Raises:
        ModelFileError: the file cannot be used.
    """

    def __init__(self, path: str | os.PathLike[str], device: Any) -> None:
        self._network = load_network(path)
        self._device = device
        self._device.use()
        self._network.to_device(device)
        self.has_policy = getattr(self._network, "has_policy", True)
        self.has_value = self._network.value_kind is not None

    def planes(self, board: shogi.Board) -> numpy.ndarray:
        """Makes the network's input of a board: (planes, 9, 9) float32."""
        return make_input_features_from_board(board, ply=self._network.ply)

    def evaluate(self, planes: Sequence[numpy.ndarray]) -> Evaluation:
        """Asks the network about positions, at least one, all at once.

        Args:
            planes: What :meth:`planes` made of each.
        """
        batch = self._device.send(numpy.stack(planes))
        cpu = chainer.get_device("@numpy")
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            output = self._network(batch)
            if self._network.value_kind is None:
                return Evaluation(cpu.send(output.array), None)
            logits, values = output
            wins = self._network.value_kind.win_probabilities(values)
        return Evaluation(cpu.send(logits.array), cpu.send(wins))
