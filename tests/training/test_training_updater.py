"""The updater that records the gradients makes the steps of Chainer's."""

import numpy
import pytest
from recordings import must_record, repeat_on_cpu
from training_helpers import CPU, make_positions, parameters

from pydlshogi.compat import chainer
from pydlshogi.layers.convolution import using_convolution
from pydlshogi.layers.gpu.recording import VARIABLE
from pydlshogi.network.registry import make_network
from pydlshogi.training import trainer
from pydlshogi.training.optimizer import make_optimizer, trained_part
from pydlshogi.training.recipe import Recipe
from pydlshogi.training.trainer import RecordedUpdater, Settings, Task, make_trainer

#: Batches of 8, 8, 8, 8, 8 and 5 positions in each epoch.
SIZE, BATCH, EPOCHS = 45, 8, 3

PLAIN = Recipe(lr=0.1)
RICH = Recipe(lr=0.05, momentum=0.9, weight_decay=1e-3, clip=0.5, lr_schedule="cosine", warmup=4)
HEAD = Recipe(lr=0.1, value_head_only=True)


def make(folder, name, recipe, device=CPU, *, size=SIZE):
    numpy.random.seed(1)
    network = make_network(name, channels=8)
    optimizer = make_optimizer(trained_part(network, recipe), recipe)
    positions = make_positions(size, 3)
    positions["result"] = numpy.arange(size) % 4
    settings = Settings(
        folder / "model", folder / "state", batchsize=BATCH, epoch=EPOCHS, recipe=recipe
    )
    return make_trainer(Task(network, optimizer, positions, positions, settings, device))


def losses(made):
    """Makes all steps, and returns the losses of each."""
    found = []
    for _ in range(EPOCHS * 6):
        with chainer.reporter.Reporter().scope({}):
            reporter = chainer.reporter.get_current_reporter()
            optimizer = made.updater.get_optimizer("main")
            reporter.add_observer("main", optimizer.target)
            made.updater.update()
            found.append({key: float(mean) for key, (mean, _) in reporter.observation.items()})
    return found


def recorded(monkeypatch, *args, **kwargs):
    """Makes a trainer with recordings on the CPU."""
    repeat_on_cpu(monkeypatch)
    monkeypatch.setattr(trainer, "can_record", lambda network, device: True)
    made = make(*args, **kwargs)
    monkeypatch.undo()
    repeat_on_cpu(monkeypatch)
    return made


def assert_same_steps(one, other):
    numpy.testing.assert_equal(losses(one), losses(other))
    one, other = (made.updater.get_optimizer("main") for made in (one, other))
    assert (one.t, one.epoch) == (other.t, other.epoch) == (EPOCHS * 6, EPOCHS)
    for key, array in parameters(one.target).items():
        numpy.testing.assert_array_equal(array, parameters(other.target)[key], key)


@pytest.mark.parametrize(
    "name, recipe",
    [("policy", PLAIN), ("policy_value", RICH), ("value", PLAIN), ("policy_value", HEAD)],
)
def test_the_steps_are_those_of_chainers_updater(monkeypatch, folder, name, recipe):
    made = recorded(monkeypatch, folder, name, recipe)
    assert type(made.updater) is RecordedUpdater
    chainers = make(folder, name, recipe)
    assert type(chainers.updater) is chainer.training.updaters.StandardUpdater
    assert_same_steps(made, chainers)
    assert made.updater._gradients.is_recorded


def test_a_set_smaller_than_a_batch_is_a_full_batch(monkeypatch, folder):
    made = recorded(monkeypatch, folder, "policy", PLAIN, size=5)
    found = losses(made)
    assert made.updater._gradients.is_recorded
    assert found == losses(make(folder, "policy", PLAIN, size=5))


def test_chainers_convolution_is_not_recorded(monkeypatch, folder):
    with using_convolution("chainer"):
        made = recorded(monkeypatch, folder, "policy", PLAIN)
    assert type(made.updater) is chainer.training.updaters.StandardUpdater


@pytest.mark.parametrize(
    "name, recipe",
    [
        ("policy", PLAIN),
        ("policy_bn", RICH),
        ("policy_value_history_bn", RICH),
        ("policy_value_hand1x1_resnet", PLAIN),
        ("policy_value_history_bn", HEAD),
    ],
)
def test_a_gpu_repeats_recorded_gradients(monkeypatch, folder, device, name, recipe):
    if device.xp is numpy:
        pytest.skip("recordings are those of a GPU")
    monkeypatch.setenv(VARIABLE, "1")
    made = make(folder, name, recipe, device)
    assert type(made.updater) is RecordedUpdater
    monkeypatch.delenv(VARIABLE)
    chainers = make(folder, name, recipe, device)
    assert type(chainers.updater) is chainer.training.updaters.StandardUpdater
    for one, other in zip(losses(made), losses(chainers)):
        assert one == pytest.approx(other, rel=2e-3, nan_ok=True)
    assert made.updater._gradients.is_recorded == must_record()
