"""The forward pass in play by OpenVINO, Intel's library for networks on CPUs (optional).

The network is converted to ONNX in memory (:mod:`pydlshogi.model_files.onnx_export`), and OpenVINO
reads it from there. Three precisions can compute it:

========  =====================================================================================
float32   32 bits
bfloat16  16 bits: the range of float32 with 8 bits of precision
int8      8 bits in most convolutions. The rest is in bfloat16 if the processor has it, else in
          float32.
========  =====================================================================================

Some processors multiply numbers of fewer bits several times faster. Nearly all time of a network
goes into its 3×3 convolutions. Each reads the output of a ReLU, which is never negative. So int8
stores an input x as round(x / s), from 0 to 255, with a scale s for each layer, and a weight w as
round(w / t), from −127 to 127, with a scale t for each filter. The sum of the products is exact,
and is multiplied by s·t. The largest input of a layer in positions of random games gives s; larger
ones become this one. The largest weight of a filter gives t.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import io
import sys
import threading
from typing import Any

import numpy

from pydlshogi.errors import UserError
from pydlshogi.layers.cpu.threads import get_threads
from pydlshogi.model_files.agreement import (
    largest_difference,
    outputs_in_play,
    planes_of_random_games,
)
from pydlshogi.model_files.onnx_export import ExportError, export
from pydlshogi.network.network import Network

#: How users install what this module needs.
INSTALL = "python -m pip install openvino onnx"

FLOAT32, BFLOAT16, INT8 = "float32", "bfloat16", "int8"

#: Numbers of different inputs (0 … 255) and weights (−127 … 127) in int8.
_INPUT_LEVELS, _WEIGHT_LEVELS = 256, 255

#: The largest difference to the network by precision, relative to the largest output. A larger one
#: is a fault that is not rounding.
_TOLERANCES = {FLOAT32: 1e-4, BFLOAT16: 0.1, INT8: 0.2}

#: Positions that a new program is checked with, and the moves between them.
_CHECKED, _MOVES_BETWEEN = 8, 16

#: Positions that show how large the inputs of the convolutions become, and the moves between them.
#: 100 positions of real games gave answers as exact as these, and more positions did not improve
#: them.
_TRIED, _MOVES_BETWEEN_TRIED = 64, 3


class OpenVINOError(UserError):
    """OpenVINO cannot compute a network here. The text is a sentence."""


class OpenVINOProgram:
    """A network in OpenVINO, on the CPU. Several threads may call it.

    Args:
        network: The network; not changed. Later changes of its arrays have no effect. Or what
            :meth:`compiled` has returned in an earlier process, on the same kind of processor.
        precision: One of the table above.

    Raises:
        OpenVINOError: OpenVINO or onnx is not installed or does not work, the processor has no fast
            bfloat16, or the network cannot be converted or is not computed exactly enough.
    """

    def __init__(self, network: Network | bytes, precision: str = FLOAT32) -> None:
        self._lock = threading.Lock()
        try:
            self._core = _only_core(_import("openvino").Core)
            if isinstance(network, bytes):
                has_bfloat16 = precision != FLOAT32 and self._has_bfloat16()
                settings = _settings(has_bfloat16)
                model = self._core.import_model(io.BytesIO(network), "CPU", settings)
                self._outputs = range(len(model.outputs))
                self._request = model.create_infer_request()
            else:
                self._prepare(network, precision)
        except OpenVINOError:
            raise
        except ExportError as error:
            reason = str(error).rstrip(".")
            raise OpenVINOError(f"the network cannot be converted ({reason}).") from None
        except Exception as error:  # a package that is old or broken may raise anything
            reason = " ".join(str(error).split())[:300]
            raise OpenVINOError(f"OpenVINO fails ({type(error).__name__}: {reason}).") from None

    def __call__(self, planes: numpy.ndarray) -> list[numpy.ndarray]:
        """Computes the outputs, logits before values, of planes (n, plane_num, 9, 9) float32."""
        # OpenVINO reads the array itself, without a copy.
        planes = numpy.ascontiguousarray(planes, numpy.float32)
        with self._lock:  # the request holds the outputs until they are copied
            self._request.infer({0: planes}, share_inputs=True)
            return [self._request.get_output_tensor(n).data.copy() for n in self._outputs]

    def compiled(self) -> bytes:
        """Returns the compiled network, from which another process can make a program.

        Nothing if OpenVINO cannot export it.
        """
        stream = io.BytesIO()
        with contextlib.suppress(Exception):
            self._request.get_compiled_model().export_model(stream)
        return stream.getvalue()

    def _prepare(self, network: Network, precision: str) -> None:
        """Converts the network, and checks the answers of OpenVINO.

        Fewer bits round so much that a small fault would not be noticed. So float32 is always
        checked first.
        """
        has_bfloat16 = self._has_bfloat16()
        if precision == BFLOAT16 and not has_bfloat16:
            raise OpenVINOError("this processor has no fast bfloat16.")
        _import("onnx")
        onnx_model = export(network, raw_values=True).SerializeToString()
        model = self._core.read_model(io.BytesIO(onnx_model))
        self._outputs = range(len(model.outputs))
        self._request = self._compile(_with_inputs(model) if precision == INT8 else model)
        planes = planes_of_random_games(_CHECKED, network.plane_num, _MOVES_BETWEEN)
        expected = outputs_in_play(network, planes)
        self._check(planes, expected, FLOAT32)
        if precision == INT8:
            _quantize(_import("openvino"), model, self._largest_inputs(network.plane_num))
        if precision != FLOAT32:
            self._request = self._compile(model, has_bfloat16)
            self._check(planes, expected, precision)

    def _compile(self, model: Any, bfloat16: bool = False) -> Any:
        """Returns an inference request of a model."""
        return self._core.compile_model(model, "CPU", _settings(bfloat16)).create_infer_request()

    def _has_bfloat16(self) -> bool:
        """Says whether the processor has fast bfloat16."""
        return "BF16" in self._core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")

    def _largest_inputs(self, plane_num: int) -> list[float]:
        """Returns the largest input of each convolution that int8 changes.

        The compiled model must output these inputs after its own outputs.
        """
        self(planes_of_random_games(_TRIED, plane_num, _MOVES_BETWEEN_TRIED))
        tensors = self._request.output_tensors[len(self._outputs) :]
        return [float(tensor.data.max()) for tensor in tensors]

    def _check(self, planes: numpy.ndarray, expected: list[numpy.ndarray], precision: str) -> None:
        """Compares the outputs with those of the network."""
        tolerance = _TOLERANCES[precision]
        for found, right in zip(self(planes), expected):
            if not numpy.isfinite(right).all():
                raise OpenVINOError("the network gives numbers that are not finite.")
            difference = largest_difference(found, right)
            if not difference <= tolerance:
                raise OpenVINOError(
                    f"OpenVINO's results in {precision} differ from the network's by "
                    f"{difference:.2g} of the largest number, and {tolerance:g} is allowed."
                )


def _convolutions(model: Any) -> list[Any]:
    """Returns the 3×3 convolutions of a model that read the output of a ReLU, in order."""
    return [
        operation
        for operation in model.get_ordered_ops()
        if operation.get_type_name() == "Convolution"
        and operation.input_value(0).get_node().get_type_name() == "Relu"
        and operation.input_value(1).get_node().get_type_name() == "Constant"
        and list(operation.input_value(1).get_shape()[2:]) == [3, 3]
    ]


def _with_inputs(model: Any) -> Any:
    """Returns a copy of a model that also outputs the inputs of its :func:`_convolutions`."""
    copy = model.clone()
    copy.add_outputs([operation.input_value(0) for operation in _convolutions(copy)])
    return copy


def _quantize(openvino: Any, model: Any, largest: list[float]) -> None:
    """Changes a model so that OpenVINO computes its :func:`_convolutions` in int8.

    OpenVINO does so where it finds the operation FakeQuantize before both inputs. ``largest`` has
    the largest input of each convolution.

    Raises:
        OpenVINOError: the model has no such convolution.
    """
    if not largest:
        raise OpenVINOError("the network has no 3×3 convolution after a ReLU.")
    for convolution, high in zip(_convolutions(model), largest):
        weights = convolution.input_value(1)
        # A filter of zeros would have the scale 0.
        numbers = abs(weights.get_node().get_data()).max(axis=(1, 2, 3), keepdims=True)
        most = numpy.maximum(numbers, 1e-30)
        bounds = ((0, high, _INPUT_LEVELS), (-most, most, _WEIGHT_LEVELS))
        for place, (low, high, levels) in enumerate(bounds):
            ends = [numpy.float32(low), numpy.float32(high)]
            value = convolution.input_value(place)
            rounded = openvino.opset13.fake_quantize(value, *ends, *ends, levels)
            convolution.input(place).replace_source_output(rounded.output(0))
    model.validate_nodes_and_infer_types()


def _settings(bfloat16: bool) -> dict[str, Any]:
    """Returns the settings of OpenVINO."""
    return {
        # Without the hint, OpenVINO computes in bfloat16 where the processor has it.
        "INFERENCE_PRECISION_HINT": "bf16" if bfloat16 else "f32",
        "INFERENCE_NUM_THREADS": get_threads(),
        "PERFORMANCE_HINT": "LATENCY",
        # Two programs with a thread each would be bound to the same core.
        "ENABLE_CPU_PINNING": False,
    }


@functools.cache
def _only_core(core_class: Any) -> Any:
    """Returns the only object of OpenVINO's class ``Core``, which lives as long as the process.

    A Core gives the thread that uses it first a stack for signal handlers. When the Core is freed,
    this stack is freed, too. If another thread freed it, or if there had been two Cores, the
    thread still uses the stack: the next Ctrl-C would crash the process (OpenVINO 2026.4).
    """
    return core_class()


def _import(name: str) -> Any:
    """Imports a package."""
    if importlib.util.find_spec(name) is None:
        raise OpenVINOError(f"the package {name} is not installed. Install it: {INSTALL}.")
    # At its import, OpenVINO would report over the internet that it is used, from a process that is
    # a copy of this one. It does without the package that reports.
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]
    return importlib.import_module(name)
