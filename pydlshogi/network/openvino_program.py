"""The forward pass in play by OpenVINO, Intel's library for networks on CPUs (optional).

The network is converted to ONNX in memory (:mod:`pydlshogi.network.onnx_export`), and OpenVINO
reads it from there. In bfloat16, weights and values have 16 bits: the range of float32 with 8 bits
of precision. Some processors multiply such numbers several times faster.
"""

from __future__ import annotations

import importlib
import importlib.util
import io
import threading
from typing import Any

import numpy

from pydlshogi.errors import UserError
from pydlshogi.network.agreement import largest_difference, outputs_in_play
from pydlshogi.network.cpu.threads import get_threads
from pydlshogi.network.network import Network
from pydlshogi.network.onnx_export import ExportError, export

#: How users install what this module needs.
INSTALL = 'python -m pip install --no-build-isolation -e ".[openvino]"'

#: OpenVINO's names of float32 and bfloat16. Then, for each, the largest difference to the network,
#: relative to the largest output. A larger one is a fault that is not rounding.
_PRECISIONS = (("f32", 1e-4), ("bf16", 0.1))

#: Positions that a new program is checked with, and the part of ones in their planes.
_CHECKED, _DENSITY = 4, 0.1


class OpenVINOError(UserError):
    """OpenVINO cannot compute a network here. The text is a sentence."""


class OpenVINOProgram:
    """A network in OpenVINO, on the CPU. Several threads may call it.

    Args:
        network: The network; not changed. Later changes of its arrays have no effect.
        bfloat16: Whether to compute in bfloat16.

    Raises:
        OpenVINOError: OpenVINO or onnx is not installed or does not work, the processor has no fast
            bfloat16, or the network cannot be converted or is not computed exactly enough.
    """

    def __init__(self, network: Network, bfloat16: bool = False) -> None:
        self._lock = threading.Lock()
        try:
            core = _import("openvino").Core()
            if bfloat16 and "BF16" not in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
                raise OpenVINOError("this processor has no fast bfloat16.")
            _import("onnx")
            onnx_model = export(network, raw_values=True).SerializeToString()
            model = core.read_model(io.BytesIO(onnx_model))
            self._outputs = range(len(model.outputs))
            # bfloat16 rounds so much that a small fault would not be noticed. So float32 is always
            # checked first.
            for hint, tolerance in _PRECISIONS if bfloat16 else _PRECISIONS[:1]:
                settings = {**_settings(), "INFERENCE_PRECISION_HINT": hint}
                self._request = core.compile_model(model, "CPU", settings).create_infer_request()
                self._check(network, tolerance)
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

    def _check(self, network: Network, tolerance: float) -> None:
        """Compares the outputs with those of the network.

        Raises:
            OpenVINOError: they differ. Outputs of the network that are not finite have no
                comparison: they are reported where the network is used.
        """
        random = numpy.random.RandomState(0)
        shape = _CHECKED, network.plane_num, 9, 9
        planes = (random.random_sample(shape) < _DENSITY).astype(numpy.float32)
        for found, expected in zip(self(planes), outputs_in_play(network, planes)):
            difference = largest_difference(found, expected)
            if numpy.isfinite(expected).all() and not difference <= tolerance:
                raise OpenVINOError(
                    f"OpenVINO's results differ from the network's by {difference:.2g} of the "
                    f"largest number, and {tolerance:g} is allowed."
                )


def _settings() -> dict[str, Any]:
    """Returns the settings of OpenVINO, except the precision."""
    return {
        "INFERENCE_NUM_THREADS": get_threads(),
        "PERFORMANCE_HINT": "LATENCY",
        # Two programs with a thread each would be bound to the same core.
        "ENABLE_CPU_PINNING": False,
    }


def _import(name: str) -> Any:
    """Imports a package.

    Raises:
        OpenVINOError: it is not installed.
    """
    if importlib.util.find_spec(name) is None:
        raise OpenVINOError(f"the package {name} is not installed. Install it: {INSTALL}.")
    return importlib.import_module(name)
