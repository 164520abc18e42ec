"""benchmarks/levels.py: the games between levels, and their rating."""

import sys
import time
from concurrent.futures import CancelledError
from pathlib import Path

import numpy
import pytest
from uct_helpers import FakeNetwork

from pydlshogi.errors import UserError
from pydlshogi.inference.evaluator import Evaluation
from pydlshogi.player.levels import LEVELS, Level

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import levels as ladder


class FakeEvaluator:
    plane_num = 104

    def __init__(self):
        self._network = FakeNetwork()

    def evaluate(self, planes):
        return Evaluation(*self._network(planes))


@pytest.fixture(scope="module")
def evaluations():
    return ladder.Evaluations(FakeEvaluator())


def played_pairs(strengths, meetings, pairs, rng):
    """Plays pairs of games between players of known ratings."""
    for a, b in meetings:
        expected = 1 / (1 + 10 ** ((strengths[b] - strengths[a]) / 400))
        for _ in range(pairs):
            yield a, b, tuple(float(rng.random() < expected) for _ in range(2))


def test_the_ratings_of_simulated_players_are_found_within_their_intervals():
    rng = numpy.random.default_rng(3)
    strengths = [0, 100, 250, 300]
    meetings = [(0, 1), (1, 2), (2, 3), (0, 2)]
    inside = 0
    for _ in range(100):
        rating = ladder.rate(4, played_pairs(strengths, meetings, 100, rng))
        step, margin = rating.step(1, 2)
        assert 30 < margin < 60
        inside += abs(step - 150) <= margin
    assert inside >= 88


def test_the_rating_of_two_players_is_the_elo_difference_of_their_score():
    rating = ladder.rate(2, [(0, 1, (0.0, 0.5))] * 5000)
    assert rating.elo[0] == 0
    assert rating.elo[1] == pytest.approx(400 * numpy.log10(3), abs=1)


def test_a_player_that_lost_all_games_has_a_finite_rating():
    step, margin = ladder.rate(2, [(0, 1, (0.0, 0.0))] * 10).step(0, 1)
    assert 100 < step < 1000
    assert margin > 100


def test_players_are_levels_the_random_mover_and_numbers_of_a_level():
    assert ladder.read_player("3").level == LEVELS[3]
    assert ladder.read_player("random").level is None
    tried = ladder.read_player("temperature=1.5,visits=4")
    assert tried.level == Level(temperature=1.5, visits=4)
    for wrong in ("21", "0", "strong", "temperature", "temperature=hot", "size=3"):
        with pytest.raises(UserError, match=wrong):
            ladder.read_player(wrong)


def test_only_games_that_were_not_played_with_these_numbers_are_missing():
    meeting = ladder.read_player("random"), ladder.read_player("2")
    line = {"players": [player.describe() for player in meeting], "seed": 1}
    assert ladder.missing([meeting], [line], 5) == [(meeting, 0), (meeting, 2)]
    changed = meeting[0], ladder.read_player("temperature=7")
    assert len(ladder.missing([changed], [line], 5)) == 3


def test_above_level_15_fewer_games_are_played():
    for players, games in (("14-15", 400), ("15-16", 100), ("19-20", 100), ("random-1", 400)):
        meeting = tuple(map(ladder.read_player, players.split("-")))
        assert len(ladder.missing([meeting], [], None)) == games // 2


def test_games_on_time_are_played_alone_after_the_others(evaluations, monkeypatch):
    under_way, seen = [], []

    def play(_table, players):
        name = players[1].name
        under_way.append(name)
        seen.append((name, len(under_way)))
        time.sleep(0.02)
        under_way.remove(name)
        return {}

    monkeypatch.setattr(ladder.Table, "play", play)
    meetings = [tuple(map(ladder.read_player, ("1", name))) for name in ("20", "2", "3")]
    tasks = [(meeting, seed) for seed in range(2) for meeting in meetings]
    assert len(list(ladder.play_all(tasks, evaluations, 1.0, 4))) == 6
    assert [name == "20" for name, _ in seen] == [False] * 4 + [True] * 2
    assert seen[-2:] == [("20", 1)] * 2


@pytest.mark.long
@pytest.mark.parametrize("name", ["1", "8", "visits=4,temperature=1", "visits=4"])
def test_a_pair_of_games_is_played_to_the_end_and_can_be_repeated(evaluations, name):
    players = ladder.read_player("random"), ladder.read_player(name)
    line = ladder.Table(evaluations, 5, 1.0).play(players)
    assert line == ladder.Table(evaluations, 5, 1.0).play(players)
    assert set(line["points"]) <= {0.0, 0.5, 1.0}
    assert sum(line["moves"]) == sum(line["plies"]) - 2 * ladder.OPENING
    assert all(0 < mean <= 1 for mean in line["probability"])


def test_the_last_line_of_an_interrupted_run_is_left_out(tmp_path):
    path = tmp_path / "games.jsonl"
    assert ladder.read_lines(path) == []
    path.write_text('{"seed": 1}\n{"see')
    assert ladder.read_lines(path) == [{"seed": 1}]
    assert path.read_text() == '{"seed": 1}\n'


def test_an_interrupt_ends_the_games_under_way():
    evaluations = ladder.Evaluations(FakeEvaluator())
    meeting = ladder.read_player("1"), ladder.read_player("2")
    games = ladder.play_all([(meeting, seed) for seed in range(40)], evaluations, 1.0, 2)
    assert next(games)["seed"] in (0, 1)
    games.close()
    with pytest.raises(CancelledError):
        ladder.Table(evaluations, 1, 1.0).play(meeting)
