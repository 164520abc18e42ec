"""The λ-return of the evaluations of a game."""

import numpy
import pytest
from training_fixtures import REPOSITORY
from training_helpers import CPU, SmallValueNetwork

from pydlshogi.features import WINS
from pydlshogi.kifu.loading import load_positions
from pydlshogi.kifu.mapped_positions import MappedPositions
from pydlshogi.kifu.shards import Shard, write_shard
from pydlshogi.positions import DRAW, LOSS, NO_EVALUATION, POSITION, UNKNOWN, WIN
from pydlshogi.training.batches import PlanesConverter
from pydlshogi.training.datasets import warn_of_missing_targets
from pydlshogi.training.eval_scale import win_probability
from pydlshogi.training.recipe import Recipe
from pydlshogi.training.targets import ValueTarget, lambda_returns

GAMES = sorted((REPOSITORY / "kifu" / "train").glob("*.csa"))
SCALE = 300.0
OTHER = {WIN: LOSS, LOSS: WIN, DRAW: DRAW, UNKNOWN: UNKNOWN}


def game(evaluations, result=WIN, first=1):
    """A game as its positions; the result is that of the first side to move."""
    positions = numpy.zeros(len(evaluations), POSITION)
    positions["evaluation"] = evaluations
    positions["ply"] = first + numpy.arange(len(evaluations))
    positions["result"] = [OTHER[result] if n % 2 else result for n in range(len(evaluations))]
    positions["label"] = numpy.random.RandomState(len(evaluations)).randint(0, 2187, len(positions))
    positions["recent"][1:, 0] = 81 - positions["label"][:-1] % 81
    return positions


def random_games(seed, count=20):
    """Games in which some evaluations and some results are unknown."""
    random = numpy.random.RandomState(seed)
    games = []
    for _ in range(count):
        evaluations = random.randint(-900, 900, random.randint(1, 40))
        evaluations[random.rand(len(evaluations)) < 0.3] = NO_EVALUATION
        games.append(game(evaluations, random.choice([WIN, LOSS, DRAW, UNKNOWN])))
    return games


def by_definition(positions, td_lambda):
    """The sum of the module's docstring, for each position of one game."""
    returns = []
    for first in range(len(positions)):
        total, weight = 0.0, 1.0
        latest = None
        for n, position in enumerate(positions[first:]):
            if position["evaluation"] == NO_EVALUATION:
                continue
            expected = 1 / (1 + numpy.exp(-position["evaluation"] / SCALE))
            latest = 1 - expected if n % 2 else expected
            total += weight * (1 - td_lambda) * latest
            weight *= td_lambda
        end = WINS[positions[first]["result"]]
        if numpy.isnan(end):
            end = numpy.nan if latest is None else latest
        returns.append(total + weight * end)
    return returns


@pytest.mark.parametrize("td_lambda", [0.0, 0.3, 0.9, 1.0])
def test_the_sum_of_the_definition(td_lambda):
    games = random_games(1)
    expected = numpy.concatenate([by_definition(positions, td_lambda) for positions in games])
    found = lambda_returns(numpy.concatenate(games), td_lambda, SCALE)
    assert found.dtype == numpy.float32
    assert numpy.isnan(expected).any() and not numpy.isnan(expected).all()
    numpy.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("rows", [1, 2, 7, 64])
def test_a_game_may_go_on_in_the_next_part(rows):
    positions = numpy.concatenate(random_games(2))
    expected = lambda_returns(positions, 0.9, SCALE)
    numpy.testing.assert_allclose(lambda_returns(positions, 0.9, SCALE, rows), expected, atol=1e-6)


def test_a_lambda_of_0_is_the_own_evaluation_and_1_is_the_result():
    positions = game([100, -50, 400, 30], LOSS)
    own = win_probability(positions["evaluation"].astype(float), SCALE)
    numpy.testing.assert_allclose(lambda_returns(positions, 0.0, SCALE), own, rtol=1e-6)
    numpy.testing.assert_array_equal(lambda_returns(positions, 1.0, SCALE), [0, 1, 0, 1])


def test_the_game_seen_from_the_other_side_has_the_complements():
    evaluations = numpy.array([100, NO_EVALUATION, 400, 30, -700])
    reversed_evaluations = numpy.where(evaluations == NO_EVALUATION, NO_EVALUATION, -evaluations)
    one = lambda_returns(game(evaluations, WIN), 0.8, SCALE)
    other = lambda_returns(game(reversed_evaluations, LOSS), 0.8, SCALE)
    numpy.testing.assert_allclose(one + other, 1, rtol=1e-6)


