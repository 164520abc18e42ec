"""Model files: Chainer's npz of a network's parameters, checked before use.

A file of the book's networks holds exactly the book's arrays; the names of the arrays tell
which network it is. A file of another network also holds its name, under a key that Chainer
ignores.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.errors import UserError
from pydlshogi.files import not_written, write_beside
from pydlshogi.model_files.npz import NpzError, read_headers, read_npz
from pydlshogi.network import own
from pydlshogi.network.network import Network
from pydlshogi.network.registry import (
    BOOK,
    DEFAULT,
    UnknownNetwork,
    UnknownSize,
    form_of,
    make_network,
    name_of,
    sizes_in,
)

#: Key of the array with the network's name.
MARK = "pydlshogi/network"

#: For each network the keys that tell it, the most specific first.
_TELLING = (
    ("policy_value_history_bn", ("l1/recent/W", "l13_v/W")),
    ("policy_value_history_resnet", ("l1/recent/W", "value1/W")),
    ("policy_value_hand1x1_bn", ("l1/pieces/W", "l1/bn/gamma", "l13_v/W")),
    ("policy_value_hand1x1_resnet", ("l1/pieces/W", "l1/bn/gamma", "value1_bn/gamma")),
    ("policy_hand1x1_bn", ("l1/pieces/W", "l1/bn/gamma")),
    ("policy_hand1x1", ("l1/pieces/W",)),
    ("policy_value_small", ("policy1/W", "value4/W")),
    ("policy_value_resnet", ("policy/W", "value1/W")),
    ("policy_bn", ("l1/W", "norm1/gamma")),
    ("policy_value", ("l1/W", "l13/W", "l13_v/W")),
    ("value", ("l1/W", "l13_v/W")),
    ("policy", ("l1/W", "l13/W")),
)


class ModelFileError(UserError):
    """A model file cannot be used or written."""


class UnnamedNetwork(ModelFileError):
    """A model file is of a user's network whose Python file was not named."""


def save_model(path: str | os.PathLike[str], network: Any, *, half: bool = False) -> None:
    """Writes the parameters of a ``chainer.Link`` atomically, as Chainer's ``save_npz`` does.

    ``half`` stores float16 numbers, which :func:`load_model` reads too.

    Raises:
        ModelFileError: a number is too large for float16; nothing is written.
        OSError: the file cannot be written.
    """
    # Chainer goes through the parameters in the order of a set, which differs between processes.
    content = dict(sorted(chainer.serializers.npz.serialize(network).items()))
    if half:
        with numpy.errstate(over="ignore"):
            content = {
                key: array.astype(numpy.float16) if array.dtype.kind == "f" else array
                for key, array in _arrays(content)
            }
        if not is_finite(content):
            raise ModelFileError(
                f"{path} is not written: a number of the network is too large for 16 bits. "
                "Store it in 32."
            )
    name = name_of(network)
    if name is not None and name not in BOOK:
        content[MARK] = numpy.array(name)
    with write_beside(path) as file:
        # Compression would save 7 % of the size for 20 times the time.
        chainer.serializers.save_npz(file, content, compression=False)


def save_derived_model(
    path: str | os.PathLike[str],
    network: Any,
    source: str | os.PathLike[str],
    *,
    half: bool = False,
) -> None:
    """Writes a network that was made from another model file; makes the folder if needed.

    The arguments are those of :func:`save_model`. ModelFileError: both paths are the same file, the
    file cannot be written, or a number is too large for float16.
    """
    if os.path.exists(path) and os.path.exists(source) and os.path.samefile(path, source):
        raise ModelFileError(
            f"{path} is the model file itself, and its training needs it to continue. "
            "Give the output another name."
        )
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        save_model(path, network, half=half)
    except OSError as error:
        raise ModelFileError(not_written(path, error)) from None


def load_model(path: str | os.PathLike[str], network: Any) -> None:
    """Reads a model file into a ``chainer.Link``, after checking that it fits.

    The file is of :func:`save_model`, of the book's code or of Chainer's ``save_npz``. Pickled
    objects in it are never loaded.

    Raises:
        ModelFileError: the file does not exist, is not an npz, holds other arrays than the
            network, or holds an infinite number or nan. The network is unchanged.
    """
    headers, name = _read(path, read_headers)
    wanted = name_of(network)
    if name is not None and wanted is not None and form_of(name) != form_of(wanted):
        raise ModelFileError(
            f"model file {path} is of the network {name}, not of {_kind(network)}. "
            f"Choose that network, or another file."
        )
    _fill(network, path, headers)


