from pathlib import Path

import numpy as np
import pytest

from pydlshogi.compat import chainer
from pydlshogi.features import make_input_planes
from pydlshogi.layers.convolution import using_convolution
from pydlshogi.network.policy import PolicyNetwork
from pydlshogi.read_kifu import read_kifu

F = chainer.functions

KIFU = Path(__file__).parents[3] / "kifu"


def losses(convolution, positions, iterations, batchsize):
    """Trains the book's network and returns the loss of each iteration."""
    np.random.seed(0)
    network = PolicyNetwork()
    optimizer = chainer.optimizers.SGD(lr=0.01)
    optimizer.setup(network)
    random = np.random.RandomState(1)
    found = []
    for _ in range(iterations):
        batch = positions[random.randint(0, len(positions), batchsize)]
        with using_convolution(convolution):
            logits = network(make_input_planes(batch))
            loss = F.softmax_cross_entropy(logits, batch["label"].astype(np.int32))
            network.cleargrads()
            loss.backward()
        optimizer.update()
        found.append(float(loss.array))
    return np.array(found)


@pytest.mark.slow
def test_the_loss_falls_as_with_chainers_own_convolution():
    positions = read_kifu(KIFU / "kifulist_train.txt").array
    ours = losses("winograd", positions, iterations=500, batchsize=32)
    chainers = losses("chainer", positions, iterations=500, batchsize=32)
    # Same initial weights and same batches: only rounding makes the curves drift apart.
    means = [curve.reshape(10, 50).mean(axis=1) for curve in (ours, chainers)]
    print("\nmean loss of every 50 iterations, winograd and chainer:\n", np.round(means, 4))
    assert means[0][-1] < means[0][0] - 0.5
    noise = chainers.reshape(10, 50).std(axis=1) / np.sqrt(50)
    assert (abs(means[0] - means[1]) < noise).all()
