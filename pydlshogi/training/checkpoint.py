"""The two files of a run, model and state: a pair at every moment.

The model file holds the network's arrays and nothing else. The state file holds the
optimizer as Chainer's ``save_npz`` writes it and, under keys of ours that Chainer
passes over, what an exact resume needs: place and sums, and a fingerprint of the model
it belongs to.

Two files cannot be replaced at once, so a save is done in three steps:

1. the new model is written beside the old one, as ``MODEL.next``;
2. the new state replaces the old one;
3. ``MODEL.next`` is renamed to ``MODEL``.

Each step is whole or not done at all. Killed before step 2, the old state and the old
model are a pair, and ``MODEL.next`` means nothing. Killed between 2 and 3, the state's
fingerprint is that of ``MODEL.next``: :func:`load_pair` sees that and does step 3, also
when this was the first save and there is no ``MODEL`` yet, or one of another network. A
model that is neither of the two is not the state's, and is refused. A run that is begun
anew over such files does step 3 by :func:`finish_save`, so that it has a pair to keep.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from collections.abc import Mapping
from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.files import next_to, replace, write_beside
from pydlshogi.network.model_file import (
    MARK,
    ModelFileError,
    is_finite,
    load_model,
    save_model,
)
from pydlshogi.network.npz import NpzError, read_npz

#: Prefix of our keys in a state file.
OWN = "pydlshogi/"

_FINGERPRINT = OWN + "model"


class StateFileError(Exception):
    """A state file cannot be used; the text names it, says why and what to do.

    Args:
        problem: Which, and why, without the full stop.
        remedy: What to do, in the options of train_policy.

    Attributes:
        problem: The same, for programs that have other options.
    """

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem}. {remedy}")
        self.problem = problem


def fingerprint(network: Any) -> numpy.ndarray:
    """Computes a digest of what a model file holds: names, shapes and values.

    Returns:
        (16,) uint8.
    """
    return _digest(chainer.serializers.npz.serialize(network))


def _digest(arrays: Mapping[str, Any]) -> numpy.ndarray:
    """Computes the digest of a model's arrays; see :func:`fingerprint`."""
    digest = hashlib.blake2b(digest_size=16)
    for name, value in sorted(arrays.items()):
        array = numpy.ascontiguousarray(value)  # batch normalization has a plain number too
        digest.update(f"{name} {array.dtype} {array.shape}\n".encode())
        digest.update(array.data)
    return numpy.frombuffer(digest.digest(), dtype=numpy.uint8)


class NotFiniteError(Exception):
    """A training has diverged and nothing was saved; the text says when and what to do."""


class SaveError(OSError):
    """A pair cannot be written; the text names the file, says why and what to do."""


class PairWriter(chainer.training.extensions.snapshot_writers.Writer):
    """Snapshot writer that replaces model and state.

    Args:
        network: The network whose parameters are the model.
        model: Path of the model file.
        state: Path of the state file.
    """

    def __init__(
        self, network: Any, model: str | os.PathLike[str], state: str | os.PathLike[str]
    ) -> None:
        super().__init__()
        self._network = network
        self._model = model
        self._state = state
        self._saved: int | None = None

    def __call__(self, filename: str, outdir: str, target: dict[str, Any]) -> None:
        """Writes the pair.

        Args:
            filename: Not used: the paths are fixed.
            outdir: Not used.
            target: What the state file is to hold, by key.

        Raises:
            NotFiniteError: a number of the pair is not finite; the old pair stands.
            SaveError: a file cannot be written; the old pair can still be loaded.
        """
        iteration = int(target["t"])
        # Here, where the arrays have been fetched from a GPU anyway. The sums of the loss are
        # in the state: a loss that is not finite is seen, and so are weights that no loss is of.
        if not (is_finite(chainer.serializers.npz.serialize(self._network)) and is_finite(target)):
            there = "as they were before" if self._saved is None else f"of iteration {self._saved}"
            raise NotFiniteError(
                f"loss or weights are not finite at iteration {iteration}: training has diverged. "
                f"Nothing was saved, {self._model} and {self._state} are {there}. Lower --lr."
            )
        try:
            self._write(target)
        except OSError as error:
            advice = "Make it writable"
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                advice = "Free some space"
            elif error.filename2 and isinstance(error, PermissionError):
                # Windows does not rename over a file that is open.
                advice = "Close the program that has it open"
            # Of a rename that is refused the second file is the one that is held.
            name = error.filename2 or error.filename or self._model
            raise SaveError(f"{name} cannot be written: {error.strerror}. {advice}.") from None
        self._saved = iteration

    def _write(self, target: dict[str, Any]) -> None:
        waiting = next_to(self._model)
        save_model(waiting, self._network)
        with write_beside(self._state) as file:
            content = {**target, _FINGERPRINT: fingerprint(self._network)}
            # Not compressed, as in save_model.
            chainer.serializers.save_npz(file, content, compression=False)
        replace(waiting, self._model)


