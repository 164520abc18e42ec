"""A loaded model that evaluates positions on a device."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy
import shogi

from pydlshogi.compat import chainer
from pydlshogi.features import make_input_features_from_board
from pydlshogi.inference.backend import OWN, make_forward
from pydlshogi.layers.convolution import get_convolution
from pydlshogi.model_files.fold import fold_for_play
from pydlshogi.model_files.model_file import load_network
from pydlshogi.network.network import output_arrays, split_output


class Evaluation(NamedTuple):
    """The evaluation of n positions.

    Attributes:
        logits: (n, 2187) float32, one logit for each label; None without a policy head.
        wins: (n,) float32, the probability that the side to move wins; None without a value
            head.
    """

    logits: numpy.ndarray | None
    wins: numpy.ndarray | None


class Evaluator:
    """The network of a model file, folded for play (:mod:`pydlshogi.model_files.fold`).

    On a CPU, a backend computes it (:mod:`pydlshogi.inference.backend`). Chainer computes networks
    that have no program, and all networks on a GPU or after ``set_convolution("chainer")``.

    Args:
        path: Model file of any network.
        device: The ``chainer.backend.Device`` that computes; it becomes the current one.
        backend: What computes on a CPU. The default gives the same results on all processors,
            except for the rounding of float32.

    Attributes:
        device: As above.
        backend: The backend that computes; never ``auto``.
        has_policy: Whether the network has a policy head.
        has_value: Whether the network has a value head.
        plane_num: Number of planes of the network's input.

    Raises:
        ModelFileError: the file cannot be used.
        BackendError: the backend cannot compute here.
    """

    def __init__(self, path: str | os.PathLike[str], device: Any, backend: str = OWN) -> None:
        self._network = fold_for_play(load_network(path))
        self.device = device
        self.device.use()
        self.backend, self._forward = make_forward(backend, self._network, device)
        self._network.to_device(device)
        self.has_policy = self._network.has_policy
        self.has_value = self._network.value_kind is not None
        self.plane_num = self._network.plane_num

    def planes(self, board: shogi.Board) -> numpy.ndarray:
        """Makes the network's input for a board: (plane_num, 9, 9) float32."""
        return make_input_features_from_board(board, self.plane_num)

    def evaluate(self, planes: Sequence[numpy.ndarray] | numpy.ndarray) -> Evaluation:
        """Evaluates one or more positions in one batch.

        Args:
            planes: The arrays of :meth:`planes`, or one array (n, plane_num, 9, 9) float32.
        """
        self.device.use()  # each thread has a current device of its own
        batch = planes if isinstance(planes, numpy.ndarray) else numpy.stack(planes)
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            logits, values = split_output(self._network, self._outputs(batch))
            kind = self._network.value_kind
            wins = None if kind is None else kind.win_probabilities(values)
        return Evaluation(_to_cpu(logits), _to_cpu(wins))

    def first_layer(self, planes: numpy.ndarray) -> numpy.ndarray | None:
        """Computes the output of the first layer's filters, (n, filters, 9, 9), after ReLU.

        It is None if the network has no link ``l1``.
        """
        layer = getattr(self._network, "l1", None)
        if layer is None:
            return None
        self.device.use()
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            output = chainer.functions.relu(layer(self.device.send(planes)))
        found: numpy.ndarray = _to_cpu(output.array)
        return found

    def _outputs(self, batch: numpy.ndarray) -> Any:
        """Computes the network's outputs: one array, or a pair of them."""
        if self._forward is not None and len(batch) and get_convolution() != "chainer":
            outputs = self._forward(batch)
        else:
            outputs = output_arrays(self._network, self.device.send(batch))
        return outputs[0] if len(outputs) == 1 else tuple(outputs)


def _to_cpu(array: Any) -> Any:
    return None if array is None else chainer.get_device("@numpy").send(array)
