"""Saving and resuming: from the objects of a running trainer to a state, and back."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from pydlshogi.compat import chainer
from pydlshogi.kifu.mapped_positions import AnyPositions
from pydlshogi.training.batches import EpochIterator
from pydlshogi.training.loss import LossMeans
from pydlshogi.training.state import (
    VALIDATION,
    Place,
    State,
    StateFileError,
    checksum,
    fingerprint,
)

logger = logging.getLogger(__name__)

# The option that decides what is trained.
_HEAD = "value_head_only"


class LiveState:
    """The objects whose values a state file keeps; the target of Chainer's snapshot.

    Args:
        network: The network that is saved.
        optimizer: The ``chainer.Optimizer``.
        iterator: Iterator over the training positions.
        means: The training losses, by the names of ``loss_names``.
        positions: The training positions.
        options: Recipe and batch size, by name.

    Attributes:
        schedule_end: Iteration at which a cosine learning rate reaches 0, or None.
        stage: Function that returns the ``Place.stage`` of this moment.
    """

    def __init__(
        self,
        network: Any,
        optimizer: Any,
        iterator: EpochIterator,
        means: Mapping[str, LossMeans],
        positions: AnyPositions,
        options: Mapping[str, Any],
    ) -> None:
        self._network = network
        self._optimizer = optimizer
        self._iterator = iterator
        self._means = means
        self._positions = positions
        self._train = checksum(positions, _uses_evaluations(options))
        self._options = options
        self._start = time.perf_counter()
        self._seconds_before = 0.0
        self.schedule_end: int | None = None
        self.stage: Callable[[], str] = str

    def take(self) -> State:
        """Returns the state of this moment."""
        serialize = chainer.serializers.npz.serialize
        place = Place(
            model=fingerprint(self._network),
            train=self._train,
            seed=self._iterator.seed,
            epoch=self._iterator.epoch,
            position=self._iterator.current_position,
            losses={name: serialize(means) for name, means in self._means.items()},
            seconds=self._seconds_before + time.perf_counter() - self._start,
            schedule_end=self.schedule_end,
            options=self._options,
            order=self._iterator.kind,
            stage=self.stage(),
        )
        return State(serialize(self._optimizer), place)

    def serialize(self, serializer: Any) -> None:
        """Passes the state of this moment to a Chainer serializer."""
        for key, value in self.take().to_arrays().items():
            serializer(key, value)

    def resume(self, state: State) -> bool:
        """Continues at the place of a state; the optimizer has been loaded before.

        With a state of the book's, and with other training positions than before, the
        current epoch starts again. The seed stays that of the resumed run.

        Returns:
            Whether the validation of the last iteration is due.

        Raises:
            StateFileError: the state lacks the sums of a loss, or other heads were trained.
        """
        place = state.place
        if place is None:
            self._iterator.go_to(self._iterator.seed, self._optimizer.epoch)
            return False
        if bool(place.options.get(_HEAD)) != bool(self._options.get(_HEAD)):
            raise StateFileError(
                "the state file to resume belongs to a run that trained other heads",
                f"Resume with the same {_HEAD} as before.",
            )
        self._seconds_before = place.seconds
        if self._train_of(place) != place.train:
            self._iterator.go_to(place.seed, self._optimizer.epoch)
            logger.warning(
                "the training positions are not those of the resumed run: epoch %d starts again",
                self._optimizer.epoch + 1,
            )
            return False
        if place.losses.keys() != self._means.keys():
            raise StateFileError(
                "the state file to resume belongs to a network with other heads",
                "Give the state file and the model of this network.",
            )
        if place.position >= self._iterator.size or place.epoch != self._optimizer.epoch:
            raise StateFileError(
                "the state file to resume is damaged (its place is not in the epoch)",
                "Choose another file.",
            )
        self._iterator.go_to(place.seed, place.epoch, place.position, place.order)
        for name, means in self._means.items():
            chainer.serializers.NpzDeserializer(place.losses[name]).load(means)
        self._iterator.is_new_epoch = place.validated_epochs < place.epoch
        return place.stage == VALIDATION

    def _train_of(self, place: Place) -> int:
        """Returns the checksum of today's positions with the options of a resumed run."""
        if _uses_evaluations(place.options) == _uses_evaluations(self._options):
            return self._train
        return _checksum_for(place, self._positions)


def has_other_positions(place: Place, positions: AnyPositions) -> bool:
    """Says whether a resumed run had other training positions."""
    return _checksum_for(place, positions) != place.train


def _checksum_for(place: Place, positions: AnyPositions) -> int:
    return checksum(positions, _uses_evaluations(place.options))


def _uses_evaluations(options: Mapping[str, Any]) -> bool:
    """Says whether a run trains on evaluations."""
    return options.get("value_lambda", 1) < 1
