"""Training of moves and results together."""

import logging
import re

import numpy
import pytest
import training_helpers
from training_helpers import (
    SmallValueNetwork,
    TwoHeads,
    assert_same_parameters,
    make_positions,
    run,
)

from pydlshogi.compat import chainer
from pydlshogi.network.value_kind import ExpectedResult
from pydlshogi.positions import DRAW, LOSS, UNKNOWN, WIN
from pydlshogi.training import log
from pydlshogi.training.batches import PlanesConverter
from pydlshogi.training.loss import measure

to_cpu = chainer.backends.cuda.to_cpu


class TwoHeadsTanh(TwoHeads):
    value_kind = ExpectedResult

    def forward(self, x):
        logits, values = super().forward(x)
        return logits, chainer.functions.tanh(values)


def positions_with(results, seed=1):
    positions = make_positions(len(results), seed)
    positions["result"] = results
    return positions


@pytest.fixture
def curve(caplog):
    """Gives the curve of what was logged since the last call."""
    caplog.set_level(logging.INFO)

    def take():
        (curve,) = log.read_log([record.getMessage() for record in caplog.records])
        caplog.clear()
        return curve

    return take


def numbers(measured):
    """Of each quantity its mean and what it is over, as Python's own numbers."""
    return {name: (float(mean), int(count)) for name, (mean, count) in measured.items()}


