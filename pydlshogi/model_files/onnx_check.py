"""Compares an ONNX model with the network that it was made from."""

from __future__ import annotations

from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.model_files.agreement import largest_difference, planes_of_random_games
from pydlshogi.model_files.onnx_dlshogi import label_numbers, to_dlshogi
from pydlshogi.model_files.onnx_export import TOLERANCE, ExportError, run
from pydlshogi.network.network import Network, split_output

#: Positions compared.
_POSITIONS = 32


def check(model: Any, network: Network) -> dict[str, float]:
    """Compares the outputs on positions of random games.

    Args:
        model: ``onnx.ModelProto`` of ``export`` or ``export_dlshogi``.
        network: The network, on the CPU.

    Returns:
        The largest difference by output, relative to the largest number of that output.

    Raises:
        ExportError: a difference is larger than ``TOLERANCE``, or ONNX Runtime is missing.
    """
    planes = planes_of_random_games(_POSITIONS, network.plane_num)
    is_dlshogis = model.graph.input[0].name == "input1"
    inputs = dict(zip(("input1", "input2"), to_dlshogi(planes))) if is_dlshogis else {}
    results = run(model, inputs or {"planes": planes})
    expected = _expected(network, planes)
    if is_dlshogis:
        policy = expected["policy"][:, label_numbers()]
        expected = {"output_policy": policy, "output_value": expected["value"]}
    differences = {key: largest_difference(results[key], expected[key]) for key in expected}
    for key, difference in differences.items():
        if not difference <= TOLERANCE:
            raise ExportError(
                f"the converted model computes another {key}: it differs by {difference:.2g} of "
                "the largest number. Nothing was written. Please report this with the model."
            )
    return differences


def _expected(network: Network, planes: numpy.ndarray) -> dict[str, numpy.ndarray]:
    """Computes what the network itself answers."""
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        logits, values = split_output(network, network(planes))
    expected = {}
    if logits is not None:
        expected["policy"] = logits.array
    if network.value_kind is not None:
        expected["value"] = network.value_kind.win_probabilities(values)[:, None]
    return expected
