"""The visits of a search as the target of the policy."""

import shutil

import numpy
import pytest
from packed_files import EMBEDDED, write_games
from training_fixtures import *  # noqa: F403 - the fixture ``folder``
from training_helpers import (
    assert_same_files,
    complaints,
    make_positions,
    run,
)

from pydlshogi.commands import make_positions as make_positions_command
from pydlshogi.commands import train_policy, train_value
from pydlshogi.compat import chainer
from pydlshogi.features import MIRRORED_LABELS
from pydlshogi.kifu.loading import load_positions
from pydlshogi.kifu.mapped_positions import MappedPositions, with_shards
from pydlshogi.positions import CANDIDATE, Visits, join_visits
from pydlshogi.training.batches import PlanesConverter
from pydlshogi.training.recipe import Recipe
from pydlshogi.training.state import checksum
from pydlshogi.training.targets import VISITS, shares_of_visits

LABELS = 2187


def visits_of(*positions):
    """Visits of positions, each a list of (label, count)."""
    starts = numpy.cumsum([0, *map(len, positions)])
    return Visits(starts, numpy.array([pair for each in positions for pair in each], CANDIDATE))


def random_visits(count, seed):
    """Visits of 0 to 9 candidates of each position."""
    random = numpy.random.RandomState(seed)
    starts = numpy.cumsum([0, *random.randint(0, 10, count)])
    candidates = numpy.zeros(starts[-1], CANDIDATE)
    candidates["label"] = random.randint(0, LABELS, len(candidates))
    candidates["count"] = random.randint(0, 1000, len(candidates))
    return Visits(starts, candidates)


def test_a_move_has_its_share_of_the_visits():
    visits = visits_of([(5, 3), (7, 1)], [], [(9, 0)], [(2, 1), (2, 1), (0, 65535)])
    targets = shares_of_visits(numpy.array([1, 4, 6, 8]), visits)
    expected = numpy.zeros((4, LABELS))
    expected[0, [5, 7]] = 0.75, 0.25
    expected[1, 4] = 1  # no candidates
    expected[2, 6] = 1  # no visits
    expected[3, [2, 0]] = numpy.array([2, 65535]) / 65537
    numpy.testing.assert_allclose(targets, expected, 1e-7)
    assert targets.dtype == numpy.float32


def test_selected_and_joined_visits_are_those_of_the_positions():
    visits = random_visits(50, 1)
    rows = numpy.random.RandomState(2).randint(0, 50, 80)
    chosen = visits[rows]
    for place, row in enumerate(rows):
        one = visits.candidates[visits.starts[row] : visits.starts[row + 1]]
        found = chosen.candidates[chosen.starts[place] : chosen.starts[place + 1]]
        assert found.tolist() == one.tolist()
    again = join_visits([visits[:20], visits[20:21], visits[21:]])
    assert again.checksum() == visits.checksum()


def test_the_loss_and_its_gradient_are_those_of_plain_numpy():
    random = numpy.random.RandomState(3)
    logits = random.randn(6, LABELS).astype("f")
    targets = shares_of_visits(random.randint(0, LABELS, 6), random_visits(6, 4))
    x = chainer.Variable(logits)
    loss = chainer.functions.softmax_cross_entropy(x, targets)
    loss.backward()
    exact = logits.astype(float)
    q = numpy.exp(exact) / numpy.exp(exact).sum(axis=1, keepdims=True)
    numpy.testing.assert_allclose(loss.array, -(targets * numpy.log(q)).sum() / 6, 1e-6)
    numpy.testing.assert_allclose(x.grad, (q - targets) / 6, 1e-5, 1e-9)


def train_on_visits(folder, positions, **settings):
    folder.mkdir(exist_ok=True)
    recipe = Recipe(policy_target="visits")
    return run(folder, positions=positions, recipe=recipe, lr=0.1, **settings)


def test_visits_of_the_move_played_alone_train_as_the_move_played(tmp_path):
    positions = make_positions(45, 1)
    alone = visits_of(*([(label, 7)] for label in positions["label"].tolist()))
    train_on_visits(tmp_path / "visits", MappedPositions(positions, [], alone))
    (tmp_path / "played").mkdir()
    run(tmp_path / "played", positions=positions, lr=0.1)
    with numpy.load(tmp_path / "visits/model") as ours, numpy.load(tmp_path / "played/model") as of:
        for name in of.files:
            numpy.testing.assert_allclose(ours[name], of[name], 1e-4, 1e-6)


