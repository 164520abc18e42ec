"""The functions that a network computes, recorded from one run of it.

:mod:`pydlshogi.model_files.onnx_export` and :mod:`pydlshogi.inference.compiler` translate them. So
both accept every network whose functions they know, whatever its class.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy

from pydlshogi.compat import chainer
from pydlshogi.layers.convolution import using_convolution
from pydlshogi.network.network import Network, split_output

#: Boards of the batch that translators trace: a number that few other dimensions have.
BATCH = 7


def any_batch(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Replaces the batch dimension of a traced shape by −1, any size.

    The batch comes first in a network's arrays. So another dimension of the same size stays.
    """
    if BATCH not in shape:
        return shape
    place = shape.index(BATCH)
    return (*shape[:place], -1, *shape[place + 1 :])


class Trace(NamedTuple):
    """One run of a network; nodes are ``chainer.variable.VariableNode``."""

    planes: Any  # the node of the input
    logits: Any  # the node of the logits; None without a policy head
    values: Any  # the node of the values; None without a value head
    arrays: dict[int, tuple[Any, ...]]  # inputs of each function, by the id of the function
    functions: list[Any]  # in the order of the run; they keep the ids valid

    def outputs(self) -> list[Any]:
        """Returns the nodes of the heads that the network has, logits before values."""
        return [node for node in (self.logits, self.values) if node is not None]

    def needed(self) -> list[Any]:
        """Returns the functions that the outputs depend on, in the order of the run."""
        nodes = {id(node) for node in self.outputs()}
        found = []
        for function in reversed(self.functions):
            # Outputs that the network has cut off from the graph are None.
            outputs = [output() for output in function.outputs or ()]
            if any(id(output) in nodes for output in outputs if output is not None):
                nodes.update(id(node) for node in function.inputs)
                found.append(function)
        return found[::-1]


class _Recorder(chainer.FunctionHook):
    """Keeps the functions of a run and their input arrays."""

    name = "pydlshogi_trace"

    def __init__(self) -> None:
        self.arrays: dict[int, tuple[Any, ...]] = {}
        self.functions: list[Any] = []

    def forward_postprocess(self, function: Any, in_data: tuple[Any, ...]) -> None:
        """Receives a function and its input arrays."""
        self.arrays[id(function)] = in_data
        self.functions.append(function)


def trace(network: Network, planes: numpy.ndarray) -> Trace:
    """Runs any network as in play, on the CPU, and records Chainer's own functions.

    The planes are (batch, plane_num, 9, 9) float32. Translators recognise the batch dimension by
    its size :data:`BATCH` (:func:`any_batch`).
    """
    x = chainer.Variable(planes)
    recorder = _Recorder()
    config, graph = chainer.using_config("train", False), chainer.force_backprop_mode()
    with using_convolution("chainer"), config, graph, recorder:
        logits, values = split_output(network, network(x))
    return Trace(x.node, _node(logits), _node(values), recorder.arrays, recorder.functions)


def _node(variable: Any) -> Any:
    return None if variable is None else variable.node
