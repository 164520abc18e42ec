"""Trainer extensions that measure the network on test positions and log it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import numpy

from pydlshogi.compat import chainer
from pydlshogi.training import log
from pydlshogi.training.batches import PlanesConverter, draw
from pydlshogi.training.loss import Loss, LossMeans, measure

logger = logging.getLogger(__name__)


def epoch_number(updater: Any) -> int:
    """Numbers, from 1, the epoch that the last iteration belongs to."""
    return updater.epoch + (0 if updater.is_new_epoch else 1)


class Progress(chainer.training.Extension):
    """Logs the training loss since the last such line and the accuracy on a few test positions.

    Args:
        network: A ``Network``.
        positions: (n,) array of ``POSITION``, n at least 1: the test set.
        count: Number of test positions, drawn anew each time; all if there are fewer.
        seed: The run's seed; the draw depends on it and on the iteration only.
        device: Where the network is.
        means: The training losses by name: ``loss`` and, of a network with a value head,
            ``value_loss``.
    """

    def __init__(
        self,
        network: Any,
        positions: numpy.ndarray,
        count: int,
        seed: int,
        device: Any,
        means: Mapping[str, LossMeans],
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
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            _, measured = measure(self._network, *self._convert(batch, self._device))
        losses = {name: means.take_since_line() for name, means in self._means.items()}
        accuracies = {
            name: float(mean) for name, (mean, _) in measured.items() if name.endswith("accuracy")
        }
        point = log.ProgressPoint(
            epoch=epoch_number(updater), iteration=updater.iteration, **losses, **accuracies
        )
        for line in log.format_progress(point):
            logger.info(line)


class Validation(chainer.training.extensions.Evaluator):
    """Chainer's Evaluator over the whole test set, and its log lines.

    Every position counts once, those of the last, partial batch too; no graph is built.

    Args:
        network: A ``Network``.
        positions: (n,) array of ``POSITION``, n at least 1: the test set.
        batch_size: Positions in a batch.
        device: Where the network is.
        means: The training losses by name, as for :class:`Progress`.
        progress_bar: Shows a bar on standard output meanwhile.
    """

    def __init__(
        self,
        network: Any,
        positions: numpy.ndarray,
        batch_size: int,
        device: Any,
        means: Mapping[str, LossMeans],
        progress_bar: bool = False,
    ) -> None:
        super().__init__(
            chainer.iterators.SerialIterator(
                range(len(positions)), batch_size, repeat=False, shuffle=False
            ),
            network,
            converter=PlanesConverter(positions),
            device=device,
            eval_func=Loss(network),
            progress_bar=progress_bar,
        )
        self._means = means

    def __call__(self, trainer: Any = None) -> Any:
        """Measures and logs; returns what Chainer's Evaluator does."""
        logger.info(log.VALIDATE)
        # A test set without a known result has no value loss: 0 / 0.
        with numpy.errstate(invalid="ignore"):
            measured = super().__call__(trainer)
        updater = trainer.updater
        trained = {
            f"train_{name}": means.take_in_epoch(updater.is_new_epoch)
            for name, means in self._means.items()
        }
        prefix = f"{self.name}/main/"
        tested = {
            f"test_{key[len(prefix) :]}": float(mean)
            for key, mean in measured.items()
            if key.startswith(prefix)
        }
        point = log.EpochPoint(
            epoch=epoch_number(updater), iteration=updater.iteration, **trained, **tested
        )
        for line in log.format_epoch(point):
            logger.info(line)
        return measured
