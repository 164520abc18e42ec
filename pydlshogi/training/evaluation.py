"""Trainer extensions that measure the network on test positions and log it."""

from __future__ import annotations

import logging
from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.training import log
from pydlshogi.training.batches import PlanesConverter, draw
from pydlshogi.training.loss import LossMeans, PolicyLoss

logger = logging.getLogger(__name__)


def epoch_number(updater: Any) -> int:
    """Numbers, from 1, the epoch that the last iteration belongs to."""
    return updater.epoch + (0 if updater.is_new_epoch else 1)


class Progress(chainer.training.Extension):
    """Logs the training loss since the last such line and the accuracy on a few test positions.

    Args:
        network: Link from planes to (batch, 2187) logits.
        positions: (n,) array of ``POSITION``, n at least 1: the test set.
        count: Number of test positions, drawn anew each time; all if there are fewer.
        seed: The run's seed; the draw depends on it and on the iteration only.
        device: Where the network is.
        means: The training loss.
    """

    def __init__(
        self,
        network: Any,
        positions: numpy.ndarray,
        count: int,
        seed: int,
        device: Any,
        means: LossMeans,
    ) -> None:
        self._network = network
        self._convert = PlanesConverter(positions)
        self._size = len(positions)
        self._count = count
        self._seed = seed
        self._device = device
        self._means = means

    def __call__(self, trainer: Any) -> None:
        """Measures and logs."""
        updater = trainer.updater
        batch = draw(self._seed, updater.iteration, self._size, self._count)
        planes, labels = self._convert(batch, self._device)
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            accuracy = chainer.functions.accuracy(self._network(planes), labels)
        point = log.ProgressPoint(
            epoch=epoch_number(updater),
            iteration=updater.iteration,
            loss=self._means.take_since_line(),
            accuracy=float(accuracy.array),
        )
        logger.info(log.format_progress(point))


class Validation(chainer.training.extensions.Evaluator):
    """Chainer's Evaluator over the whole test set, and its log lines.

    Every position counts once, those of the last, partial batch too; no graph is built.

    Args:
        network: Link from planes to (batch, 2187) logits.
        positions: (n,) array of ``POSITION``, n at least 1: the test set.
        batch_size: Positions in a batch.
        device: Where the network is.
        means: The training loss.
        progress_bar: Shows a bar on standard output meanwhile.
    """

    def __init__(
        self,
        network: Any,
        positions: numpy.ndarray,
        batch_size: int,
        device: Any,
        means: LossMeans,
        progress_bar: bool = False,
    ) -> None:
        super().__init__(
            chainer.iterators.SerialIterator(
                range(len(positions)), batch_size, repeat=False, shuffle=False
            ),
            network,
            converter=PlanesConverter(positions),
            device=device,
            eval_func=PolicyLoss(network),
            progress_bar=progress_bar,
        )
        self._means = means

    def __call__(self, trainer: Any = None) -> Any:
        """Measures and logs; returns what Chainer's Evaluator does."""
        logger.info(log.VALIDATE)
        measured = super().__call__(trainer)
        updater = trainer.updater
        point = log.EpochPoint(
            epoch=epoch_number(updater),
            iteration=updater.iteration,
            train_loss=self._means.take_in_epoch(updater.is_new_epoch),
            test_accuracy=float(measured[f"{self.name}/main/accuracy"]),
            test_loss=float(measured[f"{self.name}/main/loss"]),
        )
        logger.info(log.format_epoch(point))
        logger.info(log.format_test_loss(point))
        return measured
