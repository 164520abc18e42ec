"""Speed of several implementations of a layer, alone and in a training step.

    python benchmarks/layers.py hands          hand planes through 3×3 or 1×1 filters
    python benchmarks/layers.py normalization  batch normalization: none, ours, Chainer's

The implementations take turns in one process, so that other load slows all of them. The
figures are medians.
"""

from __future__ import annotations

import openblas  # noqa: F401

# isort: split
import argparse
import statistics
import time
from typing import Any, Callable

import numpy

from pydlshogi.compat import chainer
from pydlshogi.device import in_words, select_device
from pydlshogi.features import HAND_MAX, make_input_planes
from pydlshogi.layers.blocks import PiecesAndHands
from pydlshogi.network.policy import PolicyNetwork, ch
from pydlshogi.network.registry import make_network
from pydlshogi.positions import POSITION

F = chainer.functions
L = chainer.links


class PiecesAndBroadcastHands(PiecesAndHands):
    """A third form: computes one square and broadcasts it to all squares."""

    def uniform(self, x: Any) -> Any:
        """Convolves one square of each constant plane and broadcasts the result."""
        y = self.hands(x[:, :, :1, :1])
        return F.broadcast_to(y, (*y.shape[:2], *x.shape[2:]))


class Broadcast(PolicyNetwork):
    """The policy network with the third form."""

    def first_layer(self) -> Any:
        """Makes the third form."""
        return PiecesAndBroadcastHands(self.channels)


def make_hands() -> tuple[str, dict[str, Any]]:
    """Makes networks with different first layers for the hand planes."""
    return "l1", {
        "all planes 3×3": make_network("policy"),
        "(a) unpooling": make_network("policy_hand1x1_unpool"),
        "(b) ksize 1": make_network("policy_hand1x1"),
        "broadcasting": Broadcast(),
    }


def make_normalization() -> tuple[str, dict[str, Any]]:
    """Makes networks with and without batch normalization."""
    networks = {
        "none": make_network("policy_hand1x1"),
        "ours": make_network("policy_hand1x1_bn"),
        "Chainer's": make_network("policy_hand1x1_bn"),
    }
    for layer in networks["Chainer's"].children():
        if hasattr(layer, "bn"):
            del layer.bn
            with layer.init_scope():
                layer.bn = chainer.Sequential(L.BatchNormalization(ch), F.relu)
    return "l2", networks


def make_positions(count: int) -> numpy.ndarray:
    """Makes positions with as many pieces on the board and in hand as in a middle game."""
    random = numpy.random.RandomState(0)
    positions = numpy.zeros(count, POSITION)
    occupied = random.rand(count, 81) < 0.4
    positions["board"] = numpy.where(occupied, random.randint(1, 29, (count, 81)), 0)
    positions["hands"] = random.rand(count, 14) * (numpy.array(HAND_MAX * 2) + 1) / 3
    positions["label"] = random.randint(0, 2187, count)
    return positions


def main() -> None:
    """Prints a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("hands", "normalization"))
    parser.add_argument("--batchsize", type=int, default=32)
    parser.add_argument(
        "--rounds", type=int, default=15, help="number of rounds (default: %(default)s)"
    )
    parser.add_argument("--gpu", type=int)
    args = parser.parse_args()

    device = select_device(args.gpu)
    device.use()
    measured, networks = make_hands() if args.what == "hands" else make_normalization()
    positions = make_positions(args.batchsize)
    planes = make_input_planes(device.send(positions.view("u1").reshape(len(positions), -1)))
    labels = device.send(positions["label"].astype(numpy.int32))
    steps: dict[str, tuple[Callable[[], Any], ...]] = {}
    for name, network in networks.items():
        network.to_device(device)
        optimizer = chainer.optimizers.SGD(0.01).setup(network)

        def step(network: Any = network, optimizer: Any = optimizer) -> None:
            optimizer.update(lambda: F.softmax_cross_entropy(network(planes), labels))

        link = network[measured]
        x = planes if measured == "l1" else network.l1(planes).array

        def layer(link: Any = link, x: Any = x) -> None:
            with chainer.using_config("train", False), chainer.no_backprop_mode():
                link(x)

        def layer_step(link: Any = link, x: Any = x) -> None:
            link.cleargrads()
            F.sum(link(x if measured == "l1" else chainer.Variable(x))).backward()

        steps[name] = (layer, layer_step, step)

    times: dict[tuple[str, int], list[float]] = {}
    for turn in range(args.rounds + 1):
        for name, tasks in steps.items():
            for number, task in enumerate(tasks):
                start = time.perf_counter()
                task()
                if device.xp is not numpy:
                    device.device.synchronize()
                if turn:  # the first turn allocates buffers
                    times.setdefault((name, number), []).append(time.perf_counter() - start)
    print(f"batch {args.batchsize}, {in_words(device)}, median of {args.rounds}\n")
    head = f"{measured} in play | {measured} forward and backward"
    print(f"| ms | {head} | training step |")
    print("|:--|--:|--:|--:|")
    for name in steps:
        cells = (f"{statistics.median(times[name, number]) * 1e3:.1f}" for number in range(3))
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
