"""Averaging of the weights over the last iterations.

Sources: B. T. Polyak, A. B. Juditsky, Acceleration of stochastic approximation by
averaging, SIAM J. Control Optim. 30 (1992); for batch normalization, P. Izmailov et al.,
Averaging Weights Leads to Wider Optima and Better Generalization, arXiv:1803.05407 (2018).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.training.batches import STATISTICS, EpochIterator, PlanesConverter, draw


class Average(chainer.training.Extension):
    """Trainer extension that keeps an average of a network beside it.

    After update number n each array moves towards the running one by ``1 / min(n, span)``:
    the plain mean of the first ``span`` updates, then an exponential moving average, in
    which an update counts less and less the longer ago it was. The average is what is
    measured and saved as the model; training goes on with the running network, which is
    therefore kept in the state file.

    Args:
        network: The running network, on the device where it stays.
        span: About how many updates to average over, at least 1.

    Attributes:
        network: The average: a network of the same kind, on the same device.
    """

    # Before all that measures or saves.
    priority = chainer.training.PRIORITY_EDITOR

    def __init__(self, network: Any, span: int) -> None:
        self.network = network.copy(mode="copy")
        self.network.cleargrads()
        self._running = network
        self._span = span
        self._count = 0

    def __call__(self, trainer: Any = None) -> None:
        """Takes the last update into the average."""
        self._count += 1
        share = 1 / min(self._count, self._span)
        running = _arrays(self._running)
        for name, array in _arrays(self.network).items():
            array += share * (running[name] - array)

    def serialize(self, serializer: Any) -> None:
        """Saves the running network, or restores it: the average is the model."""
        self._count = serializer("count", self._count)
        self._running.serialize(serializer["running"])

    def resume(self, own: Mapping[str, numpy.ndarray]) -> None:
        """Goes on where a run was.

        Args:
            own: What stands below our prefix in its state file; a run that did not
                average leaves nothing there, and the average begins with this one.
        """
        if "average/count" in own:
            self.serialize(chainer.serializers.NpzDeserializer(own)["average"])


class Statistics(chainer.training.Extension):
    """Trainer extension that gives averaged weights the statistics of batch normalization.

    Averaged weights have means and variances of their own: those that the running network
    had on its way are not theirs, nor is the average of them. So before the average is
    measured or saved it goes over some training positions, and each normalization takes
    their mean and variance. These follow from the weights, the seed and the iteration.

    Args:
        network: The average.
        positions: (n,) array of ``POSITION``, n at least 1: the training set.
        iterator: What makes the run's batches of them.
        device: Where the network is.
    """

    #: Positions to go over, all where there are fewer. Each gives a channel 81 values.
    COUNT = 1024

    # After the average, before all that measures or saves.
    priority = chainer.training.PRIORITY_EDITOR

    def __init__(
        self, network: Any, positions: numpy.ndarray, iterator: EpochIterator, device: Any
    ) -> None:
        self._network = network
        self._convert = PlanesConverter(positions)
        self._iterator = iterator
        self._device = device

    def __call__(self, trainer: Any) -> None:
        """Computes the statistics anew."""
        normalizations = [
            link
            for link in self._network.links()
            if isinstance(link, chainer.links.BatchNormalization)
        ]
        if not normalizations:
            return
        iterator = self._iterator
        size = iterator.size * (2 if iterator.mirror else 1)
        drawn = draw(iterator.seed, trainer.updater.iteration, size, self.COUNT, stream=STATISTICS)
        decays = [link.decay for link in normalizations]
        with chainer.using_config("train", True), chainer.no_backprop_mode():
            for start in range(0, len(drawn), iterator.batch_size):
                batch = drawn[start : start + iterator.batch_size]
                for link in normalizations:
                    link.decay = start / (start + len(batch))  # the plain mean over positions
                self._network(self._convert(batch, self._device)[0])
        for link, decay in zip(normalizations, decays):
            link.decay = decay


class _Collector(chainer.Serializer):
    """Serializer that keeps hold of the arrays that are shown to it, where they are."""

    def __init__(self, arrays: dict[str, Any], path: str = "") -> None:
        self._arrays = arrays
        self._path = path

    def __getitem__(self, key: str) -> _Collector:
        return _Collector(self._arrays, f"{self._path}{key}/")

    def __call__(self, key: str, value: Any) -> Any:
        # Plain numbers count something, and have no mean.
        if isinstance(value, chainer.get_array_types()):
            self._arrays[self._path + key] = value
        return value


def _arrays(network: Any) -> dict[str, Any]:
    """Gives the arrays of a network by path: parameters and running statistics."""
    arrays: dict[str, Any] = {}
    network.serialize(_Collector(arrays))
    return arrays
