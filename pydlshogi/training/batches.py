"""Batches: which positions, in which order, and their planes."""

from __future__ import annotations

from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.features import WIN_OF_RESULT, make_input_planes, mirror
from pydlshogi.positions import POSITION

# Streams of random numbers drawn from one seed; each use has its own, so that
# none disturbs another.
_ORDER, TEST, _MIRROR, STATISTICS = range(4)


def _random(seed: int, stream: int, number: int) -> numpy.random.RandomState:
    """A generator that is a pure function of three numbers.

    RandomState, not the newer Generator: numpy promises that its numbers never change
    from version to version, and a run may be resumed under another one.
    """
    return numpy.random.RandomState([seed, stream, number])


def draw(seed: int, iteration: int, size: int, count: int, *, stream: int = TEST) -> numpy.ndarray:
    """Draws positions without replacement.

    Args:
        seed: The run's seed.
        iteration: Draws of different iterations are independent of each other.
        size: Number of positions to draw from.
        count: Number of positions to draw; all of them if that is more than ``size``.
        stream: What for: :data:`TEST` or :data:`STATISTICS`.

    Returns:
        (min(count, size),) int64 numbers of positions, 0..size-1.
    """
    return _random(seed, stream, iteration).permutation(size)[:count]


class EpochIterator(chainer.dataset.Iterator):
    """Iterator over the numbers of the positions, in a new random order every epoch.

    Number ``size + k`` stands for position k with left and right exchanged.

    It differs from ``chainer.iterators.SerialIterator`` in two ways. A batch never
    reaches over the end of an epoch: the last one is as short as it must be, so that an
    epoch holds every position exactly once. And the order is a function of the seed and
    the epoch, so that two numbers tell where a run was when it is resumed.

    Args:
        size: Number of positions, at least 1.
        batch_size: Positions in a batch.
        seed: 0..2**32-1.
        mirror: Whether each position is mirrored or not by the toss of a coin, every epoch
            anew; like the order, the coins are a function of seed and epoch.

    Attributes:
        epoch: Number of epochs done.
        current_position: Number of positions of this epoch done.
        is_new_epoch: True if the last batch was the last of its epoch.
        epoch_detail: Epochs done, with the fraction of this one.
        previous_epoch_detail: ``epoch_detail`` before the last batch; None before the first.
    """

    def __init__(self, size: int, batch_size: int, seed: int, *, mirror: bool = False) -> None:
        self.size = size
        self.batch_size = batch_size
        self.seed = seed
        self.mirror = mirror
        self.epoch = 0
        self.current_position = 0
        self.is_new_epoch = False
        self.previous_epoch_detail: float | None = None
        self._order = self._make_order()

    def _make_order(self) -> numpy.ndarray:
        order = _random(self.seed, _ORDER, self.epoch).permutation(self.size)
        if self.mirror:
            coins = _random(self.seed, _MIRROR, self.epoch).randint(0, 2, self.size, numpy.int64)
            order += self.size * coins
        return order

    @property
    def epoch_detail(self) -> float:
        """Epochs done, with the fraction of this one."""
        return self.epoch + self.current_position / self.size

    def __next__(self) -> numpy.ndarray:
        self.previous_epoch_detail = self.epoch_detail
        start = self.current_position
        batch = self._order[start : start + self.batch_size]
        self.current_position = start + len(batch)
        self.is_new_epoch = self.current_position == self.size
        if self.is_new_epoch:
            self.go_to_epoch(self.epoch + 1)
        return batch

    def go_to_epoch(self, epoch: int) -> None:
        """Goes to the start of an epoch; ``epoch`` is the number of epochs before it."""
        self.epoch = epoch
        self.current_position = 0
        self._order = self._make_order()

    def serialize(self, serializer: Any) -> None:
        """Saves or restores seed and place; the order follows from them."""
        self.seed = serializer("seed", self.seed)
        self.epoch = serializer("epoch", self.epoch)
        self.current_position = serializer("position", self.current_position)
        if isinstance(serializer, chainer.Deserializer):
            self._order = self._make_order()


# The part of the game won, by the code of the result.
_WINS = numpy.array([WIN_OF_RESULT[code] for code in range(len(WIN_OF_RESULT))], numpy.float32)


class PlanesConverter(chainer.dataset.Converter):
    """Converter from numbers of positions to planes, labels and results.

    What goes to the device are the packed positions, 100 bytes each; the planes,
    33,696 bytes each, are made there.

    Args:
        positions: (n,) array of ``POSITION``.
        ply: Whether planes of the move number follow the others.
    """

    def __init__(self, positions: numpy.ndarray, *, ply: bool = False) -> None:
        self._positions = positions
        self._ply = ply

    def __call__(self, batch: Any, device: Any) -> tuple[Any, Any, Any]:
        """Makes a batch.

        Args:
            batch: b numbers of positions, 0..n-1, or n more for mirrored ones.
            device: The ``chainer.backend.Device`` to make it on.

        Returns:
            (b, 104 or 112, 9, 9) float32 planes, (b,) int32 labels and (b,) float32
            results, 1 won, 0 lost, 0.5 drawn, nan unknown; all on the device.
        """
        numbers, size = numpy.asarray(batch), len(self._positions)
        records = self._positions[numbers % size]
        mirrored = numbers >= size
        if mirrored.any():
            records[mirrored] = mirror(records[mirrored])
        packed = records.view(numpy.uint8).reshape(len(records), POSITION.itemsize)
        planes = make_input_planes(device.send(packed), ply=self._ply)
        labels = records["label"].astype(numpy.int32)
        return planes, device.send(labels), device.send(_WINS[records["result"]])
