"""The program compare_recipes: games held out, recipes from a file, on from where it was."""

import codecs
import json
import os
import signal
from pathlib import Path

import numpy
import pytest
from pydlshogi.training.compare_recipes import hold_out, main, read_recipes
from training_helpers import assert_same_files, complaints

from pydlshogi.commands.train_options import build_recipes_parser
from pydlshogi.positions import POSITION
from pydlshogi.read_kifu import read_kifu
from pydlshogi.training import trainer
from pydlshogi.training.compare import CompareError

SMALL = (
    "train.txt recipes.txt --gpu -1 -o out --network policy_value_small --held_out 1 "
    "--positions 40 -i 2 -b 10 --test_batchsize 4 --threads 1"
)
RECIPES = """
# What is compared.
published
fast    --lr 0.1 --momentum 0.9   # twice as fast?
large   --batchsize 20 --lr_schedule cosine --average 3
"""


def call(recipes, options=""):
    Path("recipes.txt").write_text(recipes, encoding="utf-8")
    return main([*SMALL.split(), *options.split()])


def test_recipes_are_trained_and_their_table_written(folder, capsys, monkeypatch):
    sets = []
    train = trainer.train

    def watched(network, optimizer, train_positions, test_positions, *args, **kwargs):
        sets.append((train_positions, test_positions))
        return train(network, optimizer, train_positions, test_positions, *args, **kwargs)

    monkeypatch.setattr(trainer, "train", watched)
    assert call(RECIPES) == 0
    table = Path("out/table.md").read_text(encoding="utf-8")
    assert table in capsys.readouterr().out
    rows = [line.split(" | ")[0] for line in table.splitlines() if line.startswith("| ")]
    assert rows == ["| recipe", "| published", "| fast", "| large"]
    assert "- fast: `--lr 0.1 --momentum 0.9`" in table
    assert "seed 0, on the CPU." in table
    settings = json.loads(Path("out/large/settings.json").read_text(encoding="utf-8"))
    assert (settings["batchsize"], settings["average"], settings["lr"]) == (20, 3, 0.01)
    # All were trained and tested on the same: the first positions, and the last game.
    positions = read_kifu("train.txt").array
    for train_set, test_set in sets:
        numpy.testing.assert_array_equal(train_set, positions[:40])
        numpy.testing.assert_array_equal(test_set, positions[-len(test_set) :])
        assert test_set["ply"][0] == 1
        assert numpy.count_nonzero(test_set["ply"] == 1) == 1


def test_a_recipe_that_is_trained_is_not_trained_again_and_others_are_added(folder):
    lines = RECIPES.strip().splitlines()
    assert call("\n".join(lines[:2])) == 0
    model = Path("out/published/model").stat().st_mtime_ns
    assert call("\n".join(lines[:3])) == 0
    assert Path("out/published/model").stat().st_mtime_ns == model
    assert "| fast |" in Path("out/table.md").read_text(encoding="utf-8")


def test_a_recipe_that_diverges_is_named_and_the_others_go_on(folder, capsys):
    assert call("huge --lr 1e30\nsmall --lr 0.1") == 0
    captured = capsys.readouterr()
    assert "huge: loss or weights are not finite" in captured.err
    assert "Traceback" not in captured.err
    table = Path("out/table.md").read_text(encoding="utf-8")
    assert table in captured.out
    assert "The training of huge diverged: it is not in the table." in table
    rows = [line.split(" | ")[0] for line in table.splitlines() if line.startswith("| ")]
    assert rows == ["| recipe", "| small"]
    assert call("huge --lr 1e30") == 1
    assert "every training diverged" in capsys.readouterr().err


def test_what_was_trained_otherwise_is_refused(folder, capsys):
    assert call("one --momentum 0.9") == 0
    for changed in ("--momentum 0.8", "--momentum 0.9 --mirror", "--momentum 0.9 --clip 9"):
        recipe = f"one {changed}"
        assert call(recipe) == 1
        assert "other settings" in capsys.readouterr().err


