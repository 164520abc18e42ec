"""Recipes beside the published one: each option's effect, and its exact resume."""

import dataclasses
import json
import logging
import math
import os
import signal

import numpy
import pytest
from pydlshogi.training.average import Average
from training_helpers import (
    NormalizedNetwork,
    assert_same_files,
    assert_same_parameters,
    make_network,
    make_positions,
)

from pydlshogi.commands.train_options import build_parser
from pydlshogi.compat import chainer
from pydlshogi.features import mirror
from pydlshogi.network.model_file import load_model
from pydlshogi.network.npz import read_npz
from pydlshogi.training import log
from pydlshogi.training.batches import EpochIterator, PlanesConverter
from pydlshogi.training.checkpoint import OWN, StateFileError, load_pair
from pydlshogi.training.loss import Loss, measure
from pydlshogi.training.recipe import Recipe, Schedule, make_optimizer, make_schedule
from pydlshogi.training.trainer import Settings, check_resumed, train

CPU = chainer.get_device("@numpy")
F = chainer.functions
to_cpu = chainer.backends.cuda.to_cpu


def run(folder, recipe, *, resume=False, seed=1, device=CPU, network=NormalizedNetwork, **options):
    """Trains a small network with batch normalization; returns it as it runs at the end."""
    folder.mkdir(exist_ok=True)
    numpy.random.seed(seed)
    network = network()
    optimizer = make_optimizer(network, recipe)
    model, state = folder / "model", folder / "state"
    own = load_pair(model, state, network, optimizer) if resume else None
    settings = {"batchsize": 8, "test_batchsize": 4, "epoch": 3, "eval_interval": 4, **options}
    train(
        network,
        optimizer,
        make_positions(45, 1),
        make_positions(13, 2),
        Settings(model=model, state=state, seed=5, recipe=recipe, **settings),
        device=device,
        own=own,
    )
    return network


EVERYTHING = Recipe(
    dirac=True,
    lr=0.3,
    momentum=0.9,
    nesterov=True,
    weight_decay=1e-3,
    clip=0.5,
    lr_schedule="cosine",
    warmup=3,
    label_smoothing=0.1,
    mirror=True,
    average=5,
)
RECIPES = {
    "published": Recipe(lr=0.3),
    "momentum": Recipe(lr=0.3, momentum=0.9),
    "nesterov": Recipe(lr=0.3, momentum=0.9, nesterov=True),
    "weight_decay": Recipe(lr=0.3, weight_decay=1e-2),
    "clip": Recipe(lr=0.3, clip=0.1),
    "cosine": Recipe(lr=0.3, lr_schedule="cosine"),
    "steps": Recipe(lr=0.3, lr_schedule="steps", lr_steps=(4, 9)),
    "warmup": Recipe(lr=0.3, warmup=7),
    "label_smoothing": Recipe(lr=0.3, label_smoothing=0.1),
    "mirror": Recipe(lr=0.3, mirror=True),
    "average": Recipe(lr=0.3, average=5),
    "everything": EVERYTHING,
}


@pytest.mark.parametrize("name", RECIPES)
def test_interrupted_twice_a_run_ends_the_same_to_the_last_bit(tmp_path, caplog, name):
    caplog.set_level(logging.INFO)
    recipe = RECIPES[name]
    run(tmp_path / "whole", recipe)
    (expected,) = log.read_log(record.getMessage() for record in caplog.records)
    caplog.clear()
    # Five iterations, eight more into the third epoch, and the rest of that.
    options = [{"iterations": 5}, {"iterations": 8}, {"epoch": 1}]
    if recipe.lr_schedule == "cosine":  # whose end must be that of the whole run
        options[0]["recipe"] = dict(lr_iterations=18)
    for number, option in enumerate(options):
        given = {**vars(recipe), **option.pop("recipe", {})}
        run(tmp_path / "parts", Recipe(**given), resume=number > 0, seed=number + 1, **option)
    (curve,) = log.read_log(record.getMessage() for record in caplog.records)
    assert curve.progress == expected.progress
    assert curve.epochs[-1] == expected.epochs[-1]
    assert_same_files(tmp_path / "whole" / "model", tmp_path / "parts" / "model")
    states = [read_npz(tmp_path / folder / "state") for folder in ("whole", "parts")]
    assert states[0].keys() == states[1].keys()
    for key in states[0].keys() - {f"{OWN}seconds"}:
        numpy.testing.assert_array_equal(states[0][key], states[1][key])


