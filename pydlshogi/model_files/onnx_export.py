"""Networks as ONNX models.

Batch normalization is folded first (:mod:`pydlshogi.model_files.fold`). Then the network runs once,
and the functions that it computes are translated one by one (:mod:`pydlshogi.model_files.trace`).
So any network works whose functions are in the table of this module.

=========  ========================  ======================================================
name       shape                     meaning
=========  ========================  ======================================================
planes     (batch, plane_num, 9, 9)  input, float32 (:mod:`pydlshogi.features`): 104 planes,
                                     or 106 for networks that see the last two moves
policy     (batch, 2187)             logits, in the order of the labels
value      (batch, 1)                probability that the side to move wins
=========  ========================  ======================================================

:mod:`pydlshogi.model_files.onnx_dlshogi` gives a model the inputs and outputs of dlshogi.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Callable, NamedTuple

import numpy

from pydlshogi.errors import UserError
from pydlshogi.files import not_written, write_beside
from pydlshogi.model_files.fold import fold_for_play
from pydlshogi.model_files.trace import BATCH, any_batch, trace
from pydlshogi.network.network import Network
from pydlshogi.network.value_kind import ExpectedResult, WinLogit

#: Operator set and format version: of 2020, so that older runtimes read the file too.
OPSET, IR_VERSION = 13, 7

_INSTALL = "python -m pip install onnx onnxruntime"


class ExportError(UserError):
    """A network cannot be converted to ONNX."""


class Names(NamedTuple):
    """Names of the inputs and outputs of a model."""

    planes: str = "planes"
    policy: str = "policy"
    value: str = "value"


def onnx_library() -> Any:
    """Imports the package onnx; raises ExportError if it is not installed."""
    try:
        import onnx
    except ImportError:
        raise ExportError(f"onnx is not installed. Install it: {_INSTALL}") from None
    return onnx


class GraphBuilder:
    """Collects the nodes and constants of an ONNX graph."""

    def __init__(self) -> None:
        self._helper = onnx_library().helper
        self.nodes: list[Any] = []  # each after those that it needs
        self.constants: list[Any] = []

    def add(self, operator: str, inputs: Sequence[str], output: str = "", **attributes: Any) -> str:
        """Adds a node with one output; returns the name of the output."""
        output = output or f"{operator.lower()}_{len(self.nodes)}"
        node = self._helper.make_node(operator, list(inputs), [output], **attributes)
        self.nodes.append(node)
        return output

    def constant(self, array: Any) -> str:
        """Adds a constant; returns its name."""
        name = f"constant_{len(self.constants)}"
        tensor = onnx_library().numpy_helper.from_array(numpy.asarray(array, order="C"), name)
        self.constants.append(tensor)
        return name

    def model(self, inputs: dict[str, tuple], outputs: dict[str, tuple]) -> Any:
        """Makes the model; inputs and outputs are shapes by name, without the batch dimension."""
        onnx = onnx_library()

        def values(shapes: dict[str, tuple]) -> list[Any]:
            kind = onnx.TensorProto.FLOAT
            return [
                self._helper.make_tensor_value_info(name, kind, ["batch_size", *shape])
                for name, shape in shapes.items()
            ]

        graph = self._helper.make_graph(
            self.nodes, "pydlshogi", values(inputs), values(outputs), self.constants
        )
        opset = self._helper.make_opsetid("", OPSET)
        model = self._helper.make_model(graph, producer_name="pydlshogi", opset_imports=[opset])
        model.ir_version = IR_VERSION
        try:
            onnx.checker.check_model(model)
        except onnx.checker.ValidationError as error:
            raise _refused("onnx refuses the converted model", error) from None
        return model


def export(network: Network, raw_values: bool = False) -> Any:
    """Converts any network on the CPU to an ``onnx.ModelProto``.

    With ``raw_values``, ``value`` is the output of the value head itself. ExportError: the network
    uses a function that is not in the table, or onnx is missing.
    """
    builder, names = GraphBuilder(), Names()
    outputs = add_network(builder, network, names, raw_values)
    return builder.model({names.planes: (network.plane_num, 9, 9)}, outputs)


def add_network(
    builder: GraphBuilder, network: Network, names: Names, raw_values: bool = False
) -> dict[str, tuple]:
    """Adds the nodes of a network to a graph in which its input has the name ``names.planes``.

    It returns the shapes of the outputs by name, without the batch dimension.
    """
    planes_of_trace = numpy.zeros((BATCH, network.plane_num, 9, 9), numpy.float32)
    try:
        traced = trace(fold_for_play(network), planes_of_trace)
    except (AttributeError, NotImplementedError, TypeError) as error:
        raise _refused("the network does not compute with Chainer's variables", error) from None
    translation = _Translation(builder, {id(traced.planes): names.planes}, traced.arrays)
    # In the order of the run: recursion from the outputs would fail for deep networks.
    for function in traced.needed():
        translation.add(function)
    outputs: dict[str, tuple] = {}
    if traced.logits is not None:
        builder.add("Identity", [translation.name_of(traced.logits)], names.policy)
        outputs[names.policy] = traced.logits.shape[1:]
    if traced.values is not None:
        values = translation.name_of(traced.values)
        if raw_values:
            builder.add("Identity", [values], names.value)
        else:
            if traced.values.shape[1:] == ():
                shape = builder.constant(numpy.array([-1, 1], numpy.int64))
                values = builder.add("Reshape", [values, shape])
            _add_win(builder, network, values, names.value)
        outputs[names.value] = traced.values.shape[1:] if raw_values else (1,)
    return outputs


def _add_win(builder: GraphBuilder, network: Network, values: str, output: str) -> None:
    """Adds the conversion of values to probabilities of winning."""
    kind = network.value_kind
    if kind is WinLogit:
        builder.add("Sigmoid", [values], output)
    elif kind is ExpectedResult:
        half = builder.constant(numpy.array([0.5], numpy.float32))
        builder.add("Add", [builder.add("Mul", [values, half]), half], output)
    else:
        raise ExportError(f"values of the kind {getattr(kind, '__name__', kind)} are not supported")


class _Translation:
    """Translates functions, each after those that it needs.

    ``names`` are those of the variables that are known, by the id of their node; ``arrays`` the
    inputs of each function, by the id of the function.
    """

    def __init__(
        self, builder: GraphBuilder, names: dict[int, str], arrays: dict[int, tuple[Any, ...]]
    ) -> None:
        self._builder = builder
        self._names = names
        self._arrays = arrays

    def name_of(self, node: Any, array: Any = None) -> str:
        """Returns the name of a ``VariableNode``; an array of no function becomes a constant."""
        if id(node) not in self._names:
            self._names[id(node)] = self._builder.constant(array)
        return self._names[id(node)]

    def add(self, function: Any) -> None:
        """Adds the nodes of a function."""
        kind = type(function).__name__
        translate = _TABLE.get(kind)
        if translate is None:
            raise ExportError(
                f"the network uses the function {kind}, which the conversion to ONNX "
                f"does not know. Known: {', '.join(sorted(_TABLE))}."
            )
        arrays = self._arrays[id(function)]
        inputs = [self.name_of(*pair) for pair in zip(function.inputs, arrays)]
        self._names[id(function.outputs[0]())] = translate(self._builder, function, inputs)


# The translations: builder, Chainer's function, names of its inputs -> name of its output.


def _convolution(builder: GraphBuilder, function: Any, inputs: list[str]) -> str:
    pads = [function.ph, function.pw] * 2
    strides = [function.sy, function.sx]
    dilations = [function.dy, function.dx]
    return builder.add(
        "Conv", inputs, pads=pads, strides=strides, dilations=dilations, group=function.groups
    )


def _reshape(builder: GraphBuilder, function: Any, inputs: list[str]) -> str:
    shape = any_batch(function.outputs[0]().shape)
    return builder.add("Reshape", [inputs[0], builder.constant(numpy.array(shape, numpy.int64))])


def _get_item(builder: GraphBuilder, function: Any, inputs: list[str]) -> str:
    (name,) = inputs
    axis = 0
    for index in _indices(function):
        if isinstance(index, slice):
            if index != slice(None):
                name = _slice(builder, name, axis, index)
            axis += 1
        else:
            indices = builder.constant(index)
            name = builder.add("Gather", [name, indices], axis=axis)
            axis += index.ndim  # a single number removes its axis
    return name


def _indices(function: Any) -> list[Any]:
    """Returns the index of each axis: a slice, or an int64 array of one dimension or none."""
    found = list(function.slices)
    for place in [n for n, index in enumerate(found) if index is Ellipsis]:
        rest = len(function.inputs[0].shape) - (len(found) - 1)
        found[place : place + 1] = [slice(None)] * rest
    indices = [index if isinstance(index, slice) else _numbers(index) for index in found]
    arrays = [index for index in indices if not isinstance(index, slice)]
    # numpy combines several arrays element by element.
    if len(arrays) > 1 and any(array.ndim for array in arrays):
        raise ExportError("the network uses an index of several arrays, not supported")
    return indices


def _numbers(index: Any) -> numpy.ndarray:
    """Returns a number, a list or a mask as an int64 array of one dimension or none."""
    numbers = numpy.asarray(index)
    if numbers.dtype.kind not in "biu" or numbers.ndim > 1:
        raise ExportError(f"the network uses the index {index}, not supported")
    return numpy.flatnonzero(numbers) if numbers.dtype.kind == "b" else numbers.astype(numpy.int64)


def _slice(builder: GraphBuilder, name: str, axis: int, index: slice) -> str:
    """Adds a slice with a step of 1 along one axis."""
    if index.step not in (None, 1):
        raise ExportError(f"the network uses a slice with step {index.step}, not supported")
    stop = numpy.iinfo(numpy.int64).max if index.stop is None else index.stop
    limits = [
        builder.constant(numpy.array([n], numpy.int64)) for n in (index.start or 0, stop, axis)
    ]
    return builder.add("Slice", [name, *limits])


def _unpooling(builder: GraphBuilder, function: Any, inputs: list[str]) -> str:
    before, after = function.inputs[0].shape, function.outputs[0]().shape
    if before[2:] != (1, 1):
        raise ExportError("the network uses unpooling_2d of more than one square, not supported")
    repeats = builder.constant(numpy.array([1, 1, *after[2:]], numpy.int64))
    return builder.add("Tile", [inputs[0], repeats])


def _batch_normalization(builder: GraphBuilder, function: Any, inputs: list[str]) -> str:
    return builder.add("BatchNormalization", inputs, epsilon=float(function.eps))


def _transpose(builder: GraphBuilder, function: Any, inputs: list[str]) -> str:
    axes = function.axes or tuple(reversed(range(len(function.inputs[0].shape))))
    return builder.add("Transpose", inputs, perm=list(axes))


def _concat(builder: GraphBuilder, function: Any, inputs: list[str]) -> str:
    return builder.add("Concat", inputs, axis=function.axis)


def _with_number(operator: str) -> Callable[[GraphBuilder, Any, list[str]], str]:
    """Makes the translation of an operation with a number."""

    def translate(builder: GraphBuilder, function: Any, inputs: list[str]) -> str:
        number = builder.constant(numpy.asarray(function.value, numpy.float32))
        return builder.add(operator, [*inputs, number])

    return translate


def _same(operator: str, **attributes: Any) -> Callable[[GraphBuilder, Any, list[str]], str]:
    """Makes the translation to an operator that always has the same attributes."""
    return lambda builder, function, inputs: builder.add(operator, inputs, **attributes)


#: The functions by the names of Chainer's classes.
_TABLE: dict[str, Callable[[GraphBuilder, Any, list[str]], str]] = {
    "Convolution2DFunction": _convolution,
    "LinearFunction": _same("Gemm", transB=1),
    "Reshape": _reshape,
    # The operators that use it broadcast it to any batch.
    "BroadcastTo": _same("Identity"),
    "GetItem": _get_item,
    "Unpooling2D": _unpooling,
    "FixedBatchNormalization": _batch_normalization,
    "Transpose": _transpose,
    "Concat": _concat,
    "Add": _same("Add"),
    "Sub": _same("Sub"),
    "Mul": _same("Mul"),
    "AddConstant": _with_number("Add"),
    "MulConstant": _with_number("Mul"),
    "ReLU": _same("Relu"),
    "Sigmoid": _same("Sigmoid"),
    "Tanh": _same("Tanh"),
    "Softplus": _same("Softplus"),
}


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Writes a model atomically; makes the folder if needed."""
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with write_beside(path) as file:
            file.write(model.SerializeToString())
    except OSError as error:
        raise ExportError(not_written(path, error)) from None


def run(model: Any, inputs: dict[str, numpy.ndarray]) -> dict[str, numpy.ndarray]:
    """Computes the outputs of a model by ONNX Runtime on the CPU; ExportError: it cannot."""
    try:
        import onnxruntime
    except ImportError:
        raise ExportError(f"onnxruntime is not installed. Install it: {_INSTALL}") from None
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4  # it would also print the errors that it raises
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), settings, providers=["CPUExecutionProvider"]
        )
        names = [output.name for output in session.get_outputs()]
        return dict(zip(names, session.run(names, inputs)))
    except Exception as error:  # the classes of its errors have no other base class
        raise _refused("ONNX Runtime cannot compute the converted model", error) from None


def _refused(what: str, error: Exception) -> ExportError:
    """Makes the error for a model that other software does not accept."""
    reason = " ".join(str(error).split())[:300]
    return ExportError(
        f"{what} ({reason}). Nothing was written. The network may use a function in a way that the "
        "conversion does not know."
    )
