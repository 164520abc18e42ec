"""A new network with the trunk of a trained one, as a start for its training.

:func:`make_from_policy` copies the trunk. :func:`unfold` also puts batch normalization back, which
a model for play lacks: with it the network trains faster.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.errors import UserError
from pydlshogi.features import HAND_PLANES, PIECE_PLANES, PLANE_NUM
from pydlshogi.layers.blocks import PiecesAndHands, PiecesHandsAndRecent
from pydlshogi.model_files.fold import POLICY_HEAD, FoldError, fold
from pydlshogi.network.network import Network, arrays_of
from pydlshogi.network.registry import UNFOLDABLE, make_network, name_of, sizes_in
from pydlshogi.network.trunk import DEPTH
from pydlshogi.network.value import ValueNetwork

#: Names of the links of the heads; every other link belongs to the trunk.
_HEADS = (*POLICY_HEAD, *ValueNetwork.value_head)

#: Filters of the last two moves. In a new network they are 0, if the source does not have them.
_HISTORY = "l1/recent/W"

#: Positions that :func:`unfold` computes at a time.
_BATCH = 64

#: Filters with a smaller norm are not scaled to a norm of 1.
_LEAST_NORM = 1e-6


class TransferError(UserError):
    """The trunk of one network does not fit into the other."""


def make_from_policy(source: Network, name: str) -> Network:
    """Makes a network with the trunk of another one on the CPU, and the heads that both have.

    It has the source's number of channels. If the two trunks differ, the source is folded to the
    book's network first (:func:`pydlshogi.model_files.fold.fold`). The other heads have random
    weights from numpy's global generator. Filters of the last two moves are 0 if the source does
    not see these moves.

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
    forms = [source]
    with contextlib.suppress(FoldError):  # the book's network that computes the same, too
        forms.append(fold(source, keep_value=source.value_kind is not None))
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


def unfold(source: Network, name: str, planes: numpy.ndarray) -> Network:
    """Makes a network with batch normalization that computes nearly what ``source`` does.

    Each convolution gets a normalization whose statistics are measured on positions. Its scale and
    shift then cancel these statistics.

    Args:
        source: A network that :func:`pydlshogi.model_files.fold.fold` turns into a network of the
            book, on the CPU.
        name: One of :data:`pydlshogi.network.registry.UNFOLDABLE`.
        planes: (n, 104, 9, 9) float32: some hundred positions of games or more.

    Returns:
        A network of that name. Heads and filters that ``source`` lacks are as in
        :func:`make_from_policy`. A 3×3 filter of a hand plane becomes a 1×1 filter with the sum of
        its weights. The output differs only where such a filter crosses the edge of the board.

    Raises:
        FoldError: no network of the book computes what ``source`` computes.
    """
    plain: Any = fold(source, keep_value=source.value_kind is not None)
    network: Any = make_network(name, channels=plain.channels)
    layers = {f"l{n}" for n in range(1, DEPTH + 1)}
    for link in network.children():
        if link.name not in layers and hasattr(plain, link.name):
            link.copyparams(plain[link.name])
    # The filters of the history are 0 at first: its planes need no values here.
    history = numpy.zeros((len(planes), network.plane_num - PLANE_NUM, 9, 9), planes.dtype)
    h = numpy.concatenate([planes, history], axis=1)
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        for n in range(1, DEPTH + 1):
            h = _unfold_layer(network[f"l{n}"], plain[f"l{n}"], h)
    return network


def _unfold_layer(layer: Any, plain: Any, x: numpy.ndarray) -> numpy.ndarray:
    """Gives a normalized layer the function of a convolution with a bias.

    It returns the output, (n, channels out, 9, 9), for the input x, (n, channels in, 9, 9) float32.
    """
    # Normalization cancels any scale of the filters. Their norm decides how much a step of the
    # optimizer changes them; the initialization near the identity has norms near 1, too.
    norms = numpy.sqrt((plain.W.array.astype(float) ** 2).sum(axis=(1, 2, 3)))
    norms = numpy.maximum(norms, _LEAST_NORM)
    _set_filters(layer, plain.W.array / norms[:, None, None, None])
    bn = layer.bn
    bn.relu, relu = False, bn.relu
    bn.gamma.array[...], bn.beta.array[...] = 1, 0
    bn.avg_mean[...], bn.avg_var[...] = 0, 1 - bn.eps
    parts = numpy.split(x, range(_BATCH, len(x), _BATCH))
    sums = numpy.concatenate([layer(part).array for part in parts])
    bn.relu = relu
    bn.avg_mean[...] = mean = sums.mean(axis=(0, 2, 3), dtype=float)
    bn.avg_var[...] = variance = sums.var(axis=(0, 2, 3), dtype=float)
    bn.gamma.array[...] = norms * numpy.sqrt(variance + bn.eps)
    bn.beta.array[...] = norms * mean + plain.b.array
    return numpy.concatenate([layer(part).array for part in parts])


def _set_filters(layer: Any, W: numpy.ndarray) -> None:
    """Sets the filters (channels out, channels in, 3, 3) of a normalized layer."""
    if isinstance(layer, PiecesAndHands):
        layer.pieces.W.array[...] = W[:, PIECE_PLANES]
        layer.hands.W.array[...] = W[:, HAND_PLANES].sum(axis=(2, 3), keepdims=True)
        if isinstance(layer, PiecesHandsAndRecent):
            layer.recent.W.array[...] = 0
    else:
        layer.conv.W.array[...] = W
