"""Products of matrices on a GPU by cuBLAS, and the precisions of convolutions.

- ``float32``: all 24 bits of the factors.
- ``tf32``: the factors are rounded to 11 bits; GPUs before Ampere (RTX 30, A100) compute float32.
- ``float16``: the factors are stored in 16 bits, 11 of them significant.
- ``bfloat16``: the factors are stored in 16 bits, 8 of them significant, with the range of float32.
  Only :mod:`pydlshogi.layers.gpu.cudnn` computes it.

Sums, results, weights, activations and gradients are float32 in all of them. Our own 1×1
convolutions compute the last two as tf32.
"""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.layers.gpu.kernels import HALF, Kernel
from pydlshogi.layers.gpu.recording import is_recording

#: The precisions. "auto": tf32 in training, and float32 otherwise. If CuPy's environment variable
#: CUPY_TF32 is 1 or 0, it decides: tf32 or float32 everywhere.
PRECISIONS = ("auto", "float32", "tf32", "float16", "bfloat16")

_to_float16 = Kernel(
    "to_float16",
    "const float* x, unsigned short* y, const float scale",
    "    y[i] = half_of(x[i] * scale);\n",
    HALF,
)

# A bfloat16 is the upper half of a float, here rounded to nearest even; nan stays.
_to_bfloat16 = Kernel(
    "to_bfloat16",
    "const unsigned int* x, unsigned short* y",
    """
    const unsigned int bits = x[i];
    const bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
    y[i] = (is_nan ? bits | 0x400000 : bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    """,
)

#: Numbers of cuBLAS, from its headers ``cublas_api.h`` and ``library_types.h``.
_NO_TRANSPOSE, _TRANSPOSE = 0, 1
_TYPES = {"f": 0, "e": 2}  # CUDA_R_32F, CUDA_R_16F
_COMPUTE_32F, _COMPUTE_32F_FAST_TF32 = 68, 77
_ALGORITHM = 99  # CUBLAS_GEMM_DEFAULT_TENSOR_OP

_chosen = "auto"


def set_precision(name: str) -> None:
    """Chooses one of :data:`PRECISIONS` for this process from now on. ValueError: another name."""
    global _chosen
    if name not in PRECISIONS:
        raise ValueError(f"precision {name!r} is unknown; choose from {', '.join(PRECISIONS)}")
    _chosen = name


def get_precision() -> str:
    """Returns the precision of the next product, which is never "auto"."""
    if _chosen != "auto":
        return _chosen
    wish = os.environ.get("CUPY_TF32")
    tf32 = wish == "1" or (wish != "0" and chainer.config.train)
    return "tf32" if tf32 else "float32"


def gradient_scale(n: int) -> float:
    """Returns the factor of the gradients of a mean loss of n positions while they are float16.

    The format keeps its precision from 6e-5 to 65504. So the gradients of one position may be 1e-6
    to 1000; larger ones are cut off.
    """
    return 64.0 * n


def narrow(x: Any, precision: str, scale: float = 1.0) -> Any:
    """Stores a contiguous float32 array of the GPU in 16 bits, in the same shape.

    For "float16", the numbers are multiplied by ``scale`` first. For "bfloat16", the result is
    uint16 with the bits.
    """
    xp, is_half = chainer.backend.get_array_module(x), precision == "float16"
    y = xp.empty(x.shape, numpy.float16 if is_half else numpy.uint16)
    if is_half:
        _to_float16(x.size, x, y, scale)
    else:
        _to_bfloat16(x.size, x, y)
    return y


def product(a: Any, b: Any, scale: float = 1.0) -> Any:
    """Multiplies two matrices.

    Args:
        a: (rows, inner) float32 or float16 of the GPU: contiguous, or the transpose of a
            contiguous array.
        b: (inner, columns), likewise, of the same dtype.
        scale: Factor of the result.

    Returns:
        (rows, columns) float32.
    """
    import cupy

    (rows, inner), columns = a.shape, b.shape[1]
    out = cupy.empty((rows, columns), numpy.float32)
    tf32 = a.dtype == numpy.float32 and get_precision() != "float32"
    factor, zero = numpy.array([scale, 0], numpy.float32)[:, None]
    # cuBLAS reads matrices column by column. To it, each array is its transpose, and the
    # transpose of the result is the product of the transposes in reverse order.
    first, second = _operand(b), _operand(a)
    multiply = _multiply_in_recording if is_recording() else cupy.cuda.cublas.gemmEx
    multiply(
        cupy.cuda.get_cublas_handle(),
        *(first[0], second[0], columns, rows, inner),
        *(factor.ctypes.data, *first[1:], *second[1:]),
        *(zero.ctypes.data, out.data.ptr, _TYPES["f"], columns),
        *(_COMPUTE_32F_FAST_TF32 if tf32 else _COMPUTE_32F, _ALGORITHM),
    )
    return out


def _multiply_in_recording(handle: int, *arguments: int) -> None:
    """Calls ``cublasGemmEx`` of cuBLAS itself: CuPy refuses to do so in a recording."""
    import cupy

    library = _cublas()
    status = library.cublasSetStream_v2(handle, cupy.cuda.get_current_stream().ptr)
    status = status or library.cublasGemmEx(handle, *arguments)
    if status:
        raise RuntimeError(f"cuBLAS ended with status {status}")


@functools.cache
def _cublas() -> Any:
    import cupy

    major = cupy.cuda.runtime.runtimeGetVersion() // 1000
    # CuPy has loaded it, from wherever it is.
    name = f"cublas64_{major}.dll" if os.name == "nt" else f"libcublas.so.{major}"
    try:
        library = ctypes.CDLL(name)
    except OSError as error:
        raise RuntimeError(f"{name} cannot be loaded: {error}") from None
    address, number = ctypes.c_void_p, ctypes.c_int
    library.cublasSetStream_v2.argtypes = [address, address]
    library.cublasGemmEx.argtypes = [
        *(address, number, number, number, number, number),  # handle, operations, sizes
        *(address, address, number, number, address, number, number),  # factor, two matrices
        *(address, address, number, number, number, number),  # factor, result, precision, algorithm
    ]
    return library


def _operand(array: Any) -> tuple[int, int, int, int]:
    """Describes an array to cuBLAS: whether to transpose, address, type, length of a row."""
    flags = array.flags
    if not (flags.c_contiguous or flags.f_contiguous):
        raise ValueError("a factor must be contiguous, or the transpose of a contiguous array")
    as_it_is = flags.c_contiguous
    length = array.shape[1] if as_it_is else array.shape[0]
    operation = _NO_TRANSPOSE if as_it_is else _TRANSPOSE
    return operation, array.data.ptr, _TYPES[array.dtype.char], length
