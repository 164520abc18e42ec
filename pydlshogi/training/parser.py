"""The options of train_policy and of compare_networks."""

from __future__ import annotations

import argparse
import math

from pydlshogi.network.registry import DEFAULT, NETWORKS

#: What compare_networks trains unless told otherwise: the published comparison, and one more.
COMPARED = ("policy", "policy_hand1x1_unpool", "policy_hand1x1", "policy_hand1x1_ply")


def build_parser() -> argparse.ArgumentParser:
    """Makes the parser of train_policy's command line.

    It imports nothing heavy, so that ``--help`` and a mistyped option answer at once.

    Returns:
        A parser that exits with status 2 and one sentence on a value it cannot use.
    """
    parser = argparse.ArgumentParser(
        prog="train_policy",
        description="Trains a shogi network, by default the book's policy network, on game "
        "records (CSA).",
    )
    add = parser.add_argument
    _add_lists(parser)
    add(
        "--network",
        choices=NETWORKS,
        default=DEFAULT,
        metavar="NAME",
        help=f"which network to train: {', '.join(NETWORKS)} (default: %(default)s)",
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
    add(
        "--initmodel",
        "-m",
        default="",
        metavar="FILE",
        help="model to start from, of the same --network",
    )
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
    _add_recipe(parser, eval_interval=1000)
    add(
        "--seed",
        type=_seed,
        metavar="N",
        help="first weights and order of the positions follow from N; "
        "a run on the CPU can then be repeated to the last bit",
    )
    add("--strict", action="store_true", help="leave out games with illegal moves (slower)")
    add(
        "--drop-duplicates",
        action="store_true",
        help="leave out games that have the start and the moves of an earlier one",
    )
    add("--report", default="", metavar="FILE", help="table (TSV) of the records left out, and why")
    return parser


def build_comparison_parser() -> argparse.ArgumentParser:
    """Makes the parser of compare_networks's command line; see :func:`build_parser`."""
    parser = argparse.ArgumentParser(
        prog="compare_networks",
        description="Trains several networks on the same positions in the same order and writes "
        "a table of what came of it (table.md, table.tsv) and their curves (curves.png). "
        "Interrupted, it goes on where it was when the same command is given again.",
    )
    add = parser.add_argument
    _add_lists(parser)
    add(
        "--networks",
        nargs="+",
        choices=NETWORKS,
        default=list(COMPARED),
        metavar="NAME",
        help=f"which networks, of {', '.join(NETWORKS)} (default: {' '.join(COMPARED)})",
    )
    add(
        "--positions",
        type=_positive_int,
        metavar="N",
        help="train on the first N positions of the list; without it on all",
    )
    add(
        "--test_positions",
        type=_positive_int,
        metavar="N",
        help="test on the first N positions of the list; without it on all",
    )
    add(
        "--epoch",
        "-e",
        type=_positive_int,
        default=3,
        metavar="N",
        help="epochs of each network (default: %(default)s)",
    )
    add(
        "--output",
        "-o",
        default="comparison",
        metavar="FOLDER",
        help="where everything goes (default: %(default)s)",
    )
    _add_recipe(parser, eval_interval=100)
    add(
        "--seed",
        type=_seed,
        default=0,
        metavar="N",
        help="first weights and order of the positions follow from N (default: %(default)s)",
    )
    return parser


def _add_lists(parser: argparse.ArgumentParser) -> None:
    """Adds the two kifu lists."""
    add = parser.add_argument
    add("kifulist_train", help="text file: the paths of the training games, one a line")
    add("kifulist_test", help="text file: the paths of the test games, one a line")


def _add_recipe(parser: argparse.ArgumentParser, *, eval_interval: int) -> None:
    """Adds the options that say how a network is trained."""
    add = parser.add_argument
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
        default=eval_interval,
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
