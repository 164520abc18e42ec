"""What a network learns: the move played and, with a value head, the game's result."""

from __future__ import annotations

from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.network.value_kind import ValueKind

F = chainer.functions


class Loss:
    """Loss function of the updater and of the evaluation.

    It reports to Chainer's reporter, as values of the network, what :func:`measure` finds.

    Args:
        network: A ``Network``.
        label_smoothing: In training, share of the target that is spread over all labels.
        batchsize: In training, number of positions in a whole batch. The loss of one that
            is short, the last of an epoch, is multiplied by its share of that, so that
            each position counts the same: a step by the mean of the few positions left
            over, at the rate of whole batches, throws a network back. 0: the mean.
    """

    def __init__(self, network: Any, *, label_smoothing: float = 0.0, batchsize: int = 0) -> None:
        self._network = network
        self._label_smoothing = label_smoothing
        self._batchsize = batchsize

    def __call__(self, planes: Any, labels: Any, wins: Any) -> Any:
        """Computes the loss of a batch; see :func:`measure`."""
        smoothing = self._label_smoothing if chainer.config.train else 0.0
        loss, measured = measure(self._network, planes, labels, wins, label_smoothing=smoothing)
        chainer.report(measured, self._network)
        if chainer.config.train and len(labels) < self._batchsize:
            loss *= len(labels) / self._batchsize
        return loss


def measure(
    network: Any, planes: Any, labels: Any, wins: Any, *, label_smoothing: float = 0.0
) -> tuple[Any, dict[str, tuple[Any, Any]]]:
    """Measures a network on a batch.

    What is measured stays on the device, so that a GPU never waits to be read.

    Args:
        network: A ``Network``.
        planes: (batch, planes, 9, 9) float32.
        labels: (batch,) int32.
        wins: (batch,) float32: 1 won, 0 lost, 0.5 drawn, nan unknown.
        label_smoothing: Share of the target that is spread evenly over all labels. It
            changes what is learned and not what is measured.

    Returns:
        The loss to learn from, a 0-dimensional ``chainer.Variable``: softmax cross
        entropy of the moves, plus the mean loss of the values where the network has a
        value head. And by name what was found, each as a pair of a mean (float64,
        0-dimensional) and the number of positions it is over, the weight by which
        ``DictSummary`` makes means over batches means over positions: ``loss``, of the
        moves alone; in evaluation ``accuracy``; with a value head ``value_loss`` over the
        positions whose result is known and, in evaluation, ``value_accuracy`` over those
        of games that somebody won.
    """
    if network.value_kind is None:
        logits = network(planes)
    else:
        logits, values = network(planes)
    loss = F.softmax_cross_entropy(logits, labels)
    measured = {"loss": (loss.array.astype(numpy.float64), len(labels))}
    if not chainer.config.train:
        accuracy = F.accuracy(logits, labels).array
        measured["accuracy"] = (accuracy.astype(numpy.float64), len(labels))
    if label_smoothing:
        even = -F.mean(F.log_softmax(logits))
        loss = (1 - label_smoothing) * loss + label_smoothing * even
    if network.value_kind is not None:
        value_loss, number = _value_loss(network.value_kind, values, wins)
        measured["value_loss"] = (value_loss.array.astype(numpy.float64), number)
        if not chainer.config.train:
            probabilities = network.value_kind.win_probabilities(values)
            measured["value_accuracy"] = _value_accuracy(probabilities, wins)
        loss += value_loss
    return loss, measured


def _value_loss(kind: type[ValueKind], values: Any, wins: Any) -> tuple[Any, Any]:
    """Computes the mean loss of the values whose results are known, and their number."""
    xp = chainer.backend.get_array_module(wins)
    known = ~xp.isnan(wins)
    number = known.sum()
    # nan would spoil the gradient even where it is multiplied by 0.
    losses = kind.losses(values, xp.where(known, wins, numpy.float32(0.5)))
    share = known.astype(numpy.float32) / xp.maximum(number, 1).astype(numpy.float32)
    return F.sum(losses * share), number


def _value_accuracy(probabilities: Any, wins: Any) -> tuple[Any, Any]:
    """Computes how often the side that seemed to win did, over the games somebody won."""
    xp = chainer.backend.get_array_module(wins)
    decided = (wins == 0) | (wins == 1)
    right = decided & ((probabilities > 0.5) == (wins > 0.5))
    number = decided.sum()
    return right.sum() / xp.maximum(number, 1).astype(numpy.float64), number


class LossMeans(chainer.training.Extension):
    """Trainer extension that keeps the means of one training loss.

    It looks at every iteration, before the extensions that log.

    Args:
        quantity: Which: ``"loss"`` or ``"value_loss"``.

    Attributes:
        since_line: ``chainer.reporter.Summary`` of the positions since the last log line.
        in_epoch: The same of the positions of this epoch.
    """

    priority = chainer.training.PRIORITY_EDITOR

    def __init__(self, quantity: str = "loss") -> None:
        self._key = f"main/{quantity}"
        self.since_line = chainer.reporter.Summary()
        self.in_epoch = chainer.reporter.Summary()

    def __call__(self, trainer: Any) -> None:
        """Adds the last iteration."""
        loss, size = trainer.observation[self._key]
        self.since_line.add(loss, size)
        self.in_epoch.add(loss, size)

    def take_since_line(self) -> float:
        """Returns the mean loss since the last call; nan of no position."""
        mean = _mean(self.since_line)
        self.since_line = chainer.reporter.Summary()
        return mean

    def take_in_epoch(self, is_new_epoch: bool) -> float:
        """Returns the mean loss of the epoch so far; starts anew where the epoch is over."""
        mean = _mean(self.in_epoch)
        if is_new_epoch:
            self.in_epoch = chainer.reporter.Summary()
        return mean

    def serialize(self, serializer: Any) -> None:
        """Saves or restores the sums."""
        self.since_line.serialize(serializer["since_line"])
        self.in_epoch.serialize(serializer["in_epoch"])


def _mean(summary: Any) -> float:
    with numpy.errstate(invalid="ignore"):
        return float(summary.compute_mean())
