"""The program reinforce: its cycles, kills, and wrong input."""

import dataclasses
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy
import pytest

from pydlshogi.commands.reinforce import main
from pydlshogi.compat import chainer
from pydlshogi.figure import DrawingError
from pydlshogi.files import next_to, write_beside
from pydlshogi.lock import lock_outputs
from pydlshogi.model_files.model_file import load_network, save_model
from pydlshogi.network.registry import make_network
from pydlshogi.selfplay.folder import Row, Tables
from pydlshogi.selfplay.generate import Model
from pydlshogi.selfplay.loop import Score, choose_files, play_duel
from pydlshogi.selfplay.settings import LoopSettings, SelfPlaySettings

REPOSITORY = Path(__file__).resolve().parents[2]

CONFIG = {
    "games": 10,
    "batch": 6,
    "least_rows": 20,
    "batchsize": 16,
    "match_games": 4,
    "match_share": 0.5,
    "self_play": {"visits": 6, "considered": 4, "cheap_visits": 2, "max_plies": 30},
    "recipe": {"warmup": 0},
}
OPTIONS = ["--backend", "own", "--gpu", "-1"]


@pytest.fixture
def words(tmp_path):
    """The command line of a loop of a small network, without its length."""
    numpy.random.seed(1)
    save_model(tmp_path / "model", make_network("policy_value_small"))
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    return [str(tmp_path / "model"), str(tmp_path / "loop"), *OPTIONS]


def with_config(words, tmp_path):
    """Adds the configuration file."""
    return [*words, "--config", str(tmp_path / "config.json")]


def check(folder, cycles):
    """Checks the files of a loop with some cycles."""
    results = [json.loads(path.read_text()) for path in sorted(folder.glob("cycles/*/result.json"))]
    assert [result["cycle"] for result in results] == list(range(1, cycles + 1))
    lines = (folder / "table.tsv").read_text().splitlines()
    assert len(lines) == cycles + 1
    for result in results:
        assert result["games"] >= 10 * result["cycle"]
        assert (result["taken"] == "yes") == (result["score"] >= 0.5)
        assert result["elo low"] <= result["elo high"]
    best = (folder / "best").read_bytes()
    taken = [result["cycle"] for result in results if result["taken"] == "yes"]
    wanted = folder / "cycles" / f"{taken[-1]:04}" / "model" if taken else folder / "start"
    assert best == wanted.read_bytes()
    assert "progress.png" in (folder / "index.html").read_text()
    numbers = [row.game for row in Tables(folder / "games").rows()]
    assert len(numbers) == len(set(numbers))
    for train in folder.glob("cycles/*/train.txt"):
        tests = train.with_name("test.txt").read_text().split()
        assert not {*tests} & {*train.read_text().split()}
    load_network(folder / "best")


@pytest.mark.long
def test_two_cycles_train_and_match_networks(words, tmp_path, capsys):
    before = dict(os.environ)
    assert main([*with_config(words, tmp_path), "--cycles", "1"]) == 0
    assert main([*words, "--cycles", "2"]) == 0
    check(tmp_path / "loop", 2)
    assert dict(os.environ) == before  # a later training must not take it as its own


def test_a_file_that_no_training_has_used_tests_a_network():
    def rows(*games, targets=9):
        row = Row(0, 0, "even", 40, "black", "%TORYO", targets, 100, "-", 1.0)
        return [row._replace(game=game) for game in games]

    # A long game of the first cycle ended in the newest file but one.
    games = {Path("a"): rows(5, 6), Path("b"): rows(7, 8), Path("c"): rows(1, 9)}
    games[Path("d")] = rows(10, 11, targets=0)
    settings = LoopSettings(least_rows=1, window=1.0, fading=1.0, most_uses=3)
    chosen = choose_files(games, {"a": 3, "b": 1}, settings, random.Random(1))
    assert chosen == (Path("c"), [Path("b")])
    chosen = choose_files(games, {"a": 2, "c": 1}, settings, random.Random(1))
    assert chosen == (Path("b"), [Path("c"), Path("a")])
    assert choose_files(games, {"a": 1, "b": 1, "c": 1}, settings, random.Random(1))[0] is None


def test_a_training_without_lines_in_its_log_is_named(words, tmp_path, capsys):
    assert main([*with_config(words, tmp_path), "--cycles", "1"]) == 0
    cycle = tmp_path / "loop" / "cycles" / "0001"
    (cycle / "result.json").unlink()
    (cycle / "log.txt").write_text("")
    assert main([*words, "--cycles", "1"]) == 1
    error = capsys.readouterr().err
    assert f"{Path('cycles', '0001', 'log.txt')} lacks the lines" in error
    cycle.rename(cycle.with_name("0001.old"))
    assert main([*words, "--cycles", "1"]) == 0


