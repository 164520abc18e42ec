"""Model files: Chainer's npz of a network's parameters, checked before it is used.

Under a key that Chainer passes over, a file says which network it holds. Files of the
book's network have exactly its 26 arrays and no such mark.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.files import write_beside
from pydlshogi.network.network import Network
from pydlshogi.network.npz import NpzError, read_npz
from pydlshogi.network.registry import DEFAULT, UnknownNetwork, form_of, make_network, name_of

#: Key of the array that holds the network's name.
MARK = "pydlshogi/network"


class ModelFileError(Exception):
    """A model file cannot be used; the text names it, says why and what to do."""


def save_model(path: str | os.PathLike[str], network: Any, *, half: bool = False) -> None:
    """Writes a network's parameters as Chainer's ``save_npz`` does, whole or not at all.

    Args:
        path: The file to make or replace.
        network: A ``chainer.Link``.
        half: Whether to store the numbers in 16 bits, which :func:`load_model` reads too.

    Raises:
        ModelFileError: a number is too large for 16 bits; nothing is written.
        OSError: the file cannot be written.
    """
    # Chainer goes through the parameters in the order of a set, another in each process.
    content = dict(sorted(chainer.serializers.npz.serialize(network).items()))
    if half:
        with numpy.errstate(over="ignore"):
            content = {key: array.astype(numpy.float16) for key, array in content.items()}
        if not is_finite(content):
            raise ModelFileError(
                f"{path} is not written: a number of the network is too large for 16 bits. "
                "Store it in 32."
            )
    name = name_of(network)
    if name not in (None, DEFAULT):
        content[MARK] = numpy.array(name)
    with write_beside(path) as file:
        # Compression would save 7 % of the size for 20 times the time.
        chainer.serializers.save_npz(file, content, compression=False)


def load_model(path: str | os.PathLike[str], network: Any) -> None:
    """Reads a model file into a network, after checking that it is one of this network.

    Args:
        path: A file made by :func:`save_model`, by the book's code or by Chainer's
            ``save_npz``. No pickled object in it is ever loaded.
        network: The ``chainer.Link`` to fill; unchanged when an error is raised.

    Raises:
        ModelFileError: no such file, not an npz, its arrays are not the network's, or a
            number in them is infinite or nan.
    """
    arrays, name = _read(path)
    wanted = name_of(network)
    if name is not None and (wanted is None or form_of(name) != form_of(wanted)):
        raise ModelFileError(
            f"model file {path} is of the network {name}, not of {_kind(network)}. "
            f"Choose that network (--network {name}), or another file."
        )
    _fill(network, arrays, path)


def load_network(path: str | os.PathLike[str], convolution: str = "auto") -> Network:
    """Makes the network that a model file holds.

    Args:
        path: As in :func:`load_model`.
        convolution: One of :data:`pydlshogi.network.cpu.convolution.CONVOLUTIONS`.

    Returns:
        The network that the file names, the book's where it names none, on the CPU.

    Raises:
        ModelFileError: no such file, not an npz, it names a network that is not known,
            or its arrays are not that network's.
    """
    arrays, name = _read(path)
    try:
        network = make_network(DEFAULT if name is None else name, convolution)
    except UnknownNetwork as error:
        raise ModelFileError(
            f"model file {path} cannot be used: its {error}. "
            "Update pydlshogi, or choose another file."
        ) from None
    _fill(network, arrays, path)
    return network


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], str | None]:
    """Reads a file's arrays, and the name of their network where the file has one."""
    try:
        arrays: dict[str, Any] = read_npz(path)
    except NpzError as error:
        raise ModelFileError(
            f"model file {path} {error}. Choose a file that train_policy.py saved as --model."
        ) from None
    if MARK not in arrays:
        return arrays, None
    mark = arrays.pop(MARK)
    if mark.dtype.kind != "U" or mark.shape:
        raise ModelFileError(
            f"model file {path} does not say which network it holds: {MARK} is not a name. "
            "Choose a file that train_policy.py saved as --model."
        )
    return arrays, str(mark)


def _fill(network: Any, arrays: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Gives a network its parameters, if the arrays are exactly those."""
    wrong = _differences(chainer.serializers.npz.serialize(network), arrays)
    # The two files of a checkpoint lie side by side, and an optimizer's has its count of updates.
    if wrong and "t" in arrays:
        raise ModelFileError(
            f"model file {path} holds the state of an optimizer, not a model. "
            "Choose a file that train_policy.py saved as --model."
        )
    if wrong:
        raise ModelFileError(
            f"model file {path} is not of {_kind(network)}: {wrong}. "
            "Choose a file that was saved from that."
        )
    if not is_finite(arrays):
        raise ModelFileError(
            f"model file {path} holds numbers that are not finite: its training has diverged. "
            "Choose another file."
        )
    chainer.serializers.NpzDeserializer(arrays).load(network)


def is_finite(arrays: Mapping[str, Any]) -> bool:
    """Says whether no floating-point number of some arrays is infinite or nan."""
    return all(
        bool(numpy.isfinite(array).all())
        for array in map(numpy.asarray, arrays.values())
        if array.dtype.kind == "f"
    )


def _kind(network: Any) -> str:
    """Says in words what a link is."""
    name = name_of(network)
    return f"a {type(network).__name__}" if name is None else f"the network {name}"


def _differences(expected: dict[str, Any], found: dict[str, Any]) -> str:
    """Names, in words, what a file lacks, has too much, or has in another shape."""
    missing = sorted(set(expected) - set(found))
    extra = sorted(set(found) - set(expected))
    shapes = [
        f"{key} has shape {found[key].shape} in place of {expected[key].shape}"
        for key in sorted(set(expected) & set(found))
        if found[key].shape != numpy.shape(expected[key])
    ]
    kinds = [
        f"{key} holds {found[key].dtype}"
        for key in sorted(set(expected) & set(found))
        if found[key].dtype.kind not in "fiu"
    ]
    parts = []
    if missing:
        parts.append(f"it lacks {_some(missing)}")
    if extra:
        parts.append(f"it has also {_some(extra)}")
    return "; ".join(parts + shapes[:3] + kinds[:3])


def _some(names: list[str], most: int = 4) -> str:
    """Joins the first few names."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")
