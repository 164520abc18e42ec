"""Makes the program of a network (:mod:`pydlshogi.network.cpu.program`).

The network runs once (:mod:`pydlshogi.network.trace`), and the functions that it computes are
translated one by one (:mod:`pydlshogi.network.translations`). A 3×3 convolution is joined with
an addition and a ReLU that follow it. A new program is compared with the network on other
planes: a function that the trace does not record would make its outputs differ.
"""

from __future__ import annotations

from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.network.cpu.program import Program, Slot
from pydlshogi.network.cpu.steps import Call, Convolution, Spread, Step, make_filters
from pydlshogi.network.cpu.threads import get_threads
from pydlshogi.network.cpu.winograd import SIDE
from pydlshogi.network.network import Network, split_output
from pydlshogi.network.trace import BATCH, Trace, trace
from pydlshogi.network.translations import UnknownFunction, translate

#: Number of a step after all others.
_EVER = 2**31

#: Largest difference of the outputs, relative to the largest of them.
_TOLERANCE = 1e-4


def compile_network(network: Network) -> Program | None:
    """Makes the program of a network.

    Args:
        network: Any network on the CPU, with batch normalization folded. Its arrays must not
            change afterwards.

    Returns:
        A program with the network's outputs, logits before values. None if the network uses
        functions or arrays that programs do not know: then Chainer must compute it.
    """
    random = numpy.random.RandomState(0)

    def planes(count: int) -> numpy.ndarray:
        return random.randint(0, 2, (count, network.plane_num, SIDE, SIDE)).astype(numpy.float32)

    try:
        program = _Compiler(trace(network, planes(BATCH))).program()
        return program if _agree(program, network, planes(3)) else None
    except (UnknownFunction, ValueError, IndexError):
        # numpy raises the others where another dimension than the batch is BATCH.
        return None


def _agree(program: Program, network: Network, planes: numpy.ndarray) -> bool:
    """Says whether a program computes the outputs of the network."""
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        variables = [v for v in split_output(network, network(planes)) if v is not None]
    return all(
        found.shape == variable.shape
        and abs(found - variable.array).max() <= _TOLERANCE * abs(variable.array).max()
        for found, variable in zip(program(planes), variables)
    )


class _Fusion:
    """A 3×3 convolution with the addition and the ReLU that follow it.

    Args:
        function: Chainer's convolution.

    Attributes:
        last: The last of these functions.
        added: The node of the other value that is added, or None.
        relu: Whether there is a ReLU.
    """

    def __init__(self, function: Any) -> None:
        self.function = function
        self.last = function
        self.added: Any = None
        self.relu = False


