"""A new network with the trunk of a trained one, as a start for its training."""

from __future__ import annotations

from collections.abc import Iterator

import numpy

from pydlshogi.compat import chainer
from pydlshogi.errors import UserError
from pydlshogi.model_files.fold import POLICY_HEAD, FoldError, fold
from pydlshogi.network.network import Network, arrays_of
from pydlshogi.network.registry import UNFOLDABLE, make_network, name_of, sizes_in
from pydlshogi.network.value import ValueNetwork

#: Names of the links of the heads; every other link belongs to the trunk.
_HEADS = (*POLICY_HEAD, *ValueNetwork.value_head)

#: Filters of the last two moves. In a new network they are 0, if the source does not have them.
_HISTORY = "l1/recent/W"


class TransferError(UserError):
    """The trunk of one network does not fit into the other."""


def make_from_policy(source: Network, name: str) -> Network:
    """Makes a network with the trunk of another one, and the heads that both have.

    If the two trunks differ, the source is folded to the book's network first
    (:func:`pydlshogi.model_files.fold.fold`).

    Args:
        source: The trained network, on the CPU.
        name: Name of the new network, for example ``value``. It gets the source's number of
            channels. Its other heads have random weights from numpy's global generator. Filters
            of the last two moves are 0 if the source does not see these moves.

    Raises:
        TransferError: the source has no policy head, or the new network needs arrays that the
            source does not have.
    """
    if not source.has_policy:
        raise TransferError(
            f"a {name_of(source)} network has no policy head. Choose a model that has one."
        )
    target = make_network(name, **sizes_in(name, arrays_of(source)))
    arrays = arrays_of(target)
    trunk = {key for key in arrays if key.split("/")[0] not in _HEADS} - {_HISTORY}
    if _HISTORY in arrays:
        arrays[_HISTORY] = numpy.zeros_like(arrays[_HISTORY])
    forms = list(_forms(source))
    for candidate in forms:
        found = arrays_of(candidate)
        common = {key for key in arrays if key in found and arrays[key].shape == found[key].shape}
        if trunk <= common:
            copied = {key: (found if key in common else arrays)[key] for key in arrays}
            chainer.serializers.NpzDeserializer(copied).load(target)
            return target
    can_unfold = len(forms) > 1 and name in UNFOLDABLE
    raise TransferError(
        f"the hidden layers of a {name_of(source)} network do not fit into a {name} network. "
        f"Choose another model or another network{', or unfold it' if can_unfold else ''}."
    )


def _forms(source: Network) -> Iterator[Network]:
    """Yields a network and, if possible, the book's network that computes the same."""
    yield source
    try:
        yield fold(source, keep_value=source.value_kind is not None)
    except FoldError:
        return
