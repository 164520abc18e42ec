"""Trains small networks in one process or, started by mpiexec, in several.

The tests import :func:`train_together`; mpiexec runs this file with a folder and the names of
cases.
"""

import dataclasses
import sys
from pathlib import Path

import numpy
from training_helpers import SmallNetwork, SmallValueNetwork, TwoHeads, make_positions

from pydlshogi.compat import chainer
from pydlshogi.network.cpu.convolution import set_convolution
from pydlshogi.network.cpu.normalization import BatchNormalization
from pydlshogi.network.registry import NETWORKS, make_network
from pydlshogi.training import log
from pydlshogi.training.checkpoint import load_pair
from pydlshogi.training.parallel import ALONE, join
from pydlshogi.training.recipe import Recipe, make_optimizer
from pydlshogi.training.trainer import Settings, Task, train


class Normalized(TwoHeads):
    """Our batch normalization, with and without ReLU, before both heads."""

    def __init__(self, seed=1):
        super().__init__(seed)
        with self.init_scope():
            # Without ReLU the second one would take away what beta of the first one adds.
            self.first = BatchNormalization(104, relu=True)
            self.second = BatchNormalization(104)

    def forward(self, x):
        return super().forward(self.second(self.first(x) - 0.5 * x))


@dataclasses.dataclass(frozen=True)
class Case:
    """A run: its network, its settings, and the iterations after which it is resumed."""

    network: object
    recipe: Recipe = Recipe(lr=0.1)
    batchsize: int = 7
    parts: tuple = (12,)
    convolution: str = "chainer"


_EVERYTHING = Recipe(
    lr=0.05,
    momentum=0.9,
    nesterov=True,
    weight_decay=1e-3,
    clip=0.5,
    lr_schedule="cosine",
    lr_iterations=40,
    warmup=4,
    value_lambda=0.7,
)

CASES = {
    "policy": Case(SmallNetwork),
    "value": Case(SmallValueNetwork, Recipe(lr=0.01)),
    "two heads": Case(TwoHeads, _EVERYTHING),
    "normalized": Case(Normalized, _EVERYTHING),
    "normalized in threads": Case(Normalized, convolution="auto"),
    "a batch of one": Case(Normalized, Recipe(lr=0.01), batchsize=1, parts=(5,)),
    "resumed": Case(Normalized, _EVERYTHING, parts=(5, 3, 9)),
    **{
        f"network {name}": Case(
            lambda name=name: make_network(name),
            _EVERYTHING,
            8,
            # After some updates of a deep normalized network, one value on the other side of
            # a ReLU changes a gradient by a thousandth: rounding no longer stays small.
            (1,) if name.endswith(("bn", "resnet")) else (30,),
        )
        for name in NETWORKS
    },
}


def positions_of(count, seed):
    """Positions of which every second one has an unknown result."""
    positions = make_positions(count, seed)
    random = numpy.random.RandomState(seed)
    positions["result"] = random.randint(0, 4, count)
    positions["result"][::2] = 3
    positions["evaluation"] = random.randint(-500, 500, count)
    return positions


def train_together(folder, name, ranks=ALONE, part=None):
    """Trains a case, all its parts or one of them; returns its network."""
    case = CASES[name]
    set_convolution(case.convolution)
    for number, iterations in enumerate(case.parts):
        if part in (None, number):
            network = _train(Path(folder), case, iterations, ranks, resume=number > 0)
    set_convolution("auto")
    return network


def _train(folder, case, iterations, ranks, resume):
    numpy.random.seed(1)
    network = case.network()
    optimizer = make_optimizer(network, case.recipe, ranks)
    model, state = folder / "model", folder / "state"
    ranks.on_first(lambda: None)  # the first one has saved
    resumed = load_pair(model, state, network, optimizer) if resume else None
    settings = Settings(
        model,
        state,
        seed=5,
        batchsize=case.batchsize,
        test_batchsize=6,
        epoch=9,
        iterations=iterations,
        eval_interval=4,
        recipe=case.recipe,
    )
    sets = positions_of(45, 1), positions_of(13, 2)
    task = Task(
        network,
        optimizer,
        *sets,
        settings,
        chainer.get_device("@numpy"),
        resumed=resumed,
        ranks=ranks,
    )
    if not ranks.is_first:
        train(task)
        return network
    with log.log_to(folder / "log"):
        train(task)
    return network


if __name__ == "__main__":
    joined = join(None, -1)
    here, part, *names = sys.argv[1:]
    for case_name in names:
        train_together(
            Path(here) / case_name, case_name, joined, None if part == "all" else int(part)
        )
