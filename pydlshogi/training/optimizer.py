"""What a recipe trains, its optimizer, and the learning rate."""

from __future__ import annotations

import logging
import math
from typing import Any

from pydlshogi.compat import chainer
from pydlshogi.errors import UserError
from pydlshogi.network.network import Network
from pydlshogi.training.parallel import ALONE, Ranks
from pydlshogi.training.recipe import Recipe

#: Latest end of a cosine. A state file stores it in 64 bits.
_LATEST_END = 2**62

logger = logging.getLogger(__name__)

hooks = chainer.optimizer_hooks


class ValueHeadError(UserError):
    """The value head of a network cannot be trained alone."""


def trained_part(network: Network, recipe: Recipe) -> Network:
    """Returns what a recipe trains: the network, or its ``ValueHead``."""
    return ValueHead(network) if recipe.value_head_only else network


class ValueHead(Network):
    """The value head of a network, to train it alone; both share its arrays.

    Its parameters are those of the head alone. So an optimizer that is set up with it changes
    nothing else. The trunk computes the input of the head. It must be on the device of the planes,
    and needs no gradient, so training is faster.

    Raises:
        ValueHeadError: the network does not say what its value head is.
    """

    has_policy = False

    def __init__(self, network: Network) -> None:
        _check(network)
        super().__init__()
        self.value_kind = network.value_kind
        self.value_output = network.value_output
        self.plane_num = network.plane_num
        self._network: Any = network  # not a child: its parameters would be trained
        with self.init_scope():
            for name in network.value_head:
                setattr(self, name, network[name])

    def forward(self, x: Any) -> Any:
        """Computes the values (batch, 1) from planes (batch, plane_num, 9, 9)."""
        # Batch normalization of the trunk must use its statistics, as in play.
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            h = self._network.trunk(x)
        return self._network.value(h)


def _check(network: Any) -> None:
    names = network.value_head
    links = {name for name, _ in network.namedlinks(skipself=True)}
    if (
        network.value_kind is None
        or not (isinstance(names, tuple) and names)
        or any(f"/{name}" not in links for name in names)
        or not (hasattr(network, "trunk") and hasattr(network, "value"))
    ):
        raise ValueHeadError(
            f"the class {type(network).__name__} does not say what its value head is. Give it "
            'value_head = ("NAME", ...), the names of links, and the methods trunk and value (see '
            "docs/your-own-network.md), or train all of it, without value_head_only."
        )


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
        """Computes the learning rate of an update after ``t`` others, over all runs."""
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
