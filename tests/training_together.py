"""Trains small networks in one process or, started by mpiexec, in several.

The tests import :func:`train_together`; mpiexec runs this file with a folder and the names of
cases.
"""

import contextlib
import dataclasses
import sys
import unittest.mock
from pathlib import Path

import numpy
from training_helpers import SmallNetwork, SmallValueNetwork, TwoHeads, make_positions

from pydlshogi.compat import chainer
from pydlshogi.kifu.mapped_positions import MappedPositions
from pydlshogi.layers.batch_normalization import BatchNormalization
from pydlshogi.layers.convolution import set_convolution
from pydlshogi.network.registry import NETWORKS, make_network
from pydlshogi.positions import CANDIDATE, Visits
from pydlshogi.training.batches import PlanesConverter
from pydlshogi.training.checkpoint import load_pair
from pydlshogi.training.log_file import log_to
from pydlshogi.training.optimizer import make_optimizer, trained_part
from pydlshogi.training.parallel import ALONE, join
from pydlshogi.training.recipe import Recipe
from pydlshogi.training.trainer import Settings, Task, train


class Normalized(TwoHeads):
    """Our batch normalization, with and without ReLU, before both heads."""

    value_head = ("value",)

    def __init__(self, seed=1):
        super().__init__(seed)
        with self.init_scope():
            # Without ReLU the second one would take away what beta of the first one adds.
            self.first = BatchNormalization(104, relu=True)
            self.second = BatchNormalization(104)

    def trunk(self, x):
        return self.second(self.first(x) - 0.5 * x)

    def forward(self, x):
        return super().forward(self.trunk(x))


@dataclasses.dataclass(frozen=True)
class Case:
    """A run: its network, its settings, and the iterations after which it is resumed.

    ``dtype`` is the type of the parameters and of the planes.
    """

    network: object
    recipe: Recipe = Recipe(lr=0.1)
    batchsize: int = 7
    parts: tuple = (12,)
    convolution: str = "chainer"
    dtype: type = numpy.float32


_EVERYTHING = Recipe(
    lr=0.05,
    momentum=0.9,
    nesterov=True,
    weight_decay=1e-3,
    clip=0.5,
    lr_schedule="cosine",
    lr_iterations=40,
    warmup=4,
    mirror=True,
    value_lambda=0.7,
    td_lambda=0.9,
)

# In float32, rounding moves values to the other side of a ReLU, where the gradient jumps: one or
# two of the 1.5 million values of a batch of 8. Other numbers of ranks then give parameters that
# differ by up to 3e-2 after 30 updates. In float64 no value moves: the parameters of 1, 2 and 3
# ranks agree to 2e-15. So the networks train 30 iterations in float64, and one in float32.

#: Networks with batch normalization behind many layers. There the first update may differ.
DEEP = [name for name in NETWORKS if name.endswith(("bn", "resnet"))]

CASES = {
    "policy": Case(SmallNetwork),
    "value": Case(SmallValueNetwork, Recipe(lr=0.01)),
    "two heads": Case(TwoHeads, _EVERYTHING),
    "normalized": Case(Normalized, _EVERYTHING),
    "normalized in threads": Case(Normalized, convolution="auto"),
    "a batch of one": Case(Normalized, Recipe(lr=0.01), batchsize=1, parts=(5,)),
    "resumed": Case(Normalized, _EVERYTHING, parts=(5, 3, 9)),
    "visits": Case(Normalized, dataclasses.replace(_EVERYTHING, policy_target="visits")),
    "value head": Case(
        Normalized, dataclasses.replace(_EVERYTHING, value_head_only=True), parts=(5, 3)
    ),
    "float64": Case(Normalized, _EVERYTHING, dtype=numpy.float64),
    **{
        f"network {name}": Case(lambda name=name: make_network(name), _EVERYTHING, 8, (1,))
        for name in NETWORKS
    },
    **{
        f"network {name} in float64": Case(
            lambda name=name: make_network(name),
            _EVERYTHING,
            8,
            (30,),
            dtype=numpy.float64,
        )
        for name in NETWORKS
    },
}


def positions_of(count, seed):
    """A game in which every second position has an unknown result."""
    positions = make_positions(count, seed)
    random = numpy.random.RandomState(seed)
    positions["result"] = random.randint(0, 4, count)
    positions["result"][::2] = 3
    positions["evaluation"] = random.randint(-500, 500, count)
    positions["ply"] = 1 + numpy.arange(count)
    positions["recent"][1:, 0] = 81 - positions["label"][:-1] % 81
    return positions


def train_together(folder, name, ranks=ALONE, part=None):
    """Trains a case, all its parts or one of them; returns its network."""
    case = CASES[name]
    set_convolution(case.convolution)
    with chainer.using_config("dtype", case.dtype):
        for number, iterations in enumerate(case.parts):
            if part in (None, number):
                network = _train(Path(folder), case, iterations, ranks, resume=number > 0)
    set_convolution("auto")
    return network


def visits_of(count, seed):
    """Visits of 0 to 5 candidates of each position."""
    random = numpy.random.RandomState(seed)
    starts = numpy.cumsum([0, *random.randint(0, 6, count)])
    candidates = numpy.zeros(starts[-1], CANDIDATE)
    candidates["label"] = random.randint(0, 2187, len(candidates))
    candidates["count"] = random.randint(0, 100, len(candidates))
    return Visits(starts, candidates)


@contextlib.contextmanager
def planes_of(dtype):
    """Lets the batches have planes and targets of a type."""
    convert = PlanesConverter.__call__

    def cast(self, batch, device):
        planes, labels, wins = convert(self, batch, device)
        if labels.dtype.kind == "f":
            labels = labels.astype(dtype)
        return planes.astype(dtype), labels, wins.astype(dtype)

    with unittest.mock.patch.object(PlanesConverter, "__call__", cast):
        yield


def _train(folder, case, iterations, ranks, resume):
    numpy.random.seed(1)
    network = case.network()
    optimizer = make_optimizer(trained_part(network, case.recipe), case.recipe, ranks)
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
    if case.recipe.policy_target == "visits":
        sets = MappedPositions(sets[0], [], visits_of(45, 3)), sets[1]
    task = Task(
        network,
        optimizer,
        *sets,
        settings,
        chainer.get_device("@numpy"),
        resumed=resumed,
        ranks=ranks,
    )
    with contextlib.ExitStack() as around:
        around.enter_context(planes_of(case.dtype))
        if ranks.is_first:
            around.enter_context(log_to(folder / "log"))
        train(task)
    return network


if __name__ == "__main__":
    joined = join(None, -1)
    here, part, *names = sys.argv[1:]
    for case_name in names:
        train_together(
            Path(here) / case_name, case_name, joined, None if part == "all" else int(part)
        )
