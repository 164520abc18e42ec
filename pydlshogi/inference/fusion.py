"""Joins each 3×3 convolution of a trace with the addition and the ReLU that follow it.

A joined convolution is one step of a program (:class:`pydlshogi.inference.steps.Convolution`).
Its output passes through the addition and the ReLU while it is in the cache.
"""

from __future__ import annotations

from typing import Any

import numpy

from pydlshogi.layers.cpu.winograd import SIDE
from pydlshogi.model_files.trace import Trace


class Graph:
    """Who reads the values of a trace, and which values depend on the planes.

    Functions are Chainer's function nodes, values are its variable nodes.

    Args:
        traced: The trace.

    Attributes:
        functions: The functions that the outputs depend on, in the order of the run.
        outputs: The values of the heads, logits before values.
    """

    def __init__(self, traced: Trace) -> None:
        self.functions = traced.needed()
        self.outputs = traced.outputs()
        self._arrays = traced.arrays
        # The caller reads the outputs. None stands for it.
        self._readers: dict[int, list[Any]] = {id(node): [None] for node in self.outputs}
        self._varying = {id(traced.planes)}
        for function in self.functions:
            for node in function.inputs:
                self._readers.setdefault(id(node), []).append(function)
            if any(id(node) in self._varying for node in function.inputs):
                alive = (output() for output in function.outputs)
                self._varying.update(id(node) for node in alive if node is not None)

    def arrays(self, function: Any) -> tuple[Any, ...]:
        """Returns the input arrays of a function."""
        return self._arrays[id(function)]

    def varies(self, node: Any) -> bool:
        """Says whether a value depends on the planes."""
        return id(node) in self._varying

    def only_reader(self, function: Any) -> Any:
        """Returns the function that alone reads the output of a function; else None."""
        node = function.outputs[0]()
        readers = [] if node is None else self._readers[id(node)]
        return readers[0] if len(readers) == 1 else None


class Fusion:
    """A 3×3 convolution with the addition and the ReLU that follow it.

    Args:
        convolution: Chainer's convolution.

    Attributes:
        functions: The joined functions, in order; the convolution is the first.
        added: The other value of the addition, or None.
        relu: Whether there is a ReLU.
    """

    def __init__(self, convolution: Any) -> None:
        self.functions = [convolution]
        self.added: Any = None
        self.relu = False

    @property
    def convolution(self) -> Any:
        """Chainer's convolution."""
        return self.functions[0]

    @property
    def output(self) -> Any:
        """The value that the last function computes."""
        return self.functions[-1].outputs[0]()

    def extend(self, graph: Graph, taken: set[int]) -> None:
        """Joins the functions that follow.

        Args:
            graph: The graph of the trace.
            taken: The ids of functions of other fusions. A sum of two convolutions can be
                joined with one of them only.
        """
        reader = self._next("Add", graph, taken)
        if reader is not None:
            self.added = self._other_summand(graph, reader)
            if self.added is not None:
                self.functions.append(reader)
        reader = self._next("ReLU", graph, taken)
        if reader is not None:
            self.relu = True
            self.functions.append(reader)

    def _next(self, kind: str, graph: Graph, taken: set[int]) -> Any:
        """Returns the function that alone reads the output, if it is of a kind; else None."""
        reader = graph.only_reader(self.functions[-1])
        return reader if type(reader).__name__ == kind and id(reader) not in taken else None

    def _other_summand(self, graph: Graph, addition: Any) -> Any:
        """Returns the value that an addition adds to the output; None if they cannot be joined.

        A joined addition adds one value of the same shape that depends on the planes.
        """
        others = [node for node in addition.inputs if node is not self.output]
        if len(addition.inputs) != 2 or len(others) != 1:
            return None
        (other,) = others
        return other if other.shape == self.output.shape and graph.varies(other) else None


def find_fusions(graph: Graph) -> list[Fusion]:
    """Finds the 3×3 convolutions, in order, and joins them with the functions that follow."""
    found = []
    taken: set[int] = set()
    for function in graph.functions:
        if _is_convolution(function, graph.arrays(function)):
            fusion = Fusion(function)
            fusion.extend(graph, taken)
            taken.update(map(id, fusion.functions))
            found.append(fusion)
    return found


def _is_convolution(function: Any, arrays: tuple[Any, ...]) -> bool:
    """Says whether a function is a 3×3 convolution of boards that keeps their size."""
    if type(function).__name__ != "Convolution2DFunction":
        return False
    W = arrays[1]
    settings = (function.sy, function.sx, function.ph, function.pw, function.dy, function.dx)
    return (
        W.shape[2:] == (3, 3)
        and settings == (1,) * 6
        and function.groups == 1
        and function.inputs[0].shape[2:] == (SIDE, SIDE)
        and W.dtype == numpy.float32
    )
