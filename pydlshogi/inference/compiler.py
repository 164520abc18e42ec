"""Makes the program of a network (:mod:`pydlshogi.inference.program`).

The network runs once (:mod:`pydlshogi.model_files.trace`). Its functions become steps:

- A 3×3 convolution, joined with an addition and a ReLU that follow it, is one step. Its output
  passes through them while it is in the cache.
- Any other function is called, translated to numpy (:mod:`pydlshogi.inference.translations`).
- A function whose result does not depend on the planes is computed now. The result is a
  constant of the program.

Each value that depends on the planes has a number, its slot. A 3×3 convolution reads the tiles
of its input (:mod:`pydlshogi.layers.cpu.winograd`), and other functions read the value itself.
So a convolution writes its output's value, its tiles or both, as the steps after it need them.
When the last step that reads a value or its tiles is known, other slots get the same memory.

A new program is compared with the network on other planes: a function that the trace does not
record would make its outputs differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy

from pydlshogi.errors import UserError
from pydlshogi.inference.program import Program, Slot
from pydlshogi.inference.steps import Call, Convolution, Spread, Step, make_filters
from pydlshogi.inference.translations import UnknownFunction, translate
from pydlshogi.layers.cpu.threads import get_threads
from pydlshogi.layers.cpu.winograd import SIDE
from pydlshogi.model_files.agreement import largest_difference, outputs_in_play
from pydlshogi.model_files.trace import BATCH, Trace, trace
from pydlshogi.network.network import Network

#: Number of a step after all others.
_EVER = 2**31

#: Largest difference of the outputs, relative to the largest of them.
_TOLERANCE = 1e-4

#: The slot of the planes.
_PLANES = 0


def compile_network(network: Network, is_checked: bool = False) -> Program | None:
    """Makes the program of a network.

    Args:
        network: Any network on the CPU; fastest with batch normalization folded. Its arrays
            must not change afterwards.
        is_checked: Whether an earlier call has compared the outputs with those of the network.

    Returns:
        A program with the network's outputs, logits before values. None if the network uses
        functions or arrays that programs do not know: then Chainer must compute it.
    """
    random = numpy.random.RandomState(0)

    def planes(count: int) -> numpy.ndarray:
        return random.randint(0, 2, (count, network.plane_num, SIDE, SIDE)).astype(numpy.float32)

    try:
        program = _Compiler(trace(network, planes(BATCH))).program()
        return program if is_checked or _agree(program, network, planes(3)) else None
    except (UserError, MemoryError):
        raise
    except Exception:
        # Of a user's network, the trace may fail where an array would not; numpy fails where
        # another dimension than the batch is BATCH.
        return None


def _agree(program: Program, network: Network, planes: numpy.ndarray) -> bool:
    """Says whether a program computes the outputs of the network."""
    return all(
        largest_difference(found, expected) <= _TOLERANCE
        for found, expected in zip(program(planes), outputs_in_play(network, planes))
    )


@dataclass
class Life:
    """The first step that writes a value or tiles, and the last one that reads it."""

    channels: int
    first: int
    last: int


class _Fusion(NamedTuple):
    """A 3×3 convolution, the first of its functions, with the addition and the ReLU after it.

    ``added`` is the other value of the addition; None without one.
    """

    functions: list[Any]
    added: Any
    relu: bool


class _Compiler:
    """Translates a trace to a program.

    Functions are Chainer's function nodes, values are its variable nodes. The dictionaries of nodes
    have the ``id`` of the node as the key; the others have the slot. The trace keeps the ids valid.
    """

    def __init__(self, traced: Trace) -> None:
        self._trace = traced
        self._functions = traced.needed()
        self._outputs = traced.outputs()
        self._arrays = traced.arrays
        # The caller reads the outputs. None stands for it.
        self._readers: dict[int, list[Any]] = {id(node): [None] for node in self._outputs}
        self._varying = {id(traced.planes)}
        for function in self._functions:
            for node in function.inputs:
                self._readers.setdefault(id(node), []).append(function)
            if any(map(self._varies, function.inputs)):
                alive = (output() for output in function.outputs)
                self._varying.update(id(node) for node in alive if node is not None)
        self._slots = {id(traced.planes): _PLANES}
        self._constants: dict[int, Any] = {}
        self._steps: list[Step] = []
        self._convolutions: dict[int, Convolution] = {}
        self._values: dict[int, Life] = {}
        self._tiles: dict[int, Life] = {}

    def program(self) -> Program:
        """Returns the program."""
        self._add_steps()
        outputs = [self._slot(node) for node in self._outputs]
        for slot in outputs:
            self._need_value(slot, _EVER)
        made = self._convolutions
        values = {slot: life for slot, life in self._values.items() if made[slot].gives_value}
        tiles = {
            slot: life
            for slot, life in self._tiles.items()
            if slot not in made or made[slot].gives_tiles
        }
        return Program(self._steps, _PLANES, outputs, share_memory(values), share_memory(tiles))

    def _add_steps(self) -> None:
        """Adds a step for each fusion and for each other function, in the order of the run."""
        fusions = self._fusions()
        weights = [self._arrays[id(fusion.functions[0])][1] for fusion in fusions]
        filters = make_filters(weights, get_threads())
        # A fusion is computed in the place of its last function: by then the value that it
        # adds has been computed.
        by_last = {id(f.functions[-1]): (f, blocks) for f, blocks in zip(fusions, filters)}
        joined = {id(function) for fusion in fusions for function in fusion.functions}
        for function in self._functions:
            if id(function) in by_last:
                self._add_convolution(*by_last[id(function)])
            elif id(function) not in joined:
                self._add_function(function)

    def _fusions(self) -> list[_Fusion]:
        """Joins each 3×3 convolution, in order, with the functions that follow it.

        A joined addition adds one value of the same shape that depends on the planes. A sum of two
        convolutions is joined with one of them only.
        """
        found = []
        taken: set[int] = set()
        for function in self._functions:
            if not _is_convolution(function, self._arrays[id(function)]):
                continue
            functions, added, output = [function], None, function.outputs[0]()
            addition = self._next(function, "Add", taken)
            others = [node for node in addition.inputs if node is not output] if addition else []
            if len(others) == 1 and len(addition.inputs) == 2:
                (other,) = others
                if other.shape == output.shape and self._varies(other):
                    functions.append(addition)
                    added = other
            relu = self._next(functions[-1], "ReLU", taken)
            if relu is not None:
                functions.append(relu)
            taken.update(map(id, functions))
            found.append(_Fusion(functions, added, relu is not None))
        return found

    def _next(self, function: Any, kind: str, taken: set[int]) -> Any:
        """Returns the function that alone reads the output of one, if its class has this name.

        It is None if there is no such function, or if it belongs to another fusion.
        """
        node = function.outputs[0]()
        readers = [] if node is None else self._readers[id(node)]
        is_next = len(readers) == 1 and type(readers[0]).__name__ == kind
        return readers[0] if is_next and id(readers[0]) not in taken else None

    def _varies(self, node: Any) -> bool:
        """Says whether a value depends on the planes."""
        return id(node) in self._varying

    def _add_convolution(self, fusion: _Fusion, filters: list[list[Any]]) -> None:
        """Adds the step of a fusion, with the filters of :func:`make_filters`."""
        convolution, output = fusion.functions[0], fusion.functions[-1].outputs[0]()
        inputs = convolution.inputs
        source = self._slot(inputs[0])
        self._need_tiles(source, inputs[0].shape[1])
        added = None
        if fusion.added is not None:
            added = self._slot(fusion.added)
            self._need_value(added, len(self._steps))
        bias = self._arrays[id(convolution)][2] if len(inputs) > 2 else None
        target = self._new_slot(output)
        step = Convolution(filters, bias, source, target, added, fusion.relu)
        channels, here = output.shape[1], len(self._steps)
        self._convolutions[target] = step
        self._values[target] = Life(channels, here, here)
        self._tiles[target] = Life(channels, here, here)
        self._steps.append(step)

    def _need_tiles(self, slot: int, channels: int) -> None:
        """Notes that the next step reads the tiles of a value.

        A convolution writes them itself. For another value, a step that computes them comes
        before the first step that reads them.
        """
        if slot in self._convolutions:
            self._convolutions[slot].gives_tiles = True
        elif slot not in self._tiles:
            self._tiles[slot] = Life(channels, len(self._steps), 0)
            self._steps.append(Spread(slot, channels))
        self._tiles[slot].last = len(self._steps)

    def _need_value(self, slot: int, step: int) -> None:
        """Notes that a step reads a value; only the values of convolutions have own memory."""
        if slot in self._convolutions:
            self._convolutions[slot].gives_value = True
            self._values[slot].last = max(self._values[slot].last, step)

    def _add_function(self, function: Any) -> None:
        """Adds the call of a function, or computes its constant result."""
        arrays = self._arrays[id(function)]
        arguments = [self._argument(*pair) for pair in zip(function.inputs, arrays)]
        output = function.outputs[0]()
        if not self._varies(output):
            # The operations that use a broadcast constant broadcast it to any batch themselves.
            is_broadcast = type(function).__name__ == "BroadcastTo"
            result = arguments[0] if is_broadcast else translate(function)(*arguments)
            self._constants[id(output)] = result
            return
        for argument in arguments:
            if isinstance(argument, int):
                # The result may be a view of the argument, so its memory is never shared.
                self._need_value(argument, _EVER)
        self._steps.append(Call(translate(function), arguments, self._new_slot(output)))

    def _argument(self, node: Any, array: Any) -> Any:
        """Returns the argument of a call: a constant array, or the slot of a value."""
        if self._varies(node):
            return self._slot(node)
        is_parameter = node.creator_node is None
        return array if is_parameter else self._constants[id(node)]

    def _slot(self, node: Any) -> int:
        """Returns the slot of a value."""
        if id(node) not in self._slots:
            raise UnknownFunction
        return self._slots[id(node)]

    def _new_slot(self, node: Any) -> int:
        """Returns a slot for a value."""
        return self._slots.setdefault(id(node), len(self._slots))


def share_memory(lives: dict[int, Life]) -> list[Slot]:
    """Gives slots, of values or of tiles, that are not needed at the same time the same memory."""
    ends: list[int] = []  # by register: the last step that needs it
    slots = []
    for number, life in sorted(lives.items(), key=lambda item: item[1].first):
        free = (register for register, end in enumerate(ends) if end < life.first)
        register = next(free, len(ends))
        ends[register : register + 1] = [life.last]
        slots.append(Slot(number, life.channels, register))
    return slots


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
