"""Which network an npz holds, told by the names of its arrays; conversion of earlier files.

Files of the book's networks carry no mark, so the names of their arrays must tell. Earlier
versions of this package stored two networks under other names than the book:

- policy_bn as ``l1/conv/W``, ``l1/bn/gamma``, … without convolution biases;
- policy_value_resnet as ``l1/conv/W``, ``l2/first/conv/W``, … with the heads of policy_value.

Both are converted to the book's names. Outside of training, the converted network computes
the same function.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy

from pydlshogi.network.trunk import DEPTH

#: For each network the keys that tell it, the most specific first.
_KEYS = (
    ("policy_value_history_bn", ("l1/recent/W", "l13_v/W")),
    ("policy_value_history_resnet", ("l1/recent/W", "value1/W")),
    ("policy_value_hand1x1_bn", ("l1/pieces/W", "l1/bn/gamma", "l13_v/W")),
    ("policy_value_hand1x1_resnet", ("l1/pieces/W", "l1/bn/gamma", "value1_bn/gamma")),
    ("policy_hand1x1_bn", ("l1/pieces/W", "l1/bn/gamma")),
    ("policy_hand1x1", ("l1/pieces/W",)),
    ("policy_value_small", ("policy1/W", "value4/W")),
    ("policy_value_resnet", ("policy/W", "value1/W")),
    ("policy_value_resnet", ("l1/conv/W", "l2/first/conv/W")),
    ("policy_bn", ("l1/W", "norm1/gamma")),
    ("policy_bn", ("l1/conv/W", "l1/bn/gamma")),
    ("policy_value", ("l1/W", "l13/W", "l13_v/W")),
    ("value", ("l1/W", "l13_v/W")),
    ("policy", ("l1/W", "l13/W")),
)

#: Residual blocks of the earlier policy_value_resnet: its layers l2 … l6.
_EARLIER_BLOCKS = 5

#: Earlier starts of the keys, as patterns, and today's.
_POLICY_BN = ((r"l(\d+)/conv/", r"l\1/"), (r"l(\d+)/bn/", r"norm\1/"))
_RESNET = (
    *(
        (rf"l{n + 1}/{old}/", f"b{n}/{new}/")
        for n in range(1, _EARLIER_BLOCKS + 1)
        for old, new in (
            ("first/conv", "conv1"),
            ("first/bn", "bn1"),
            ("conv", "conv2"),
            ("bn", "bn2"),
        )
    ),
    ("l13/", "policy/"),
    ("l13_bias/", "policy_bias/"),
    ("l13_v/", "value1/"),
    ("l14_v/", "value2/"),
    ("l15_v/", "value3/"),
)

#: ε of Chainer's batch normalization, and the names of its arrays.
_EPS = 2e-5
_NORMALIZATION = ("gamma", "beta", "avg_mean", "avg_var")


def recognize(arrays: Mapping[str, Any]) -> str | None:
    """Returns the name of the network that has arrays of these names; None if unknown.

    Of two networks with equal arrays, it returns the one that ``form_of`` names.
    """
    for name, keys in _KEYS:
        if all(key in arrays for key in keys):
            return name
    return None


def in_todays_layout(name: str, arrays: dict[str, Any]) -> dict[str, Any]:
    """Converts the arrays of an earlier version of a network.

    Args:
        name: Name of the network.
        arrays: The arrays by key; not changed.

    Returns:
        The converted arrays; ``arrays`` itself if they have today's names or are not complete.
    """
    convert = {"policy_bn": _policy_bn, "policy_value_resnet": _policy_value_resnet}.get(name)
    if convert is None or "l1/conv/W" not in arrays:
        return arrays
    try:
        return convert(arrays)
    except (IndexError, KeyError, TypeError, ValueError):
        return arrays  # a damaged file; the caller names the differences


def _policy_bn(arrays: dict[str, Any]) -> dict[str, Any]:
    biases = {
        f"l{n}/b": numpy.zeros(len(arrays[f"l{n}/conv/W"]), numpy.float32)
        for n in range(1, DEPTH + 1)
    }
    return _renamed(arrays, _POLICY_BN) | biases


def _policy_value_resnet(arrays: dict[str, Any]) -> dict[str, Any]:
    W, b = _folded(arrays["l1/conv/W"], *(arrays[f"l1/bn/{key}"] for key in _NORMALIZATION))
    rest = {key: array for key, array in arrays.items() if not key.startswith("l1/")}
    identity = _identity("value1_bn", len(arrays["l13_v/W"]))
    return _renamed(rest, _RESNET) | {"l1/W": W, "l1/b": b} | identity


def _folded(W: Any, gamma: Any, beta: Any, mean: Any, variance: Any) -> tuple[Any, Any]:
    """Folds a batch normalization; returns the filters and the bias of a convolution."""
    if any(array.shape != W.shape[:1] for array in (gamma, beta, mean, variance)):
        raise ValueError("the arrays of a batch normalization have one number for each channel")
    factor = gamma / numpy.sqrt(variance.astype(float) + _EPS)
    filters = W * factor[:, None, None, None]
    return filters.astype(numpy.float32), (beta - mean * factor).astype(numpy.float32)


def _identity(name: str, channels: int) -> dict[str, Any]:
    """Makes the arrays of a batch normalization that returns its input outside of training."""
    ones = numpy.ones(channels, numpy.float32)
    return {
        f"{name}/gamma": ones,
        f"{name}/beta": 0 * ones,
        f"{name}/avg_mean": 0 * ones,
        f"{name}/avg_var": ones - numpy.float32(_EPS),
        f"{name}/N": numpy.array(0),
    }


def _renamed(arrays: Mapping[str, Any], names: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Replaces the start of each key by the first pattern that matches."""

    def rename(key: str) -> str:
        for old, new in names:
            renamed, number = re.subn(f"^{old}", new, key)
            if number:
                return renamed
        return key

    return {rename(key): array for key, array in arrays.items()}
