"""Fully connected layers, computed as 1×1 filters are."""

from __future__ import annotations

from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.network.cpu.convolution import check_convolution, convolution_2d

F = chainer.functions
L = chainer.links


class Linear(L.Linear):
    """``chainer.links.Linear`` that leaves the processors to the layers around it.

    On a CPU a product of Chainer's own would wake BLAS's threads, which go on spinning
    when it is done: with 2 processors the 3×3 convolutions before and after a value head
    took half as long again. So a batch of vectors is taken for one board, each vector a
    square, and goes through 1×1 filters.

    Args:
        inputs: Length of the vectors in.
        outputs: Length of the vectors out.
        relu: Whether ReLU follows.
        convolution: One of :data:`pydlshogi.network.cpu.convolution.CONVOLUTIONS`.

    Raises:
        ValueError: ``convolution`` is not known.
    """

    def __init__(
        self, inputs: int, outputs: int, *, relu: bool = False, convolution: str = "auto"
    ) -> None:
        super().__init__(inputs, outputs)
        self.relu = relu
        self.convolution = check_convolution(convolution)

    def forward(self, x: Any) -> Any:  # type: ignore[override]
        """Computes vectors.

        Args:
            x: (batch, …), as many numbers for each of the batch as ``inputs``.

        Returns:
            chainer.Variable (batch, outputs).
        """
        if self.convolution == "chainer" or self.xp is not numpy:
            y = super().forward(x)
            return F.relu(y) if self.relu else y
        outputs, inputs = self.W.shape
        board = F.reshape(F.transpose(F.reshape(x, (-1, inputs))), (1, inputs, -1, 1))
        filters = F.reshape(self.W, (outputs, inputs, 1, 1))
        y = convolution_2d(board, filters, self.b, relu=self.relu, convolution=self.convolution)
        return F.transpose(F.reshape(y, (outputs, -1)))