def load_network(path: str | os.PathLike[str]) -> Network:
    """Makes the network that a model file holds, on the CPU, in the sizes of the file.

    If the file has no mark, the names and shapes of its arrays determine the network.

    Raises:
        ModelFileError: the file does not exist, is not an npz, or does not hold the arrays of a
            network of this package. ``UnnamedNetwork`` if it is of a user's network.
    """
    arrays, name = _read(path, read_headers)
    name = DEFAULT if name is None else name
    try:
        with chainer.using_config("draws_weights", False):
            sizes = sizes_in(name, arrays)
            network = make_network(name, **sizes)
    except UnknownSize:
        raise ModelFileError(
            f"model file {path} cannot be used: the class of its network {name[:60]!r} no longer "
            f"takes {', '.join(sizes)}, which its sizes_in returns. Correct one of them."
        ) from None
    except UnknownNetwork as error:
        remedy = own.remedy(name)
        if remedy:
            raise UnnamedNetwork(
                f"model file {path} is of the network {name[:60]!r}. {remedy}"
            ) from None
        raise ModelFileError(
            f"model file {path} cannot be used: its {error}. "
            "Update pydlshogi, or choose another file."
        ) from None
    _fill(network, path, arrays)
    return network


def sizes_in_file(path: str | os.PathLike[str], name: str) -> dict[str, int]:
    """Reads the keyword arguments of ``make_network`` from a model file.

    For a file of another network they may be meaningless; :func:`load_model` then refuses it.
    """
    return sizes_in(name, _read(path, read_headers)[0])


def recognize(arrays: Mapping[str, Any]) -> str | None:
    """Returns the name of the network that has arrays of these names; None if unknown.

    Of two networks with equal arrays, it returns the one that ``form_of`` names.
    """
    for name, keys in _TELLING:
        if all(key in arrays for key in keys):
            return name
    return None


def _read(
    path: str | os.PathLike[str], read: Callable[[Any], dict[str, Any]]
) -> tuple[dict[str, Any], str | None]:
    """Reads a file's arrays, and the name of their network; None if that is unknown."""
    try:
        arrays = read(path)
    except NpzError as error:
        raise ModelFileError(
            f"model file {path} {error}. Choose a file that a training program saved as its model."
        ) from None
    if MARK not in arrays:
        return arrays, recognize(arrays)
    mark = arrays.pop(MARK)
    if mark.dtype.kind != "U" or mark.shape:
        raise ModelFileError(
            f"model file {path} does not say which network it holds: {MARK} is not a name. "
            "Choose a file that a training program saved as its model."
        )
    return arrays, str(mark)


def _fill(network: Any, path: str | os.PathLike[str], headers: dict[str, Any]) -> None:
    """Copies a file's arrays into a network, after checking that they are exactly its arrays."""
    _check_fit(network, path, headers)  # a large file of something else is not unpacked
    arrays, _ = _read(path, read_npz)
    _check_fit(network, path, arrays)  # it may have been replaced
    if not is_finite(arrays):
        raise ModelFileError(
            f"model file {path} holds numbers that are not finite: its training has diverged. "
            "Choose another file."
        )
    chainer.serializers.NpzDeserializer(arrays).load(network)


def _check_fit(network: Any, path: str | os.PathLike[str], arrays: dict[str, Any]) -> None:
    """Refuses arrays that are not exactly those of a network."""
    wrong = _differences(chainer.serializers.npz.serialize(network), arrays)
    # A checkpoint has two files. The optimizer's state has "t", its number of updates.
    if wrong and "t" in arrays:
        raise ModelFileError(
            f"model file {path} holds the state of an optimizer, not a model. "
            "Choose a file that a training program saved as its model."
        )
    if wrong:
        raise ModelFileError(
            f"model file {path} is not of {_kind(network)}: {wrong}. "
            "Choose a file that was saved from that."
        )


def is_finite(arrays: Mapping[str, Any]) -> bool:
    """Returns whether all floating-point numbers in the arrays are finite."""
    return all(
        bool(numpy.isfinite(array).all()) for _, array in _arrays(arrays) if array.dtype.kind == "f"
    )


def _arrays(content: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Lists what Chainer serializes, with plain numbers as arrays."""
    return [(key, numpy.asarray(value)) for key, value in content.items()]


def _kind(network: Any) -> str:
    """Describes a link in words."""
    name = name_of(network)
    return f"a {type(network).__name__}" if name is None else f"the network {name}"


def _differences(expected: dict[str, Any], found: dict[str, Any]) -> str:
    """Describes missing arrays, extra arrays, and arrays of another shape or dtype."""
    missing = sorted(set(expected) - set(found))
    extra = sorted(set(found) - set(expected))
    common = [
        (key, numpy.asarray(expected[key]), found[key]) for key in sorted(expected) if key in found
    ]
    shapes = [
        f"{key} has shape {array.shape} in place of {wanted.shape}"
        for key, wanted, array in common
        if array.shape != wanted.shape
    ]
    kinds = [
        f"{key} holds {array.dtype}"
        for key, wanted, array in common
        if array.dtype.kind not in ("iu" if wanted.dtype.kind in "iu" else "fiu")
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
