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
from collections.abc import Mapping
from typing import Any

import numpy

from pydlshogi.network.trunk import DEPTH

#: For each network the keys that tell it, the most specific first.
_KEYS = (
    ("policy_value_hand1x1_bn", ("l1/pieces/W", "l1/bn/gamma", "l13_v/W")),
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

#: ε of Chainer's batch normalization.
_EPS = 2e-5


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
    try:
        if name == "policy_bn" and "l1/conv/W" in arrays:
            return _policy_bn(arrays)
        if name == "policy_value_resnet" and "l1/conv/W" in arrays:
            return _policy_value_resnet(arrays)
    except (KeyError, TypeError, ValueError):  # a damaged file: the caller names the differences
        pass
    return arrays


def _policy_bn(arrays: dict[str, Any]) -> dict[str, Any]:
    converted = _renamed(arrays, ((r"(l\d+)/conv/", r"\1/"), (r"l(\d+)/bn/", r"norm\1/")))
    for n in range(1, DEPTH + 1):
        converted[f"l{n}/b"] = numpy.zeros(len(arrays[f"l{n}/conv/W"]), numpy.float32)
    return converted


def _policy_value_resnet(arrays: dict[str, Any]) -> dict[str, Any]:
    factor = arrays["l1/bn/gamma"] / numpy.sqrt(arrays["l1/bn/avg_var"].astype(float) + _EPS)
    W = arrays["l1/conv/W"] * factor[:, None, None, None]
    b = arrays["l1/bn/beta"] - arrays["l1/bn/avg_mean"] * factor
    blocks = {key: array for key, array in arrays.items() if not key.startswith("l1/")}
    for n in range(1, _EARLIER_BLOCKS + 1):
        names = (("first/conv", "conv1"), ("first/bn", "bn1"), ("conv", "conv2"), ("bn", "bn2"))
        blocks = _renamed(blocks, [(rf"l{n + 1}/{old}/", f"b{n}/{new}/") for old, new in names])
    heads = (
        ("l13/", "policy/"),
        ("l13_bias/", "policy_bias/"),
        ("l13_v/", "value1/"),
        ("l14_v/", "value2/"),
        ("l15_v/", "value3/"),
    )
    converted = _renamed(blocks, heads)
    converted |= {"l1/W": W.astype(numpy.float32), "l1/b": b.astype(numpy.float32)}
    return converted | _identity("value1_bn", len(arrays["l13_v/W"]))


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


def _renamed(arrays: Mapping[str, Any], names: Any) -> dict[str, Any]:
    """Replaces the start of each key by the first pattern that matches it."""

    def rename(key: str) -> str:
        for old, new in names:
            if re.match(old, key):
                return re.sub(f"^{old}", new, key)
        return key

    return {rename(key): array for key, array in arrays.items()}