@pytest.mark.parametrize(
    ("recipe", "words"),
    [
        (Recipe(lr_schedule="cosine", lr_iterations=50), "is 0 from iteration 50 on"),
        (Recipe(lr_schedule="cosine", lr_iterations=50, warmup=49), "is 0 from iteration 50 on"),
        (
            Recipe(lr_schedule="cosine", lr_iterations=50, warmup=50),
            "ends: at iteration 50, and --warmup is 50",
        ),
        (Recipe(lr_schedule="cosine", lr_iterations=50, warmup=60), "is 0 from iteration 50 on"),
        (Recipe(lr_schedule="cosine", warmup=120), "--warmup is 120"),
        (Recipe(warmup=200), "ends: at iteration 120, and --warmup is 200"),
        (Recipe(warmup=119), ""),
        (Recipe(lr_schedule="cosine", warmup=119), ""),
    ],
)
def test_a_rate_that_comes_to_nothing_is_warned_of(recipe, words, caplog):
    make_schedule(recipe, 120, {})
    assert bool(caplog.messages) == bool(words)
    assert words in caplog.text


def test_every_option_changes_what_is_learned(tmp_path):
    models = []
    for name, recipe in RECIPES.items():
        run(tmp_path / name, recipe)
        models.append((tmp_path / name / "model").read_bytes())
    assert len(set(models)) == len(RECIPES)


def test_only_recipes_that_need_it_have_more_in_their_state_files(tmp_path):
    def keys(name):
        run(tmp_path / name, RECIPES[name], iterations=1)
        return {key for key in read_npz(tmp_path / name / "state") if key.startswith(OWN)}

    published = keys("published")
    assert all(keys(name) == published for name in ("momentum", "steps", "mirror", "clip"))
    assert keys("cosine") - published == {f"{OWN}schedule/end"}
    more = keys("average") - published
    assert f"{OWN}average/running/layer/W" in more
    assert {key.split("/")[1] for key in more} == {"average"}


def test_the_options_of_the_command_line_are_those_of_a_recipe():
    parser = build_parser()
    assert Recipe.of(parser.parse_args(["a", "b"])) == Recipe()
    words = (
        "--lr 0.3 --momentum 0.9 --nesterov --weight_decay 1e-3 --clip 0.5 --warmup 3 "
        "--lr_schedule cosine --label_smoothing 0.1 --mirror --average 5 --dirac"
    )
    assert Recipe.of(parser.parse_args(["a", "b", *words.split()])) == EVERYTHING
    words = "--lr 0.3 --lr_schedule steps --lr_steps 4,9"
    assert Recipe.of(parser.parse_args(["a", "b", *words.split()])) == RECIPES["steps"]


@pytest.mark.parametrize(
    "words",
    [
        "--momentum 1",
        "--momentum -0.1",
        "--weight_decay -1",
        "--clip 0",
        "--lr_schedule linear",
        "--lr_iterations 0",
        "--lr_steps 3,x",
        "--lr_factor nan",
        "--warmup -1",
        "--label_smoothing 1",
        "--average 0",
        "--nesterov",
        "--lr_steps 3",
        "--lr_factor 0.5",
        "--lr_schedule steps",
        "--lr_iterations 3",
    ],
)
def test_a_value_that_cannot_be_used_gets_one_sentence(words, capsys):
    with pytest.raises(SystemExit) as caught:
        build_parser().parse_args(["a", "b", *words.split()])
    assert caught.value.code == 2
    message = capsys.readouterr().err.splitlines()[-1]
    assert message.startswith("train_policy: error: ")
    assert words.split()[0] in message


def test_a_recipe_says_what_it_is():
    assert str(Recipe()) == "SGD 0.01"
    assert str(Recipe(momentum=0.9, clip=1.0)) == "MomentumSGD 0.01, momentum 0.9, clip 1.0"


def rates(recipe, end=None, count=20):
    schedule = Schedule(recipe, end)
    return [schedule.rate(t) for t in range(count)]


def test_warmup_rises_in_equal_steps():
    assert rates(Recipe(lr=8, warmup=4), count=6) == [2, 4, 6, 8, 8, 8]


