"""The trunk of the book's networks: twelve 3×3 convolutions with ReLU.

Source: 「将棋AIで学ぶディープラーニング」, chapter 7.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydlshogi.features import PLANE_NUM
from pydlshogi.layers.convolution import Convolution2D
from pydlshogi.network.network import Network
from pydlshogi.network.registry import MOST_CHANNELS

#: Filters of each hidden layer in the book.
ch = 192

#: Number of hidden layers.
DEPTH = 12

#: Keys of the first layer's filters, in the networks of this package.
_FIRST_LAYERS = ("l1/W", "l1/pieces/W", "l1/conv/W")


def channels_in(arrays: Mapping[str, Any], layers: int = DEPTH) -> dict[str, int] | None:
    """Reads the keyword argument ``channels``, if the arrays of a model file tell it.

    None: the file is far too small for so many layers. A wrong or hostile file must not ask for
    more memory than its own arrays.
    """
    shapes: list[tuple[int, ...]] = [getattr(arrays.get(key), "shape", ()) for key in _FIRST_LAYERS]
    found = (shape[0] for shape in shapes if len(shape) == 4 and 0 < shape[0] <= MOST_CHANNELS)
    channels = next(found, 0)
    there = sum(getattr(array, "size", 0) for array in arrays.values())
    if (layers - 1) * 9 * (channels or ch) ** 2 > 4 * there and (channels or ch) * layers > 12 * ch:
        return None
    return {"channels": channels} if channels else {}


class Trunk(Network):
    """The hidden layers l1 … l12: 3×3 convolutions with padding 1, each followed by ReLU.

    Each has as many filters as ``channels`` says. A subclass adds the heads. It may replace the
    hidden layers by overriding :meth:`first_layer` and :meth:`hidden_layer`.
    """

    def __init__(self, channels: int = ch) -> None:
        super().__init__()
        self.channels = channels
        with self.init_scope():
            self.l1 = self.first_layer()
            for n in range(2, DEPTH + 1):
                setattr(self, f"l{n}", self.hidden_layer(channels))

    @classmethod
    def sizes_in(cls, arrays: Mapping[str, Any]) -> dict[str, int]:
        """Reads ``channels`` from the first layer."""
        return channels_in(arrays) or {}

    def first_layer(self) -> Any:
        """Makes the link from the input planes to the first hidden layer's output."""
        return self.hidden_layer(PLANE_NUM)

    def hidden_layer(self, inputs: int) -> Any:
        """Makes a link from ``inputs`` planes to a hidden layer's output."""
        return Convolution2D(inputs, self.channels, ksize=3, pad=1, relu=True)

    def trunk(self, x: Any) -> Any:
        """Computes the last hidden layer (batch, channels, 9, 9) from the input planes."""
        h = x
        for n in range(1, DEPTH + 1):
            h = self[f"l{n}"](h)
        return h
