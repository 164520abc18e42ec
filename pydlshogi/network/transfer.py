"""The trunk of one network copied into another, as a start for its training."""

from __future__ import annotations

from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.errors import UserError
from pydlshogi.network.fold import FoldError, fold
from pydlshogi.network.network import Network
from pydlshogi.network.registry import name_of

#: The networks that :func:`transfer` fills.
TARGETS = ("value", "policy_value", "policy_value_hand1x1_bn")

#: First parts of the keys of the heads.
_HEADS = ("l13", "l13_bias", "l13_v", "l14_v", "l15_v")


class TransferError(UserError):
    """The trunk of one network does not fit into the other."""


def transfer(source: Network, target: Network) -> None:
    """Copies the trunk, and the heads that both networks have, into a network.

    If the two trunks differ, the source is folded to the book's policy network first
    (:func:`pydlshogi.network.fold.fold`).

    Args:
        source: The trained network.
        target: The network to fill, of the same number of channels; its other heads keep their
            initial weights. It is unchanged when an error is raised.

    Raises:
        TransferError: the target needs arrays that the source does not have.
    """
    arrays = _serialize(target)
    for candidate in _forms(source):
        found = _serialize(candidate)
        common = {key for key in arrays if key in found and arrays[key].shape == found[key].shape}
        if all(key in common for key in arrays if key.split("/")[0] not in _HEADS):
            chainer.serializers.NpzDeserializer(
                {**arrays, **{key: found[key] for key in common}}
            ).load(target)
            return
    raise TransferError(
        f"the trunk of a {name_of(source)} network does not fit into a {name_of(target)} network. "
        "Choose another model, or another --network."
    )


def _forms(source: Network) -> Any:
    yield source
    try:
        yield fold(source)
    except FoldError:
        return


def _serialize(network: Network) -> dict[str, Any]:
    """Returns the arrays of a network by key."""
    content = chainer.serializers.npz.serialize(network)
    return {key: numpy.asarray(value) for key, value in content.items()}