def test_other_visits_train_another_model(tmp_path):
    positions = make_positions(45, 1)
    for seed in (1, 2):
        sets = MappedPositions(positions, [], random_visits(45, seed))
        train_on_visits(tmp_path / str(seed), sets, epoch=1)
    assert (tmp_path / "1/model").read_bytes() != (tmp_path / "2/model").read_bytes()


def test_the_visits_of_a_mirror_image_are_mirrored():
    visits = random_visits(20, 1)
    positions = MappedPositions(make_positions(20, 1), [], visits)
    convert = PlanesConverter(positions, policy_target=VISITS)
    device = chainer.get_device("@numpy")
    _, plain, _ = convert([3, 8], device)
    _, mixed, _ = convert([3, 28], device)
    numpy.testing.assert_array_equal(mixed[0], plain[0])
    numpy.testing.assert_array_equal(mixed[1][MIRRORED_LABELS], plain[1])
    assert (mixed[1] != plain[1]).any()


def test_a_run_on_visits_resumes_exactly(tmp_path):
    positions = MappedPositions(make_positions(45, 1), [], random_visits(45, 1))
    train_on_visits(tmp_path / "whole", positions, iterations=14)
    train_on_visits(tmp_path / "parts", positions, iterations=5)
    train_on_visits(tmp_path / "parts", positions, iterations=9, resume=True)
    assert_same_files(tmp_path / "whole/model", tmp_path / "parts/model")


def test_the_checksum_of_a_run_covers_the_visits():
    positions = make_positions(45, 1)
    found = {checksum(MappedPositions(positions, [], random_visits(45, seed))) for seed in (1, 2)}
    assert len(found) == 2


@pytest.fixture
def searched(folder):
    """A list with an HCPE3 file and a record; its positions are searched, or not."""
    (folder / "games.hcpe3").write_bytes(write_games(EMBEDDED[:3])[0])
    shutil.copy(EMBEDDED[3], folder / "game.csa")
    (folder / "searched.txt").write_text("games.hcpe3\ngame.csa\n")
    return folder


OPTIONS = "test.txt --gpu -1 -b 8 --seed 1 --iterations 3 --eval_interval 2 --policy_target visits"


def train_program(train_list, name, *options):
    files = ["--model", f"{name}.model", "--state", f"{name}.state"]
    return train_policy.main([train_list, *OPTIONS.split(), *files, *options])


def test_a_list_and_its_shards_have_the_same_visits(searched):
    assert make_positions_command.main(["searched.txt", "out", "--shard_size", "50"]) == 0
    listed = load_positions("searched.txt", visits=True)
    sharded = load_positions("out/list.txt", visits=True).mapped
    rows = numpy.random.RandomState(1).permutation(len(sharded))
    ours, theirs = sharded.visits_of(rows), listed.mapped.visits_of(rows)
    assert ours.checksum() == theirs.checksum()
    assert len(ours.candidates) > len(rows)
    assert (numpy.diff(listed.visits.starts)[-50:] == 0).all()  # the CSA record
    assert not (searched / "searched.pickle").exists()


@pytest.mark.long
def test_the_program_trains_alike_on_a_list_and_on_its_shards(searched):
    assert make_positions_command.main(["searched.txt", "out", "--shard_size", "50"]) == 0
    assert train_program("searched.txt", "listed") == 0
    assert train_program("out/list.txt", "sharded") == 0
    assert_same_files(searched / "listed.model", searched / "sharded.model")
    assert train_program("searched.txt", "played", "--policy_target", "played") == 0
    played = (searched / "played.model").read_bytes()
    assert played != (searched / "listed.model").read_bytes()


@pytest.mark.long
def test_a_list_without_visits_is_trained_on_its_moves_with_a_warning(folder, capsys):
    assert train_program("train.txt", "visits") == 0
    assert any("no training position has visits" in line for line in complaints(capsys))


def test_a_network_without_a_policy_refuses_the_option(folder, capsys):
    with pytest.raises(SystemExit):
        train_value.main(["train.txt", "test.txt", "--policy_target", "visits"])
    assert "--policy_target is for a network with a policy head" in capsys.readouterr().err


def test_positions_without_shards_and_visits_stay_an_array():
    positions = make_positions(3, 1)
    assert with_shards(positions, []) is positions