@pytest.mark.parametrize("field", ["ply", "recent"])
def test_positions_of_position_files_are_not_joined(field):
    positions = game([100, -300, 50])
    positions[field] = 0  # as HCPE files leave the move numbers, and all files the recent moves
    single = [lambda_returns(positions[n : n + 1], 0.9, SCALE)[0] for n in range(3)]
    numpy.testing.assert_array_equal(lambda_returns(positions, 0.9, SCALE), single)


def test_real_games_are_joined_from_their_first_position_to_their_last(tmp_path):
    (tmp_path / "games.txt").write_text("".join(f"{path}\n" for path in GAMES[:4]))
    positions = load_positions(tmp_path / "games.txt").records
    starts = numpy.flatnonzero(positions["ply"] == 1)
    assert len(starts) == 4
    ends = numpy.append(starts[1:], len(positions)) - 1
    positions["evaluation"] = NO_EVALUATION
    positions["evaluation"][ends] = 3_000
    # The only evaluation of a game is that of its last position.
    returns = lambda_returns(positions, 0.25, SCALE)
    for start, end in zip(starts, ends):
        length = end - start + 1
        assert len(set(returns[start : end + 1].round(5))) == min(2, length)


def test_a_game_may_go_on_in_the_next_shard(tmp_path):
    positions = numpy.concatenate(random_games(5))
    paths = [tmp_path / f"{start}.shard" for start in range(0, len(positions), 25)]
    for path in paths:
        write_shard(path, positions[int(path.stem) : int(path.stem) + 25])
    mapped = MappedPositions(positions[:0], [Shard(path) for path in paths])
    expected = lambda_returns(positions, 0.9, SCALE)
    for rows in (30, 1 << 20):
        numpy.testing.assert_allclose(lambda_returns(mapped, 0.9, SCALE, rows), expected, atol=1e-6)


def test_no_position_has_no_return():
    assert len(lambda_returns(numpy.empty(0, POSITION), 0.9, SCALE)) == 0


def test_the_target_mixes_the_result_and_the_return():
    positions = numpy.concatenate(random_games(3))
    rows = numpy.random.RandomState(1).permutation(len(positions))[:30]
    returns = lambda_returns(positions, 0.9, SCALE)[rows]
    wins = WINS[positions["result"][rows]]
    found = ValueTarget(0.25, SCALE, 0.9).of(positions)(rows, positions[rows])
    assert found.dtype == numpy.float32
    expected = numpy.where(numpy.isnan(wins), returns, 0.25 * wins + 0.75 * returns)
    numpy.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_training_batch_has_the_targets_of_the_recipe():
    positions = numpy.concatenate(random_games(6))
    recipe = Recipe(value_lambda=0.25, eval_scale=SCALE, td_lambda=0.9)
    rows = numpy.random.RandomState(2).permutation(len(positions))[:30]
    convert = PlanesConverter(positions, ValueTarget.of_recipe(recipe))
    _, _, found = convert(rows, CPU)
    expected = ValueTarget(0.25, SCALE, 0.9).of(positions)(rows, positions[rows])
    own = ValueTarget(0.25, SCALE)(positions[rows])
    numpy.testing.assert_array_equal(found, expected)
    assert not numpy.allclose(found, own, equal_nan=True)
    _, _, mirrored = convert(rows + len(positions), CPU)
    numpy.testing.assert_array_equal(mirrored, expected)


@pytest.mark.parametrize("joined", [True, False])
def test_positions_without_successors_get_a_warning(caplog, joined):
    positions = numpy.concatenate([game([100, -300, 50]), game([-40, 20])])
    if not joined:
        positions["recent"] = 0
    recipe = Recipe(value_lambda=0.0, td_lambda=0.9)
    warn_of_missing_targets(SmallValueNetwork(), recipe, positions)
    warnings = [line[:20] for line in caplog.messages]
    assert warnings == ([] if joined else ["no training position"])


@pytest.mark.parametrize("target", [ValueTarget(0.25, SCALE), ValueTarget(1.0, SCALE, 0.9)])
def test_without_a_return_each_position_has_its_own_target(target):
    positions = numpy.concatenate(random_games(4))
    rows = numpy.arange(len(positions))[::-3]
    found = target.of(positions)(rows, positions[rows])
    numpy.testing.assert_array_equal(found, target(positions[rows]))