@pytest.mark.long
def test_the_loop_goes_on_after_a_kill_in_each_step(words, tmp_path):
    command = [sys.executable, "-m", "pydlshogi", "reinforce", *with_config(words, tmp_path)]
    folder, generator = tmp_path / "loop", random.Random(1)
    steps = ("games/*.hcpe3*", "cycles/0001/train.txt", "cycles/0001/model")
    steps += ("cycles/0001/match.tsv", "cycles/0001/result.json", "cycles/0002/result.json")
    for step in steps:
        process = subprocess.Popen(
            [*command, "--cycles", "2"], cwd=REPOSITORY, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )  # fmt: skip
        end = time.monotonic() + 300
        while process.poll() is None and not any(folder.glob(step)) and time.monotonic() < end:
            time.sleep(0.02)
        time.sleep(generator.uniform(0, 0.3))
        process.kill()
        _, errors = process.communicate()
        assert b"Traceback" not in errors, errors.decode()
        assert any(folder.glob(step))
    assert main([*words, "--cycles", "2"]) == 0
    check(folder, 2)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"gamse": 3}, "unknown name gamse"),
        ({"self_play": {"visit": 3}}, "unknown name self_play.visit"),
        ({"games": "many"}, "games is"),
        ({"match_games": 3}, "match_games must be even"),
        ({"match_share": 1}, "match_share: '1.0' is not a number from 0 to below 1"),
        ({"batchsize": 0}, "batchsize: '0' is not a whole number of at least 1"),
        ({"most_uses": 0}, "most_uses: '0' is not a whole number of at least 1"),
        ({"seed": -1}, "seed: '-1' is not a whole number from 0"),
        ({"window": math.nan}, "window: 'nan' is not a number from 0 to 1"),
        ({"self_play": {"visits": 0}}, "visits: '0' is not a whole number of at least 1"),
        ({"self_play": {"full_share": 2}}, "full_share: '2.0' is not a number from 0 to 1"),
        ({"self_play": {"handicaps": ["queen"]}}, "self_play.handicaps are lance, bishop"),
        ({"self_play": {"handicaps": [[]]}}, "self_play.handicaps are lance, bishop"),
        ({"recipe": {"lr": -0.01}}, "lr: '-0.01' is not a number of at least 0"),
        ({"recipe": {"policy_target": "visit"}}, "'visit'; choose from played, visits"),
        ({"recipe": {"lr_schedule": "Cosine"}}, "'Cosine'; choose from constant, cosine, steps"),
        ({"recipe": {"clip": "1"}}, "clip: '1' is of another kind"),
        ({"recipe": {"lr_schedule": "steps"}}, "lr_schedule steps needs lr_steps."),
        ({"recipe": {"momentum": 0}}, "nesterov needs momentum."),
        ({"recipe": {"lr_steps": [0]}}, "lr_steps: '0' is not a whole number of at least 1"),
        ([], "is not an object"),
    ],
)
def test_a_wrong_configuration_is_refused(words, tmp_path, capsys, values, sentence):
    (tmp_path / "config.json").write_text(json.dumps(values))
    assert main([*with_config(words, tmp_path), "--cycles", "1"]) == 1
    error = capsys.readouterr().err
    assert sentence in error and error.count("\n") == 1


def test_a_list_with_too_few_games_for_the_match_is_refused_at_once(words, tmp_path, capsys):
    game = (REPOSITORY / "kifu/kifulist_test.txt").read_text().split()[0]
    (tmp_path / "list.txt").write_text(f"{REPOSITORY / 'kifu' / game}\n")
    play = {"self_play": {**CONFIG["self_play"], "kifu_list": str(tmp_path / "list.txt")}}
    (tmp_path / "config.json").write_text(json.dumps({**CONFIG, **play}))
    assert main([*with_config(words, tmp_path), "--cycles", "1"]) == 1
    assert "but the match needs 2. Name more games" in capsys.readouterr().err
    assert not (tmp_path / "loop" / "games").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_during_the_training_ends_the_loop(words, tmp_path, monkeypatch, number):
    def interrupted(options, interruption, once):
        interruption.signal_number = number
        return number

    with monkeypatch.context() as patch:
        patch.setattr("pydlshogi.selfplay.loop.run", interrupted)
        assert main([*with_config(words, tmp_path), "--cycles", "1"]) == 128 + number
    assert main([*words, "--cycles", "1"]) == 0
    check(tmp_path / "loop", 1)


