"""1×1 convolution: one matrix product a board.

Chainer's code copies the boards into columns first. Here each product reads the board in
place, in any memory order. BLAS uses one thread in each thread of ours. Its own threads
would keep spinning after a product, and slow down the layers before and after it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy

from pydlshogi.layers.cpu.threads import Workspace, in_threads, plan

#: Largest number of boards in a chunk; smallest number of boards for one thread.
_CHUNK, _LEAST = 16, 4

_workspace = Workspace()


def forward(x: Any, W: Any, b: Any, relu: bool) -> Any:
    """Convolves boards of any size with filters (channels out, channels in, 1, 1).

    Otherwise it is as :func:`pydlshogi.layers.cpu.winograd.forward`; the result is contiguous.
    """
    n, inputs, height, width = x.shape
    x = x.reshape(n, inputs, -1)
    W = W.reshape(-1, inputs)
    y = numpy.empty((n, len(W), x.shape[2]), numpy.float32)
    chunks = plan(n, _LEAST, n)

    def work(thread: int) -> None:
        for start, stop in chunks[thread]:
            out = numpy.matmul(W, x[start:stop], out=y[start:stop])
            if b is not None:
                out += b[:, None]
            if relu:
                numpy.maximum(out, 0, out=out)

    in_threads(len(chunks), work)
    return y.reshape(n, -1, height, width)


def backward(x: Any, W: Any, y: Any, gy: Any, indexes: Collection[int]) -> tuple[Any, Any, Any]:
    """Computes the gradients as :func:`pydlshogi.layers.cpu.winograd.backward`.

    That of b, too, is None if the caller does not use it.
    """
    n, inputs, height, width = x.shape
    outputs = len(W)
    x = x.reshape(n, inputs, -1)
    W = W.reshape(outputs, inputs)
    gy = gy.reshape(n, outputs, -1)
    if y is not None:
        gy = gy * (y.reshape(gy.shape) > 0)
    chunks = plan(n, _LEAST, _CHUNK)
    # One sum for each thread, added in the order of the threads: reproducible results.
    gW = numpy.zeros((len(chunks), outputs, inputs), numpy.float32)
    gx = numpy.empty((x.shape[2], n, inputs), numpy.float32) if 0 in indexes else None

    def work(thread: int) -> None:
        for start, stop in chunks[thread]:
            terms = _workspace("terms", (stop - start, outputs, inputs))
            numpy.matmul(gy[start:stop], x[start:stop].transpose(0, 2, 1), out=terms)
            gW[thread] += terms.sum(axis=0)
            if gx is not None:
                out = gx[:, start:stop].transpose(1, 0, 2)
                numpy.matmul(gy[start:stop].transpose(0, 2, 1), W, out=out)

    in_threads(len(chunks), work)
    if gx is not None:
        gx = gx.reshape(height, width, n, inputs).transpose(2, 3, 0, 1)
    gb = gy.sum(axis=(0, 2)) if 2 in indexes else None
    return gx, gW.sum(axis=0).reshape(outputs, inputs, 1, 1), gb
