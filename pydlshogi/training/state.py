"""The content of a state file: one dataclass, read and written here only.

At the top level a state file holds the optimizer as Chainer's ``save_npz`` writes it. A
state file of the book's holds nothing else. Our own keys start with ``pydlshogi/``, which
Chainer ignores:

======================  ==============================================================
``model``               fingerprint of the model file that belongs to the state
``train``               checksum of the training positions
``place/seed``          seed of the run; it determines the order of every epoch and
                        every random draw
``place/epoch``         number of finished epochs
``place/position``      number of positions done in the current epoch
``place/order``         kind of the order of an epoch, unless it is shuffled
``place/stage``         what the run was at, unless it was training
``loss/...``            sums of the policy loss (no key for a value network)
``value_loss/...``      sums of the value loss (no key without a value head)
``schedule/end``        iteration at which a cosine learning rate reaches 0
``recipe/options``      the recipe and the batch size, JSON
``seconds``             time spent on training
======================  ==============================================================
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import zlib
from collections.abc import Mapping
from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.errors import UserError
from pydlshogi.files import write_beside
from pydlshogi.kifu.mapped_positions import AnyPositions, MappedPositions, chunks
from pydlshogi.model_files.npz import NpzError, read_npz
from pydlshogi.positions import POSITION, raw_bytes
from pydlshogi.training.order import COMPUTED, SHUFFLED
from pydlshogi.training.recipe import Recipe

#: Prefix of our keys in a state file.
OWN = "pydlshogi/"

#: Key of the fingerprint of the model.
FINGERPRINT = OWN + "model"

#: The losses that have sums in a state file; also the prefixes of their keys.
LOSSES = ("loss", "value_loss")

#: Stages of a run: before the validation of the last iteration, and after all it had to do.
VALIDATION, COMPLETE = "validation", "complete"

# Sums of a loss, and what a number must be below; random generators take 32 bits.
_SUMS = {f"{part}/{key}" for part in ("since_line", "in_epoch") for key in ("_x", "_x2", "_n")}
_BOUNDS = {"seed": 1 << 32, "epoch": 1 << 32, "position": 1 << 62, "schedule_end": 1 << 62}

_CHOOSE_ANOTHER = "Choose a file that a training program saved as its state."
_START_FROM_MODEL = "Start at iteration 0 from the model alone."


class StateFileError(UserError):
    """A state file cannot be used; programs with other remedies use its ``problem`` alone."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem}. {remedy}")
        self.problem = problem


@dataclasses.dataclass(frozen=True)
class Place:
    """Our part of a state file: everything an exact resume needs beside the optimizer.

    Attributes:
        model: (16,) uint8, the model's :func:`fingerprint`.
        train: :func:`checksum` of the training positions.
        losses: Sums of each loss in :data:`LOSSES`, as Chainer serializes a ``LossMeans``.
        seconds: Time spent on training, over all runs.
        options: Recipe and batch size by name.
        stage: ``VALIDATION``, ``COMPLETE``, or empty in the midst of the training.
    """

    model: numpy.ndarray
    train: int
    seed: int
    epoch: int
    position: int
    losses: Mapping[str, Mapping[str, numpy.ndarray]]
    seconds: float = 0.0
    schedule_end: int | None = None
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    order: str = SHUFFLED
    stage: str = ""

    @property
    def validated_epochs(self) -> int:
        """Number of finished epochs, without one whose validation is due."""
        return self.epoch - (self.stage == VALIDATION and self.position == 0)

    def to_arrays(self) -> dict[str, Any]:
        """Returns the values by key, without the prefix."""
        arrays: dict[str, Any] = {
            "model": self.model,
            "train": self.train,
            "place/seed": self.seed,
            "place/epoch": self.epoch,
            "place/position": self.position,
            "seconds": self.seconds,
            "recipe/options": json.dumps(dict(self.options)),
        }
        for name, sums in self.losses.items():
            arrays.update({f"{name}/{key}": value for key, value in sums.items()})
        if self.schedule_end is not None:
            arrays["schedule/end"] = self.schedule_end
        if self.order != SHUFFLED:
            arrays["place/order"] = self.order
        if self.stage:
            arrays["place/stage"] = self.stage
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, numpy.ndarray]) -> Place:
        """Takes the values of :meth:`to_arrays`; raises what a missing or wrong value causes."""
        end = arrays.get("schedule/end")
        place = cls(
            model=arrays["model"],
            train=int(arrays["train"]),
            seed=int(arrays["place/seed"]),
            epoch=int(arrays["place/epoch"]),
            position=int(arrays["place/position"]),
            losses={name: sums for name in LOSSES if (sums := _below(f"{name}/", arrays))},
            seconds=float(arrays.get("seconds", 0)),
            schedule_end=None if end is None else int(end),
            options=dict(json.loads(str(arrays.get("recipe/options", "{}")))),
            order=str(arrays.get("place/order", SHUFFLED)),
            stage=str(arrays.get("place/stage", "")),
        )
        _refuse_impossible(place)
        return place


def _refuse_impossible(place: Place) -> None:
    """Raises an error for numbers that no run has: a damaged file."""
    for name, bound in _BOUNDS.items():
        if not 0 <= (getattr(place, name) or 0) < bound:
            raise ValueError(f"{name} is {getattr(place, name)}")
    if place.model.shape != (16,) or not 0 <= place.seconds < float("inf"):
        raise ValueError("the fingerprint or the time is impossible")
    if not isinstance(place.options.get("value_lambda", 1), (int, float)):
        raise ValueError("its options are impossible")
    for of_loss in place.losses.values():
        if of_loss.keys() != _SUMS or not all(
            numpy.isfinite(of_loss[key]).shape == () for key in of_loss
        ):
            raise ValueError("the sums of a loss are impossible")
    if place.order not in (SHUFFLED, COMPUTED) or place.stage not in ("", VALIDATION, COMPLETE):
        raise ValueError(f"order is {place.order!r}, stage is {place.stage!r}")


