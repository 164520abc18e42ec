"""How a network learns: where it begins, its optimizer, and what is done to the data.

The defaults are the published recipe: plain SGD at a constant rate.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import logging
import math
from collections.abc import Mapping
from typing import Any

import numpy

from pydlshogi.compat import chainer

logger = logging.getLogger(__name__)

hooks = chainer.optimizer_hooks


@dataclasses.dataclass(frozen=True)
class Recipe:
    """The options of train_policy of the same names.

    Attributes:
        dirac: Whether the identity is added to the first weights
            (:mod:`pydlshogi.network.dirac`); whoever makes the network does that.
        lr: Learning rate, the highest one where it changes.
        momentum: Share of the last step that the next one keeps, 0..1.
        nesterov: Momentum as Chainer's ``NesterovAG`` has it, which is not Nesterov's
            method to the letter: with v ← μv − lr·g the weights move by μ²v − (1 + μ)lr·g,
            where the method takes the v before. A gradient so gets 1 + μ + μ² times the
            rate at once, 2.7 for μ = 0.9, then less; in all lr / (1 − μ), as with plain
            momentum. Source of the method: arXiv:1212.0901; of the difference: Chainer's
            issue 4274.
        weight_decay: Adds that share of each weight to its gradient. Biases and the
            parameters of batch normalization are left out: they are few, and drawing them
            towards 0 only shifts what a layer gives.
        clip: Longest gradient, over all parameters together; longer ones are shortened.
            None for no limit. Weight decay is added afterwards.
        lr_schedule: ``constant``, ``cosine`` (falls to 0) or ``steps``.
        lr_iterations: For ``cosine``: iteration at which it reaches 0, counted over all
            runs; None for the end that is planned when the run begins.
        lr_steps: For ``steps``: iterations from which the rate is multiplied by
            ``lr_factor`` once more.
        lr_factor: See ``lr_steps``.
        warmup: Iterations in which the rate rises from next to 0, in equal steps.
        label_smoothing: Share of the target that is spread evenly over all labels, 0..1.
        mirror: Whether left and right change places in half of the positions, drawn anew
            every epoch.
        average: About how many of the last iterations the weights are averaged over; None
            for the weights as they are.
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
    label_smoothing: float = 0.0
    mirror: bool = False
    average: int | None = None

    @classmethod
    def of(cls, args: argparse.Namespace) -> Recipe:
        """Takes the recipe out of what a parser of :mod:`.parser` parsed."""
        return cls(**{field.name: getattr(args, field.name) for field in dataclasses.fields(cls)})

    @property
    def changes_rate(self) -> bool:
        """Whether the learning rate is not the same all the time."""
        return self.lr_schedule != "constant" or self.warmup > 0

    def changes(self) -> dict[str, Any]:
        """Gives what differs from the published recipe, by name."""
        published = dataclasses.asdict(Recipe())
        return {
            name: value
            for name, value in dataclasses.asdict(self).items()
            if value != published[name]
        }

    def __str__(self) -> str:
        optimizer = "NesterovAG" if self.nesterov else "MomentumSGD" if self.momentum else "SGD"
        changes = {name: value for name, value in self.changes().items() if name != "lr"}
        options = [f"{name} {value}" for name, value in changes.items() if name != "nesterov"]
        return ", ".join([f"{optimizer} {self.lr:g}", *options])


class Options:
    """What a state file tells of how was learned.

    Args:
        recipe: The recipe.
        batchsize: Positions in a training batch, which are no part of a recipe but change
            as much.
    """

    def __init__(self, recipe: Recipe, batchsize: int) -> None:
        self._options = {**dataclasses.asdict(recipe), "batchsize": batchsize}

    def serialize(self, serializer: Any) -> None:
        """Saves the options; :meth:`differences` reads them."""
        serializer("options", json.dumps(self._options))

    def differences(self, own: Mapping[str, numpy.ndarray]) -> list[str]:
        """Says where these are other options than those of a run that is resumed.

        Args:
            own: What stands below our prefix in the state file; one of an older version
                or of the book's lacks some options, or all.

        Returns:
            A clause for each option.

        Raises:
            ValueError: what stands there are no options.
        """
        before = json.loads(str(own.get("recipe/options", "{}")))
        now = json.loads(json.dumps(self._options))  # a tuple is a list there
        return [
            f"--{name} was {before[name]} and is {value} now"
            for name, value in now.items()
            # Where a cosine ends may well be said anew; make_schedule tells what follows.
            if name != "lr_iterations" and before.get(name, value) != value
        ]


def make_optimizer(network: Any, recipe: Recipe) -> Any:
    """Makes the optimizer of a recipe; its learning rate is :class:`Schedule`'s matter.

    Args:
        network: A ``chainer.Link``.
        recipe: How it learns.

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
    if recipe.clip is not None:
        optimizer.add_hook(hooks.GradientClipping(recipe.clip))
    if recipe.weight_decay:
        for parameter in network.params():
            if parameter.ndim > 1:
                parameter.update_rule.add_hook(hooks.WeightDecay(recipe.weight_decay))
    return optimizer


class Schedule:
    """Optimizer hook that sets the learning rate before every update.

    The rate is a function of the number of updates done, so that a run that is resumed
    needs nothing but to know where a cosine ends.

    Args:
        recipe: How the network learns.
        end: For ``cosine``: the iteration at which the rate is 0, counted over all runs.

    Attributes:
        end: The same; None for other schedules.
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
            t: Number of updates done before, over all runs.
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
        """Sets the rate of the update that is about to be done."""
        optimizer.lr = self.rate(optimizer.t)

    def serialize(self, serializer: Any) -> None:
        """Saves where the cosine ends; :func:`make_schedule` reads it."""
        serializer("end", self.end)


def make_schedule(recipe: Recipe, last: int, own: Mapping[str, numpy.ndarray]) -> Schedule:
    """Makes the schedule of a run.

    Args:
        recipe: How the network learns.
        last: The iteration at which this run will be over, counted over all runs.
        own: What stands below our prefix in the state file that is resumed.

    Returns:
        The schedule. A cosine ends where the recipe says, or else where it was to end in
        the run that is resumed, or else with this run; a warning is logged where it ends
        before this run, and where the warm-up leaves it, or the run, no time.
    """
    cosine = recipe.lr_schedule == "cosine"
    end = recipe.lr_iterations or int(own.get("schedule/end", last)) if cosine else None
    until = last if end is None else min(end, last)
    if recipe.warmup >= until:
        logger.warning(
            "the learning rate still rises where this run, or its cosine, ends: at iteration %d, "
            "and --warmup is %d",
            until,
            recipe.warmup,
        )
    if end is not None and end < last:
        logger.warning(
            "the learning rate is 0 from iteration %d on, and this run ends at %d; "
            "--lr_iterations gives the cosine another end",
            end,
            last,
        )
    return Schedule(recipe, end)
