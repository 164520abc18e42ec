"""Products of matrices on a GPU by cuBLAS, in several precisions.

- ``float32``: all 24 bits of the factors.
- ``tf32``: the factors are rounded to 11 bits, and keep the range of float32. GPUs since Ampere
  (RTX 30, A100) compute it in their matrix units; others compute float32.
- ``float16``: the factors of 3×3 convolutions are stored as float16, also of 11 bits. GPUs since
  Volta and Turing (V100, RTX 20, T4) compute it in their matrix units.

Sums and results are float32 in all of them. Weights, activations and gradients are stored as
float32, too.
"""

from __future__ import annotations

import os
from typing import Any

import numpy

from pydlshogi.compat import chainer

#: The precisions. "auto": tf32 in training, and float32 otherwise. If CuPy's environment variable
#: CUPY_TF32 is 1 or 0, it decides: tf32 or float32 everywhere.
PRECISIONS = ("auto", "float32", "tf32", "float16")

#: Numbers of cuBLAS, from its headers ``cublas_api.h`` and ``library_types.h``.
_NO_TRANSPOSE, _TRANSPOSE = 0, 1
_TYPES = {"f": 0, "e": 2}  # CUDA_R_32F, CUDA_R_16F
_COMPUTE_32F, _COMPUTE_32F_FAST_TF32 = 68, 77
_ALGORITHM = 99  # CUBLAS_GEMM_DEFAULT_TENSOR_OP

_chosen = "auto"


def set_precision(name: str) -> None:
    """Chooses one of :data:`PRECISIONS` for this process from now on.

    Raises:
        ValueError: the name is unknown.
    """
    global _chosen
    if name not in PRECISIONS:
        raise ValueError(f"precision {name!r} is unknown; choose from {', '.join(PRECISIONS)}")
    _chosen = name


def get_precision() -> str:
    """Returns the precision of the next product: "float32", "tf32" or "float16"."""
    if _chosen != "auto":
        return _chosen
    wish = os.environ.get("CUPY_TF32")
    tf32 = wish == "1" or (wish != "0" and chainer.config.train)
    return "tf32" if tf32 else "float32"


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
    cupy.cuda.cublas.gemmEx(
        cupy.cuda.get_cublas_handle(),
        *(first[0], second[0], columns, rows, inner),
        *(factor.ctypes.data, *first[1:], *second[1:]),
        *(zero.ctypes.data, out.data.ptr, _TYPES["f"], columns),
        *(_COMPUTE_32F_FAST_TF32 if tf32 else _COMPUTE_32F, _ALGORITHM),
    )
    return out


def _operand(array: Any) -> tuple[int, int, int, int]:
    """Describes an array to cuBLAS: whether to transpose, address, type, length of a row."""
    flags = array.flags
    if not (flags.c_contiguous or flags.f_contiguous):
        raise ValueError("a factor must be contiguous, or the transpose of a contiguous array")
    as_it_is = flags.c_contiguous
    length = array.shape[1] if as_it_is else array.shape[0]
    operation = _NO_TRANSPOSE if as_it_is else _TRANSPOSE
    return operation, array.data.ptr, _TYPES[array.dtype.char], length
