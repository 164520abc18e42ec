"""The recipe of a training run: first weights, optimizer and learning rate.

The defaults are the published recipe: plain SGD at a constant rate.
"""

from __future__ import annotations

import dataclasses
import logging
import math
from typing import Any

from pydlshogi.compat import chainer
from pydlshogi.training.defaults import EVAL_SCALE
from pydlshogi.training.parallel import ALONE, Ranks
from pydlshogi.training.policy_target import PLAYED
from pydlshogi.training.value_target import ValueTarget

#: Latest end of a cosine. A state file stores it in 64 bits.
_LATEST_END = 2**62

logger = logging.getLogger(__name__)

hooks = chainer.optimizer_hooks


@dataclasses.dataclass(frozen=True)
class Recipe:
    """The options of the training programs with the same names.

    Attributes:
        dirac: Whether the identity is added to the first weights
            (:mod:`pydlshogi.layers.dirac`), when the network is made.
        lr: Learning rate; the highest one if it changes.
        momentum: Share of the last step that is added to the next one, 0..1.
        nesterov: Momentum as in Chainer's ``NesterovAG``, which is not exactly Nesterov's
            method. With v ← μv − lr·g, Chainer moves the weights by μ²v − (1 + μ)lr·g,
            where the method takes the previous v. A gradient then counts 1 + μ + μ² times
            the rate at once (2.7 for μ = 0.9) and less later; in total lr / (1 − μ), as
            with plain momentum. Sources: arXiv:1212.0901 (the method), Chainer's issue
            4274 (the difference).
        weight_decay: Share of each weight that is added to its gradient. Biases and the
            parameters of batch normalization are left out.
        clip: Largest norm of the gradient of all parameters together; larger gradients are
            scaled down. None for no limit. Weight decay is added afterwards.
        lr_schedule: ``constant``, ``cosine`` (falls to 0) or ``steps``.
        lr_iterations: With ``cosine``: iteration at which the rate reaches 0, counted over
            all runs; None for the planned end of the first run.
        lr_steps: With ``steps``: the iterations at which the rate is multiplied by
            ``lr_factor``.
        lr_factor: Factor of ``lr_steps``.
        warmup: Number of iterations in which the rate rises from near 0 in equal steps.
        mirror: Whether half of the positions are mirrored, drawn anew every epoch
            (:mod:`pydlshogi.training.mirror`).
        value_lambda: Weight of the result in the target of the value
            (:mod:`pydlshogi.training.value_target`).
        eval_scale: Centipawns at which an evaluation means a winning probability of 0.73.
        td_lambda: λ of the λ-return of the evaluations (:mod:`pydlshogi.training.lambda_return`);
            0 for the evaluation of the position alone.
        policy_target: Target of the policy (:mod:`pydlshogi.training.policy_target`).
        value_head_only: Whether the value head is trained alone
            (:mod:`pydlshogi.training.value_head`).
    """

    dirac: bool = False
    lr: float = 0.01
    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0
    clip: float | None = None
    lr_schedule: str = "constant"
    lr_iterations: int | None = None
    lr_steps: tuple[int, ...] = ()
    lr_factor: float = 0.1
    warmup: int = 0
    mirror: bool = False
    value_lambda: float = 1.0
    eval_scale: float = EVAL_SCALE
    td_lambda: float = 0.0
    policy_target: str = PLAYED
    value_head_only: bool = False

    @property
    def value_target(self) -> ValueTarget:
        """What makes the targets of the value."""
        return ValueTarget(self.value_lambda, self.eval_scale, self.td_lambda)

    @property
    def changes_rate(self) -> bool:
        """Whether the learning rate changes during training."""
        return self.lr_schedule != "constant" or self.warmup > 0

    def changes(self) -> dict[str, Any]:
        """Returns the options that differ from the published recipe, by name."""
        published = dataclasses.asdict(Recipe())
        return {
            name: value
            for name, value in dataclasses.asdict(self).items()
            if value != published[name]
        }


def make_optimizer(network: Any, recipe: Recipe, ranks: Ranks = ALONE) -> Any:
    """Makes the optimizer of a recipe, without its schedule of the learning rate.

    Args:
        network: A ``chainer.Link``: a network, or its ``ValueHead``.
        recipe: The recipe.
        ranks: The processes that train the network together.

    Returns:
        A ``chainer.Optimizer`` set up with the network.
    """
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
    a cosine must be known.

    Args:
        recipe: The recipe.
        end: With ``cosine``: the iteration at which the rate is 0, counted over all runs.

    Attributes:
        end: As above; None for other schedules.
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
        recipe: The recipe.
        last: The last iteration of this run, counted over all runs.
        resumed_end: The end of the cosine in the run that is resumed, if there is one.

    Returns:
        The schedule. A cosine ends at ``recipe.lr_iterations``, else at ``resumed_end``,
        else at ``last``.
    """
    end = None
    if recipe.lr_schedule == "cosine":
        end = recipe.lr_iterations or (last if resumed_end is None else resumed_end)
        end = min(end, _LATEST_END)
    until = last if end is None else min(end, last)
    if recipe.warmup >= until:
        logger.warning(
            "--warmup is %d, but this run or its cosine ends at iteration %d: "
            "the learning rate reaches --lr only in the last iteration, or never",
            recipe.warmup,
            until,
        )
    if recipe.lr_steps and max(recipe.lr_steps) >= last:
        logger.warning(
            "--lr_steps names iteration %d, but this run ends at iteration %d: the learning rate "
            "does not fall there",
            max(recipe.lr_steps),
            last,
        )
    if end is not None and end < last:
        logger.warning(
            "the learning rate is 0 from iteration %d on, but this run ends at iteration %d; "
            "set another end of the cosine with --lr_iterations",
            end,
            last,
        )
    return Schedule(recipe, end)