def test_a_cosine_falls_from_the_rate_after_the_warmup_to_0():
    found = rates(Recipe(lr=1, lr_schedule="cosine", warmup=4), end=14)
    assert found[3] == found[4] == 1
    assert found[9] == pytest.approx(0.5)
    assert found[6] == pytest.approx((1 + math.cos(math.pi / 5)) / 2)
    assert found[14:] == pytest.approx([0] * 6)
    assert found[4:15] == sorted(found[4:15], reverse=True)


def test_steps_multiply_the_rate():
    recipe = Recipe(lr=1, lr_schedule="steps", lr_steps=(2, 5), lr_factor=0.5)
    assert rates(recipe, count=7) == [1, 1, 0.5, 0.5, 0.5, 0.25, 0.25]


class Watch:
    """Optimizer hook that notes the rate of each update."""

    name = "Watch"
    timing = "post"
    call_for_each_param = False

    def __init__(self):
        self.rates = []

    def __call__(self, optimizer):
        self.rates.append(optimizer.lr)


def test_every_update_is_done_at_its_own_rate(tmp_path):
    recipe = Recipe(lr=1e-3, lr_schedule="cosine", warmup=2)
    network = make_network()
    optimizer = make_optimizer(network, recipe)
    watch = Watch()
    optimizer.add_hook(watch)
    settings = Settings(
        model=tmp_path / "model", state=tmp_path / "state", seed=1, batchsize=8, epoch=2,
        recipe=recipe,
    )  # fmt: skip
    train(network, optimizer, make_positions(45, 1), make_positions(3, 2), settings, device=CPU)
    assert watch.rates == rates(recipe, end=12, count=12)


def test_a_cosine_keeps_its_end_and_says_when_it_is_over(tmp_path, caplog):
    recipe = RECIPES["cosine"]
    before = run(tmp_path, recipe, epoch=1)
    after = run(tmp_path, recipe, resume=True, epoch=1)
    assert "rate is 0 from iteration 6 on" in caplog.text
    numpy.testing.assert_array_equal(after.layer.W.array, before.layer.W.array)
    caplog.clear()
    run(tmp_path, Recipe(**{**vars(recipe), "lr_iterations": 18}), resume=True, epoch=1)
    assert not caplog.text


def differences(folder, recipe, batchsize=8):
    """What is told where the run in a folder is resumed by a recipe."""
    own = {
        key[len(OWN) :]: array
        for key, array in read_npz(folder / "state").items()
        if key.startswith(OWN)
    }
    settings = Settings(model="", state="", seed=1, batchsize=batchsize, recipe=recipe)
    return check_resumed(settings, own)


def test_other_options_than_those_of_the_run_resumed_are_told(tmp_path):
    run(tmp_path, RECIPES["everything"], iterations=1)
    changed = Recipe(**{**vars(RECIPES["everything"]), "mirror": False, "clip": None})
    assert differences(tmp_path, changed, batchsize=10) == [
        "--clip was 0.5 and is None now",
        "--mirror was True and is False now",
        "--batchsize was 8 and is 10 now",
    ]
    run(tmp_path, changed, resume=True, iterations=1)
    assert differences(tmp_path, changed) == []
    run(tmp_path / "steps", RECIPES["steps"], iterations=1)
    assert differences(tmp_path / "steps", RECIPES["steps"]) == []


def test_a_state_of_an_older_version_or_of_the_books_passes():
    settings = Settings(model="", state="", seed=1, batchsize=10)
    assert check_resumed(settings, {}) == []
    older = {"recipe/options": numpy.array(json.dumps(dataclasses.asdict(Recipe())))}
    assert check_resumed(settings, older) == []


def test_an_average_is_not_lost_by_resuming_without_it(tmp_path):
    run(tmp_path, RECIPES["average"], iterations=1)
    state = (tmp_path / "state").read_bytes()
    with pytest.raises(StateFileError, match="Give --average again"):
        run(tmp_path, RECIPES["published"], resume=True, iterations=1)
    assert (tmp_path / "state").read_bytes() == state


def test_momentum_needs_a_state_with_momentum(tmp_path):
    run(tmp_path, Recipe(), iterations=1)
    with pytest.raises(StateFileError, match="--momentum"):
        run(tmp_path, RECIPES["momentum"], resume=True)


