"""The options of programs that compute a network: how, and of what model."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from pydlshogi.commands.arguments import file_name, gpu_number, positive_int, thread_number
from pydlshogi.drawing.words import LANGUAGES
from pydlshogi.network.own import FORM, is_spec, use

if TYPE_CHECKING:
    from pydlshogi.analysis.opinion import Network


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
        choices=("auto", "winograd", "chainer", "cudnn"),
        default="auto",
        help="method that computes convolutions: ours, on a GPU cuDNN's, the faster of these, or "
        "Chainer's (default: %(default)s)",
    )
    add(
        "--precision",
        choices=("auto", "float32", "tf32", "float16", "bfloat16"),
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


def add_batchsize(parser: argparse.ArgumentParser, default: int) -> None:
    """Adds ``--batchsize`` of programs that measure a model."""
    parser.add_argument(
        "--batchsize",
        "-b",
        type=positive_int,
        default=default,
        metavar="N",
        help="positions in a batch (default: %(default)s)",
    )


def apply_computation(args: argparse.Namespace) -> None:
    """Sets the convolution method, the precision and the number of threads of this process.

    Raises:
        UserError: the environment variable PYDLSHOGI_THREADS is not a number of threads, or the
            device cannot compute in the precision.
    """
    from pydlshogi.device import select_device
    from pydlshogi.layers.convolution import set_convolution
    from pydlshogi.layers.cpu.threads import limit_blas, set_threads
    from pydlshogi.layers.gpu import cudnn
    from pydlshogi.layers.gpu.products import set_precision

    if args.precision == "bfloat16":
        cudnn.require(select_device(args.gpu), args.convolution)
    set_convolution(args.convolution)
    set_precision(args.precision)
    set_threads(args.threads)
    limit_blas()


def add_model(parser: argparse.ArgumentParser) -> None:
    """Adds ``--model`` and the options of the computation."""
    parser.add_argument(
        "--model",
        "-m",
        type=file_name,
        metavar="FILE",
        help="model file of any network (default: the shipped model_policy_value)",
    )
    add_own_network(parser)
    add_computation(parser)


def add_own_network(parser: argparse.ArgumentParser) -> None:
    """Adds ``--network``, for models of networks that are not part of this package."""
    parser.add_argument(
        "--network",
        type=_own_network,
        metavar=FORM,
        help="Python file of your own network, if the model holds one; the program runs it",
    )


def _own_network(text: str) -> str:
    if not is_spec(text):
        raise argparse.ArgumentTypeError(
            f"{text!r} names no file with a network; the model file itself names other networks"
        )
    return text


def use_own_network(args: argparse.Namespace) -> None:
    """Makes the network of ``--network`` known; raises ``UserError`` if its file cannot be used."""
    if args.network:
        use(args.network)


def add_language(parser: argparse.ArgumentParser) -> None:
    """Adds ``--language``."""
    parser.add_argument(
        "--language",
        choices=LANGUAGES,
        default="en",
        help="language of the words; pieces and moves are Japanese in both (default: %(default)s)",
    )


def load_model(args: argparse.Namespace, backend: str = "own") -> Network:
    """Loads the model of the options of :func:`add_model`; ``backend`` computes it on a CPU.

    Raises:
        UserError: the model cannot be loaded, or the device cannot be used.
    """
    # These modules import Chainer; a wrong command line has been reported before.
    from pydlshogi.analysis.opinion import Network
    from pydlshogi.device import select_device
    from pydlshogi.files import shipped_model
    from pydlshogi.inference.evaluator import Evaluator

    device = select_device(args.gpu)
    apply_computation(args)
    use_own_network(args)
    path = args.model or shipped_model()
    return Network(Evaluator(path, device, backend), Path(path).name)
