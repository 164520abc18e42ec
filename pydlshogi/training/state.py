"""What a run must remember to go on exactly where it was."""

from __future__ import annotations

import logging
import time
import zlib
from collections.abc import Mapping
from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.training.batches import EpochIterator
from pydlshogi.training.checkpoint import OWN, StateFileError
from pydlshogi.training.loss import LossMeans

logger = logging.getLogger(__name__)


def checksum(positions: numpy.ndarray) -> int:
    """Computes a number that tells a set of positions from another one, 32 bits."""
    return zlib.crc32(numpy.ascontiguousarray(positions).view(numpy.uint8).data)


class Stopwatch:
    """Measures how long training took, over all runs but not between them.

    Attributes:
        before: Seconds of the runs that this one resumes.
    """

    def __init__(self) -> None:
        self.before = 0.0
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds so far, evaluations and saves included."""
        return self.before + time.perf_counter() - self._start


class RunState:
    """The content of a state file, as an object that Chainer's serializers take.

    At the root stands the optimizer, as in the book's state files; below our prefix

    ======================  ==========================================================
    ``model``               fingerprint of the model it belongs to; :mod:`.checkpoint`
                            adds it
    ``train``               checksum of the training positions
    ``place/seed``          with it the order of every epoch and every random draw:
                            both are pure functions of the seed, so that no state of
                            a generator needs to be kept
    ``place/epoch``         epochs done
    ``place/position``      positions done of the epoch at hand
    ``loss/…``              sums of the training loss
    ``value_loss/…``        the same of the values, of a network with a value head
    ``average/…``           the running network, where the model is an average
    ``schedule/end``        where a cosine of the learning rate ends
    ``recipe/options``      how was learned: recipe and size of a batch, JSON
    ``seconds``             how long training took
    ======================  ==========================================================

    Args:
        optimizer: The ``chainer.Optimizer``.
        place: The iterator over the training positions.
        means: The sums of the training losses, by name.
        stopwatch: How long training took.
        train: (n,) array of ``POSITION``: the training positions.
        extras: What only some recipes need, by name. It is saved here; whoever made it
            resumes it, since it holds for other training positions too.
    """

    def __init__(
        self,
        optimizer: Any,
        place: EpochIterator,
        means: Mapping[str, LossMeans],
        stopwatch: Stopwatch,
        train: numpy.ndarray,
        extras: Mapping[str, Any],
    ) -> None:
        self._optimizer = optimizer
        self._place = place
        self._means = means
        self._stopwatch = stopwatch
        self._train = checksum(train)
        self._extras = extras

    def serialize(self, serializer: Any) -> None:
        """Saves everything."""
        self._optimizer.serialize(serializer)
        own = serializer[OWN]
        own("train", self._train)
        own("seconds", self._stopwatch.seconds)
        self._serialize_place(own)
        for name, extra in self._extras.items():
            extra.serialize(own[name])

    def _serialize_place(self, own: Any) -> None:
        self._place.serialize(own["place"])
        for name, means in self._means.items():
            means.serialize(own[name])

    def resume(self, own: Mapping[str, numpy.ndarray]) -> None:
        """Takes up the place that a state file tells; the optimizer has been read before.

        Args:
            own: What stands below our prefix. Where there is nothing, as in a state
                file of the book's, and where the training positions are not the same,
                the epoch is begun anew; the seed stays that of the run.

        Raises:
            StateFileError: it lacks something.
        """
        self._stopwatch.before = float(own.get("seconds", 0))
        try:
            if own and int(own["train"]) == self._train:
                self._serialize_place(chainer.serializers.NpzDeserializer(own))
                return
        except (KeyError, TypeError, ValueError) as error:
            raise StateFileError(
                f"the state file to resume from is of another version of train_policy ({error})",
                "Resume it with that version, or start from its model alone.",
            ) from None
        self._place.seed = int(own.get("place/seed", self._place.seed))
        self._place.go_to_epoch(self._optimizer.epoch)
        if own:
            logger.warning(
                "the training positions are not those of the run that is resumed: "
                "epoch %d begins anew",
                self._optimizer.epoch + 1,
            )
