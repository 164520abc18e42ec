"""Evaluations of the engines: read from info lines, kept in records and pages."""

import json
import re

import pytest

from pydlshogi.kifu.csa import parse_game
from pydlshogi.match.engine_spec import Limit
from pydlshogi.match.play import play_game
from pydlshogi.match.record import format_record, write_match_page
from pydlshogi.match.usi_client import MATE, Answer, evaluation_of
from pydlshogi.positions import EVALUATION_MAX, NO_EVALUATION


@pytest.mark.parametrize(
    ("line", "evaluation"),
    [
        ("info depth 3 score cp -120 pv 7g7f", -120),
        ("info score cp 30 upperbound nodes 5", 30),
        ("info score cp +30", 30),
        ("info score cp 99999", MATE),
        ("info score mate 5 pv 7g7f", MATE),
        ("info score mate +", MATE),
        ("info score mate -", -MATE),
        ("info score mate -2", -MATE),
        ("info score mate 0", -MATE),
        ("info score mate +0", -MATE),
        ("info score mate -0", -MATE),
        ("info multipv 1 score cp 7", 7),
        ("info multipv 2 score cp 7", None),
        ("info depth 3 nodes 100", None),
        ("info score", None),
        ("info score cp", None),
        ("info score cp x", None),
        ("info score 12", None),
    ],
)
def test_the_evaluation_of_an_info_line(line, evaluation):
    assert evaluation_of(line.split()) == evaluation


class Scripted:
    """An engine that gives prepared answers."""

    def __init__(self, *answers):
        self.answers = iter(answers)

    def best_move(self, moves, limit):
        return next(self.answers)

    def game_over(self, result):
        pass


@pytest.fixture
def game():
    black = Scripted(Answer("2g2f", 40), Answer("2f2e", MATE))
    white = Scripted(Answer("8c8d", 25), Answer("resign", -MATE))
    return play_game((black, white), ["7g7f", "3c3d"], Limit("nodes", 1), 100)


def test_a_game_has_the_evaluations_for_black(game):
    assert game.evaluations == [None, None, 40, -25, MATE, MATE]
    assert len(game.seconds) == len(game.evaluations) == len(game.moves) + 1


def test_a_record_has_the_evaluations_and_training_reads_them(game, tmp_path):
    path = tmp_path / "game.csa"
    path.write_bytes(format_record(["a", "b"], "test", [], game))
    lines = path.read_text(encoding="utf-8").splitlines()
    comments = [line for line in lines if line.startswith("'** ")]
    assert comments == ["'** 40", "'** -25", f"'** {MATE}"]
    found = [move.evaluation for move in parse_game(path.read_bytes()).moves]
    assert found == [NO_EVALUATION, NO_EVALUATION, 40, 25, EVALUATION_MAX]


@pytest.mark.long
def test_a_page_shows_the_probability_of_winning(game, tmp_path):
    path = tmp_path / "game.html"
    record = format_record(["a", "b"], "test", [], game)
    write_match_page(path, record, game, [])
    text = path.read_text(encoding="utf-8")
    data = json.loads(re.search(r'type="application/json"[^>]*>(.*?)</script>', text, re.S)[1])
    wins = [position["win"] for position in data["positions"]]
    assert wins[:2] == [None, None]
    assert 0.5 < wins[2] < 0.52
    assert 0.48 < wins[3] < 0.5
    assert wins[4] == wins[5] == pytest.approx(1)
