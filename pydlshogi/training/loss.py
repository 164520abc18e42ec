"""What the network learns: the move played, by softmax cross entropy."""

from __future__ import annotations

from typing import Any

import numpy

from pydlshogi.compat import chainer

F = chainer.functions


class PolicyLoss:
    """Loss function of the updater and of the evaluation.

    It reports to Chainer's reporter, as values of the network, ``loss`` and in
    evaluation also ``accuracy``: each a pair of the mean over the batch (float64,
    0-dimensional) and the batch's size, the weight by which ``DictSummary`` makes means
    over batches of different size means over positions. The values stay on the device,
    so that a GPU never waits to be read.

    Args:
        network: Link from planes to (batch, 2187) logits.
    """

    def __init__(self, network: Any) -> None:
        self._network = network

    def __call__(self, planes: Any, labels: Any) -> Any:
        """Computes the mean loss of a batch.

        Args:
            planes: (batch, 104, 9, 9) float32.
            labels: (batch,) int32.

        Returns:
            0-dimensional ``chainer.Variable``.
        """
        logits = self._network(planes)
        loss = F.softmax_cross_entropy(logits, labels)
        reported = {"loss": loss}
        if not chainer.config.train:
            reported["accuracy"] = F.accuracy(logits, labels)
        chainer.report(
            {
                name: (value.array.astype(numpy.float64), len(labels))
                for name, value in reported.items()
            },
            self._network,
        )
        return loss


class LossMeans(chainer.training.Extension):
    """Trainer extension that keeps the means of the training loss.

    It looks at every iteration, before the extensions that log.

    Attributes:
        since_line: ``chainer.reporter.Summary`` of the positions since the last log line.
        in_epoch: The same of the positions of this epoch.
    """

    priority = chainer.training.PRIORITY_EDITOR

    def __init__(self) -> None:
        self.since_line = chainer.reporter.Summary()
        self.in_epoch = chainer.reporter.Summary()

    def __call__(self, trainer: Any) -> None:
        """Adds the last iteration."""
        loss, size = trainer.observation["main/loss"]
        self.since_line.add(loss, size)
        self.in_epoch.add(loss, size)

    def take_since_line(self) -> float:
        """Returns the mean loss since the last call."""
        mean = float(self.since_line.compute_mean())
        self.since_line = chainer.reporter.Summary()
        return mean

    def take_in_epoch(self, is_new_epoch: bool) -> float:
        """Returns the mean loss of the epoch so far; starts anew where the epoch is over."""
        mean = float(self.in_epoch.compute_mean())
        if is_new_epoch:
            self.in_epoch = chainer.reporter.Summary()
        return mean

    def serialize(self, serializer: Any) -> None:
        """Saves or restores the sums."""
        self.since_line.serialize(serializer["since_line"])
        self.in_epoch.serialize(serializer["in_epoch"])
