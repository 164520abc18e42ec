"""State files: what is written is what is read; files of earlier versions resume or are refused.

``tests/data/old_state`` holds files that commit fddda2b wrote: ``published`` (plain SGD, one
head) and ``refined`` (momentum and a cosine, two heads), each after 7 iterations (``model``
and ``state``), and the model after 12 iterations of one run (``later``).
"""

import dataclasses
import json
import shutil
from pathlib import Path

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from training_helpers import SmallNetwork, make_positions

from pydlshogi.compat import chainer
from pydlshogi.model_files.model_file import save_model
from pydlshogi.model_files.npz import read_npz
from pydlshogi.network.value_kind import WinLogit
from pydlshogi.training.checkpoint import load_pair
from pydlshogi.training.optimizer import make_optimizer
from pydlshogi.training.recipe import Recipe
from pydlshogi.training.state import (
    OWN,
    Place,
    StateFileError,
    checksum,
    differences,
    load_state,
    save_state,
)
from pydlshogi.training.trainer import Settings, Task, train

CPU = chainer.get_device("@numpy")
OLD = Path(__file__).parents[1] / "data" / "old_state"


class TwoHeadedNetwork(SmallNetwork):
    """The network of the folder ``refined``."""

    value_kind = WinLogit

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.value = chainer.links.Linear(2187, 1)

    def forward(self, x):
        logits = super().forward(x)
        return logits, self.value(logits)


RUNS = {
    "published": (SmallNetwork, Recipe(lr=0.3)),
    "refined": (
        TwoHeadedNetwork,
        Recipe(
            lr=0.05,
            momentum=0.9,
            nesterov=True,
            weight_decay=1e-3,
            clip=0.5,
            lr_schedule="cosine",
            lr_iterations=18,
            warmup=3,
        ),
    ),
}


def run(folder, name, iterations, *, resume):
    """Repeats the run of a folder of ``old_state``, or resumes it."""
    make, recipe = RUNS[name]
    numpy.random.seed(1)
    network = make()
    optimizer = make_optimizer(network, recipe)
    files = folder / "model", folder / "state"
    resumed = load_pair(*files, network, optimizer) if resume else None
    sets = make_positions(45, 1), make_positions(13, 2)
    for positions in sets:
        positions["result"] = numpy.arange(len(positions)) % 4
    settings = Settings(
        *files, seed=5, batchsize=8, test_batchsize=4, epoch=9, iterations=iterations,
        eval_interval=4, recipe=recipe,
    )  # fmt: skip
    train(Task(network, optimizer, *sets, settings, CPU, resumed=resumed))
    return settings


def assert_close(one, other):
    """Compares models: on the machine of the files to the last bit, elsewhere by rounding."""
    one, other = read_npz(one), read_npz(other)
    assert one.keys() == other.keys()
    for name in one:
        numpy.testing.assert_allclose(one[name], other[name], rtol=1e-4, atol=1e-6)


@pytest.fixture(params=RUNS)
def name(request):
    return request.param


def test_the_recipe_gives_the_parameters_of_earlier_versions(tmp_path, name):
    run(tmp_path, name, 12, resume=False)
    assert_close(tmp_path / "model", OLD / name / "later")


def test_a_state_of_an_earlier_version_resumes_exactly(tmp_path, name, caplog):
    shutil.copytree(OLD / name, tmp_path, dirs_exist_ok=True)
    settings = run(tmp_path, name, 5, resume=True)
    assert_close(tmp_path / "model", OLD / name / "later")
    assert not caplog.messages  # no warning
    before = load_state(OLD / name / "state").place
    assert "mirror" in before.options
    assert differences(before.options, settings.options) == []
    after = load_state(tmp_path / "state").place
    assert (after.seed, after.epoch, after.position) == (5, 2, 0)
    assert after.options == json.loads(json.dumps(settings.options))
    assert after.schedule_end == before.schedule_end


@pytest.mark.parametrize("options", [{"label_smoothing": 0.1}, {"average": 3}], ids=str)
def test_a_run_with_an_option_of_another_version_is_refused(tmp_path, options):
    arrays = read_npz(OLD / "published" / "state")
    before = json.loads(str(arrays[OWN + "recipe/options"]))
    arrays[OWN + "recipe/options"] = numpy.array(json.dumps({**before, **options}))
    save_state(tmp_path / "state", arrays)
    with pytest.raises(StateFileError) as caught:
        load_state(tmp_path / "state")
    (option,) = options
    assert f"belongs to a run with {option} of another version" in str(caught.value)
    assert "Start at iteration 0" in str(caught.value)


