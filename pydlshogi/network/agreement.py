"""Compares what computes a network in play with the network itself."""

from __future__ import annotations

import numpy

from pydlshogi.compat import chainer
from pydlshogi.network.network import Network, split_output


def outputs_in_play(network: Network, planes: numpy.ndarray) -> list[numpy.ndarray]:
    """Computes the outputs of a network by Chainer, as in play.

    Args:
        network: The network, on the CPU.
        planes: (n, plane_num, 9, 9) float32.

    Returns:
        Logits before values, float32; only those of the heads that the network has.
    """
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        outputs = split_output(network, network(planes))
    return [output.array for output in outputs if output is not None]


def largest_difference(results: numpy.ndarray, expected: numpy.ndarray) -> float:
    """Returns the largest difference, relative to the largest expected number.

    It is infinite if the shapes differ, or if only the expected numbers are all 0.
    """
    if results.shape != expected.shape:
        return float("inf")
    difference = float(numpy.abs(results - expected).max())
    if difference == 0:  # the values of a new network are all 0
        return 0.0
    largest = float(numpy.abs(expected).max())
    return difference / largest if largest else float("inf")
