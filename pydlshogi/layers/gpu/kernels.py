"""Compiles CUDA C++ for the GPU and starts its kernels.

A kernel of this package computes each element of its result in one thread. Its threads need no
shared memory and do not wait for each other, so it also runs as plain C++ on a CPU. The tests
do that on machines without a GPU.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy

from pydlshogi.compat import chainer

#: Threads of a block.
_BLOCK = 256

#: The first lines of each kernel: ``i``, the number of the thread, and the end of the superfluous
#: threads of the last block.
_PREFIX = """
extern "C" __global__ void {name}({parameters}, const int size) {{
    const int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i >= size) return;
"""

#: The bits of a float16. A number beyond its range becomes its largest one; nan stays nan. This
#: instruction needs no header of CUDA, which CuPy's packages may lack.
HALF = """
#ifdef __CUDACC__
__device__ unsigned short half_of(float value) {
    unsigned short bits;
    value = value > 65504.0f ? 65504.0f : value < -65504.0f ? -65504.0f : value;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}
#endif
"""


class Kernel:
    """A CUDA kernel.

    Args:
        name: Its name in messages and profiles.
        parameters: Its parameters in C++, without ``size``.
        body: Its statements in C++; ``i`` is the number of the thread.
        functions: C++ functions that the body calls.
    """

    def __init__(self, name: str, parameters: str, body: str, functions: str = "") -> None:
        self.name = name
        prefix = _PREFIX.format(name=name, parameters=parameters)
        self.source = f"{functions}{prefix}{body}}}\n"

    def __call__(self, size: int, *args: Any) -> None:
        """Starts the kernel; the GPU may still compute when the call returns.

        Args:
            size: Number of threads, from 1 to 2³¹ − 256.
            *args: Contiguous arrays of the GPU, float32 or of 16 bits, and numbers: an ``int`` is
                passed as C++'s int, a ``float`` as its float.

        Raises:
            ValueError: an array has another dtype or is not contiguous, or there is no thread.
            MemoryError: there are too many threads, because the batch is too large.
        """
        if size <= 0:
            raise ValueError(f"kernel {self.name}: {size} threads; at least 1 is needed")
        if size > 2**31 - _BLOCK:  # the last block may have superfluous threads
            raise MemoryError(f"kernel {self.name}: {size} threads are too many; lower the batch")
        blocks = -(-size // _BLOCK)
        arguments = (*map(self._argument, args), numpy.int32(size))
        _compile(self.name, self.source)((blocks,), (_BLOCK,), arguments)

    def _argument(self, value: Any) -> Any:
        if isinstance(value, int):
            return numpy.int32(value)
        if isinstance(value, float):
            return numpy.float32(value)
        if value.dtype.char not in "feH" or not value.flags.c_contiguous:
            raise ValueError(f"kernel {self.name}: an array must be float and contiguous")
        return value


@functools.cache
def _compile(name: str, source: str) -> Any:
    import cupy

    return cupy.RawKernel(source, name)


# Boards as the rows of a matrix, one for each square of each board. The kernels and products take
# boards in the memory order (board, row, column, channel). Another order is copied.

#: Axes from (board, channel, row, column) to the order in memory, and back.
_IN_MEMORY, _AS_CHAINER = (0, 2, 3, 1), (0, 3, 1, 2)


def to_rows(boards: Any) -> Any:
    """Returns boards (n, channels, height, width) as a contiguous (n·height·width, channels)."""
    return contiguous(boards.transpose(_IN_MEMORY)).reshape(-1, boards.shape[1])


def to_boards(rows: Any, height: int, width: int) -> Any:
    """Reverses :func:`to_rows`, without a copy: (n, channels, height, width)."""
    return rows.reshape(-1, height, width, rows.shape[1]).transpose(_AS_CHAINER)


def contiguous(array: Any) -> Any:
    """Returns an array in C order; the array itself if it is in that order."""
    return chainer.backend.get_array_module(array).ascontiguousarray(array)
