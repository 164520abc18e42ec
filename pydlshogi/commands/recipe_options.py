"""The options that say how a network is trained: the recipe, and how it is computed.

This module imports nothing heavy, so that ``--help`` and a wrong option answer at once.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from pydlshogi.commands.arguments import (
    non_negative_int,
    non_negative_number,
    positive_int,
    positive_ints,
    positive_number,
    proportion,
    share,
)
from pydlshogi.commands.computation import add_computation
from pydlshogi.training.defaults import EVAL_SCALE

if TYPE_CHECKING:
    from pydlshogi.training.recipe import Recipe

#: Default of ``--lr_factor``.
LR_FACTOR = 0.1


def recipe_of(args: argparse.Namespace) -> Recipe:
    """Makes the recipe from parsed options."""
    import dataclasses

    from pydlshogi.training.recipe import Recipe

    # compare_recipes has none of the options of add_targets.
    names = [field.name for field in dataclasses.fields(Recipe) if field.name in args]
    return Recipe(**{name: getattr(args, name) for name in names})


def add_recipe(parser: argparse.ArgumentParser, *, eval_interval: int) -> None:
    """Adds the options that say how a network is trained and computed."""
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
        help="number of random test positions at each evaluation; also the batch size of the "
        "validation (default: %(default)s)",
    )
    add(
        "--lr",
        type=non_negative_number,
        default=0.01,
        metavar="RATE",
        help="learning rate; the highest one if it changes (default: %(default)s)",
    )
    _add_refinements(parser)
    add(
        "--eval_interval",
        "-i",
        type=positive_int,
        default=eval_interval,
        metavar="N",
        help="evaluate, log and save every N iterations (default: %(default)s)",
    )
    add_computation(parser)


def _add_refinements(parser: argparse.ArgumentParser) -> None:
    """Adds the options beyond the published recipe; by default none is used."""
    group = parser.add_argument_group(
        "refinements", "beyond the published recipe; a resumed run needs the same again"
    )
    group.add_argument(
        "--dirac",
        action="store_true",
        help="initialize near the identity: 3x3 layers with as many planes out as in, and "
        "residual blocks",
    )
    _add_optimizer(group.add_argument)
    _add_schedule(group.add_argument)
    _add_examples(group.add_argument)


def _add_optimizer(add: Any) -> None:
    add(
        "--momentum",
        type=share,
        default=0.0,
        metavar="SHARE",
        help="momentum, for example 0.9 (default: none)",
    )
    add("--nesterov", action="store_true", help="momentum as in Chainer's NesterovAG")
    add(
        "--weight_decay",
        type=non_negative_number,
        default=0.0,
        metavar="RATE",
        help="weight decay, for example 1e-4; not for biases and batch normalization "
        "(default: none)",
    )
    add(
        "--clip",
        type=positive_number,
        metavar="NORM",
        help="largest norm of the gradient; larger gradients are scaled down (default: no limit)",
    )


def _add_schedule(add: Any) -> None:
    add(
        "--lr_schedule",
        choices=("constant", "cosine", "steps"),
        default="constant",
        help="learning rate: constant, falling to 0 along half a cosine, or in steps "
        "(default: %(default)s)",
    )
    add(
        "--lr_iterations",
        type=positive_int,
        metavar="N",
        help="with cosine: iteration at which the rate is 0, counted over all runs (default: "
        "the planned end of the first run)",
    )
    add(
        "--lr_steps",
        type=positive_ints,
        default=(),
        metavar="N,N,...",
        help="with steps: iterations at which the rate is multiplied by --lr_factor",
    )
    add(
        "--lr_factor",
        type=proportion,
        metavar="FACTOR",
        help=f"factor of --lr_steps, 0 to 1 (default: {LR_FACTOR})",
    )
    add(
        "--warmup",
        type=non_negative_int,
        default=0,
        metavar="N",
        help="number of first iterations in which the rate rises from near 0 (default: 0)",
    )


def _add_examples(add: Any) -> None:
    """Adds the options that change the positions and the target of the value head."""
    add(
        "--mirror",
        action="store_true",
        help="exchange left and right in half of the positions, drawn anew every epoch; useful "
        "if the run sees the same games several times",
    )
    add(
        "--value_lambda",
        type=proportion,
        default=1.0,
        metavar="X",
        help="target of the value head: X * result + (1 - X) * sigmoid(evaluation / eval_scale); "
        "a position without an evaluation uses the result (default: 1, the result alone)",
    )
    add(
        "--eval_scale",
        type=positive_number,
        metavar="CENTIPAWNS",
        help="scale of the evaluations, as utils/fit_eval_scale.py finds it; needs --value_lambda "
        f"below 1 (default: {EVAL_SCALE:g})",
    )
    add(
        "--td_lambda",
        type=share,
        default=0.0,
        metavar="L",
        help="use the lambda-return of the game's later evaluations and its result in place of the "
        "position's own evaluation, for example 0.9; needs --value_lambda below 1 (default: 0, its "
        "own evaluation alone)",
    )


def add_targets(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the heads that only the training programs have."""
    parser.add_argument(
        "--policy_target",
        choices=("played", "visits"),
        default="played",
        help="target of the policy head: the move played, or the shares of the moves in the "
        "visits of an HCPE3 file; a position without visits uses the move played "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--value_head_only",
        action="store_true",
        help="train the value head of --initmodel alone; the other layers and the policy stay the "
        "same",
    )
