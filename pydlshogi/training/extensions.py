"""Trainer extensions that measure the network on test positions and log the results."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import Any, TextIO

import numpy

from pydlshogi.compat import chainer
from pydlshogi.kifu.mapped_positions import AnyPositions
from pydlshogi.training import log
from pydlshogi.training.batches import PlanesConverter, draw
from pydlshogi.training.end import Interrupted, RunEnd
from pydlshogi.training.loss import Loss, LossMeans, measure
from pydlshogi.training.parallel import ALONE, Ranks
from pydlshogi.training.progress import ShownIterator

logger = logging.getLogger(__name__)


def epoch_number(updater: Any) -> int:
    """Returns the number, from 1, of the epoch that the last iteration belongs to."""
    return updater.epoch + (0 if updater.is_new_epoch else 1)


class Progress(chainer.training.Extension):
    """Logs the training loss since the last line and the accuracy on some test positions.

    Args:
        network: A ``Network``.
        positions: The test set, at least one position.
        count: Number of test positions, drawn anew each time; all if there are fewer.
        seed: Seed of the run. The draw depends on it and on the iteration only.
        device: The device of the network.
        means: The training losses, by the names of ``loss_names``.
        ranks: The processes that share the test positions.
    """

    def __init__(
        self,
        network: Any,
        positions: AnyPositions,
        count: int,
        seed: int,
        device: Any,
        means: Mapping[str, LossMeans],
        ranks: Ranks = ALONE,
    ) -> None:
        self._network = network
        self._ranks = ranks
        self._convert = PlanesConverter(positions, ranks=ranks, plane_num=network.plane_num)
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
            _, share = measure(self._network, *self._convert(batch, self._device))
        measured = self._ranks.means(share)
        policy_loss, value_loss = _pair(
            {name: means.take_since_line() for name, means in self._means.items()}, "loss"
        )
        # An accuracy over no position is unknown.
        known = {name: mean if number else math.nan for name, (mean, number) in measured.items()}
        policy, value = _pair(known, "accuracy")
        point = log.ProgressPoint(
            epoch=epoch_number(updater),
            iteration=updater.iteration,
            loss=log.total(policy_loss, value_loss),
            accuracy=_first(policy, value),
            **_of_two_heads(
                policy_loss=policy_loss,
                value_loss=value_loss,
                value_accuracy=None if policy is None else value,
            ),
        )
        for line in log.format_point(point):
            logger.info(line)


class Validation(chainer.training.extensions.Evaluator):
    """Chainer's Evaluator over the whole test set, with its log lines.

    Every position counts once, also in a last, shorter batch. No graph is built. A signal ends
    it at once; the resumed run begins with it.

    Args:
        network: A ``Network``.
        positions: The test set, at least one position.
        batch_size: Positions in a batch.
        device: The device of the network.
        means: The training losses, by the names of ``loss_names``.
        end: The end of the run, which learns whether the validation was interrupted.
        stream: The terminal that shows a progress bar; None for no bar.
        ranks: The processes that share each batch.
    """

    def __init__(
        self,
        network: Any,
        positions: AnyPositions,
        batch_size: int,
        device: Any,
        means: Mapping[str, LossMeans],
        end: RunEnd,
        stream: TextIO | None = None,
        ranks: Ranks = ALONE,
    ) -> None:
        super().__init__(
            ShownIterator(len(positions), batch_size, stream, self._check),
            network,
            converter=PlanesConverter(positions, ranks=ranks, plane_num=network.plane_num),
            device=device,
            eval_func=Loss(network, ranks=ranks),
        )
        self._means = means
        self._end = end

    def initialize(self, trainer: Any) -> None:
        """Does the validation that a signal has ended in the resumed run."""
        if self._end.due:
            self(trainer)

    def _check(self) -> None:
        if self._end.interrupted():
            raise Interrupted

    def __call__(self, trainer: Any = None) -> Any:
        """Measures and logs; returns the observation of Chainer's Evaluator."""
        logger.info(log.VALIDATE)
        self._end.due = True
        try:
            # A test set without a known result has no value loss: 0 / 0.
            with numpy.errstate(invalid="ignore"), self._end.breakable():
                measured = super().__call__(trainer)
        except Interrupted:
            return {}
        self._end.due = False
        for line in log.format_point(self._point(trainer.updater, measured)):
            logger.info(line)
        return measured

    def _point(self, updater: Any, measured: Mapping[str, Any]) -> log.EpochPoint:
        prefix = f"{self.name}/main/"
        tested = {
            key[len(prefix) :]: mean for key, mean in measured.items() if key.startswith(prefix)
        }
        is_new_epoch = updater.is_new_epoch
        trained = {name: means.take_in_epoch(is_new_epoch) for name, means in self._means.items()}
        train_policy, train_value = _pair(trained, "loss")
        test_policy, test_value = _pair(tested, "loss")
        policy, value = _pair(tested, "accuracy")
        return log.EpochPoint(
            epoch=epoch_number(updater),
            iteration=updater.iteration,
            train_loss=log.total(train_policy, train_value),
            test_accuracy=_first(policy, value),
            test_loss=log.total(test_policy, test_value),
            **_of_two_heads(
                train_policy_loss=train_policy,
                train_value_loss=train_value,
                test_policy_loss=test_policy,
                test_value_loss=test_value,
                test_value_accuracy=None if policy is None else value,
            ),
        )


def _pair(values: Mapping[str, Any], quantity: str) -> tuple[float | None, float | None]:
    """Takes a quantity of the policy and of the value; None for a head that is missing."""
    policy, value = values.get(quantity), values.get(f"value_{quantity}")
    return None if policy is None else float(policy), None if value is None else float(value)


def _first(policy: float | None, value: float | None) -> float:
    """Chooses the quantity of the policy, or of the value where there is no policy."""
    found = value if policy is None else policy
    return math.nan if found is None else found


def _of_two_heads(**values: float | None) -> dict[str, Any]:
    """Passes the quantities that only networks with two heads log; else none of them."""
    present = {name: value for name, value in values.items() if value is not None}
    return present if len(present) == len(values) else {}