def step(device, recipe, gradient=1.0):
    """Does one update with equal gradients; returns the arrays before and after it."""
    numpy.random.seed(3)
    network = NormalizedNetwork().to_device(device)
    before = {name: to_cpu(p.array).copy() for name, p in network.namedparams()}
    optimizer = make_optimizer(network, recipe)
    for parameter in network.params():
        parameter.grad = device.xp.full_like(parameter.array, gradient)
    optimizer.update()
    return before, {name: to_cpu(p.array) for name, p in network.namedparams()}


def test_weight_decay_spares_biases_and_batch_normalization(device):
    before, after = step(device, Recipe(lr=1, weight_decay=0.25), gradient=0.0)
    for name in before:
        share = 0.75 if name == "/layer/W" else 1
        numpy.testing.assert_allclose(after[name], share * before[name], rtol=1e-6)


def test_clip_shortens_the_gradient_of_all_parameters_together(device):
    before, after = step(device, Recipe(lr=1, clip=0.5), gradient=2.0)
    steps = [(after[name] - before[name]).ravel() for name in before]
    assert numpy.linalg.norm(numpy.concatenate(steps)) == pytest.approx(0.5, rel=1e-3)
    before, after = step(device, Recipe(lr=1, clip=1e6), gradient=2.0)
    assert after["/layer/b"] == pytest.approx(before["/layer/b"] - 2, abs=1e-5)


def test_label_smoothing_is_the_cross_entropy_with_the_smoothed_target(device):
    network = make_network()
    planes, labels, _ = PlanesConverter(make_positions(6, 1))(range(6), CPU)
    logits = network(planes)
    target = numpy.full(logits.shape, 0.2 / 2187)
    target[range(6), labels] += 0.8
    expected = -(target * F.log_softmax(logits).array).sum(axis=1).mean()
    plain = float(F.softmax_cross_entropy(logits, labels).array)
    network.to_device(device)
    batch = PlanesConverter(make_positions(6, 1))(range(6), device)
    loss, measured = measure(network, *batch, label_smoothing=0.2)
    assert float(loss.array) == pytest.approx(expected, rel=1e-5)
    assert float(measured["loss"][0]) == pytest.approx(plain)
    with chainer.using_config("train", False):
        loss = Loss(network, label_smoothing=0.2)(*batch)
    assert float(loss.array) == pytest.approx(plain)


def test_each_position_counts_the_same_in_a_short_batch_too(device):
    network = make_network()
    network.to_device(device)
    batch = PlanesConverter(make_positions(6, 1))(range(6), device)
    mean = float(Loss(network)(*batch).array)
    for batchsize, share in ((6, 1), (5, 1), (8, 6 / 8)):
        loss = Loss(network, batchsize=batchsize)(*batch)
        assert float(loss.array) == pytest.approx(share * mean)
    with chainer.using_config("train", False):
        assert float(Loss(network, batchsize=8)(*batch).array) == pytest.approx(mean)


def test_half_of_the_positions_are_mirrored_and_others_every_epoch():
    plain, mirrored = (EpochIterator(1000, 50, 3, mirror=flag) for flag in (False, True))
    coins = []
    for _ in range(2):
        numbers = [numpy.concatenate([next(it) for _ in range(20)]) for it in (plain, mirrored)]
        numpy.testing.assert_array_equal(numbers[0], numbers[1] % 1000)
        coins.append(numbers[1] >= 1000)
        assert 400 < coins[-1].sum() < 600
    assert (coins[0] != coins[1]).any()


def test_mirrored_numbers_are_mirrored_positions(device):
    positions = make_positions(5, 1)
    both = numpy.concatenate([positions, mirror(positions)])
    found = [to_cpu(array) for array in PlanesConverter(positions)([3, 8, 5], device)]
    expected = PlanesConverter(both)([3, 8, 5], CPU)
    for one, other in zip(found, expected):
        numpy.testing.assert_array_equal(one, other)
    assert (found[0][0] == found[0][1][:, :, ::-1]).all()