class _Compiler:
    """Translates a trace.

    Args:
        traced: The trace.
    """

    def __init__(self, traced: Trace) -> None:
        self._trace = traced
        self._outputs = traced.outputs()
        self._functions = traced.needed()
        self._readers: dict[int, list[Any]] = {id(node): [None] for node in self._outputs}
        for function in self._functions:
            for node in function.inputs:
                self._readers.setdefault(id(node), []).append(function)
        self._slots = {id(traced.planes): 0}
        self._variable = _depending(self._functions, traced.planes)
        self._constants: dict[int, Any] = {}
        self._steps: list[Step] = []
        self._values: dict[int, list[int]] = {}  # by slot: channels, first step, last step
        self._tiles: dict[int, list[int]] = {}
        self._convolutions: dict[int, Convolution] = {}  # by slot of the output

    def program(self) -> Program:
        """Returns the program.

        Raises:
            UnknownFunction: the network uses a function that has no translation.
        """
        heads, inner = self._find_convolutions()
        weights = [self._arrays(head.function)[1] for head in heads.values()]
        filters = dict(zip(heads, make_filters(weights, get_threads())))
        for function in self._functions:
            if id(function) in heads:
                self._add_convolution(heads[id(function)], filters[id(function)])
            elif id(function) not in inner:
                self._add_call(function)
        outputs = [self._slot(node) for node in self._outputs]
        for slot in outputs:
            self._read_value(slot, for_ever=True)
        made = self._convolutions
        values = {k: life for k, life in self._values.items() if made[k].gives_value}
        tiles = {k: v for k, v in self._tiles.items() if k not in made or made[k].gives_tiles}
        return Program(self._steps, 0, outputs, _with_registers(values), _with_registers(tiles))

    def _find_convolutions(self) -> tuple[dict[int, _Fusion], set[int]]:
        """Finds the 3×3 convolutions and the functions that are joined with them.

        Returns:
            The convolutions by the id of the last function of each; the ids of the other
            functions that they consist of.
        """
        found: dict[int, _Fusion] = {}
        inner: set[int] = set()
        for function in self._functions:
            if not self._is_convolution(function):
                continue
            convolution = _Fusion(function)
            for kind in ("Add", "ReLU"):
                reader = self._only_reader(convolution.last)
                if type(reader).__name__ != kind or id(reader) in inner.union(found):
                    continue
                if kind == "Add" and not self._takes_addition(convolution, reader):
                    continue
                convolution.relu = kind == "ReLU"
                inner.add(id(convolution.last))
                convolution.last = reader
            found[id(convolution.last)] = convolution
        return found, inner

    def _is_convolution(self, function: Any) -> bool:
        """Says whether a function is a 3×3 convolution of boards that keeps their size."""
        if type(function).__name__ != "Convolution2DFunction":
            return False
        W = self._arrays(function)[1]
        settings = (function.sy, function.sx, function.ph, function.pw, function.dy, function.dx)
        return (
            W.shape[2:] == (3, 3)
            and settings == (1,) * 6
            and function.groups == 1
            and function.inputs[0].shape[2:] == (SIDE, SIDE)
            and W.dtype == numpy.float32
        )

    def _takes_addition(self, convolution: _Fusion, addition: Any) -> bool:
        """Joins an addition with a convolution if it adds another value of the same shape."""
        others = [node for node in addition.inputs if node.creator_node is not convolution.last]
        if len(addition.inputs) != 2 or len(others) != 1:
            return False
        (other,) = others
        if other.shape != convolution.last.outputs[0]().shape or self._is_constant(other):
            return False
        convolution.added = other
        return True

    def _only_reader(self, function: Any) -> Any:
        """Returns the function that alone uses the output of a function; else None."""
        node = function.outputs[0]()
        readers = [] if node is None else self._readers[id(node)]
        return readers[0] if len(readers) == 1 else None

    def _is_constant(self, node: Any) -> bool:
        """Says whether a value does not depend on the planes."""
        return id(node) not in self._variable

    def _arrays(self, function: Any) -> tuple[Any, ...]:
        return self._trace.arrays[id(function)]

    def _slot(self, node: Any) -> int:
        """Returns the slot of a value."""
        if id(node) not in self._slots:
            raise UnknownFunction
        return self._slots[id(node)]

    def _new_slot(self, function: Any) -> int:
        """Returns a slot for the output of a function."""
        return self._slots.setdefault(id(function.outputs[0]()), len(self._slots))

    def _add_convolution(self, convolution: _Fusion, filters: list[Any]) -> None:
        """Adds a convolution, and the tiles that it reads if no other convolution gives them."""
        function = convolution.function
        source = self._slot(function.inputs[0])
        channels = function.inputs[0].shape[1]
        if source in self._convolutions:
            self._convolutions[source].gives_tiles = True
        elif source not in self._tiles:
            self._tiles[source] = [channels, len(self._steps), 0]
            self._steps.append(Spread(source, channels))
        here = len(self._steps)
        self._tiles[source][2] = here
        added = None
        if convolution.added is not None:
            added = self._slot(convolution.added)
            self._read_value(added)
        bias = self._arrays(function)[2] if len(function.inputs) > 2 else None
        target = self._new_slot(convolution.last)
        step = Convolution(filters, bias, source, target, added, convolution.relu)
        outputs = convolution.last.outputs[0]().shape[1]
        self._convolutions[target] = step
        self._values[target] = [outputs, here, here]
        self._tiles[target] = [outputs, here, here]
        self._steps.append(step)

    def _read_value(self, slot: int, for_ever: bool = False) -> None:
        """Notes that the next step reads a value, or that its memory must never be reused."""
        if slot in self._convolutions:
            self._convolutions[slot].gives_value = True
            last = _EVER if for_ever else len(self._steps)
            self._values[slot][2] = max(self._values[slot][2], last)

    def _add_call(self, function: Any) -> None:
        """Adds a function that is no 3×3 convolution; a constant result is kept."""
        arguments = [self._argument(*pair) for pair in zip(function.inputs, self._arrays(function))]
        output = function.outputs[0]()
        if self._is_constant(output):
            # The operations that use a broadcast constant broadcast it to any batch themselves.
            is_broadcast = type(function).__name__ == "BroadcastTo"
            result = arguments[0] if is_broadcast else translate(function)(*arguments)
            self._constants[id(output)] = result
            return
        for argument in arguments:
            # The result of a call may be a view of it, so its memory is never reused.
            if isinstance(argument, int):
                self._read_value(argument, for_ever=True)
        self._steps.append(Call(translate(function), arguments, self._new_slot(function)))

    def _argument(self, node: Any, array: Any) -> Any:
        """Returns the constant array or the slot of an input."""
        if node.creator_node is None and self._is_constant(node):
            return array
        return self._constants[id(node)] if id(node) in self._constants else self._slot(node)


def _depending(functions: list[Any], planes: Any) -> set[int]:
    """Returns the ids of the nodes that depend on the planes.

    Args:
        functions: Functions in the order of the run.
        planes: The node of the planes.
    """
    nodes = {id(planes)}
    for function in functions:
        if any(id(node) in nodes for node in function.inputs):
            nodes.update(id(output()) for output in function.outputs if output() is not None)
    return nodes


def _with_registers(lives: dict[int, list[int]]) -> list[Slot]:
    """Gives slots that are not needed at the same time the same memory.

    Args:
        lives: By slot: channels; numbers of the first and the last step that need it.
    """
    ends: list[int] = []
    slots = []
    for number, (channels, first, last) in sorted(lives.items(), key=lambda item: item[1][1]):
        free = (register for register, end in enumerate(ends) if end < first)
        register = next(free, len(ends))
        ends[register : register + 1] = [last]
        slots.append(Slot(number, channels, register))
    return slots
