"""Fully connected layers, computed as 1×1 convolutions."""

from __future__ import annotations

from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.layers.convolution import convolution_2d, get_convolution
from pydlshogi.layers.gpu import recording

F = chainer.functions
L = chainer.links


class Linear(L.Linear):
    """``chainer.links.Linear`` that does not slow down the layers around it.

    On a CPU, Chainer's product would use the threads of BLAS. These threads keep spinning after the
    product, which slows down the convolutions before and after it. So this layer treats a batch of
    vectors as one board, with a vector on each square, and computes a 1×1 convolution. It does so
    on a GPU if that records, because Chainer's product cannot be recorded.
    """

    def __init__(self, inputs: int, outputs: int, *, relu: bool = False) -> None:
        super().__init__(inputs, outputs)
        self.relu = relu

    def forward(self, x: Any) -> Any:  # type: ignore[override]
        """Computes (batch, outputs) from (batch, …) with ``inputs`` numbers for each element."""
        is_chainers = self.xp is not numpy and not recording.is_wanted()
        if get_convolution() == "chainer" or is_chainers:
            y = super().forward(x)
            return F.relu(y) if self.relu else y
        outputs, inputs = self.W.shape
        board = F.reshape(F.transpose(F.reshape(x, (-1, inputs))), (1, inputs, -1, 1))
        filters = F.reshape(self.W, (outputs, inputs, 1, 1))
        y = convolution_2d(board, filters, self.b, relu=self.relu)
        return F.transpose(F.reshape(y, (outputs, -1)))