def test_the_checksum_sees_everything_that_is_trained_on_and_no_evaluation():
    positions = make_positions(100_000, 1)
    before = checksum(positions)
    for field in ("board", "hands", "result", "label", "ply"):
        for row in (0, 70_000, 99_999):
            changed = positions.copy()
            changed[field][row] += 1
            assert checksum(changed) != before
    positions["evaluation"] = 7
    assert checksum(positions) == before


def test_the_checksum_of_a_run_that_uses_evaluations_sees_them():
    positions = make_positions(5, 1)
    before = checksum(positions, evaluations=True)
    positions["evaluation"][2] += 1
    assert checksum(positions, evaluations=True) != before


def test_a_state_of_a_network_with_other_heads_is_refused(tmp_path):
    shutil.copytree(OLD / "published", tmp_path, dirs_exist_ok=True)
    content = load_state(tmp_path / "state")
    changed = dataclasses.replace(content.place, losses={"value_loss": {}})
    save_state(tmp_path / "state", dataclasses.replace(content, place=changed).to_arrays())
    with pytest.raises(StateFileError):
        run(tmp_path, "published", 1, resume=True)


@pytest.mark.parametrize(
    "key, value",
    [
        ("t", -5),
        ("t", 1 << 62),
        ("t", 1.5),
        ("t", [1, 2]),
        ("epoch", -1),
        (OWN + "place/seed", -1),
        (OWN + "place/seed", 1 << 32),
        (OWN + "place/epoch", -3),
        (OWN + "place/epoch", 7),
        (OWN + "place/position", -8),
        (OWN + "place/position", 1 << 40),
        (OWN + "place/position", [1, 2]),
        (OWN + "place/order", "backwards"),
        (OWN + "place/stage", "finale"),
        (OWN + "seconds", numpy.nan),
        (OWN + "seconds", -1.0),
        (OWN + "seconds", numpy.inf),
        (OWN + "schedule/end", -1),
        (OWN + "train", numpy.inf),
        (OWN + "model", [1, 2]),
        (OWN + "loss/in_epoch/_n", [1, 2]),
        (OWN + "loss/in_epoch/_n", "many"),
        (OWN + "recipe/options", "[" * 100_000),
        (OWN + "recipe/options", "[1]"),
        (OWN + "recipe/options", '{"value_lambda": "all"}'),
    ],
)
def test_a_state_with_impossible_numbers_is_refused_as_damaged(tmp_path, key, value):
    shutil.copytree(OLD / "published", tmp_path, dirs_exist_ok=True)
    arrays = read_npz(tmp_path / "state")
    arrays[key] = numpy.asarray(value)
    numpy.savez((tmp_path / "state").open("wb"), **arrays)
    before = (tmp_path / "state").read_bytes()
    with pytest.raises(StateFileError, match="is damaged"):
        run(tmp_path, "published", 1, resume=True)
    assert (tmp_path / "state").read_bytes() == before


def place(**changes):
    """A place with nothing special."""
    values = {
        "model": numpy.zeros(16, numpy.uint8),
        "train": 0,
        "seed": 0,
        "epoch": 0,
        "position": 0,
        "losses": {},
    }
    return Place(**{**values, **changes})


numbers = st.integers(0, 2**32 - 1)


@given(
    st.builds(
        place,
        train=numbers,
        seed=numbers,
        epoch=numbers,
        position=numbers,
        seconds=st.floats(0, 1e9),
        schedule_end=st.none() | st.integers(1, 10**9),
        options=st.dictionaries(
            st.text("abc_"), st.none() | st.booleans() | st.floats(allow_nan=False)
        ),
    )
)
def test_what_is_written_is_what_is_read(written):
    written = dataclasses.replace(
        written, options={k: v for k, v in written.options.items() if k != "average"}
    )
    arrays = {key: numpy.asarray(value) for key, value in written.to_arrays().items()}
    read = Place.from_arrays(arrays)
    assert {**vars(read), "model": 0} == {**vars(written), "model": 0}


def test_the_books_state_has_no_place(tmp_path):
    network = SmallNetwork()
    save_model(tmp_path / "model", network)
    optimizer = make_optimizer(network, Recipe())
    chainer.serializers.save_npz(str(tmp_path / "state"), optimizer)
    content = load_state(tmp_path / "state")
    assert content.place is None
    assert content.optimizer.keys() >= {"t", "epoch"}
