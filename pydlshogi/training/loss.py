"""The training loss: cross entropy of the policy's target, and the loss of the game's result."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.network.network import split_output
from pydlshogi.network.value_kind import ValueKind
from pydlshogi.training.parallel import ALONE, Ranks

F = chainer.functions


def loss_names(network: Any) -> tuple[str, ...]:
    """Names the losses of a network: ``loss`` of the policy, ``value_loss`` of the value."""
    policy = ("loss",) if network.has_policy else ()
    return policy if network.value_kind is None else (*policy, "value_loss")


class Loss:
    """Loss function of the updater and of the validation.

    It reports the quantities of :func:`measure` to Chainer's reporter as values of the network. In
    training, the loss of a batch with fewer than ``batchsize`` positions is scaled by its share of
    a full one, so that every position has the same weight.
    """

    def __init__(self, network: Any, *, batchsize: int = 0, ranks: Ranks = ALONE) -> None:
        self._network = network
        self._batchsize = batchsize
        self._ranks = ranks

    def __call__(self, planes: Any, labels: Any, wins: Any) -> Any:
        """Computes the loss of a batch; the arguments are those of :func:`measure`.

        Of several processes, each computes the loss of its share; means of an evaluation that are
        reported are of the whole batch.
        """
        if not chainer.config.train:
            loss, measured = measure(self._network, planes, labels, wins)
            chainer.report(dict(self._ranks.means(measured)), self._network)
            return loss
        # Before the forward pass, so that a GPU need not wait for the other processes.
        size, weights = self._weigh(labels, wins)
        loss, measured = measure(self._network, planes, labels, wins, weights)
        chainer.report(measured, self._network)
        if size < self._batchsize:
            loss *= size / self._batchsize
        return loss

    def _weigh(self, labels: Any, wins: Any) -> tuple[int, Mapping[str, float]]:
        """Returns the size of the whole batch, and the weights of the losses of this share."""
        if self._ranks.size == 1:
            return len(labels), {}
        known = chainer.get_device("@numpy").send(wins)
        counts = {"loss": len(labels), "value_loss": numpy.count_nonzero(~numpy.isnan(known))}
        return self._ranks.batch_size(len(labels)), self._ranks.weigh(counts)


#: A mean (float64, 0-dimensional) and the number of positions it was taken over.
Mean = tuple[Any, Any]


def measure(
    network: Any,
    planes: Any,
    labels: Any,
    wins: Any,
    weights: Mapping[str, float] = MappingProxyType({}),
) -> tuple[Any, dict[str, Mean]]:
    """Measures a network on a batch. All results stay on the device, so the CPU waits for no GPU.

    Args:
        planes: (batch, plane_num, 9, 9) float32.
        labels: The targets of the policy: (batch,) int32 labels of the moves played; in
            training also (batch, 2187) float32 probabilities.
        wins: (batch,) float32: 1 won, 0 lost, 0.5 drawn, nan unknown.
        weights: Factors of the losses, by the names of :func:`loss_names`; 1 where missing.

    Returns:
        The loss to minimize, a 0-dimensional ``chainer.Variable``, and the quantities measured,
        by name: ``loss`` and ``value_loss`` (over known results); in evaluation also ``accuracy``
        and ``value_accuracy`` (over won and lost games).
    """
    policy, values = split_output(network, network(planes))
    losses = {}
    measured: dict[str, Mean] = {}
    if policy is not None:
        losses["loss"] = F.softmax_cross_entropy(policy, labels)
        measured["loss"] = (losses["loss"].array.astype(numpy.float64), len(labels))
        if not chainer.config.train:
            accuracy = F.accuracy(policy, labels).array
            measured["accuracy"] = (accuracy.astype(numpy.float64), len(labels))
    if values is not None:
        value_loss, number = _value_loss(network.value_kind, values, wins)
        losses["value_loss"] = value_loss
        measured["value_loss"] = (value_loss.array.astype(numpy.float64), number)
        if not chainer.config.train:
            probabilities = network.value_kind.win_probabilities(values)
            measured["value_accuracy"] = _value_accuracy(probabilities, wins)
    terms = [loss * weights[name] if name in weights else loss for name, loss in losses.items()]
    return sum(terms[1:], terms[0]), measured


def _value_loss(kind: type[ValueKind], values: Any, wins: Any) -> tuple[Any, Any]:
    """Computes the mean loss of the values with a known result, and their number."""
    xp = chainer.backend.get_array_module(wins)
    known = ~xp.isnan(wins)
    number = known.sum()
    # nan would spoil the gradient even where it is multiplied by 0.
    losses = kind.losses(values, xp.where(known, wins, wins.dtype.type(0.5)))
    weights = known.astype(wins.dtype) / xp.maximum(number, 1).astype(wins.dtype)
    return F.sum(losses * weights), number


def _value_accuracy(probabilities: Any, wins: Any) -> Mean:
    """Computes the share of won and lost games whose winner was predicted."""
    xp = chainer.backend.get_array_module(wins)
    decided = (wins == 0) | (wins == 1)
    right = decided & ((probabilities > 0.5) == (wins > 0.5))
    number = decided.sum()
    return right.sum() / xp.maximum(number, 1).astype(numpy.float64), number


class LossMeans(chainer.training.Extension):
    """Trainer extension that keeps the means of ``loss`` or ``value_loss`` over whole batches.

    It runs in every iteration, before the extensions that log.
    """

    priority = chainer.training.PRIORITY_EDITOR

    def __init__(self, quantity: str = "loss", ranks: Ranks = ALONE) -> None:
        self._ranks = ranks
        self._key = f"main/{quantity}"
        self.since_line = chainer.reporter.Summary()
        self.in_epoch = chainer.reporter.Summary()

    def __call__(self, trainer: Any) -> None:
        """Adds the last iteration."""
        measured = {self._key: trainer.observation[self._key]}
        loss, size = self._ranks.means(measured)[self._key]
        self.since_line.add(loss, size)
        self.in_epoch.add(loss, size)

    def since_line_so_far(self) -> float:
        """Returns the mean loss since the last log line, nan if there was no position."""
        return _mean(self.since_line)

    def take_since_line(self) -> float:
        """Returns the mean loss since the last call, nan if there was no position."""
        mean = self.since_line_so_far()
        self.since_line = chainer.reporter.Summary()
        return mean

    def take_in_epoch(self, is_new_epoch: bool) -> float:
        """Returns the mean loss of the epoch so far; a finished epoch is then forgotten."""
        mean = _mean(self.in_epoch)
        if is_new_epoch:
            self.in_epoch = chainer.reporter.Summary()
        return mean

    def serialize(self, serializer: Any) -> None:
        """Saves or restores the sums."""
        self.since_line.serialize(serializer["since_line"])
        self.in_epoch.serialize(serializer["in_epoch"])


def _mean(summary: Any) -> float:
    try:
        with numpy.errstate(invalid="ignore"):
            return float(summary.compute_mean())
    except ZeroDivisionError:  # an empty summary holds Python's numbers
        return numpy.nan
