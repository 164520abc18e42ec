"""The optimizer of a recipe, and its learning rate."""

from __future__ import annotations

import logging
import math
from typing import Any

from pydlshogi.compat import chainer
from pydlshogi.training.parallel import ALONE, Ranks
from pydlshogi.training.recipe import Recipe

#: Latest end of a cosine. A state file stores it in 64 bits.
_LATEST_END = 2**62

logger = logging.getLogger(__name__)

hooks = chainer.optimizer_hooks


def make_optimizer(network: Any, recipe: Recipe, ranks: Ranks = ALONE) -> Any:
    """Makes a ``chainer.Optimizer`` for a network or its ``ValueHead``, without its schedule."""
    optimizer: Any
    if recipe.nesterov:
        optimizer = chainer.optimizers.NesterovAG(recipe.lr, recipe.momentum)
    elif recipe.momentum:
        optimizer = chainer.optimizers.MomentumSGD(recipe.lr, recipe.momentum)
    else:
        optimizer = chainer.optimizers.SGD(recipe.lr)
    optimizer.setup(network)
    if ranks.size > 1:
        # The hooks run in this order, and clipping needs the gradients of the whole batch.
        optimizer.add_hook(ranks.merge_gradients, name="merge gradients", timing="pre")
    if recipe.clip is not None:
        optimizer.add_hook(hooks.GradientClipping(recipe.clip))
    if recipe.weight_decay:
        for parameter in network.params():
            if parameter.ndim > 1:
                parameter.update_rule.add_hook(hooks.WeightDecay(recipe.weight_decay))
    return optimizer


class Schedule:
    """Optimizer hook that sets the learning rate before every update.

    The rate is a function of the number of updates done. To resume a run, only the end of
    a cosine must be known: the iteration, over all runs, at which the rate is 0.
    """

    name = "Schedule"
    timing = "pre"
    call_for_each_param = False

    def __init__(self, recipe: Recipe, end: int | None = None) -> None:
        self._recipe = recipe
        self.end = end

    def rate(self, t: int) -> float:
        """Computes the learning rate of an update.

        Args:
            t: Number of earlier updates, over all runs.
        """
        recipe = self._recipe
        rate = recipe.lr
        if recipe.warmup:
            rate *= min(1, (t + 1) / recipe.warmup)
        if self.end is not None:
            done = (t - recipe.warmup) / max(1, self.end - recipe.warmup)
            rate *= (1 + math.cos(math.pi * min(max(0, done), 1))) / 2
        return rate * recipe.lr_factor ** sum(t >= step for step in recipe.lr_steps)

    def __call__(self, optimizer: Any) -> None:
        """Sets the rate of the next update."""
        optimizer.lr = self.rate(optimizer.t)


def make_schedule(recipe: Recipe, last: int, resumed_end: int | None = None) -> Schedule:
    """Makes the schedule of a run, and logs a warning if the rate is useless for a part of it.

    Args:
        last: The last iteration of this run, counted over all runs.
        resumed_end: The end of the cosine in the run that is resumed, if there is one.
    """
    end = None
    if recipe.lr_schedule == "cosine":
        end = recipe.lr_iterations or (last if resumed_end is None else resumed_end)
        end = min(end, _LATEST_END)
    until = last if end is None else min(end, last)
    if recipe.warmup >= until:
        logger.warning(
            "warmup is %d, but this run or its cosine ends at iteration %d: "
            "the learning rate reaches lr only in the last iteration, or never",
            recipe.warmup,
            until,
        )
    if recipe.lr_steps and max(recipe.lr_steps) >= last:
        logger.warning(
            "lr_steps names iteration %d, but this run ends at iteration %d: the learning rate "
            "does not fall there",
            max(recipe.lr_steps),
            last,
        )
    if end is not None and end < last:
        logger.warning(
            "the learning rate is 0 from iteration %d on, but this run ends at iteration %d; "
            "set another end of the cosine with lr_iterations",
            end,
            last,
        )
    return Schedule(recipe, end)
