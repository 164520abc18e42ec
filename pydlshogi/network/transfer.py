"""A new network with the trunk of a trained one, as a start for its training."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.errors import UserError
from pydlshogi.network.fold import FoldError, fold
from pydlshogi.network.network import Network
from pydlshogi.network.registry import make_network, name_of, network_class

#: Names of the links of the heads; every other link belongs to the trunk.
_HEADS = ("l13", "l13_bias", "l13_v", "l14_v", "l15_v")


class TransferError(UserError):
    """The trunk of one network does not fit into the other."""


def make_from_policy(source: Network, name: str) -> Network:
    """Makes a network with the trunk of another one, and the heads that both have.

    If the two trunks differ, the source is folded to the book's policy network first
    (:func:`pydlshogi.network.fold.fold`).

    Args:
        source: The trained network, on the CPU.
        name: Name of the new network, for example ``value``. It gets the source's number of
            channels. Its other heads have random weights from numpy's global generator.

    Raises:
        TransferError: the new network needs arrays that the source does not have.
    """
    target = make_network(name, **network_class(name).sizes_in(_arrays_of(source)))
    arrays = _arrays_of(target)
    trunk = {key for key in arrays if key.split("/")[0] not in _HEADS}
    for candidate in _forms(source):
        found = _arrays_of(candidate)
        common = {key for key in arrays if key in found and arrays[key].shape == found[key].shape}
        if trunk <= common:
            copied = {key: (found if key in common else arrays)[key] for key in arrays}
            chainer.serializers.NpzDeserializer(copied).load(target)
            return target
    raise TransferError(
        f"the hidden layers of a {name_of(source)} network do not fit into a {name} network. "
        "Choose another model or another --network."
    )


def _forms(source: Network) -> Iterator[Network]:
    """Yields a network and, if possible, its policy as the book's policy network."""
    yield source
    try:
        yield fold(source)
    except FoldError:
        return


def _arrays_of(network: Network) -> dict[str, Any]:
    content = chainer.serializers.npz.serialize(network)
    return {key: numpy.asarray(value) for key, value in content.items()}