@dataclasses.dataclass(frozen=True)
class State:
    """The optimizer's arrays by key, as ``save_npz`` writes them, and our part if there is one."""

    optimizer: Mapping[str, Any]
    place: Place | None = None

    def to_arrays(self) -> dict[str, Any]:
        """Returns all values by the key they have in the file."""
        own = {} if self.place is None else self.place.to_arrays()
        return {**self.optimizer, **{OWN + key: value for key, value in own.items()}}


def save_state(path: str | os.PathLike[str], arrays: Mapping[str, Any]) -> None:
    """Writes the arrays of a state file atomically; raises ``OSError``."""
    with write_beside(path) as file:
        # Compression would cost twenty times the time and save 7 % of the size.
        chainer.serializers.save_npz(file, dict(arrays), compression=False)


def load_state(path: str | os.PathLike[str]) -> State:
    """Reads a state file, ours or one of the book's.

    Raises:
        StateFileError: it cannot be used, or its run had options that this version lacks.
    """
    try:
        arrays = read_npz(path)
    except NpzError as error:
        raise StateFileError(f"state file {path} {error}", _CHOOSE_ANOTHER) from None
    if "t" not in arrays:
        raise StateFileError(
            f"state file {path} holds no state of an optimizer; it may be a model",
            _CHOOSE_ANOTHER,
        )
    for key in {"t", "epoch"} & arrays.keys():
        if (
            arrays[key].shape
            or arrays[key].dtype.kind not in "iu"
            or not 0 <= arrays[key] < 1 << 32
        ):
            raise StateFileError(
                f"state file {path} is damaged ({key} is {arrays[key]})", _CHOOSE_ANOTHER
            )
    own = _below(OWN, arrays)
    optimizer = {key: array for key, array in arrays.items() if not key.startswith(OWN)}
    return State(optimizer, _read_place(path, own) if own else None)


def read_fingerprint(path: str | os.PathLike[str]) -> numpy.ndarray | None:
    """Reads the fingerprint of the model that a state belongs to, (16,) uint8; None without one."""
    try:
        return read_npz(path).get(FINGERPRINT)
    except NpzError:
        return None


def _read_place(path: str | os.PathLike[str], own: Mapping[str, numpy.ndarray]) -> Place:
    try:
        place = Place.from_arrays(own)
    except (KeyError, OverflowError, RecursionError, TypeError, ValueError) as error:
        raise StateFileError(
            f"state file {path} is damaged or of another version of pydlshogi ({error})",
            f"Resume with the version that wrote it. {_START_FROM_MODEL}",
        ) from None
    known = {"batchsize", *(field.name for field in dataclasses.fields(Recipe))}
    names = [name for name, value in place.options.items() if value and name not in known]
    if names:
        options = " and ".join(sorted(names))
        raise StateFileError(
            f"state file {path} belongs to a run with {options} of another version of "
            "pydlshogi, and this version cannot continue it",
            _START_FROM_MODEL,
        )
    return place


def _below(prefix: str, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Selects the keys with a prefix, and removes the prefix."""
    return {key[len(prefix) :]: value for key, value in arrays.items() if key.startswith(prefix)}


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Returns a clause for each option of a resumed run (``Place.options``) that has changed."""
    published, now = (  # JSON turns a tuple into a list
        json.loads(json.dumps(dict(options))) for options in (dataclasses.asdict(Recipe()), now)
    )
    before = {**published, **before}
    return [
        f"{name} was {before[name]} and is {value} now"
        for name, value in now.items()
        # A new end of the cosine is allowed; make_schedule warns where it matters.
        if name != "lr_iterations" and before.get(name, value) != value
    ]


def checksum(positions: AnyPositions, evaluations: bool = False) -> int:
    """Computes a 32-bit checksum of positions; evaluations count only if they are trained on.

    Shards are not read: the checksums of their tables count.
    """
    if isinstance(positions, MappedPositions):
        return positions.checksum(lambda array: checksum(array, evaluations))
    value = 0
    # Recent moves do not count either. In game records these follow from the moves. The
    # positions of HCPE and PSV have none.
    size = POSITION.fields["recent" if evaluations else "evaluation"][1]  # type: ignore[index]
    for rows in chunks(positions):
        value = zlib.crc32(raw_bytes(rows)[:, :size].tobytes(), value)
    return value


def fingerprint(network: Any) -> numpy.ndarray:
    """Computes a digest, (16,) uint8, of the names, shapes and values in a network's model file."""
    return digest(chainer.serializers.npz.serialize(network))


def digest(arrays: Mapping[str, Any]) -> numpy.ndarray:
    """Computes the :func:`fingerprint` of a model's arrays."""
    blake = hashlib.blake2b(digest_size=16)
    for name, value in sorted(arrays.items()):
        array = numpy.ascontiguousarray(value)  # batch normalization also has a plain number
        blake.update(f"{name} {array.dtype} {array.shape}\n".encode())
        blake.update(array.data)
    return numpy.frombuffer(blake.digest(), dtype=numpy.uint8)
