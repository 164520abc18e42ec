"""Whole runs of a small network: measured, interrupted, killed and resumed."""

import itertools
import logging
import os
import random
import re
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import numpy
import pytest
from training_helpers import (
    NormalizedNetwork,
    SmallNetwork,
    SmallValueNetwork,
    assert_same_files,
    assert_same_parameters,
    make_network,
    make_optimizer,
    make_positions,
    parameters,
    run,
)

from pydlshogi.compat import chainer
from pydlshogi.model_files.npz import read_npz
from pydlshogi.training import log, plot
from pydlshogi.training.batches import EpochIterator, PlanesConverter
from pydlshogi.training.checkpoint import SaveError, load_pair
from pydlshogi.training.end import Interruption
from pydlshogi.training.optimizer import make_optimizer as make_optimizer_of
from pydlshogi.training.recipe import Recipe
from pydlshogi.training.state import COMPLETE, StateFileError, load_state
from pydlshogi.training.trainer import Settings, Task, train

CPU = chainer.get_device("@numpy")


@pytest.fixture
def messages(caplog):
    """Returns what was logged since the last call."""
    caplog.set_level(logging.INFO)

    def take():
        lines = [record.getMessage() for record in caplog.records]
        caplog.clear()
        return lines

    return take


def expected_messages(iterations, interval, epochs):
    """The kinds of line of a run, with epoch and iteration."""
    lines = []
    for iteration in range(1, iterations * epochs + 1):
        epoch = (iteration - 1) // iterations + 1
        place = f"epoch = {epoch}, iteration = {iteration}, "
        if iteration % interval == 0:
            lines.append(place + "loss = X, accuracy = X")
        if iteration % iterations == 0:
            lines.append("validate test data")
            lines.append(place + "train loss avr = X, test accuracy = X")
            lines.append(place + "test loss = X")
    return [*lines, "save the model", "save the optimizer"]


def test_the_lines_of_a_run(tmp_path, messages):
    # 45 positions in batches of 8: five whole batches and one of five.
    _, optimizer, result = run(tmp_path, train_size=45, batchsize=8, epoch=3, eval_interval=4)
    lines = [re.sub(r"(loss|avr|accuracy) = [^,]+", r"\1 = X", line) for line in messages()]
    assert lines == expected_messages(iterations=6, interval=4, epochs=3)
    assert (optimizer.t, optimizer.epoch, result) == (18, 3, None)


def test_the_loss_falls(device, tmp_path, messages):
    run(tmp_path, epoch=30, device=device)
    (curve,) = log.read_log(messages())
    losses = [point.train_loss for point in curve.epochs]
    assert losses[-1] < losses[0] / 1.3


def test_logged_numbers_are_those_of_plain_chainer(device, tmp_path, messages):
    # The published loop, written down plainly on the same batches.
    train, test = make_positions(45, 1), make_positions(13, 2)
    network = make_network()
    optimizer = make_optimizer(network)
    iterator = EpochIterator(len(train), 8, seed=5)
    losses, sizes = [], []
    for batch in iterator:
        planes, labels, _ = PlanesConverter(train)(batch, CPU)
        loss = chainer.functions.softmax_cross_entropy(network(planes), labels)
        network.cleargrads()
        # 45 positions: the last batch has 5, and each counts as those of the others do.
        (loss * (len(batch) / 8)).backward()
        optimizer.update()
        losses.append(float(loss.array))
        sizes.append(len(batch))
        if iterator.is_new_epoch:
            break
    options = {"epoch": 1, "train_size": 45, "batchsize": 8, "eval_interval": 4}
    trained, _, _ = run(tmp_path, device=device, **options)
    if device == CPU:
        assert_same_parameters(trained, network)
    (curve,) = log.read_log(messages())
    planes, labels, _ = PlanesConverter(test)(range(len(test)), CPU)
    logits = network(planes)
    expected = [numpy.mean(losses[:4])]
    assert [point.loss for point in curve.progress] == pytest.approx(expected, rel=1e-5)
    (point,) = curve.epochs
    assert point.train_loss == pytest.approx(numpy.average(losses, weights=sizes), rel=1e-5)
    correct = (logits.array.argmax(axis=1) == labels).mean()
    assert point.test_accuracy == pytest.approx(correct)
    test_loss = chainer.functions.softmax_cross_entropy(logits, labels)
    assert point.test_loss == pytest.approx(float(test_loss.array), rel=1e-5)