def finish_save(model: str | os.PathLike[str], state: str | os.PathLike[str]) -> None:
    """Does the last step of a save that was killed before it, where there is one.

    Args:
        model: Path of the model file.
        state: Path of the state file.

    Raises:
        OSError: the model that waits cannot be renamed.
    """
    waiting = next_to(model)
    try:
        arrays = read_npz(waiting)
        wanted = read_npz(state).get(_FINGERPRINT)
    except NpzError:
        return
    arrays.pop(MARK, None)
    if wanted is not None and numpy.array_equal(_digest(arrays), wanted):
        replace(waiting, model)


def load_pair(
    model: str | os.PathLike[str],
    state: str | os.PathLike[str],
    network: Any,
    optimizer: Any,
) -> dict[str, numpy.ndarray]:
    """Reads a model and the state that was saved with it.

    Args:
        model: The model file.
        state: The state file; one of the book's, without keys of ours, fits every model
            of the same network.
        network: Filled with the model.
        optimizer: The ``chainer.Optimizer`` set up with ``network``; filled too.

    Returns:
        The keys of ours, without their prefix, and their arrays; empty for a state
        file of the book's.

    Raises:
        ModelFileError: the model file cannot be used.
        StateFileError: the state file cannot be used, or the model is not its model.
        OSError: the model that waits cannot be renamed.
    """
    try:
        arrays = read_npz(state)
    except NpzError as error:
        raise StateFileError(
            f"state file {state} {error}", "Choose a file that train_policy saved as --state."
        ) from None
    if "t" not in arrays:
        raise StateFileError(
            f"state file {state} holds no state of an optimizer; it may be a model",
            "Choose a file that train_policy saved as --state.",
        )
    if _FINGERPRINT in arrays:
        _load_model_of(arrays[_FINGERPRINT], model, state, network)
    else:
        load_model(model, network)
    try:
        chainer.serializers.NpzDeserializer(arrays).load(optimizer)
    except (KeyError, TypeError, ValueError) as error:
        raise StateFileError(
            f"state file {state} is not of this network and optimizer ({error})",
            "Give --resume a file that train_policy saved as --state for this network, with the "
            "same --momentum.",
        ) from None
    return {key[len(OWN) :]: array for key, array in arrays.items() if key.startswith(OWN)}


def _load_model_of(
    wanted: numpy.ndarray,
    model: str | os.PathLike[str],
    state: str | os.PathLike[str],
    network: Any,
) -> None:
    """Reads the model with a fingerprint, or the one that waits; raises as ``load_pair``."""
    refusal: Exception = StateFileError(
        f"state file {state} was not saved with model file {model}",
        "Give --initmodel the model that was saved with it, or leave --resume out "
        "to start at iteration 0 from this model.",
    )
    try:
        load_model(model, network)
        if _is_model(network, wanted):
            return
    except ModelFileError as error:
        refusal = error
    with contextlib.suppress(ModelFileError):
        waiting = next_to(model)
        load_model(waiting, network)
        if _is_model(network, wanted):
            replace(waiting, model)
            return
    raise refusal


def _is_model(network: Any, wanted: numpy.ndarray) -> bool:
    return numpy.array_equal(fingerprint(network), wanted)
