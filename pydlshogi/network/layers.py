"""Layers that the relatives of the book's network put in place of a plain one.

All take and give boards of 9×9, and end with ReLU.
"""

from __future__ import annotations

from typing import Any

from pydlshogi.compat import chainer
from pydlshogi.features import HAND_PLANES, PIECE_PLANES, PLY_PLANES
from pydlshogi.network.cpu.convolution import Convolution2D
from pydlshogi.network.cpu.normalization import BatchNormalization

F = chainer.functions


class NormalizedConvolution(chainer.Chain):
    """3×3 convolution, batch normalization, ReLU.

    The convolution has no bias: the normalization would subtract it again.

    Args:
        inputs: Number of planes in.
        outputs: Number of planes out.
        convolution: One of :data:`pydlshogi.network.cpu.convolution.CONVOLUTIONS`.
    """

    def __init__(self, inputs: int, outputs: int, convolution: str) -> None:
        super().__init__()
        with self.init_scope():
            self.conv = Convolution2D(
                inputs, outputs, ksize=3, pad=1, nobias=True, convolution=convolution
            )
            self.bn = BatchNormalization(outputs, relu=True, convolution=convolution)

    def forward(self, x: Any) -> Any:
        """Computes (batch, outputs, 9, 9) from (batch, inputs, 9, 9)."""
        return self.bn(self.conv(x))


class ResidualBlock(chainer.Chain):
    """Two normalized 3×3 convolutions, added to what went in.

    Source: D. Silver et al., Mastering the game of Go without human knowledge, Nature 550 (2017).

    Args:
        channels: Number of planes in and out.
        convolution: One of :data:`pydlshogi.network.cpu.convolution.CONVOLUTIONS`.
    """

    def __init__(self, channels: int, convolution: str) -> None:
        super().__init__()
        with self.init_scope():
            self.first = NormalizedConvolution(channels, channels, convolution)
            self.conv = Convolution2D(
                channels, channels, ksize=3, pad=1, nobias=True, convolution=convolution
            )
            self.bn = BatchNormalization(channels, convolution=convolution)

    def forward(self, x: Any) -> Any:
        """Computes (batch, channels, 9, 9) from the same shape."""
        return F.relu(x + self.bn(self.conv(self.first(x))))


class PiecesAndHands(chainer.Chain):
    """First layer with 3×3 filters for the piece planes and 1×1 filters for the others.

    A plane that is the same everywhere tells a 3×3 filter nothing more than a 1×1 filter,
    and something wrong at the edge, where the padding is 0.

    Source: the published comparison in "Relatives of the network" of the README.

    Args:
        outputs: Number of planes out.
        convolution: One of :data:`pydlshogi.network.cpu.convolution.CONVOLUTIONS`.
        ply: Whether planes of the move number follow the 104; they too are the same
            everywhere.
        normalize: Whether a batch normalization comes before ReLU, in place of the bias.
    """

    def __init__(
        self, outputs: int, convolution: str, *, ply: bool = False, normalize: bool = False
    ) -> None:
        super().__init__()
        self._uniform_planes = [*HAND_PLANES, *(PLY_PLANES if ply else ())]
        with self.init_scope():
            self.pieces = Convolution2D(
                len(PIECE_PLANES),
                outputs,
                ksize=3,
                pad=1,
                nobias=normalize,
                convolution=convolution,
            )
            self.hands = Convolution2D(
                len(self._uniform_planes), outputs, ksize=1, nobias=True, convolution=convolution
            )
            if normalize:
                self.bn = BatchNormalization(outputs, relu=True, convolution=convolution)

    def forward(self, x: Any) -> Any:
        """Computes (batch, outputs, 9, 9) from planes (batch, 104 or 112, 9, 9)."""
        h = self.pieces(x[:, PIECE_PLANES]) + self.uniform(x[:, self._uniform_planes])
        return F.relu(h) if self.pieces.b is not None else self.bn(h)

    def uniform(self, x: Any) -> Any:
        """Filters planes that are the same everywhere, as 9×9 boards.

        Args:
            x: (batch, planes, 9, 9).

        Returns:
            (batch, outputs, 9, 9) Variable.
        """
        return self.hands(x)


class PiecesAndStretchedHands(PiecesAndHands):
    """The same function from the same parameters, each uniform plane filtered as one square."""

    def uniform(self, x: Any) -> Any:
        """See :class:`PiecesAndHands`; one square is computed and stretched to 9×9."""
        height, width = x.shape[2:]
        # cover_all, true by default, would cut 9×9 back to the one square it came from.
        return F.unpooling_2d(self.hands(x[:, :, :1, :1]), (height, width), cover_all=False)
