"""Averaging of the weights over the last iterations.

Source: B. T. Polyak, A. B. Juditsky, Acceleration of stochastic approximation by
averaging, SIAM J. Control Optim. 30 (1992).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy

from pydlshogi.compat import chainer


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