@pytest.mark.parametrize("network_class", [TwoHeads, TwoHeadsTanh])
def test_unknown_results_are_left_out_of_the_value_loss_and_nothing_else(device, network_class):
    network = network_class().to_device(device)
    known = [WIN, LOSS, DRAW, WIN, DRAW]
    positions = positions_with([*known, UNKNOWN, UNKNOWN])
    planes, labels, wins = PlanesConverter(positions)(range(7), device)
    assert wins[:5].tolist() == [1, 0, 0.5, 1, 0.5]
    loss, measured = measure(network, planes, labels, wins)
    measured = numbers(measured)
    logits, values = network(planes)
    values = chainer.functions.flatten(values)
    expected = float(network.value_kind.losses(values[:5], wins[:5]).array.mean())
    policy = float(chainer.functions.softmax_cross_entropy(logits, labels).array)
    assert measured["value_loss"] == (pytest.approx(expected), 5)
    assert measured["loss"] == (pytest.approx(policy), 7)
    assert float(loss.array) == pytest.approx(policy + expected)
    # The gradient is that of a batch of the known ones.
    network.cleargrads()
    loss.backward()
    gradient = network.value.W.grad.copy()
    network.cleargrads()
    measure(network, planes[:5], labels[:5], wins[:5])[0].backward()
    gradients = to_cpu(gradient), to_cpu(network.value.W.grad)
    numpy.testing.assert_allclose(*gradients, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("network_class", [TwoHeads, TwoHeadsTanh])
def test_a_batch_without_a_known_result_has_a_value_loss_of_nothing(device, network_class):
    network = network_class().to_device(device)
    batch = PlanesConverter(positions_with([UNKNOWN] * 4))(range(4), device)
    with chainer.using_config("train", False):
        loss, measured = measure(network, *batch)
    measured = numbers(measured)
    assert measured["value_loss"] == measured["value_accuracy"] == (0, 0)
    network.cleargrads()
    loss.backward()
    assert not network.value.W.grad.any()
    assert network.policy.W.grad.any()


@pytest.mark.long
def test_a_drawn_game_is_learned_as_even(device):
    network = TwoHeads().to_device(device)
    batch = PlanesConverter(positions_with([DRAW] * 8))(range(8), device)
    optimizer = chainer.optimizers.SGD(0.04).setup(network)
    for _ in range(150):
        optimizer.update(lambda: measure(network, *batch)[0])
    wins = network.value_kind.win_probabilities(network(batch[0])[1])
    numpy.testing.assert_allclose(to_cpu(wins), 0.5, atol=0.02)


def test_value_accuracy_is_over_the_games_somebody_won(device):
    class Sure(TwoHeads):
        def forward(self, x):
            values = numpy.array([3, -3, 3, 0.1, -9, 9], numpy.float32)
            return super().forward(x)[0], chainer.Variable(device.send(values))

    positions = positions_with([WIN, LOSS, LOSS, WIN, DRAW, UNKNOWN])
    with chainer.using_config("train", False):
        network = Sure().to_device(device)
        _, measured = measure(network, *PlanesConverter(positions)(range(6), device))
    assert numbers(measured)["value_accuracy"] == (0.75, 4)


def test_the_lines_of_two_heads_are_the_books_and_the_losses_of_each_head(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    positions = positions_with(numpy.arange(20) % 4)
    run(tmp_path, network=TwoHeads(), positions=positions, batchsize=8, epoch=1, eval_interval=2)
    lines = [re.sub(r"[-.e\d]*\d[-.e\d]*", "N", r.getMessage()) for r in caplog.records]
    place = "epoch = N, iteration = N, "
    assert lines == [
        place + "loss = N, accuracy = N, N",
        place + "policy loss = N, value loss = N",
        "validate test data",
        place + "train loss avr = N, test accuracy = N, N",
        place + "test loss = N",
        place + "train policy loss avr = N, train value loss avr = N, "
        "test policy loss = N, test value loss = N",
        "save the model",
        "save the optimizer",
    ]


def test_the_value_head_learns_and_the_log_says_so(tmp_path, curve):
    positions = make_positions(40, 1)
    positions["result"] = positions["board"][:, 0] % 2
    network, _, _ = run(tmp_path, network=TwoHeads(), positions=positions, epoch=20, lr=0.02)
    points = curve().progress
    assert points[-1].value_loss < points[0].value_loss / 2
    assert numpy.isfinite(network.value.W.array).all()


def test_positions_without_results_train_the_moves_alone(tmp_path, curve):
    positions = positions_with([UNKNOWN] * 45)
    before = TwoHeads()
    network, _, _ = run(tmp_path, network=TwoHeads(), positions=positions, epoch=2)
    numpy.testing.assert_array_equal(network.value.W.array, before.value.W.array)
    assert numpy.isfinite(network.policy.W.array).all()
    assert (network.policy.W.array != before.policy.W.array).any()
    found = curve()
    assert all(numpy.isnan(point.value_loss) for point in found.progress)
    assert all(numpy.isfinite(point.loss) for point in found.progress)


def test_without_a_winner_in_the_test_set_its_accuracy_is_unknown(tmp_path, curve, monkeypatch):
    drawn = positions_with([DRAW] * 13)
    monkeypatch.setattr(training_helpers, "make_positions", lambda *_: drawn)
    run(tmp_path, network=TwoHeads(), positions=positions_with([WIN] * 45), epoch=1)
    found = curve()
    assert found.progress and found.epochs
    assert all(numpy.isnan(point.value_accuracy) for point in found.progress)
    assert all(numpy.isfinite(point.accuracy) for point in found.progress)
    assert numpy.isnan(found.epochs[0].test_value_accuracy)


@pytest.mark.long
@pytest.mark.parametrize("stop", [1, 4, 6, 7, 11])
def test_resumed_a_run_goes_on_the_same(tmp_path, curve, stop):
    positions = positions_with(numpy.arange(45) % 4)
    (tmp_path / "whole").mkdir()
    whole, _, _ = run(
        tmp_path / "whole", network=TwoHeads(), positions=positions, iterations=12, lr=0.01
    )
    expected = curve()
    run(tmp_path, network=TwoHeads(), positions=positions, iterations=stop, lr=0.01)
    network, _, _ = run(
        tmp_path,
        network=TwoHeads(seed=5),
        positions=positions,
        resume=True,
        iterations=12 - stop,
        lr=0.01,
    )
    assert_same_parameters(network, whole)
    found = curve()
    assert found.progress == expected.progress
    assert found.epochs[-1] == expected.epochs[-1]


def test_the_state_keeps_the_time_of_all_runs(tmp_path):
    run(tmp_path, network=TwoHeads(), iterations=3)
    with numpy.load(tmp_path / "state") as state:
        before = float(state["pydlshogi/seconds"])
    assert before > 0
    run(tmp_path, network=TwoHeads(), resume=True, iterations=3)
    with numpy.load(tmp_path / "state") as state:
        assert float(state["pydlshogi/seconds"]) > before


def test_the_logged_loss_of_two_heads_is_the_sum_of_both(tmp_path, curve):
    positions = positions_with(numpy.arange(20) % 4)
    run(tmp_path, network=TwoHeads(), positions=positions, epoch=2, eval_interval=2)
    found = curve()
    assert found.progress and len(found.epochs) == 2
    for point in found.progress:
        assert point.loss == pytest.approx(point.policy_loss + point.value_loss, rel=1e-6)
    for point in found.epochs:
        sums = point.train_policy_loss + point.train_value_loss
        assert point.train_loss == pytest.approx(sums, rel=1e-6)
        sums = point.test_policy_loss + point.test_value_loss
        assert point.test_loss == pytest.approx(sums, rel=1e-6)


def test_a_value_network_logs_its_loss_and_accuracy_in_the_books_lines(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    positions = positions_with(numpy.arange(20) % 2)
    network = SmallValueNetwork()
    run(tmp_path, network=network, positions=positions, epoch=1, eval_interval=2, lr=0.02)
    lines = [re.sub(r"[-.e\d]*\d[-.e\d]*", "N", r.getMessage()) for r in caplog.records]
    place = "epoch = N, iteration = N, "
    assert [line.replace("nan", "N") for line in lines] == [
        place + "loss = N, accuracy = N",
        "validate test data",
        place + "train loss avr = N, test accuracy = N",
        place + "test loss = N",
        "save the model",
        "save the optimizer",
    ]
    (found,) = log.read_log(record.getMessage() for record in caplog.records)
    assert 0 < found.epochs[0].train_loss < 5


def test_a_value_network_learns_who_wins(device, tmp_path, curve):
    positions = make_positions(40, 1)
    positions["result"] = positions["board"][:, 0] % 2
    network = SmallValueNetwork()
    run(tmp_path, network=network, positions=positions, epoch=20, lr=0.02, device=device)
    planes, labels, wins = PlanesConverter(positions)(range(40), device)
    with chainer.using_config("train", False):
        loss, measured = measure(network, planes, labels, wins)
    assert measured.keys() == {"value_loss", "value_accuracy"}
    assert float(loss.array) == pytest.approx(float(measured["value_loss"][0]))
    assert float(measured["value_accuracy"][0]) == 1


@pytest.mark.parametrize("stop", [1, 6, 11])
def test_a_value_network_resumes_to_the_last_bit(tmp_path, curve, stop):
    positions = positions_with(numpy.arange(45) % 4)
    (tmp_path / "whole").mkdir()
    options = {"positions": positions, "lr": 0.01}
    whole, _, _ = run(tmp_path / "whole", network=SmallValueNetwork(), iterations=12, **options)
    expected = curve()
    run(tmp_path, network=SmallValueNetwork(), iterations=stop, **options)
    network, _, _ = run(
        tmp_path, network=SmallValueNetwork(5), resume=True, iterations=12 - stop, **options
    )
    assert_same_parameters(network, whole)
    assert curve().progress == expected.progress


@pytest.mark.parametrize("shape", [(-1,), (-1, 1)])
def test_values_of_either_shape_have_the_same_loss(device, shape):
    class Shaped(SmallValueNetwork):
        def forward(self, x):
            return chainer.functions.reshape(super().forward(x), shape)

    batch = PlanesConverter(positions_with([WIN, LOSS, DRAW, UNKNOWN]))(range(4), device)
    expected = measure(SmallValueNetwork().to_device(device), *batch)[0]
    assert float(measure(Shaped().to_device(device), *batch)[0].array) == float(expected.array)
