"""Saving and resuming: the model file and the state file of a run, always a matching pair.

The model file holds the network's arrays and nothing else. The state file
(:mod:`.state`) holds the optimizer, the place in the run, and the fingerprint of the
model that it belongs to.

Two files cannot be replaced at the same moment. A save therefore has three atomic steps:

1. Write the new model beside the old one, as ``MODEL.next``.
2. Replace the old state.
3. Rename ``MODEL.next`` to ``MODEL``.

If the program is killed before step 2, the old state and the old model are a pair, and
``MODEL.next`` has no meaning. If it is killed between steps 2 and 3, the fingerprint in
the state is that of ``MODEL.next``: :func:`finish_save` notices this and does step 3. It
also does so if ``MODEL`` does not exist yet, or is the model of another network. Whoever
reads or replaces the files calls it first; :func:`load_pair` does so itself.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.errors import UserError
from pydlshogi.files import is_disk_full, next_to, replace
from pydlshogi.kifu.mapped_positions import AnyPositions
from pydlshogi.model_files.model_file import (
    MARK,
    is_finite,
    load_model,
    save_model,
)
from pydlshogi.model_files.npz import NpzError, read_npz
from pydlshogi.training.batches import EpochIterator
from pydlshogi.training.loss import LossMeans
from pydlshogi.training.state import (
    VALIDATION,
    Place,
    State,
    StateFileError,
    checksum,
    digest,
    fingerprint,
    load_state,
    read_fingerprint,
    save_state,
)

logger = logging.getLogger(__name__)

# The option that decides what is trained.
_HEAD = "value_head_only"


class NotFiniteError(UserError):
    """The training diverged, and nothing was saved."""


class SaveError(UserError, OSError):
    """The model file or the state file cannot be written."""


class FirstSaveError(SaveError):
    """The first save of a run failed. The files, if there are any, are not of this run."""


class PairWriter(chainer.training.extensions.snapshot_writers.Writer):
    """Snapshot writer that replaces the model file, made from the network, and the state file."""

    def __init__(
        self, network: Any, model: str | os.PathLike[str], state: str | os.PathLike[str]
    ) -> None:
        super().__init__()
        self._network = network
        self._model = model
        self._state = state
        self._saved: int | None = None

    def __call__(self, filename: str, outdir: str, target: dict[str, Any]) -> None:
        """Writes the pair of ``State.to_arrays``; the paths are fixed.

        Raises:
            NotFiniteError: a weight or a loss is not finite; the old pair stays.
            SaveError: a file cannot be written; the old pair can still be loaded.
        """
        self._check_finite(target)
        try:
            self._write(target)
        except OSError as error:
            # A rename that is refused names two files; the second one is in use.
            name = error.filename2 or error.filename or self._model
            kind = FirstSaveError if self._saved is None else SaveError
            raise kind(f"{name} cannot be written: {error.strerror}. {_advice(error)}.") from None

    def _check_finite(self, target: dict[str, Any]) -> None:
        """Raises ``NotFiniteError`` if a weight or a sum of the loss is not finite."""
        # The arrays have just been copied from the GPU, so the check costs little here.
        if is_finite(chainer.serializers.npz.serialize(self._network)) and is_finite(target):
            return
        there = "unchanged" if self._saved is None else f"those of iteration {self._saved}"
        raise NotFiniteError(
            f"the training diverged: loss or weights are not finite at iteration "
            f"{int(target['t'])}. Nothing was saved, and {self._model} and {self._state} are "
            f"{there}. Lower the learning rate."
        )

    def _write(self, target: dict[str, Any]) -> None:
        waiting = next_to(self._model)
        if waiting.is_symlink():  # another user of the folder has made it
            waiting.unlink()
        save_model(waiting, self._network)
        save_state(self._state, target)
        self._saved = int(target["t"])  # from now on, the new pair can be loaded
        replace(waiting, self._model)


def _advice(error: OSError) -> str:
    """Says what to do about an error of the system."""
    if is_disk_full(error):
        return "Free some space"
    if error.filename2 and isinstance(error, PermissionError):
        # Windows refuses to rename over a file that is open.
        return "Close the program that has it open"
    return "Make it writable"


def finish_save(model: str | os.PathLike[str], state: str | os.PathLike[str]) -> None:
    """Does step 3 of a save that was killed after step 2; otherwise does nothing.

    Raises:
        OSError: ``MODEL.next`` cannot be renamed.
    """
    waiting = next_to(model)
    wanted = read_fingerprint(state)
    if wanted is not None and _holds(waiting, wanted):
        replace(waiting, model)


def load_pair(
    model: str | os.PathLike[str],
    state: str | os.PathLike[str],
    network: Any,
    optimizer: Any,
) -> State:
    """Reads a model file into a network, and the state file that was saved with it.

    A state of the book's fits every model of the same network. The optimizer, which is set up with
    the network or its head, receives its state.

    Raises:
        ModelFileError, StateFileError: a file cannot be used, or belongs to another one.
        OSError: ``MODEL.next`` cannot be renamed.
    """
    content = load_state(state)
    finish_save(model, state)
    load_model(model, network)
    place = content.place
    if place is not None and not numpy.array_equal(fingerprint(network), place.model):
        if _holds(model, place.model):  # its arrays were renamed while they were loaded
            raise StateFileError(
                f"state file {state} belongs to a version of pydlshogi whose network had other "
                "layers",
                "Start at iteration 0 from the model alone.",
            )
        raise StateFileError(
            f"state file {state} was not saved with model file {model}",
            "Give the model that was saved with it, or start at iteration 0 from this model alone.",
        )
    try:
        chainer.serializers.NpzDeserializer(content.optimizer).load(optimizer)
    except (KeyError, TypeError, ValueError) as error:
        raise StateFileError(
            f"state file {state} is not of this network and optimizer ({error})",
            "Give a state file of this network, and the same momentum and "
            "value_head_only as before.",
        ) from None
    return content


def _holds(model: str | os.PathLike[str], wanted: numpy.ndarray) -> bool:
    """Checks whether a file holds the model with a fingerprint."""
    try:
        arrays = read_npz(model)
    except NpzError:
        return False
    arrays.pop(MARK, None)
    return numpy.array_equal(digest(arrays), wanted)


@dataclasses.dataclass(eq=False)
class LiveState:
    """The objects whose values a state file keeps; the target of Chainer's snapshot.

    Attributes:
        network: The network that is saved.
        iterator, positions: The training positions and their order.
        means: The training losses, by the names of ``loss_names``.
        options: Recipe and batch size, by name.
        schedule_end: Iteration at which a cosine learning rate reaches 0, or None.
        stage: Function that returns the ``Place.stage`` of this moment.
    """

    network: Any
    optimizer: Any
    iterator: EpochIterator
    means: Mapping[str, LossMeans]
    positions: AnyPositions
    options: Mapping[str, Any]
    schedule_end: int | None = None
    stage: Callable[[], str] = str

    def __post_init__(self) -> None:
        self._train = checksum(self.positions, _uses_evaluations(self.options))
        self._start = time.perf_counter()
        self._seconds_before = 0.0

    def take(self) -> State:
        """Returns the state of this moment."""
        serialize = chainer.serializers.npz.serialize
        place = Place(
            model=fingerprint(self.network),
            train=self._train,
            seed=self.iterator.seed,
            epoch=self.iterator.epoch,
            position=self.iterator.current_position,
            losses={name: serialize(means) for name, means in self.means.items()},
            seconds=self._seconds_before + time.perf_counter() - self._start,
            schedule_end=self.schedule_end,
            options=self.options,
            order=self.iterator.kind,
            stage=self.stage(),
        )
        return State(serialize(self.optimizer), place)

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
            self.iterator.go_to(self.iterator.seed, self.optimizer.epoch)
            return False
        if bool(place.options.get(_HEAD)) != bool(self.options.get(_HEAD)):
            raise StateFileError(
                "the state file to resume belongs to a run that trained other heads",
                f"Resume with the same {_HEAD} as before.",
            )
        self._seconds_before = place.seconds
        if has_other_positions(place, self.positions):
            self.iterator.go_to(place.seed, self.optimizer.epoch)
            logger.warning(
                "the training positions are not those of the resumed run: epoch %d starts again",
                self.optimizer.epoch + 1,
            )
            return False
        if place.losses.keys() != self.means.keys():
            raise StateFileError(
                "the state file to resume belongs to a network with other heads",
                "Give the state file and the model of this network.",
            )
        if place.position >= self.iterator.size or place.epoch != self.optimizer.epoch:
            raise StateFileError(
                "the state file to resume is damaged (its place is not in the epoch)",
                "Choose another file.",
            )
        self.iterator.go_to(place.seed, place.epoch, place.position, place.order)
        for name, means in self.means.items():
            chainer.serializers.NpzDeserializer(place.losses[name]).load(means)
        self.iterator.is_new_epoch = place.validated_epochs < place.epoch
        return place.stage == VALIDATION


def has_other_positions(place: Place, positions: AnyPositions) -> bool:
    """Says whether a resumed run had other training positions."""
    return checksum(positions, _uses_evaluations(place.options)) != place.train


def _uses_evaluations(options: Mapping[str, Any]) -> bool:
    """Says whether a run trains on evaluations."""
    return options.get("value_lambda", 1) < 1
