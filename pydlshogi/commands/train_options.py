"""The options of train_policy, compare_networks and compare_recipes."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

from pydlshogi.network.registry import DEFAULT, NETWORKS

#: What compare_networks trains unless told otherwise: the published comparison, and one more.
COMPARED = ("policy", "policy_hand1x1_unpool", "policy_hand1x1", "policy_hand1x1_ply")

_LR_FACTOR = 0.1

_LIST = "text file: the paths of the {} games, or of folders or archives of them, one a line"


class _Parser(argparse.ArgumentParser):
    """Parser that also refuses options that make no sense without another one."""

    def parse_known_args(self, *args: Any, **kwargs: Any) -> Any:
        """Parses, or exits with status 2 and one sentence."""
        options, rest = super().parse_known_args(*args, **kwargs)
        for given, needed, there in (
            (options.nesterov, "--nesterov needs --momentum", options.momentum),
            (options.lr_steps, "--lr_steps needs --lr_schedule steps", _is(options, "steps")),
            (_is(options, "steps"), "--lr_schedule steps needs --lr_steps", options.lr_steps),
            (options.lr_factor is not None, "--lr_factor needs --lr_steps", options.lr_steps),
            (
                options.lr_iterations,
                "--lr_iterations needs --lr_schedule cosine",
                _is(options, "cosine"),
            ),
            (
                options.dirac and getattr(options, "initmodel", ""),
                "--dirac changes first weights, and --initmodel brings its own; leave one out",
                getattr(options, "resume", ""),
            ),
        ):
            if given and not there:
                self.error(needed)
        if options.lr_factor is None:
            options.lr_factor = _LR_FACTOR
        return options, rest


def _is(options: argparse.Namespace, schedule: str) -> bool:
    return bool(options.lr_schedule == schedule)


def build_parser() -> argparse.ArgumentParser:
    """Makes the parser of train_policy's command line.

    It imports nothing heavy, so that ``--help`` and a mistyped option answer at once.

    Returns:
        A parser that exits with status 2 and one sentence on a value it cannot use.
    """
    parser = _Parser(
        prog="train_policy",
        description="Trains a shogi network, by default the book's policy network, on game "
        "records (CSA, KIF).",
    )
    add = parser.add_argument
    _add_lists(parser)
    _add_network(parser)
    add(
        "--epoch",
        "-e",
        type=positive_int,
        default=10,
        metavar="N",
        help="epochs of this run; one that was resumed counts as the first (default: %(default)s)",
    )
    add(
        "--iterations",
        type=positive_int,
        metavar="N",
        help="stop after N iterations of this run, if --epoch is not reached before, "
        "then validate and save as at an epoch's end",
    )
    add(
        "--model",
        type=_file,
        default="model/model_policy",
        metavar="FILE",
        help="where to save the network (default: %(default)s)",
    )
    add(
        "--state",
        type=_file,
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
    add(
        "--strict",
        action="store_true",
        help="leave out games with moves that are possible but not legal (slower)",
    )
    add(
        "--drop-duplicates",
        action="store_true",
        help="leave out games that have the start and the moves of an earlier one",
    )
    add("--report", default="", metavar="FILE", help="table (TSV) of the records left out, and why")
    return parser


def build_comparison_parser() -> argparse.ArgumentParser:
    """Makes the parser of compare_networks's command line; see :func:`build_parser`."""
    parser = _Parser(
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
        type=positive_int,
        metavar="N",
        help="train on the first N positions of the list; without it on all",
    )
    add(
        "--test_positions",
        type=positive_int,
        metavar="N",
        help="test on the first N positions of the list; without it on all",
    )
    add(
        "--epoch",
        "-e",
        type=positive_int,
        default=3,
        metavar="N",
        help="epochs of each network (default: %(default)s)",
    )
    _add_comparison(parser, output="comparison")
    return parser


def build_recipes_parser() -> argparse.ArgumentParser:
    """Makes the parser of compare_recipes's command line; see :func:`build_parser`.

    It parses each line of the file of recipes too, behind the words of the command line.
    """
    parser = _Parser(
        prog="compare_recipes",
        description="Trains a network by several recipes on the same positions in the same order, "
        "tests on games of the training list that are held out, and writes a table of what came "
        "of it (table.md, table.tsv) and the curves (curves.png). Interrupted, it goes on where "
        "it was when the same command is given again.",
    )
    add = parser.add_argument
    add("kifulist_train", help=_LIST.format("training"))
    add(
        "recipes",
        help="text file: a recipe a line, its name and its options (--network, --batchsize, --lr "
        "and the refinements below); the options of the command line hold for all",
    )
    _add_network(parser)
    add(
        "--held_out",
        type=positive_int,
        default=200,
        metavar="N",
        help="test on the last N games of the list, never trained on (default: %(default)s)",
    )
    add(
        "--positions",
        type=positive_int,
        metavar="N",
        help="train on the first N positions of the other games; without it on all",
    )
    add(
        "--epoch",
        "-e",
        type=positive_int,
        default=1,
        metavar="N",
        help="epochs of each recipe (default: %(default)s)",
    )
    _add_comparison(parser, output="recipes")
    return parser


def _add_lists(parser: argparse.ArgumentParser) -> None:
    """Adds the two kifu lists."""
    add = parser.add_argument
    add("kifulist_train", help=_LIST.format("training"))
    add("kifulist_test", help=_LIST.format("test"))


