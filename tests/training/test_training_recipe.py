"""Recipes beside the published one: each option's effect, and its exact resume."""

import json
import logging
import math

import numpy
import pytest
from training_helpers import (
    NormalizedNetwork,
    assert_same_files,
    make_network,
    make_positions,
)

from pydlshogi.commands.train_options import build_parser, recipe_of
from pydlshogi.compat import chainer
from pydlshogi.model_files.npz import read_npz
from pydlshogi.training import log
from pydlshogi.training.batches import PlanesConverter
from pydlshogi.training.checkpoint import load_pair
from pydlshogi.training.loss import Loss
from pydlshogi.training.optimizer import Schedule, make_optimizer, make_schedule
from pydlshogi.training.recipe import Recipe
from pydlshogi.training.state import OWN, StateFileError, differences, load_state
from pydlshogi.training.trainer import Settings, Task, train

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
    resumed = load_pair(model, state, network, optimizer) if resume else None
    given = {"batchsize": 8, "test_batchsize": 4, "epoch": 3, "eval_interval": 4, **options}
    settings = Settings(model=model, state=state, seed=5, recipe=recipe, **given)
    sets = make_positions(45, 1), make_positions(13, 2)
    train(Task(network, optimizer, *sets, settings, device, resumed=resumed))
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
    "mirror": Recipe(lr=0.3, mirror=True),
    "everything": EVERYTHING,
}


@pytest.mark.long
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
            "warmup is 50, but this run or its cosine ends at iteration 50",
        ),
        (Recipe(lr_schedule="cosine", lr_iterations=50, warmup=60), "is 0 from iteration 50 on"),
        (Recipe(lr_schedule="cosine", warmup=120), "warmup is 120"),
        (Recipe(warmup=200), "warmup is 200, but this run or its cosine ends at iteration 120"),
        (Recipe(lr_schedule="steps", lr_steps=(50, 120)), "lr_steps names iteration 120"),
        (Recipe(lr_schedule="steps", lr_steps=(50, 119)), ""),
        (Recipe(warmup=119), ""),
        (Recipe(lr_schedule="cosine", warmup=119), ""),
    ],
)
def test_a_rate_that_comes_to_nothing_is_warned_of(recipe, words, caplog):
    make_schedule(recipe, 120)
    assert bool(caplog.messages) == bool(words)
    assert words in caplog.text


def test_a_cosine_without_an_end_in_practice_fits_into_a_state_file():
    schedule = make_schedule(Recipe(lr_schedule="cosine", lr_iterations=10**30), 120)
    assert numpy.array(schedule.end).dtype.kind == "i"


def test_every_option_changes_what_is_learned(tmp_path):
    models = []
    for name, recipe in RECIPES.items():
        run(tmp_path / name, recipe, epoch=2, eval_interval=100)
        models.append((tmp_path / name / "model").read_bytes())
    assert len(set(models)) == len(RECIPES)


def test_only_recipes_that_need_it_have_more_in_their_state_files(tmp_path):
    def keys(name):
        run(tmp_path / name, RECIPES[name], iterations=1)
        return {key for key in read_npz(tmp_path / name / "state") if key.startswith(OWN)}

    published = keys("published")
    assert all(keys(name) == published for name in ("momentum", "steps", "clip"))
    assert keys("cosine") - published == {f"{OWN}schedule/end"}


def test_the_options_of_the_command_line_are_those_of_a_recipe():
    parser = build_parser()
    assert recipe_of(parser.parse_args(["a", "b"])) == Recipe()
    words = (
        "--lr 0.3 --momentum 0.9 --nesterov --weight_decay 1e-3 --clip 0.5 --warmup 3 "
        "--lr_schedule cosine --dirac"
    )
    assert recipe_of(parser.parse_args(["a", "b", *words.split()])) == EVERYTHING
    words = "--lr 0.3 --lr_schedule steps --lr_steps 4,9"
    assert recipe_of(parser.parse_args(["a", "b", *words.split()])) == RECIPES["steps"]


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
        "--lr_factor 1e200",
        "--warmup -1",
        "--nesterov",
        "--lr_steps 3",
        "--lr_factor 0.5",
        "--eval_scale 300",
        "--td_lambda 0.9",
        "--td_lambda 1 --value_lambda 0",
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
    train(Task(network, optimizer, make_positions(45, 1), make_positions(3, 2), settings, CPU))
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


def told(folder, recipe, batchsize=8):
    """The differences reported when the run in a folder is resumed with a recipe."""
    settings = Settings(model="", state="", batchsize=batchsize, recipe=recipe)
    return differences(load_state(folder / "state").place.options, settings.options)


def test_other_options_than_those_of_the_run_resumed_are_told(tmp_path):
    run(tmp_path, RECIPES["everything"], iterations=1)
    changed = Recipe(**{**vars(RECIPES["everything"]), "warmup": 0, "clip": None})
    assert told(tmp_path, changed, batchsize=10) == [
        "clip was 0.5 and is None now",
        "warmup was 3 and is 0 now",
        "batchsize was 8 and is 10 now",
    ]
    run(tmp_path, changed, resume=True, iterations=1)
    assert told(tmp_path, changed) == []
    run(tmp_path / "steps", RECIPES["steps"], iterations=1)
    assert told(tmp_path / "steps", RECIPES["steps"]) == []


def test_options_that_an_older_state_lacks_are_told_if_they_change_the_training():
    now = json.loads(json.dumps(Settings(model="", state="").options))
    added = {"policy_target": "visits", "value_lambda": 0.5}
    older = {name: value for name, value in now.items() if name not in added}
    assert differences(older, now) == []
    assert differences(older, {**now, **added}) == [
        "value_lambda was 1.0 and is 0.5 now",
        "policy_target was played and is visits now",
    ]


def test_momentum_needs_a_state_with_momentum(tmp_path):
    run(tmp_path, Recipe(), iterations=1)
    with pytest.raises(StateFileError, match="same momentum"):
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


def test_on_every_device_an_interrupted_run_is_a_whole_one_on_the_cpu(device, tmp_path):
    recipe = Recipe(**{**vars(EVERYTHING), "lr": 0.05, "lr_iterations": 18})
    run(tmp_path / "whole", recipe, iterations=9)
    run(tmp_path, recipe, device=device, iterations=5)
    run(tmp_path, recipe, device=device, resume=True, iterations=4)
    expected, found = read_npz(tmp_path / "whole" / "model"), read_npz(tmp_path / "model")
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        numpy.testing.assert_allclose(found[name], array, rtol=1e-2, atol=1e-4)
