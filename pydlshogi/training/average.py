"""The weighted mean of two networks, of which one was trained on from the other.

The mean often predicts games that the network has not seen better than both. Sources: P. Izmailov
et al., arXiv:1803.05407 (2018); M. Wortsman et al., arXiv:2109.01903 (2021).
"""

from __future__ import annotations

from typing import Any

import numpy

from pydlshogi.bar import bar
from pydlshogi.compat import chainer
from pydlshogi.errors import UserError
from pydlshogi.network.network import arrays_of
from pydlshogi.network.registry import name_of
from pydlshogi.training.batches import PlanesConverter


class AverageError(UserError):
    """Two networks have no mean."""


def average(network: Any, other: Any, weight: float) -> None:
    """Replaces the weights of a network by ``weight`` times its own plus the rest of another's.

    Raises:
        AverageError: the networks differ in more than their weights.
    """
    arrays, others = arrays_of(network), arrays_of(other)
    shapes = [{key: array.shape for key, array in found.items()} for found in (arrays, others)]
    if type(network) is not type(other) or shapes[0] != shapes[1]:
        raise AverageError(
            f"the networks {name_of(network)} and {name_of(other)} differ in kind or size, so they "
            "have no mean. Name two models of one network."
        )
    means = {
        key: weight * array + (1 - weight) * others[key] if array.dtype.kind == "f" else array
        for key, array in arrays.items()
    }
    chainer.serializers.NpzDeserializer(means).load(network)


def normalizations_of(network: Any) -> list[Any]:
    """Lists the batch normalizations of a network."""
    kind = chainer.links.BatchNormalization
    return [link for link in network.links() if isinstance(link, kind)]


def measure_statistics(
    network: Any, positions: numpy.ndarray, device: Any, batch_size: int = 1024
) -> None:
    """Measures the running statistics of all batch normalizations anew: means over the batches.

    The network is on ``device``; on a GPU, it computes in the precision of training. Each batch
    takes some positions, (n,) of ``POSITION``, from the whole array.
    """
    device.use()
    convert = PlanesConverter(positions, plane_num=network.plane_num)
    normalizations = normalizations_of(network)
    decays = [link.decay for link in normalizations]
    batches = -(-len(positions) // batch_size)
    with chainer.using_config("train", True), chainer.no_backprop_mode():
        for number in bar(range(batches)):
            for link in normalizations:
                link.decay = number / (number + 1)
            planes, _, _ = convert(numpy.arange(number, len(positions), batches), device)
            network(planes)
    for link, decay in zip(normalizations, decays):
        link.decay = decay
