"""A network and positions small enough to train many times in a test."""

import re

import numpy

from pydlshogi.compat import chainer
from pydlshogi.network.network import Network
from pydlshogi.network.value_kind import WinLogit
from pydlshogi.positions import POSITION
from pydlshogi.training.checkpoint import load_pair
from pydlshogi.training.trainer import Settings, Task, train

CPU = chainer.get_device("@numpy")


class SmallNetwork(Network):
    """One 1×1 convolution: planes to logits with 2,835 parameters."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.layer = chainer.links.Convolution2D(104, 27, ksize=1)

    def forward(self, x):
        return chainer.functions.reshape(self.layer(x), (-1, 2187))


class SmallValueNetwork(Network):
    """The smallest network with a value head alone; values (batch, 1)."""

    has_policy = False
    value_kind = WinLogit

    def __init__(self, seed=1):
        super().__init__()
        numpy.random.seed(seed)
        with self.init_scope():
            self.value = chainer.links.Linear(104 * 81, 1)

    def forward(self, x):
        return self.value(x)


class TwoHeads(Network):
    """The smallest network with both heads; values (batch, 1)."""

    value_kind = WinLogit

    def __init__(self, seed=1):
        super().__init__()
        numpy.random.seed(seed)
        with self.init_scope():
            self.policy = chainer.links.Convolution2D(104, 27, ksize=1)
            self.value = chainer.links.Linear(104 * 81, 1)

    def forward(self, x):
        return chainer.functions.reshape(self.policy(x), (-1, 2187)), self.value(x)


class NormalizedNetwork(SmallNetwork):
    """Has running statistics beside its parameters."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.norm = chainer.links.BatchNormalization(104)

    def forward(self, x):
        return super().forward(self.norm(x))


def make_positions(count, seed):
    """Records with random pieces; the label follows from the first square."""
    random = numpy.random.RandomState(seed)
    positions = numpy.zeros(count, POSITION)
    positions["board"] = random.randint(0, 29, (count, 81))
    positions["label"] = positions["board"][:, 0]
    return positions


def make_network(seed=1):
    numpy.random.seed(seed)
    return SmallNetwork()


def make_optimizer(network, lr=0.5):
    return chainer.optimizers.SGD(lr).setup(network)


def run(
    folder,
    *,
    resume=False,
    network=None,
    train_size=45,
    test_size=13,
    positions=None,
    device=CPU,
    lr=0.5,
    interruption=None,
    **kwargs,
):
    """Trains a small network in a folder, from nothing or from the files there.

    Returns the network, the optimizer and what ``train`` returned.
    """
    network = network or make_network()
    optimizer = make_optimizer(network, lr)
    model, state = folder / "model", folder / "state"
    resumed = load_pair(model, state, network, optimizer) if resume else None
    options = {"seed": 5, "batchsize": 8, "test_batchsize": 4, "epoch": 3, "eval_interval": 4}
    options.update(kwargs)
    if positions is None:
        positions = make_positions(train_size, 1)
    settings = Settings(model=model, state=state, **options)
    test_positions = make_positions(test_size, 2)
    result = train(
        Task(network, optimizer, positions, test_positions, settings, device, resumed=resumed),
        interruption,
    )
    return network, optimizer, result


def parameters(network):
    return chainer.serializers.npz.serialize(network)


def assert_same_parameters(one, other):
    one, other = parameters(one), parameters(other)
    assert one.keys() == other.keys()
    for name in one:
        numpy.testing.assert_array_equal(one[name], other[name])


def assert_same_files(one, other):
    """Compares the arrays of two npz files to the last bit."""
    with numpy.load(one) as one_npz, numpy.load(other) as other_npz:
        assert set(one_npz.files) == set(other_npz.files)  # Chainer keeps no order
        for name in one_npz.files:
            numpy.testing.assert_array_equal(one_npz[name], other_npz[name])


def complaints(capsys):
    """Returns the lines on standard error, except reports on the lists, caches and results."""
    lines = capsys.readouterr().err.splitlines()
    reports = re.compile(r"(train|test)\.(txt: |pickle: cache of )|.*\tINFO\tepoch = ")
    return [line for line in lines if not reports.match(line)]
