"""Compiles a CUDA kernel whose threads do not communicate as C++, and runs it on the CPU."""

import ctypes
import functools
import getpass
import hashlib
import os
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

import numpy

COMPILER = shutil.which("g++") or shutil.which("clang++")

#: What such a kernel uses of CUDA. The threads run one after another.
_CUDA = """
#include <cmath>
#include <cstring>
struct Index { int x; };
struct alignas(16) float4 { float x, y, z, w; };
struct ushort4 { unsigned short x, y, z, w; };
static Index blockIdx, blockDim, threadIdx;
#define __global__ static
"""

#: What a kernel with float16 uses. An old compiler may lack this type.
_HALF = """
static unsigned short half_of(float value) {
    value = value > 65504.0f ? 65504.0f : value < -65504.0f ? -65504.0f : value;
    const _Float16 half = value;
    unsigned short bits;
    std::memcpy(&bits, &half, 2);
    return bits;
}
"""

_LAUNCH = """
extern "C" void launch(int blocks, int threads, void** arguments) {{
    blockDim.x = threads;
    for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++) {{
        for (threadIdx.x = 0; threadIdx.x < threads; threadIdx.x++) {{
            {name}({arguments});
        }}
    }}
}}
"""


_OPTIONS = ("-O2", "-ffp-contract=off", "-shared", "-fPIC", "-w")


@functools.cache
def _compiler_version():
    return subprocess.run([COMPILER, "--version"], capture_output=True, text=True).stdout


@functools.cache
def _cache():
    """Gives the folder of the compiled kernels. Nobody else may write to it: it is executed."""
    folder = Path(tempfile.gettempdir()) / f"cuda_on_cpu-{getpass.getuser()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or (status.st_uid, status.st_mode & 0o077) != (
        os.getuid(),
        0,
    ):
        raise PermissionError(f"{folder} is not a folder of this user alone. Remove it.")
    return folder


@functools.cache
def _compile(source, name):
    if COMPILER is None:
        raise NotImplementedError(f"kernel {name}: there is no C++ compiler")
    declared = source.partition(f"{name}(")[2].partition(")")[0].split(",")
    kinds = [parameter.rpartition(" ")[0].replace("const", "").strip() for parameter in declared]
    arguments = ", ".join(
        f"({kind})arguments[{n}]" if kind.endswith("*") else f"*({kind}*)arguments[{n}]"
        for n, kind in enumerate(kinds)
    )
    # In C, CUDA's functions and variables are known without a declaration.
    text = _CUDA + (_HALF if "half_of(" in source else "")
    text += source.replace('extern "C"', "") + _LAUNCH.format(name=name, arguments=arguments)
    made_from = "\0".join((_compiler_version(), *_OPTIONS, text))
    library = _cache() / f"{hashlib.sha256(made_from.encode()).hexdigest()}.so"
    if not library.exists():
        with tempfile.TemporaryDirectory() as work:
            code, made = Path(work, "kernel.cpp"), Path(work, "kernel.so")
            code.write_text(text)
            subprocess.run([COMPILER, *_OPTIONS, "-o", made, code], check=True)
            copy = library.with_name(f"{Path(work).name}.so")
            shutil.copy(made, copy)
            copy.replace(library)
    return ctypes.CDLL(str(library)).launch, kinds


_KINDS = {"int": numpy.int32, "float": numpy.float32}


def matrices(transpose, rows, columns, address, kind, length):
    """Views memory as cuBLAS does: column by column, ``length`` numbers apart."""
    shape = (columns, rows) if transpose else (rows, columns)
    dtype = {0: numpy.float32, 2: numpy.float16}[kind]
    count = length * shape[1]
    memory = (ctypes.c_char * (count * numpy.dtype(dtype).itemsize)).from_address(address)
    assert length >= shape[0]
    found = numpy.frombuffer(memory, dtype).reshape(shape[1], length)[:, : shape[0]].T
    return found.T if transpose else found


def as_tf32(array):
    """Rounds float32 numbers to 11 bits."""
    bits = numpy.ascontiguousarray(array).view(numpy.uint32)
    return ((bits + numpy.uint32(1 << 12)) & numpy.uint32(0xFFFFE000)).view(numpy.float32)


def gemm(handle, op_a, op_b, m, n, k, alpha, *rest):
    """cuBLAS's ``gemmEx`` on the CPU."""
    a, a_kind, a_length, b, b_kind, b_length, beta, c, c_kind, c_length, compute, algorithm = rest
    # TF32 is for factors in float32.
    assert (a_kind, compute) in ((0, 68), (0, 77), (2, 68)) and a_kind == b_kind
    assert ctypes.c_float.from_address(beta).value == 0 and algorithm == 99
    left = matrices(op_a, m, k, a, a_kind, a_length).astype(numpy.float32)
    right = matrices(op_b, k, n, b, b_kind, b_length).astype(numpy.float32)
    if compute == 77:
        left, right = as_tf32(left), as_tf32(right)
    factor = ctypes.c_float.from_address(alpha).value
    matrices(0, m, n, c, c_kind, c_length)[...] = numpy.float32(factor) * (left @ right)


def run(source, name, blocks, threads, arguments):
    """Runs a kernel.

    Args:
        source: The C++ of the kernel.
        name: Its name.
        blocks, threads: Size of the grid, and of a block.
        arguments: numpy arrays, ``numpy.int32`` and ``numpy.float32``.
    """
    launch, kinds = _compile(source, name)
    assert len(kinds) == len(arguments), f"kernel {name} takes {len(kinds)} arguments"
    kept = []
    for kind, value in zip(kinds, arguments):
        if kind.endswith("*"):
            assert isinstance(value, numpy.ndarray) and value.flags.c_contiguous
            kept.append(value)
        else:
            assert type(value) is _KINDS[kind], f"kernel {name}: {type(value)} for {kind}"
            kept.append(numpy.array(value))
    launch(blocks, threads, (ctypes.c_void_p * len(kept))(*(value.ctypes.data for value in kept)))
