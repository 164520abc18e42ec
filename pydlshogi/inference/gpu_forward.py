"""The forward pass of a network in play, on a GPU."""

from __future__ import annotations

from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.layers.gpu.products import get_precision
from pydlshogi.layers.gpu.recording import Memory, Recording
from pydlshogi.network.network import output_arrays

#: Most positions of a recorded batch. A larger one keeps the GPU busy without a recording.
_MOST = 1024


class Forward:
    """Computes the outputs of a network for batches of any size, by recordings of one size each.

    A batch is padded to the next size of :func:`padded_size`. The network is on the current GPU
    when this object is called, and its arrays stay in place. The caller turns training and
    backpropagation off.
    """

    def __init__(self, network: Any) -> None:
        self._network = network
        self._memory = Memory()
        #: By size and precision: the input of the GPU, and the recording that reads it.
        self._recorded: dict[tuple[int, str], tuple[Any, Recording[list[Any]]]] = {}

    def __call__(self, planes: numpy.ndarray) -> list[numpy.ndarray]:
        """Computes the outputs of planes (n, plane_num, 9, 9) of numpy, n at least 1.

        They are (n, …) float32: logits before values, as far as the network has them.
        """
        count = len(planes)
        size = padded_size(count)
        sent = self._network.device.send(planes.astype(numpy.float32, copy=False))
        if size > _MOST:
            outputs = output_arrays(self._network, sent)
        else:
            fixed, recording = self._for(size)
            # The rest of the batch keeps the planes of earlier calls.
            fixed[:count] = sent
            outputs = recording()
        to_cpu = chainer.get_device("@numpy")
        return [to_cpu.send(output[:count]) for output in outputs]

    def _for(self, size: int) -> tuple[Any, Recording[list[Any]]]:
        key = size, get_precision()
        if key not in self._recorded:
            shape = (size, self._network.plane_num, 9, 9)
            planes = self._network.xp.zeros(shape, numpy.float32)
            recording = Recording(lambda: output_arrays(self._network, planes), self._memory)
            self._recorded[key] = planes, recording
        return self._recorded[key]


def padded_size(count: int) -> int:
    """Returns the next larger power of two, or three quarters of it if that is enough.

    So a batch has at most half as many positions again.
    """
    size = 1 << (count - 1).bit_length()
    return size * 3 // 4 if size > 2 and count <= size * 3 // 4 else size
