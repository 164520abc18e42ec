"""Convolutions in integers of 8 bits (int8), in a model of OpenVINO.

Nearly all time of a network goes into its 3×3 convolutions. Each reads the output of a ReLU, which
is never negative. So an input x is stored as round(x / s), from 0 to 255, with a scale s for each
layer. A weight w is stored as round(w / t), from −127 to 127, with a scale t for each filter. The
sum of the products is exact, and is multiplied by s·t. OpenVINO does this where it finds the
operation FakeQuantize before both inputs of a convolution.

The largest weight of a filter gives t. The largest input of a layer in positions of random games
gives s. Larger inputs become this largest one.
"""

from __future__ import annotations

from typing import Any

import numpy

from pydlshogi.errors import UserError

#: Numbers of different inputs (0 … 255) and weights (−127 … 127).
_INPUT_LEVELS, _WEIGHT_LEVELS = 256, 255


class QuantizationError(UserError):
    """A network cannot be computed in int8. The text is a sentence."""


def quantize(openvino: Any, model: Any, largest: list[float]) -> None:
    """Changes a model so that OpenVINO computes its 3×3 convolutions in int8.

    Args:
        openvino: The package.
        model: The ``openvino.Model``.
        largest: The largest input of each of its :func:`convolutions`.

    Raises:
        QuantizationError: the model has no such convolution.
    """
    if not largest:
        raise QuantizationError("the network has no 3×3 convolution after a ReLU.")
    for convolution, high in zip(convolutions(model), largest):
        weights = convolution.input_value(1)
        numbers = abs(weights.get_node().get_data())
        # A filter of zeros would have the scale 0.
        bound = numpy.maximum(numbers.max(axis=(1, 2, 3), keepdims=True), 1e-30)
        inputs = convolution.input_value(0)
        replace = convolution.input(0).replace_source_output
        replace(_fake_quantize(openvino, inputs, numpy.float32(0), high, _INPUT_LEVELS))
        replace = convolution.input(1).replace_source_output
        replace(_fake_quantize(openvino, weights, -bound, bound, _WEIGHT_LEVELS))
    model.validate_nodes_and_infer_types()


def convolutions(model: Any) -> list[Any]:
    """Returns the 3×3 convolutions of a model that read the output of a ReLU, in order."""
    return [
        operation
        for operation in model.get_ordered_ops()
        if operation.get_type_name() == "Convolution"
        and operation.input_value(0).get_node().get_type_name() == "Relu"
        and operation.input_value(1).get_node().get_type_name() == "Constant"
        and list(operation.input_value(1).get_shape()[2:]) == [3, 3]
    ]


def with_inputs(model: Any) -> Any:
    """Returns a copy of a model that also outputs the inputs of its :func:`convolutions`."""
    copy = model.clone()
    copy.add_outputs([operation.input_value(0) for operation in convolutions(copy)])
    return copy


def _fake_quantize(openvino: Any, value: Any, low: Any, high: Any, levels: int) -> Any:
    """Returns the output of an operation that rounds a value to ``levels`` numbers."""
    bounds = [numpy.float32(low), numpy.float32(high)]
    return openvino.opset13.fake_quantize(value, *bounds, *bounds, levels).output(0)
