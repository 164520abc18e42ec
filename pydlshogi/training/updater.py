"""The updater: one batch, its gradients, and one step of the optimizer."""

from __future__ import annotations

from typing import Any

from pydlshogi.compat import chainer
from pydlshogi.layers.gpu.recording import Memory, Recording
from pydlshogi.training.loss import Mean, measure


class RecordedUpdater(chainer.training.updaters.StandardUpdater):
    """Chainer's updater for one GPU. It records how the gradients of a full batch are computed.

    The results are those of ``StandardUpdater``. A recording
    (:mod:`pydlshogi.layers.gpu.recording`) starts the kernels without Python. Batches of other
    sizes than ``batchsize`` are computed by ``loss_func``.
    """

    def __init__(self, *args: Any, batchsize: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._batchsize = batchsize
        self._gradients = Gradients(self.get_optimizer("main").target)

    def update_core(self) -> None:
        """Makes one step."""
        iterator, optimizer = self.get_iterator("main"), self.get_optimizer("main")
        batch = self.converter(iterator.next(), self.input_device)
        if len(batch[0]) == self._batchsize:
            chainer.report(self._gradients(*batch), optimizer.target)
            optimizer.update()
        else:
            optimizer.update(self.loss_func, *batch)
        if self.auto_new_epoch and iterator.is_new_epoch:
            optimizer.new_epoch(auto=True)


class Gradients:
    """Computes the gradients of the training loss of batches of one size, by a recording."""

    def __init__(self, network: Any) -> None:
        self._network = network
        self._batch: tuple[Any, ...] = ()
        self._recording = Recording(self._compute, Memory())

    @property
    def is_recorded(self) -> bool:
        """Whether there is a recording."""
        return self._recording.is_recorded

    def __call__(self, *batch: Any) -> dict[str, Mean]:
        """Computes the gradients of all parameters, for the arguments of ``training.loss.measure``.

        They always have the same shapes and dtypes. What was measured is valid until the next call.
        """
        if not self._batch:
            self._batch = tuple(array.copy() for array in batch)
        for fixed, array in zip(self._batch, batch):
            fixed[...] = array
        measured, gradients = self._recording()
        for parameter, gradient in gradients:
            parameter.grad = gradient  # a batch without a recording may have replaced it
        return measured

    def _compute(self) -> tuple[dict[str, Mean], list[tuple[Any, Any]]]:
        loss, measured = measure(self._network, *self._batch)
        self._network.cleargrads()
        loss.backward()
        parameters = self._network.params()
        return measured, [(p, p.grad) for p in parameters if p.grad is not None]