def test_the_loop_goes_on_after_a_kill_within_the_first_save(words, tmp_path, monkeypatch):
    def killed(*arguments, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("pydlshogi.selfplay.loop.play_duel", killed)
        assert main([*with_config(words, tmp_path), "--cycles", "1"]) == 130
    cycle = tmp_path / "loop" / "cycles" / "0001"
    (cycle / "trained").unlink()
    (cycle / "model").rename(next_to(cycle / "model"))  # the state was renamed, the model not yet
    assert main([*words, "--cycles", "1"]) == 0
    check(tmp_path / "loop", 1)


RESULT = {"cycle": 1, "games": 9, "policy loss": 2.5, "value loss": 0.5, "taken": "no", "elo": 0}


@pytest.mark.parametrize("error", [PermissionError(13, "denied", "a.png"), DrawingError("no")])
def test_the_loop_goes_on_without_its_pages(words, tmp_path, monkeypatch, capsys, error):
    def fail(figure, path):
        raise error

    monkeypatch.setattr("pydlshogi.selfplay.loop.save_figure", fail)
    folder = tmp_path / "loop"
    (folder / "cycles" / "0001").mkdir(parents=True)
    shutil.copy(tmp_path / "model", folder / "best")
    result = json.dumps({**RESULT, "elo low": -9, "elo high": 9})
    (folder / "cycles" / "0001" / "result.json").write_text(result)
    assert main([*words, "--cycles", "1"]) == 0
    errors = capsys.readouterr().err
    assert errors.startswith("reinforce: ") and errors.count("\n") == 1
    assert "<td>9" in (folder / "index.html").read_text()


def test_the_match_has_a_share_of_the_visits_of_a_cycle():
    play = SelfPlaySettings(visits=32, cheap_visits=8, full_share=0.5)
    settings = LoopSettings(games=512, match_share=0.2, match_games=200, self_play=play)
    assert settings.games_of_match() == 80  # 80 · 32 of 512 · 20 + 80 · 32 visits a move
    assert dataclasses.replace(settings, match_games=50).games_of_match() == 50
    assert dataclasses.replace(settings, match_share=0.0).games_of_match() == 2


def test_short_games_alone_do_not_decide_a_match(words, tmp_path):
    model = Model(tmp_path / "model", chainer.get_device("@numpy"), "own")
    settings = SelfPlaySettings(visits=2, considered=2, cheap_visits=2, max_plies=8)
    table = tmp_path / "match.tsv"

    def play(end):
        return play_duel(model, model, table, settings, games=4, batch=4, seed=1, end=end)

    assert play(time.monotonic()) is None
    table.write_bytes(b"2\t1.0\t5\tmate\n3\t0.")
    score = play(math.inf)
    assert score.games == 4
    numbers = [line.split("\t")[0] for line in table.read_text().splitlines()]
    assert sorted(numbers) == ["1", "2", "3", "4"] and numbers[0] == "2"


def test_a_second_loop_on_a_folder_is_refused(words, tmp_path, capsys):
    (tmp_path / "loop").mkdir()
    with lock_outputs(tmp_path / "loop" / "reinforce.json"):
        assert main([*words, "--cycles", "1"]) == 1
    assert "another run" in capsys.readouterr().err


def test_a_folder_of_something_else_is_refused(words, tmp_path, capsys):
    (tmp_path / "loop").mkdir()
    with write_beside(tmp_path / "loop" / "thesis.txt") as file:
        file.write(b"mine")
    assert main([*words, "--cycles", "1"]) == 1
    assert "something else, such as thesis.txt" in capsys.readouterr().err


def test_a_model_without_a_value_leaves_no_folder(words, tmp_path, capsys):
    save_model(tmp_path / "model", make_network("policy", channels=8))
    assert main([*words, "--cycles", "1"]) == 1
    assert "has no value head" in capsys.readouterr().err
    assert not (tmp_path / "loop").exists()


def test_the_score_of_a_match_counts_whole_pairs():
    score = Score(((1.0, 1.0), (1.0, 0.0), (0.5, 0.5)))
    elo, low, high = score.elo()
    assert (score.games, score.share) == (6, pytest.approx(4 / 6))
    assert low < elo < high and elo == pytest.approx(120.4, abs=0.1)
