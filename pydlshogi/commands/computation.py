"""The options that say how a network is computed, and their effect on the process."""

from __future__ import annotations

import argparse

from pydlshogi.commands.arguments import gpu_number, thread_number


def add_computation(parser: argparse.ArgumentParser) -> None:
    """Adds ``--gpu``, ``--convolution``, ``--precision`` and ``--threads``."""
    add = parser.add_argument
    add(
        "--gpu",
        "-g",
        type=gpu_number,
        metavar="N",
        help="number of the GPU, -1 for the CPU (default: a GPU if there is one, else the CPU)",
    )
    add(
        "--convolution",
        choices=("auto", "winograd", "chainer"),
        default="auto",
        help="method that computes convolutions: ours (auto, winograd) or Chainer's "
        "(default: %(default)s)",
    )
    add(
        "--precision",
        choices=("auto", "float32", "tf32", "float16"),
        default="auto",
        help="precision of our convolutions on a GPU (default: auto, which is tf32 in training "
        "and float32 otherwise)",
    )
    add(
        "--threads",
        type=thread_number,
        metavar="N",
        help="threads that compute the network on a CPU (default: PYDLSHOGI_THREADS, else the "
        "number of processors that the process or its container may use)",
    )


def apply_computation(args: argparse.Namespace) -> None:
    """Sets the convolution method, the precision and the number of threads of this process.

    Args:
        args: Parsed options of :func:`add_computation`.

    Raises:
        UserError: the environment variable PYDLSHOGI_THREADS is not a number of threads.
    """
    from pydlshogi.layers.convolution import set_convolution
    from pydlshogi.layers.cpu.threads import limit_blas, set_threads
    from pydlshogi.layers.gpu.products import set_precision

    set_convolution(args.convolution)
    set_precision(args.precision)
    set_threads(args.threads)
    limit_blas()