@pytest.mark.parametrize("train_size, test_size", [(1, 1), (7, 3), (8, 4), (9, 5)])
def test_sets_of_any_size_work(tmp_path, messages, train_size, test_size):
    run(tmp_path, train_size=train_size, test_size=test_size, batchsize=8, epoch=2, eval_interval=1)
    (curve,) = log.read_log(messages())
    per_epoch = -(-train_size // 8)
    assert len(curve.progress) == 2 * per_epoch
    assert [point.iteration for point in curve.epochs] == [per_epoch, 2 * per_epoch]


class WatchedNetwork(SmallNetwork):
    """Notes each forward pass: batch size, training mode, whether a graph is built."""

    def __init__(self):
        super().__init__()
        self.passes = []

    def forward(self, x):
        self.passes.append((len(x), chainer.config.train, chainer.config.enable_backprop))
        return super().forward(x)


def test_validation_covers_every_position_once_and_builds_no_graph(tmp_path):
    network = WatchedNetwork()
    run(tmp_path, network=network, test_size=13, test_batchsize=4, epoch=1, eval_interval=10**6)
    assert {(train, graph) for _, train, graph in network.passes} == {(True, True), (False, False)}
    assert [size for size, train, _ in network.passes if not train] == [4, 4, 4, 1]


def test_evaluation_takes_the_number_of_positions_asked_for(tmp_path):
    network = WatchedNetwork()
    run(tmp_path, network=network, test_size=13, test_batchsize=5, iterations=4, eval_interval=2)
    sizes = [size for size, train, _ in network.passes if not train]
    assert sizes == [5, 5, 5, 5, 3]


def test_how_often_is_evaluated_does_not_change_what_is_learned(tmp_path):
    networks = []
    for interval in (1, 5, 10**6):
        (tmp_path / str(interval)).mkdir()
        networks.append(run(tmp_path / str(interval), eval_interval=interval)[0])
    for network in networks[1:]:
        assert_same_parameters(networks[0], network)


@pytest.mark.long
def test_the_seed_repeats_a_run_and_another_one_does_not(tmp_path, messages):
    logs, networks = [], []
    for seed in (1, 1, 2):
        networks.append(run(tmp_path, seed=seed)[0])
        logs.append(messages())
    assert_same_parameters(networks[0], networks[1])
    assert logs[0] == logs[1] != logs[2]


@pytest.mark.parametrize("stop", range(1, 12))
def test_resumed_after_any_iteration_a_run_goes_on_the_same(tmp_path, messages, stop):
    (tmp_path / "whole").mkdir()
    whole, whole_optimizer, _ = run(tmp_path / "whole", iterations=12)
    (expected,) = log.read_log(messages())
    run(tmp_path, iterations=stop)
    network, optimizer, _ = run(tmp_path, resume=True, seed=77, iterations=12 - stop)
    (curve,) = log.read_log(messages())
    assert_same_parameters(network, whole)
    assert (optimizer.t, optimizer.epoch) == (whole_optimizer.t, whole_optimizer.epoch)
    assert curve.progress == expected.progress
    ends = [point.iteration for point in expected.epochs]
    assert ends == [6, 12]
    assert [point for point in curve.epochs if point.iteration in ends] == expected.epochs


class DropoutNetwork(SmallNetwork):
    """A network that draws random numbers in training."""

    def forward(self, x):
        return super().forward(chainer.functions.dropout(x, 0.5))


def test_random_numbers_of_a_network_are_drawn_again_after_a_resume(tmp_path):
    for name, stops in (("whole", [9]), ("resumed", [5, 4])):
        folder = tmp_path / name
        folder.mkdir()
        for iterations in stops:
            numpy.random.seed(1)  # for the weights
            network = DropoutNetwork()
            numpy.random.seed(iterations)  # another process has other random numbers
            run(folder, network=network, iterations=iterations, resume=iterations == 4)
    assert_same_files(tmp_path / "whole" / "model", tmp_path / "resumed" / "model")


def test_running_statistics_are_resumed_too(tmp_path):
    for name, stops in (("whole", [9]), ("resumed", [5, 4])):
        folder = tmp_path / name
        folder.mkdir()
        for iterations in stops:
            numpy.random.seed(1)
            resume = iterations == 4
            run(folder, network=NormalizedNetwork(), iterations=iterations, resume=resume)
    with numpy.load(tmp_path / "whole" / "model") as npz:
        assert "norm/avg_mean" in npz.files
    assert_same_files(tmp_path / "whole" / "model", tmp_path / "resumed" / "model")


def test_iterations_end_a_run_as_an_epochs_end_does(tmp_path, messages):
    _, optimizer, _ = run(tmp_path, iterations=3)
    lines = messages()
    assert [line.partition(" = ")[0] for line in lines[-5:]] == [
        "validate test data",
        "epoch",
        "epoch",
        "save the model",
        "save the optimizer",
    ]
    assert lines[-4].startswith("epoch = 1, iteration = 3, train loss avr = ")
    assert (optimizer.t, optimizer.epoch) == (3, 0)


def test_iterations_count_this_run_only(tmp_path):
    run(tmp_path, iterations=7)
    _, optimizer, _ = run(tmp_path, resume=True, iterations=2)
    assert optimizer.t == 9


def test_an_epoch_that_is_finished_counts_as_the_first(tmp_path):
    run(tmp_path, iterations=2)
    _, optimizer, _ = run(tmp_path, resume=True, epoch=1)
    assert (optimizer.t, optimizer.epoch) == (6, 1)
    _, optimizer, _ = run(tmp_path, resume=True, epoch=1)
    assert (optimizer.t, optimizer.epoch) == (12, 2)


def test_the_mean_over_an_epoch_is_that_of_the_whole_epoch(tmp_path, messages):
    run(tmp_path, epoch=1)
    (whole,) = log.read_log(messages())
    for iterations in (2, 1, 3):
        run(tmp_path, resume=iterations != 2, iterations=iterations)
    (curve,) = log.read_log(messages())
    assert curve.epochs[-1] == whole.epochs[-1]


def test_a_state_of_the_books_resumes_at_the_start_of_an_epoch(tmp_path, messages):
    network = make_network(3)
    optimizer = make_optimizer(network)
    optimizer.t, optimizer.epoch = 1000, 2
    chainer.serializers.save_npz(str(tmp_path / "model"), network)
    chainer.serializers.save_npz(str(tmp_path / "state"), optimizer)
    _, optimizer, _ = run(tmp_path, resume=True, epoch=1, eval_interval=1000)
    assert (optimizer.t, optimizer.epoch) == (1006, 3)
    assert "epoch = 3, iteration = 1006, train loss avr" in "\n".join(messages())


def test_other_training_positions_begin_the_epoch_anew(tmp_path, messages):
    run(tmp_path, iterations=9)
    messages()
    _, optimizer, _ = run(tmp_path, resume=True, epoch=1, positions=make_positions(45, 8))
    assert messages()[0].startswith("the training positions are not those of the resumed run")
    assert (optimizer.t, optimizer.epoch) == (9 + 6, 2)


@pytest.mark.parametrize(("before", "now"), [(1.0, 0.5), (0.5, 1.0), (0.5, 0.25)])
def test_another_value_lambda_continues_within_the_epoch(tmp_path, messages, before, now):
    positions = make_positions(45, 1)
    positions["evaluation"] = 100
    run_value(tmp_path, before, positions, iterations=2)
    messages()
    _, optimizer, _ = run_value(tmp_path, now, positions, resume=True, epoch=1)
    assert not [line for line in messages() if "training positions" in line]
    assert (optimizer.t, optimizer.epoch) == (6, 1)


@pytest.mark.parametrize(
    ("before", "now", "field"), [(1.0, 0.5, "label"), (0.5, 1.0, "label"), (0.5, 0.5, "evaluation")]
)
def test_other_positions_are_noticed_with_any_value_lambda(tmp_path, messages, before, now, field):
    positions = make_positions(45, 1)
    run_value(tmp_path, before, positions, iterations=2)
    messages()
    positions[field][30] += 1
    _, optimizer, _ = run_value(tmp_path, now, positions, resume=True, epoch=1)
    assert messages()[0].startswith("the training positions are not those of the resumed run")
    assert (optimizer.t, optimizer.epoch) == (2 + 6, 1)


def run_value(folder, value_lambda, positions, **options):
    """Trains a small value network."""
    recipe = Recipe(value_lambda=value_lambda)
    network = SmallValueNetwork()
    return run(folder, network=network, positions=positions, recipe=recipe, lr=0.01, **options)


def test_a_state_of_another_version_gets_one_sentence(tmp_path):
    run(tmp_path, iterations=2)
    with numpy.load(tmp_path / "state") as npz:
        left = {name: npz[name] for name in npz.files if name != "pydlshogi/place/epoch"}
    numpy.savez((tmp_path / "state").open("wb"), **left)
    with pytest.raises(StateFileError, match="another version"):
        run(tmp_path, resume=True)


def test_a_batch_of_another_size_goes_on_at_the_same_place(tmp_path):
    run(tmp_path, iterations=2, batchsize=8)
    _, optimizer, _ = run(tmp_path, resume=True, epoch=1, batchsize=10)
    assert optimizer.t == 2 + 3  # 29 positions left


class Interrupting(SmallNetwork):
    """Sends the process a signal in its third training pass."""

    def __init__(self, number):
        super().__init__()
        self.number, self.passes = number, 0

    def forward(self, x):
        self.passes += chainer.config.train
        if chainer.config.train and self.passes == 3:
            os.kill(os.getpid(), self.number)
        return super().forward(x)


@pytest.fixture(params=[getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP")])
def number(request):
    """A signal, not ignored even if whoever started the tests ignores it."""
    if os.name == "nt":
        pytest.skip("os.kill ends the process on Windows")
    before = signal.signal(request.param, signal.default_int_handler)
    yield request.param
    signal.signal(request.param, before)


def test_a_signal_ends_a_run_after_the_iteration_and_saves(tmp_path, messages, number):
    (tmp_path / "whole").mkdir()
    whole, _, _ = run(tmp_path / "whole")
    messages()
    numpy.random.seed(1)
    _, optimizer, result = run(tmp_path, network=Interrupting(number))
    assert (result, optimizer.t) == (number, 3)
    assert signal.getsignal(number) is signal.default_int_handler
    lines = messages()
    assert lines[-1] == "interrupted after iteration 3; saved"
    assert "save the model" not in lines
    network, _, _ = run(tmp_path, resume=True)
    assert_same_parameters(network, whole)


def test_the_end_of_the_time_ends_a_run_like_a_signal(tmp_path, monkeypatch, messages):
    (tmp_path / "whole").mkdir()
    whole, _, _ = run(tmp_path / "whole")
    messages()
    clock = types.SimpleNamespace(monotonic=itertools.count().__next__)
    monkeypatch.setattr("pydlshogi.training.end.time", clock)
    numpy.random.seed(1)
    _, optimizer, result = run(tmp_path, interruption=Interruption(end=3))
    assert result == signal.SIGINT and 1 <= optimizer.t < 5
    assert messages()[-1] == f"interrupted after iteration {optimizer.t}; saved"
    monkeypatch.undo()
    network, _, _ = run(tmp_path, resume=True)
    assert_same_parameters(network, whole)


@pytest.mark.parametrize("resume", [False, True])
def test_a_signal_before_the_first_iteration_leaves_nothing_that_cannot_be_resumed(
    tmp_path, messages, monkeypatch, number, resume
):
    recipe = Recipe(momentum=0.9)

    def run_with_momentum(signals):
        network = make_network()
        optimizer = make_optimizer_of(network, recipe)
        files = tmp_path / "model", tmp_path / "state"
        resumed = load_pair(*files, network, optimizer) if files[1].exists() else None
        settings = Settings(*files, seed=1, batchsize=8, iterations=2, recipe=recipe)
        positions = make_positions(20, 1)
        with monkeypatch.context() as patch:
            if signals:
                begin = chainer.training.Trainer.run

                def signalled(self, **options):
                    os.kill(os.getpid(), number)
                    begin(self, **options)

                patch.setattr(chainer.training.Trainer, "run", signalled)
            return train(
                Task(network, optimizer, positions, positions, settings, CPU, resumed=resumed)
            )

    if resume:
        assert run_with_momentum(signals=False) is None
    messages()
    assert run_with_momentum(signals=True) == number
    if resume:
        assert messages()[-1] == "interrupted after iteration 2; saved"
    else:
        assert messages()[-1] == "interrupted before the first iteration; nothing was saved"
        assert not list(tmp_path.iterdir())
    assert run_with_momentum(signals=False) is None
    assert int(read_npz(tmp_path / "state")["t"]) == (4 if resume else 2)


def test_a_run_makes_no_folder(tmp_path):
    with pytest.raises(SaveError, match=re.escape(str(tmp_path / "missing" / "model"))):
        run(tmp_path / "missing", epoch=1)
    assert not list(tmp_path.iterdir())


def test_a_signal_that_is_ignored_stays_ignored(tmp_path, number):
    signal.signal(number, signal.SIG_IGN)
    _, optimizer, result = run(tmp_path, network=Interrupting(number))
    assert (result, optimizer.t) == (None, 18)


class TwiceInterrupting(SmallNetwork):
    """Sends two signals in an iteration."""

    def forward(self, x):
        if chainer.config.train:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
        return super().forward(x)


class InterruptingInValidation(SmallNetwork):
    """Sends the process a signal in a validation batch, the first one after so many."""

    def __init__(self, batches):
        super().__init__()
        self.left, self.evaluated = batches, 0

    def forward(self, x):
        if not chainer.config.train:
            self.evaluated += 1
            if self.evaluated == self.left:
                os.kill(os.getpid(), signal.SIGINT)
        return super().forward(x)


@pytest.mark.parametrize("limit", [{"epoch": 2}, {"epoch": 1}, {"epoch": 9, "iterations": 4}])
@pytest.mark.parametrize("batch", [1, 3])
def test_a_signal_ends_a_validation_which_the_resumed_run_does_first(
    tmp_path, messages, number, limit, batch
):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    options = {"batchsize": 8, "test_batchsize": 2, "eval_interval": 100}
    numpy.random.seed(1)
    (tmp_path / "whole").mkdir()
    whole, _, _ = run(tmp_path / "whole", **options, **limit)
    expected = messages()
    numpy.random.seed(1)
    network = InterruptingInValidation(batch)
    _, optimizer, result = run(tmp_path, network=network, **options, **limit)
    assert (result, network.evaluated) == (signal.SIGINT, batch)
    interrupted = messages()
    assert interrupted[-2:] == [
        "validate test data",
        f"interrupted after iteration {optimizer.t}; saved",
    ]
    # The limits are those of the interrupted run: its last epoch or iteration is not done.
    if "iterations" in limit:
        limit = {**limit, "iterations": 1}
    resumed, _, result = run(tmp_path, resume=True, **options, **limit)
    assert result is None
    assert interrupted[:-2] + messages() == expected
    assert_same_parameters(resumed, whole)
    assert_same_files(tmp_path / "whole" / "model", tmp_path / "model")


def test_a_finished_run_says_so_in_its_state(tmp_path):
    run(tmp_path, iterations=2)
    assert load_state(tmp_path / "state").place.stage == COMPLETE
    run(tmp_path, iterations=2, resume=True, network=Interrupting(0))
    assert load_state(tmp_path / "state").place.stage == COMPLETE


def test_a_second_signal_ends_at_once_and_the_last_save_stands(tmp_path, number):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    numpy.random.seed(1)
    run(tmp_path, iterations=4)
    numpy.random.seed(9)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, resume=True, network=TwiceInterrupting())
    _, optimizer, _ = run(tmp_path, resume=True, iterations=1)
    assert optimizer.t == 5


def test_on_every_device_an_interrupted_run_is_a_whole_one_on_the_cpu(device, tmp_path, messages):
    (tmp_path / "whole").mkdir()
    whole, _, _ = run(tmp_path / "whole", iterations=11)
    (expected,) = log.read_log(messages())
    run(tmp_path, device=device, iterations=7)
    network, _, _ = run(tmp_path, device=device, resume=True, iterations=4)
    (curve,) = log.read_log(messages())
    found = parameters(network)
    for name, array in parameters(whole).items():
        numpy.testing.assert_allclose(found[name], array, rtol=1e-3, atol=1e-5)
    assert len(curve.progress) == len(expected.progress)
    for one, other in zip(curve.progress, expected.progress):
        assert one.loss == pytest.approx(other.loss, rel=1e-4)


SCRIPT = """
import logging, sys
from pathlib import Path
import numpy
from pydlshogi.training import log
from pydlshogi.training.log_file import log_to
from training_helpers import run

folder, end = Path(sys.argv[1]), int(sys.argv[2])
resume = (folder / "state").exists()
done = int(numpy.load(folder / "state")["t"]) if resume else 0
with log_to(folder / "log"):
    if resume:
        logging.getLogger("pydlshogi").info(log.LOAD_STATE, folder / "state")
    logging.getLogger("pydlshogi").info(log.READ_START)
    logging.getLogger("pydlshogi").info(log.START)
    run(folder, resume=resume, train_size=50, batchsize=3, eval_interval=int(sys.argv[3]),
        epoch=999, iterations=end - done)
"""

#: Iterations from one evaluation, and save, to the next.
INTERVAL = 2


def start(folder, end):
    """Starts or resumes a run of ``end`` iterations in a process of its own."""
    root = Path(__file__).parents[2]
    path = os.pathsep.join([str(root), str(root / "tests")])
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(folder), str(end), str(INTERVAL)],
        env={**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
    )


@pytest.mark.long
def test_killed_at_random_moments_and_resumed_a_run_is_the_same(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in (whole, killed):
        folder.mkdir()
    end = 400
    reference = start(whole, end)
    assert reference.wait() == 0, reference.stderr.read()
    kills, moment = 0, random.Random(4)
    process = start(killed, end)
    while kills < 5:
        # Wait until this process trains, then a little: anything may be going on. Without a
        # first save there would be nothing to resume.
        size = (killed / "log").stat().st_size if (killed / "log").exists() else 0
        while process.poll() is None and not (
            log_grew(killed / "log", size) and (killed / "state").exists()
        ):
            time.sleep(0.01)
        time.sleep(moment.uniform(0, 0.05))
        if process.poll() is not None:
            break
        process.kill()
        process.wait()
        kills += 1
        with numpy.load(killed / "state") as state, (killed / "log").open() as lines:
            logged = [int(number) for number in re.findall(r"iteration = (\d+)", lines.read())]
            assert 0 <= logged[-1] - int(state["t"]) <= INTERVAL
        process = start(killed, end)
    assert process.wait() == 0, process.stderr.read()
    assert kills >= 2
    assert_same_files(whole / "model", killed / "model")
    curves = [log.read_log((folder / "log").open(encoding="utf-8")) for folder in (whole, killed)]
    assert curves[0] == curves[1]
    (curve,) = curves[1]
    figure = pytest.importorskip("matplotlib.figure").Figure()
    plot.draw(figure, {"log": curve})
    for axes in figure.axes:
        assert list(axes.lines[0].get_xdata()) == list(range(INTERVAL, end + 1, INTERVAL))


def log_grew(path, size):
    """Whether a run has begun to log points since the log had that size."""
    return path.exists() and b"iteration = " in path.read_bytes()[size:]
