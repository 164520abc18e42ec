"""Training batches: the order of the positions, perhaps mirrored; planes, labels and results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.features import MIRRORED_LABELS, MIRRORED_SQUARES, PLANE_NUM, make_input_planes
from pydlshogi.kifu.mapped_positions import AnyPositions
from pydlshogi.positions import POSITION
from pydlshogi.training.order import kind_for, make_order, random_of
from pydlshogi.training.parallel import ALONE, Ranks
from pydlshogi.training.recipe import PLAYED
from pydlshogi.training.targets import ValueTarget, targets_of

# ``recent`` in a position holds square + 1, and 0 for an unknown move.
_RECENT = numpy.concatenate([[0], MIRRORED_SQUARES + 1]).astype(numpy.uint8)


def mirror(positions: numpy.ndarray) -> numpy.ndarray:
    """Mirrors board, last moves and label of a ``POSITION`` array, (n,), which is not changed."""
    mirrored = positions.copy()
    mirrored["board"] = positions["board"][:, MIRRORED_SQUARES]
    mirrored["recent"] = _RECENT[positions["recent"]]
    mirrored["label"] = MIRRORED_LABELS[positions["label"]]
    return mirrored


def mirror_targets(targets: numpy.ndarray) -> numpy.ndarray:
    """Mirrors targets of the policy: labels (n,), or probabilities of all moves (n, 2187)."""
    if targets.ndim == 1:
        return MIRRORED_LABELS[targets].astype(targets.dtype)
    return targets[:, MIRRORED_LABELS]


# Independent streams of random numbers of one seed.
_ORDER, _TEST, _MIRROR = range(3)


def draw(seed: int, iteration: int, size: int, count: int) -> numpy.ndarray:
    """Draws min(count, size) different test positions; each iteration gives an independent draw."""
    return make_order(size, random_of(seed, _TEST, iteration))[:count]


class EpochIterator(chainer.dataset.Iterator):
    """Iterator over position numbers, in a new random order every epoch.

    With ``mirrored``, half of the numbers, drawn anew every epoch, stand for mirror images: n + k
    for that of position k, where n is ``size``. The iterator differs from Chainer's
    ``SerialIterator`` in two ways:

    - A batch never crosses the end of an epoch. The last batch may be shorter, and an
      epoch holds every position exactly once.
    - The order is a function of the seed and the epoch: they are enough to resume a run.

    Attributes:
        epoch: Number of finished epochs.
        current_position: Number of positions done in the current epoch.
        kind: Kind of the order (:mod:`pydlshogi.training.order`).
        announce: Function that is told the positions of the next batch (0..n-1), or None.
    """

    def __init__(self, size: int, batch_size: int, seed: int, mirrored: bool = False) -> None:
        self.announce: Callable[[numpy.ndarray], None] | None = None
        self.size = size
        self.batch_size = batch_size
        self.mirrored = mirrored
        self.is_new_epoch = False
        self.previous_epoch_detail: float | None = None
        self.kind = kind_for(size)
        self.go_to(seed, 0)

    @property
    def epoch_detail(self) -> float:
        """Number of finished epochs, with the fraction of the current one."""
        return self.epoch + self.current_position / self.size

    def __next__(self) -> numpy.ndarray:
        self.previous_epoch_detail = self.epoch_detail
        batch = self._next_positions()
        if self.mirrored:
            random = random_of(
                self.seed, _MIRROR, self.epoch, *divmod(self.current_position, 1 << 32)
            )
            batch = batch + self.size * random.randint(0, 2, len(batch), numpy.int64)
        self.current_position += len(batch)
        self.is_new_epoch = self.current_position == self.size
        if self.is_new_epoch:
            self.go_to(self.seed, self.epoch + 1)
        if self.announce is not None:
            self.announce(self._next_positions())
        return batch

    def _next_positions(self) -> numpy.ndarray:
        start = self.current_position
        return self._order[start : start + self.batch_size]

    def go_to(self, seed: int, epoch: int, position: int = 0, kind: str | None = None) -> None:
        """Continues after some finished epochs, and at a place in the next one."""
        self.seed = seed
        self.kind = kind or self.kind
        self.epoch = epoch
        self.current_position = position
        self._order = make_order(self.size, random_of(seed, _ORDER, epoch), self.kind)


class PlanesConverter(chainer.dataset.Converter):
    """Converter from position numbers to planes, and targets of the policy and the value.

    The packed positions (104 bytes each) are sent to the device, and the planes (33,696
    bytes or more each) are made there. Of several processes, each makes its share of the batch.
    """

    def __init__(
        self,
        positions: AnyPositions,
        value_target: ValueTarget | None = None,
        ranks: Ranks = ALONE,
        policy_target: str = PLAYED,
        plane_num: int = PLANE_NUM,
    ) -> None:
        self._positions = positions
        self._values_of = (value_target or ValueTarget()).of(positions)
        self._ranks = ranks
        self._policy_target = policy_target
        self._plane_num = plane_num

    def __call__(self, batch: Any, device: Any) -> tuple[Any, Any, Any]:
        """Makes a batch of position numbers: 0..n-1, or n more for mirror images.

        Returns:
            (b, plane_num, 9, 9) float32 planes, the targets of the policy ((b,) int32 labels, or
            (b, 2187) float32 probabilities), and (b,) float32 targets of the value (1 won, 0
            lost, 0.5 drawn, nan unknown), all on the device.
        """
        mirrored, rows = numpy.divmod(self._ranks.share(numpy.asarray(batch)), len(self._positions))
        mirrored = mirrored.astype(bool)
        records = self._positions[rows]
        targets = targets_of(self._policy_target, self._positions, rows, records)
        values = self._values_of(rows, records)
        if mirrored.any():
            records[mirrored] = mirror(records[mirrored])
            targets[mirrored] = mirror_targets(targets[mirrored])
        packed = records.view(numpy.uint8).reshape(len(records), POSITION.itemsize)
        planes = make_input_planes(device.send(packed), plane_num=self._plane_num)
        return planes, device.send(targets), device.send(values)
