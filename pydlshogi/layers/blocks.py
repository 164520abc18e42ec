"""Layers that several networks share; all of them end with ReLU.

A link with batch normalization has a list ``folds``, which :mod:`pydlshogi.model_files.fold` reads.
Each entry has the names of the convolutions whose sum is normalized, and the name of the batch
normalization.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.features import HAND_PLANES, HISTORY_PLANES, PIECE_PLANES
from pydlshogi.layers.batch_normalization import BatchNormalization
from pydlshogi.layers.convolution import Convolution2D

F = chainer.functions

#: Type of ``folds``.
Folds = tuple[tuple[tuple[str, ...], str], ...]

#: Numbers of planes of the input.
_PIECES, _HANDS, _RECENT = (
    tuple(numbers.tolist()) for numbers in (PIECE_PLANES, HAND_PLANES, HISTORY_PLANES)
)


def planes_of(x: Any, numbers: tuple[int, ...]) -> Any:
    """Returns the planes of some numbers from a Variable or array (batch, planes, …)."""
    xp = chainer.backend.get_array_module(x)
    return x[:, _index(numbers, None if xp is numpy else xp.cuda.Device().id)]


@functools.cache
def _index(numbers: tuple[int, ...], gpu: int | None) -> Any:
    """Makes the index of planes once: each copy to a GPU takes time."""
    return numpy.array(numbers) if gpu is None else chainer.backends.cuda.cupy.array(numbers)


class NormalizedConvolution(chainer.Chain):
    """3×3 convolution, batch normalization, ReLU.

    The convolution has no bias: the normalization would subtract it again.
    """

    folds: Folds = ((("conv",), "bn"),)

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        with self.init_scope():
            self.conv = Convolution2D(inputs, outputs, ksize=3, pad=1, nobias=True)
            self.bn = BatchNormalization(outputs, relu=True)

    def forward(self, x: Any) -> Any:
        """Computes (batch, outputs, 9, 9) from (batch, inputs, 9, 9)."""
        return self.bn(self.conv(x))


class ResidualBlock(chainer.Chain):
    """Two 3×3 convolutions with batch normalization; their output is added to the input.

    Sources: D. Silver et al., Mastering the game of Go without human knowledge, Nature 550
    (2017); the names of the links are those of 「将棋AIで学ぶディープラーニング」.
    """

    folds: Folds = ((("conv1",), "bn1"), (("conv2",), "bn2"))

    def __init__(self, channels: int) -> None:
        super().__init__()
        with self.init_scope():
            self.conv1 = Convolution2D(channels, channels, ksize=3, pad=1, nobias=True)
            self.bn1 = BatchNormalization(channels, relu=True)
            self.conv2 = Convolution2D(channels, channels, ksize=3, pad=1, nobias=True)
            self.bn2 = BatchNormalization(channels)

    def forward(self, x: Any) -> Any:
        """Computes (batch, channels, 9, 9) from the same shape."""
        h = self.bn1(self.conv1(x))
        return F.relu(self.bn2(self.conv2(h)) + x)


class PiecesAndHands(chainer.Chain):
    """First layer with 3×3 filters for the piece planes and 1×1 filters for the hand planes.

    A hand plane is constant. A 3×3 filter learns nothing more from it than a 1×1 filter. At
    the edge of the board, the zeros of the padding disturb a 3×3 filter.

    Batch normalization may replace the bias.

    Source: the published comparison that docs/networks.md quotes.
    """

    def __init__(self, outputs: int, *, normalize: bool = False) -> None:
        super().__init__()
        self.normalize = normalize
        self.folds: Folds = ((("pieces", "hands"), "bn"),) if normalize else ()
        with self.init_scope():
            self.pieces = Convolution2D(
                len(PIECE_PLANES), outputs, ksize=3, pad=1, nobias=normalize
            )
            self.hands = Convolution2D(len(HAND_PLANES), outputs, ksize=1, nobias=True)
            if normalize:
                self.bn = BatchNormalization(outputs, relu=True)

    def forward(self, x: Any) -> Any:
        """Computes (batch, outputs, 9, 9) from planes (batch, 104, 9, 9)."""
        h = self.filtered(x)
        return self.bn(h) if self.normalize else F.relu(h)

    def filtered(self, x: Any) -> Any:
        """Computes the sum of the filters' outputs, before the normalization."""
        return self.pieces(planes_of(x, _PIECES)) + self.uniform(planes_of(x, _HANDS))

    def uniform(self, x: Any) -> Any:
        """Convolves constant planes (batch, planes, 9, 9)."""
        return self.hands(x)


class PiecesAndStretchedHands(PiecesAndHands):
    """The same function of the same parameters; a hand plane is computed as one square."""

    def uniform(self, x: Any) -> Any:
        """Convolves one square of each constant plane and stretches the result to 9×9."""
        height, width = x.shape[2:]
        # cover_all, true by default, would reduce 9×9 to one square again.
        return F.unpooling_2d(self.hands(x[:, :, :1, :1]), (height, width), cover_all=False)


class PiecesHandsAndRecent(PiecesAndHands):
    """PiecesAndHands, normalized, with 3×3 filters for the planes of the last two moves."""

    def __init__(self, outputs: int) -> None:
        super().__init__(outputs, normalize=True)
        self.folds = ((("pieces", "hands", "recent"), "bn"),)
        with self.init_scope():
            self.recent = Convolution2D(len(HISTORY_PLANES), outputs, ksize=3, pad=1, nobias=True)

    def filtered(self, x: Any) -> Any:
        """Computes the sum of the filters' outputs from planes (batch, 106, 9, 9)."""
        return super().filtered(x) + self.recent(planes_of(x, _RECENT))