def test_interrupted_it_goes_on_and_ends_the_same(folder, monkeypatch):
    recipe = "one --lr_schedule cosine --momentum 0.9 --average 3 --mirror"
    assert call(recipe, "-o whole") == 0
    with monkeypatch.context() as patch:

        def killed(trainer):
            raise KeyboardInterrupt

        progress = trainer.Progress.__call__
        patch.setattr(
            trainer.Progress,
            "__call__",
            lambda self, trainer: (
                progress(self, trainer) if trainer.updater.iteration < 4 else killed(trainer)
            ),
        )
        assert call(recipe) == 130
    assert call(recipe) == 0
    assert_same_files("out/one/model", "whole/one/model")


@pytest.mark.skipif(os.name == "nt", reason="os.kill ends the process on Windows")
def test_a_signal_in_the_last_iteration_of_a_recipe_ends_the_comparison(folder, monkeypatch):
    with monkeypatch.context() as patch:
        validate = trainer.Validation.__call__

        def signalled(self, trainer):
            os.kill(os.getpid(), signal.SIGINT)
            validate(self, trainer)

        patch.setattr(trainer.Validation, "__call__", signalled)
        assert call("one\ntwo --momentum 0.9") == 130
    assert Path("out/one/model").exists()
    assert not Path("out/two/model").exists()
    assert "| one |" in Path("out/table.md").read_text(encoding="utf-8")
    assert call("one\ntwo --momentum 0.9") == 0
    assert "| two |" in Path("out/table.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "encode",
    [
        str.encode,
        lambda text: codecs.BOM_UTF8 + text.encode(),  # Notepad
        lambda text: codecs.BOM_UTF16_LE + text.encode("utf-16-le"),  # PowerShell's >
        lambda text: text.encode("cp932"),
    ],
    ids=["UTF-8", "BOM", "UTF-16", "CP932"],
)
def test_the_file_of_recipes_may_be_of_any_editor(folder, encode, ending):
    text = ending.join(["one --lr 0.1  # 学習率を表す", "# 十分か", "two"])
    Path("recipes.txt").write_bytes(encode(text))
    words = SMALL.split()
    recipes = read_recipes(build_recipes_parser().parse_args(words), words)
    assert {name: options for name, (options, _) in recipes.items()} == {
        "one": "--lr 0.1",
        "two": "",
    }


def test_records_left_out_are_named(folder, capsys):
    with open("train.txt", "a", encoding="utf-8") as kifulist:
        kifulist.write("missing.csa\n")
    assert call("one") == 0
    assert "train.txt:   missing.csa: " in capsys.readouterr().err


@pytest.mark.parametrize(
    "recipes, options, named",
    [
        ("", "", "no recipe"),
        ("a\na", "", "line 2: a recipe above has the name 'a'"),
        ("BN\nbn", "", "line 2: a recipe above has the name 'bn', capital letters or not"),
        ("../a", "", "'../a' cannot be a recipe's name"),
        ("été", "", "'été'"),
        ("a --seed 3", "", "--seed"),
        ("a '--lr", "", "line 1"),
        ("a", "--held_out 3", "3 games"),
        ("a", "--positions 100000", "train.txt"),
    ],
)
def test_what_cannot_go_on_gets_one_sentence(folder, capsys, recipes, options, named):
    assert call(recipes, options) == 1
    (line,) = complaints(capsys)
    assert line.startswith("compare_recipes: error: ")
    assert named in line
    assert not Path("out/a/model").exists()


def test_an_option_that_does_not_exist_is_named_with_its_line(folder, capsys):
    with pytest.raises(SystemExit) as status:
        call("a\nb --speed 3")
    assert status.value.code == 2
    assert "recipes.txt, line 2: error: " in capsys.readouterr().err.splitlines()[-1]


def test_games_are_told_apart_by_their_move_numbers():
    positions = numpy.zeros(9, POSITION)
    positions["ply"] = [1, 2, 3, 1, 1, 2, 40, 41, 1]
    for games, length in ((1, 1), (2, 3), (3, 5), (4, 6)):
        others, held_out = hold_out(positions, games)
        assert (len(others), len(held_out)) == (9 - length, length)
    with pytest.raises(CompareError, match="5 games"):
        hold_out(positions, 5)
