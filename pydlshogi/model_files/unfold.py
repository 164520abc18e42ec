"""Batch normalization put back into a network that was stored without it.

A model for play has its normalizations folded into the convolutions
(:mod:`pydlshogi.model_files.fold`). Such a network trains slower than the one that it was folded
from. Unfolding reverses the step: each convolution gets a normalization whose statistics are
measured on positions. Its scale and shift then cancel these statistics.
"""

from __future__ import annotations

from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.features import HAND_PLANES, PIECE_PLANES, PLANE_NUM
from pydlshogi.layers.blocks import PiecesAndHands, PiecesHandsAndRecent
from pydlshogi.model_files.fold import fold
from pydlshogi.network.network import Network
from pydlshogi.network.registry import make_network
from pydlshogi.network.trunk import DEPTH

#: Positions that are computed at a time.
_BATCH = 64

#: Filters with a smaller norm are not scaled to a norm of 1.
_LEAST_NORM = 1e-6


def unfold(source: Network, name: str, planes: numpy.ndarray) -> Network:
    """Makes a network with batch normalization that computes nearly what ``source`` does.

    Args:
        source: A network that :func:`pydlshogi.model_files.fold.fold` turns into a network of the
            book, on the CPU.
        name: One of :data:`pydlshogi.network.registry.UNFOLDABLE`.
        planes: (n, 104, 9, 9) float32: some hundred positions of games or more. The statistics
            of the normalizations are measured on them.

    Returns:
        A network of that name. Heads that ``source`` lacks have random weights from numpy's
        global generator. Filters of a history are 0. A 3×3 filter of a hand plane becomes a
        1×1 filter with the sum of its weights. The output differs only where such a filter
        crosses the edge of the board.

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
    """Sets the filters and the normalization of a layer.

    Args:
        layer: The normalized layer.
        plain: The convolution with a bias whose function the layer gets.
        x: (n, channels, 9, 9) float32: input of both.

    Returns:
        The output, of the same shape except for the number of channels.
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