def _add_network(parser: argparse.ArgumentParser) -> None:
    """Adds the choice of one network."""
    add = parser.add_argument
    add(
        "--network",
        choices=NETWORKS,
        default=DEFAULT,
        metavar="NAME",
        help=f"which network to train: {', '.join(NETWORKS)} (default: %(default)s)",
    )


def _add_comparison(parser: argparse.ArgumentParser, *, output: str) -> None:
    """Adds what all comparisons have in common."""
    add = parser.add_argument
    add(
        "--output",
        "-o",
        default=output,
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


def _add_recipe(parser: argparse.ArgumentParser, *, eval_interval: int) -> None:
    """Adds the options that say how a network is trained."""
    add = parser.add_argument
    add(
        "--batchsize",
        "-b",
        type=positive_int,
        default=32,
        metavar="N",
        help="positions in a training batch (default: %(default)s)",
    )
    add(
        "--test_batchsize",
        type=positive_int,
        default=512,
        metavar="N",
        help="random test positions for the accuracy logged at each evaluation; also the "
        "batch when the whole test set is validated (default: %(default)s)",
    )
    add(
        "--lr",
        type=_not_negative,
        default=0.01,
        metavar="RATE",
        help="learning rate, the highest one where it changes (default: %(default)s)",
    )
    _add_refinements(parser)
    add(
        "--eval_interval",
        "-i",
        type=positive_int,
        default=eval_interval,
        metavar="N",
        help="log loss and accuracy, and save, every N iterations (default: %(default)s)",
    )
    add_computation(parser)


def add_computation(parser: argparse.ArgumentParser) -> None:
    """Adds the options that say what a network is computed on, and how."""
    add = parser.add_argument
    add(
        "--gpu",
        "-g",
        type=_gpu,
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
        type=positive_int,
        metavar="N",
        help="threads of the network on a CPU; without it what PYDLSHOGI_THREADS says, or as many "
        "as there are processors that the process, or its container, may use",
    )


def _add_refinements(parser: argparse.ArgumentParser) -> None:
    """Adds what may be better than the published recipe; none of it is on by itself."""
    add = parser.add_argument_group(
        "refinements", "beyond the published recipe; a run that is resumed needs the same again"
    ).add_argument
    add(
        "--dirac",
        action="store_true",
        help="add the identity to the first weights of 3x3 convolutions that keep the number of "
        "planes, outside of residual blocks, so that they begin by passing on what they get",
    )
    add(
        "--momentum",
        type=_share,
        default=0.0,
        metavar="SHARE",
        help="share of the last step that the next one keeps, 0.9 for instance",
    )
    add("--nesterov", action="store_true", help="momentum as Chainer's NesterovAG has it")
    add(
        "--weight_decay",
        type=_not_negative,
        default=0.0,
        metavar="RATE",
        help="decay of the weights, not of biases and batch normalization; 1e-4 for instance",
    )
    add(
        "--clip",
        type=_positive,
        metavar="NORM",
        help="shorten gradients that are longer than that, all parameters taken together",
    )
    add(
        "--lr_schedule",
        choices=("constant", "cosine", "steps"),
        default="constant",
        help="how the learning rate changes: not, down to 0 along half a cosine, or by steps",
    )
    add(
        "--lr_iterations",
        type=positive_int,
        metavar="N",
        help="cosine: the iteration at which the rate is 0, counted over all runs; without it "
        "the end that was planned when the run was begun",
    )
    add(
        "--lr_steps",
        type=_positive_ints,
        default=(),
        metavar="N,N,...",
        help="steps: the iterations from which the rate is multiplied by --lr_factor again",
    )
    add(
        "--lr_factor",
        type=_not_negative,
        metavar="FACTOR",
        help=f"see --lr_steps (default: {_LR_FACTOR})",
    )
    add(
        "--warmup",
        type=_count,
        default=0,
        metavar="N",
        help="raise the learning rate from next to 0 in the first N iterations",
    )
    add(
        "--label_smoothing",
        type=_share,
        default=0.0,
        metavar="SHARE",
        help="spread that share of the target over all labels, 0.1 for instance; "
        "losses are logged without it",
    )
    add(
        "--mirror",
        action="store_true",
        help="exchange left and right in half of the positions, drawn anew every epoch",
    )
    add(
        "--average",
        type=positive_int,
        metavar="N",
        help="test and save the weights' average over about the last N iterations",
    )


def positive_int(text: str) -> int:
    """Reads a whole number from 1 on, as the type of an option."""
    return _whole(text, 1, None)


def _file(text: str) -> str:
    """Reads the path of a file that has to be written."""
    if not text:
        raise argparse.ArgumentTypeError("the name of a file is missing")
    return text


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


def _gpu(text: str) -> int:
    """Reads the number of a GPU, or -1."""
    return _whole(text, -1, None)


def _count(text: str) -> int:
    """Reads a whole number from 0 on."""
    return _whole(text, 0, None)


def _positive_ints(text: str) -> tuple[int, ...]:
    """Reads whole numbers from 1 on, with commas between them."""
    return tuple(positive_int(part) for part in text.split(","))


def _not_negative(text: str) -> float:
    return _number(text, "a number from 0 on", lambda value: 0 <= value < math.inf)


def _positive(text: str) -> float:
    return _number(text, "a number above 0", lambda value: 0 < value < math.inf)


def _share(text: str) -> float:
    return _number(text, "a number from 0 to below 1", lambda value: 0 <= value < 1)


def _number(text: str, wanted: str, fits: Callable[[float], bool]) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not fits(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not {wanted}")
    return value