def test_an_average_is_the_mean_then_an_exponential_one(device):
    network = NormalizedNetwork().to_device(device)
    average = Average(network, span=4)
    values = [3.0, 5.0, 1.0, 7.0, 2.0, 9.0]
    means = []
    for value in values:
        network.layer.W.array[...] = value
        network.norm.avg_mean[...] = -value
        average()
        means.append(float(average.network.layer.W.array[0, 0, 0, 0]))
        assert (average.network.norm.avg_mean == -average.network.layer.W.array[0, 0, 0, 0]).all()
    assert means[:4] == pytest.approx([3, 4, 3, 4])
    assert means[4:] == pytest.approx([3.5, 4.875])
    assert (network.layer.W.array == 9).all()


def test_the_average_is_measured_and_saved_while_the_network_runs_on(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    plain = run(tmp_path / "plain", RECIPES["published"])
    caplog.clear()
    running = run(tmp_path / "average", RECIPES["average"])
    assert_same_parameters(plain, running)
    (curve,) = log.read_log(record.getMessage() for record in caplog.records)
    network = NormalizedNetwork()
    load_model(tmp_path / "average" / "model", network)
    with chainer.using_config("train", False):
        batch = PlanesConverter(make_positions(13, 2))(range(13), CPU)
        _, measured = measure(network, *batch)
    assert curve.epochs[-1].test_loss == pytest.approx(measured["loss"][0], rel=1e-5)


def test_an_average_begins_with_the_run_that_asks_for_it(tmp_path):
    run(tmp_path, RECIPES["published"], iterations=5)
    running = run(tmp_path, RECIPES["average"], resume=True, iterations=1)
    network = NormalizedNetwork()
    load_model(tmp_path / "model", network)
    for one, other in zip(network.params(), running.params()):
        numpy.testing.assert_array_equal(one.array, other.array)


@pytest.mark.parametrize("name", ["average", "everything"])
@pytest.mark.parametrize(
    "options", [{"epoch": 1}, {"iterations": 2}, {"eval_interval": 2}], ids=str
)
def test_an_average_has_the_statistics_of_training_positions(device, tmp_path, name, options):
    # Batches of 10, the last one of 5: the mean is over the positions all the same.
    run(tmp_path, RECIPES[name], device=device, batchsize=10, **options)
    network = NormalizedNetwork()
    load_model(tmp_path / "model", network)
    positions = make_positions(45, 1)
    if RECIPES[name].mirror:
        positions = numpy.concatenate([positions, mirror(positions)])
    planes = PlanesConverter(positions)(range(len(positions)), CPU)[0]
    means, variances = planes.mean(axis=(0, 2, 3)), planes.var(axis=(0, 2, 3))
    numpy.testing.assert_allclose(network.norm.avg_mean, means, rtol=1e-4, atol=1e-6)
    numpy.testing.assert_allclose(network.norm.avg_var, variances, rtol=2e-2, atol=1e-6)


class InterruptedNetwork(NormalizedNetwork):
    """Wants to end in its fourth forward pass in training."""

    def __init__(self):
        super().__init__()
        self.passes = 0

    def forward(self, x):
        if chainer.config.enable_backprop:
            self.passes += 1
            if self.passes == 4:
                os.kill(os.getpid(), signal.SIGTERM)
        return super().forward(x)


@pytest.mark.skipif(os.name == "nt", reason="no such signals on Windows")
def test_the_average_of_a_run_that_is_interrupted_has_them_too(tmp_path):
    run(tmp_path, RECIPES["average"], network=InterruptedNetwork, batchsize=10, eval_interval=99)
    network = NormalizedNetwork()
    load_model(tmp_path / "model", network)
    assert read_npz(tmp_path / "state")["t"] == 4
    planes = PlanesConverter(make_positions(45, 1))(range(45), CPU)[0]
    numpy.testing.assert_allclose(network.norm.avg_mean, planes.mean(axis=(0, 2, 3)), rtol=1e-4)


def test_on_every_device_an_interrupted_run_is_a_whole_one_on_the_cpu(device, tmp_path):
    recipe = Recipe(**{**vars(EVERYTHING), "lr": 0.05, "lr_iterations": 18})
    run(tmp_path / "whole", recipe, iterations=9)
    run(tmp_path, recipe, device=device, iterations=5)
    run(tmp_path, recipe, device=device, resume=True, iterations=4)
    expected, found = read_npz(tmp_path / "whole" / "model"), read_npz(tmp_path / "model")
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        numpy.testing.assert_allclose(found[name], array, rtol=1e-2, atol=1e-4)
