"""The options of programs that show what a model thinks."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from pydlshogi.commands.arguments import file_name
from pydlshogi.commands.computation import add_computation, apply_computation
from pydlshogi.drawing.words import LANGUAGES
from pydlshogi.network.own import FORM, is_spec, use

if TYPE_CHECKING:
    from pydlshogi.analysis.opinion import Network


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
    """Makes the network of ``--network`` known.

    Raises:
        UserError: its file cannot be used.
    """
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
    """Loads the model of the options.

    Args:
        args: Parsed options of :func:`add_model`.
        backend: What computes the network on a CPU (:mod:`pydlshogi.inference.backend`).

    Raises:
        UserError: the model cannot be loaded, or the device cannot be used.
    """
    # These modules import Chainer; a wrong command line has been reported before.
    from pydlshogi.analysis.opinion import Network
    from pydlshogi.device import select_device
    from pydlshogi.files import best_shipped_model
    from pydlshogi.inference.evaluator import Evaluator

    device = select_device(args.gpu)
    apply_computation(args)
    use_own_network(args)
    path = args.model or best_shipped_model()
    return Network(Evaluator(path, device, backend), Path(path).name)
