"""The options of train_policy."""

from __future__ import annotations

import argparse
import math


def build_parser() -> argparse.ArgumentParser:
    """Makes the parser of train_policy's command line.

    It imports nothing heavy, so that ``--help`` and a mistyped option answer at once.

    Returns:
        A parser that exits with status 2 and one sentence on a value it cannot use.
    """
    parser = argparse.ArgumentParser(
        prog="train_policy",
        description="Trains the shogi policy network on game records (CSA).",
    )
    add = parser.add_argument
    add("kifulist_train", help="text file: the paths of the training games, one a line")
    add("kifulist_test", help="text file: the paths of the test games, one a line")
    add(
        "--batchsize",
        "-b",
        type=_positive_int,
        default=32,
        metavar="N",
        help="positions in a training batch (default: %(default)s)",
    )
    add(
        "--test_batchsize",
        type=_positive_int,
        default=512,
        metavar="N",
        help="random test positions for the accuracy logged at each evaluation; also the "
        "batch when the whole test set is validated (default: %(default)s)",
    )
    add(
        "--epoch",
        "-e",
        type=_positive_int,
        default=10,
        metavar="N",
        help="epochs of this run; one that is finished counts as one (default: %(default)s)",
    )
    add(
        "--iterations",
        type=_positive_int,
        metavar="N",
        help="stop after N iterations of this run, if --epoch is not reached before, "
        "then validate and save as at an epoch's end",
    )
    add(
        "--model",
        default="model/model_policy",
        metavar="FILE",
        help="where to save the network (default: %(default)s)",
    )
    add(
        "--state",
        default="model/state_policy",
        metavar="FILE",
        help="where to save optimizer and progress (default: %(default)s)",
    )
    add("--initmodel", "-m", default="", metavar="FILE", help="model to start from")
    add(
        "--resume",
        "-r",
        default="",
        metavar="FILE",
        help="state to go on from; needs its model as --initmodel",
    )
    add(
        "--log",
        default="",
        metavar="FILE",
        help="file that the log is appended to; standard error without it",
    )
    add(
        "--lr",
        type=_learning_rate,
        default=0.01,
        metavar="RATE",
        help="learning rate (default: %(default)s)",
    )
    add(
        "--eval_interval",
        "-i",
        type=_positive_int,
        default=1000,
        metavar="N",
        help="log loss and accuracy, and save, every N iterations (default: %(default)s)",
    )
    add(
        "--gpu",
        "-g",
        type=int,
        metavar="N",
        help="number of the GPU, -1 for the CPU (default: a GPU if there is one, else the CPU)",
    )
    add(
        "--seed",
        type=_seed,
        metavar="N",
        help="first weights and order of the positions follow from N; "
        "a run on the CPU can then be repeated to the last bit",
    )
    add(
        "--convolution",
        choices=("auto", "winograd", "chainer"),
        default="auto",
        help="how 3x3 convolutions are computed (default: %(default)s)",
    )
    add(
        "--threads",
        type=_positive_int,
        metavar="N",
        help="threads of the Winograd convolution; without it as many as the machine has cores",
    )
    add("--strict", action="store_true", help="leave out games with illegal moves (slower)")
    add(
        "--drop-duplicates",
        action="store_true",
        help="leave out games that have the start and the moves of an earlier one",
    )
    add("--report", default="", metavar="FILE", help="table (TSV) of the records left out, and why")
    return parser


def _positive_int(text: str) -> int:
    """Reads a whole number from 1 on."""
    return _whole(text, 1, None)


def _seed(text: str) -> int:
    """Reads a seed as numpy's RandomState takes it."""
    return _whole(text, 0, 2**32 - 1)


def _whole(text: str, least: int, most: int | None) -> int:
    wanted = f"a whole number from {least}" + (" on" if most is None else f" to {most}")
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least or (most is not None and value > most):
        raise argparse.ArgumentTypeError(f"{text!r} is not {wanted}")
    return value


def _learning_rate(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 on")
    return value
