"""The program compare_recipes: recipes from a file, their table, and how it continues."""

import codecs
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
from training_helpers import assert_same_files, complaints

from pydlshogi.commands.compare_recipes import build_parser, main, read_recipes
from pydlshogi.model_files.model_file import load_network, save_model
from pydlshogi.positions import POSITION
from pydlshogi.read_kifu import read_kifu
from pydlshogi.text import counted
from pydlshogi.training import compare, trainer
from pydlshogi.training.compare import (
    CompareError,
    Row,
    format_markdown,
    format_tsv,
    game_starts,
    hold_out,
)
from pydlshogi.training.log import Curve, EpochPoint, ProgressPoint, read_log

SMALL = (
    "train.txt recipes.txt --gpu -1 -o out --network policy_value_small "
    "--positions 40 -i 2 -b 10 --test_batchsize 4 --threads 1"
)
REPOSITORY = Path(__file__).resolve().parents[2]

RECIPES = """
# What is compared.
published
fast    --lr 0.1 --momentum 0.9   # twice as fast?
large   --batchsize 20 --lr_schedule cosine --warmup 1
"""


def call(recipes, options="--held_out 1"):
    Path("recipes.txt").write_text(recipes, encoding="utf-8")
    return main([*SMALL.split(), *options.split()])


@pytest.mark.long
def test_recipes_are_trained_and_their_table_written(folder, capsys, monkeypatch):
    sets = []

    def watched(task, interruption):
        sets.append((task.train_positions, task.test_positions))
        return trainer.train(task, interruption)

    monkeypatch.setattr(compare, "train", watched)
    assert call(RECIPES) == 0
    table = Path("out/table.md").read_text(encoding="utf-8")
    assert table in capsys.readouterr().out
    rows = [line.split(" | ")[0] for line in table.splitlines() if line.startswith("| ")]
    assert rows == ["| recipe", "| published", "| fast", "| large"]
    assert "- fast: `--lr 0.1 --momentum 0.9`" in table
    assert "40 training positions, 1 epoch, tested on " in table
    assert " of 1 game held out of the training list, seed 0, on the CPU." in table
    settings = json.loads(Path("out/large/settings.json").read_text(encoding="utf-8"))
    assert (settings["batchsize"], settings["warmup"], settings["lr"]) == (20, 1, 0.01)
    # All were trained and tested on the same: the first positions, and the last game.
    positions = read_kifu("train.txt").array
    for train_set, test_set in sets:
        numpy.testing.assert_array_equal(train_set, positions[:40])
        numpy.testing.assert_array_equal(test_set, positions[-len(test_set) :])
        assert test_set["ply"][0] == 1
        assert numpy.count_nonzero(test_set["ply"] == 1) == 1


@pytest.mark.long
def test_a_recipe_that_is_trained_is_not_trained_again_and_others_are_added(folder):
    lines = RECIPES.strip().splitlines()
    assert call("\n".join(lines[:2])) == 0
    model = Path("out/published/model").stat().st_mtime_ns
    assert call("\n".join(lines[:3])) == 0
    assert Path("out/published/model").stat().st_mtime_ns == model
    assert "| fast |" in Path("out/table.md").read_text(encoding="utf-8")


@pytest.mark.long
def test_a_recipe_that_diverges_is_named_and_the_others_go_on(folder, capsys):
    assert call("huge --lr 1e30\nsmall --lr 0.1") == 0
    captured = capsys.readouterr()
    assert "huge: the training diverged: loss or weights are not finite" in captured.err
    assert "Traceback" not in captured.err
    table = Path("out/table.md").read_text(encoding="utf-8")
    assert table in captured.out
    assert "The training of huge diverged: it is not in the table." in table
    rows = [line.split(" | ")[0] for line in table.splitlines() if line.startswith("| ")]
    assert rows == ["| recipe", "| small"]
    assert call("huge --lr 1e30") == 1
    assert "every training diverged" in capsys.readouterr().err


@pytest.mark.long
def test_what_was_trained_otherwise_is_refused(folder, capsys):
    assert call("one --momentum 0.9") == 0
    for changed in ("--momentum 0.8", "--momentum 0.9 --nesterov", "--momentum 0.9 --clip 9"):
        recipe = f"one {changed}"
        assert call(recipe) == 1
        assert "holds the results of other settings" in capsys.readouterr().err


@pytest.mark.long
def test_interrupted_it_goes_on_and_ends_the_same(folder, monkeypatch):
    recipe = "one --lr_schedule cosine --momentum 0.9"
    assert call(recipe, "--held_out 1 -o whole") == 0
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


@pytest.fixture
def ctrl_c():
    """Lets SIGINT work even if whoever started the tests ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="os.kill ends the process on Windows")
def test_a_signal_in_the_last_iteration_of_a_recipe_ends_the_comparison(
    folder, monkeypatch, ctrl_c
):
    with monkeypatch.context() as patch:
        validate = trainer.Validation.__call__

        def signalled(self, trainer):
            os.kill(os.getpid(), signal.SIGINT)
            validate(self, trainer)

        patch.setattr(trainer.Validation, "__call__", signalled)
        assert call("one\ntwo --momentum 0.9") == 130
    assert Path("out/one/model").exists()
    assert not Path("out/two/model").exists()
    # The validation of the last iteration is left. The same command does it, and goes on.
    assert call("one\ntwo --momentum 0.9") == 0
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
    recipes = read_recipes(build_parser().parse_args(words), words)
    assert {line.name: line.words for line in recipes} == {
        "one": "--lr 0.1",
        "two": "",
    }


def test_file_names_may_stand_behind_two_hyphens(folder):
    Path("recipes.txt").write_text("one --lr 0.1")
    names = ["train.txt", "recipes.txt"]
    words = [word for word in SMALL.split() if word not in names] + ["--", *names]
    (line,) = read_recipes(build_parser().parse_args(words), words)
    assert line.args.lr == 0.1


@pytest.mark.parametrize(
    "on_windows, path", [(True, r"nets\own.py:Net"), (False, r"nets\\own.py:Net")]
)
def test_a_backslash_in_a_recipe_is_part_of_a_path_on_windows(
    folder, monkeypatch, on_windows, path
):
    monkeypatch.setattr("pydlshogi.text._ON_WINDOWS", on_windows)
    recipes = f'own --network {path}  # mine\nquoted --network "a dir\\own.py" --lr 0.1'
    Path("recipes.txt").write_text(recipes)
    words = SMALL.split()
    own, quoted = read_recipes(build_parser().parse_args(words), words)
    assert own.args.network == r"nets\own.py:Net"
    assert (quoted.args.network, quoted.args.lr) == (r"a dir\own.py", 0.1)
    # What the table shows can be put into a file again.
    Path("recipes.txt").write_text(f"own {own.words}\nquoted {quoted.words}")
    again = read_recipes(build_parser().parse_args(words), words)
    assert [line.args for line in again] == [own.args, quoted.args]


def test_the_recipes_of_the_documentation_are_accepted(folder):
    page = (REPOSITORY / "docs/recipes.md").read_text(encoding="utf-8")
    (recipes,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    Path("recipes.txt").write_text(recipes)
    words = SMALL.replace("--network policy_value_small", "").split()
    assert len(read_recipes(build_parser().parse_args(words), words)) == 4


def test_options_of_the_command_line_and_of_a_line_are_checked_together(folder, capsys):
    Path("recipes.txt").write_text("both --momentum 0.9 --network policy_value_resnet\n")
    words = "train.txt recipes.txt --nesterov --blocks 2 --value_lambda 0.5 -o out --held_out 3"
    assert main(words.split()) == 1
    assert "3 games" in complaints(capsys)[-1]  # the next fault after the command line
    Path("recipes.txt").write_text("one")
    with pytest.raises(SystemExit):
        main(words.split())
    assert "recipes.txt, line 1: error: --nesterov needs --momentum" in capsys.readouterr().err


@pytest.mark.long
def test_records_left_out_are_named(folder, capsys):
    with open("train.txt", "a", encoding="utf-8") as kifulist:
        kifulist.write("missing.csa\n")
    assert call("one") == 0
    assert "train.txt:   missing.csa: " in capsys.readouterr().err


@pytest.mark.parametrize(
    "recipes, options, named",
    [
        ("", "", "no recipe"),
        ("a\na", "", "line 2: an earlier recipe has the name 'a'"),
        ("BN\nbn", "", "line 2: an earlier recipe has the name 'bn', in upper or lower case"),
        ("../a", "", "'../a' cannot be the name of a recipe"),
        ("été", "", "'été'"),
        ("a --seed 3", "", "--seed"),
        ("a '--lr", "", "line 1"),
        ("a", "--held_out 3", "3 games"),
        ("a", "--positions 100000", "train.txt without the games held out: "),
        ("a", "--test_positions 100000", "the games held out: "),
        ("a --dirac", "", "policy_value_small has none. Leave it out."),
        ("a", "--gpu 99", "GPU 99"),
        ("a", "-o train.txt", "--output"),
    ],
)
def test_what_cannot_go_on_gets_one_sentence(folder, capsys, recipes, options, named):
    held_out = "" if "--held_out" in options else "--held_out 1"
    assert call(recipes, f"{held_out} {options}") == 1
    (line,) = complaints(capsys)
    assert line.startswith("compare_recipes: error: ")
    assert named in line
    assert not Path("out/a/model").exists()


@pytest.mark.parametrize("option", ["--speed 3", "--help", "-h"])
def test_an_option_that_does_not_exist_is_named_with_its_line(folder, capsys, option):
    with pytest.raises(SystemExit) as status:
        call(f"a\nb {option}")
    assert status.value.code == 2
    assert "recipes.txt, line 2: error: " in capsys.readouterr().err.splitlines()[-1]


def test_games_are_told_apart_by_their_move_numbers():
    positions = numpy.zeros(9, POSITION)
    positions["ply"] = [1, 2, 3, 1, 1, 2, 5, 6, 1]  # HCPE3 leaves out moves without visits
    for games, length in ((1, 1), (2, 5), (3, 6)):
        others, held_out = hold_out(positions, games)
        assert (len(others), len(held_out)) == (9 - length, length)
    with pytest.raises(CompareError, match="4 games"):
        hold_out(positions, 4)


def test_one_thing_is_singular():
    assert [counted(number, "game") for number in (0, 1, 2)] == ["0 games", "1 game", "2 games"]
    positions = numpy.zeros(3, POSITION)
    positions["ply"] = [1, 2, 3]
    with pytest.raises(CompareError, match="because the list has 1 game. "):
        hold_out(positions, 1)


@pytest.mark.long
def test_networks_are_compared_on_a_test_list(folder, capsys):
    recipes = "hand1x1 --network policy_hand1x1\nsmall\nvalue --network value"
    options = "--kifulist_test test.txt --test_positions 10 -e 2 -b 8"
    assert call(recipes, options) == 0
    table = Path("out/table.md").read_text(encoding="utf-8")
    assert table in capsys.readouterr().out
    assert "40 training positions, 2 epochs, tested on 10 positions of test.txt" in table
    lines = Path("out/table.tsv").read_text(encoding="utf-8").splitlines()
    cells = [dict(zip(lines[0].split("\t"), line.split("\t"))) for line in lines[1:]]
    assert [row["parameters"] for row in cells[:2]] == ["3722187", "902008"]
    assert all(float(row["seconds"]) > 0 for row in cells)
    assert [row["whole_test_loss"] == "" for row in cells] == [False, False, True]
    assert [row["whole_test_value_loss"] == "" for row in cells] == [True, False, False]
    assert Path("out/curves.png").read_bytes().startswith(b"\x89PNG")
    for name in ("hand1x1", "small", "value"):
        (curve,) = read_log(Path(f"out/{name}/log.txt").read_text(encoding="utf-8").splitlines())
        assert [point.iteration for point in curve.progress] == [2, 4, 6, 8, 10]
        assert [point.iteration for point in curve.epochs] == [5, 10]


@pytest.mark.long
def test_networks_of_several_sizes_are_compared_by_moves_and_winners(folder):
    residual = "--network policy_value_hand1x1_resnet --dirac"
    recipes = (
        f"wide --network policy_value_hand1x1_bn --channels 12 --dirac\n"
        f"deep {residual} --channels 8 --blocks 4\n"
        f"narrow {residual} --channels 4 --blocks 4 --value_lambda 0.5"
    )
    assert call(recipes) == 0
    lines = Path("out/table.tsv").read_text(encoding="utf-8").splitlines()
    rows = [dict(zip(lines[0].split("\t"), line.split("\t"))) for line in lines[1:]]
    assert [row["recipe"] for row in rows] == ["wide", "deep", "narrow"]
    for figure in ("accuracy", "loss", "value_loss", "value_accuracy"):
        assert all(float(row[f"whole_test_{figure}"]) >= 0 for row in rows)
    networks = {row["recipe"]: load_network(f"out/{row['recipe']}/model") for row in rows}
    assert [network.channels for network in networks.values()] == [12, 8, 4]
    assert networks["deep"].blocks == 4
    for row in rows:
        assert int(row["parameters"]) == networks[row["recipe"]].count_params()
    assert call(recipes.replace("--channels 8", "--channels 6")) == 1  # trained otherwise


def test_an_empty_test_list_is_not_the_games_held_out(folder, capsys):
    with pytest.raises(SystemExit):
        main([*SMALL.split(), "--kifulist_test", ""])
    assert "--kifulist_test: the name of the file is missing" in capsys.readouterr().err


def test_a_test_list_and_held_out_games_exclude_each_other(folder, capsys):
    with pytest.raises(SystemExit) as status:
        call("a", "--held_out 1 --kifulist_test test.txt")
    assert status.value.code == 2
    assert "--kifulist_test" in capsys.readouterr().err


KILL = """
import os, sys
from pydlshogi.training import checkpoint
from pydlshogi.commands.compare_recipes import main
write = checkpoint.PairWriter.__call__
def write_and_end(self, *args):
    write(self, *args)
    write_and_end.saves += 1
    if write_and_end.saves == 3:
        os.kill(os.getpid(), int(sys.argv[1]))
write_and_end.saves = 0
checkpoint.PairWriter.__call__ = write_and_end
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="no such signals on Windows")
@pytest.mark.parametrize("number, status", [("SIGKILL", -9), ("SIGTERM", 143)])
def test_killed_it_continues_and_ends_the_same(folder, number, status):
    options = "--held_out 1 -e 2"
    Path("recipes.txt").write_text("one", encoding="utf-8")
    words = [*SMALL.split(), *options.split()]
    process = subprocess.run(
        [sys.executable, "-c", KILL, str(int(getattr(signal, number))), *words],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
    )
    assert process.returncode == status, process.stderr
    assert "Traceback" not in process.stderr
    if number == "SIGTERM":
        assert "The same command continues the comparison" in process.stderr
        lines = Path("out/one/log.txt").read_text(encoding="utf-8")
        assert "interrupted after iteration" in lines
        # These are options of the training programs.
        assert "--initmodel" not in lines + process.stderr
    assert not Path("out/table.md").exists()
    assert call("one", options) == 0
    assert call("one", f"{options} -o whole") == 0
    assert_same_files("out/one/model", "whole/one/model")
    logs = [Path(folder, "one/log.txt") for folder in ("out", "whole")]
    (one,), (other,) = (read_log(log.read_text(encoding="utf-8").splitlines()) for log in logs)
    assert one == other


def test_a_recipe_that_cannot_begin_is_told_before_others_are_trained(folder, capsys):
    assert call("small\ndirac --dirac") == 1
    assert "policy_value_small has none. Leave it out." in complaints(capsys)[0]
    assert not list(Path().glob("out/*"))


@pytest.mark.long
def test_a_state_that_cannot_be_used_is_told_in_words_of_this_program(folder, capsys):
    assert call("one") == 0
    network = load_network("out/one/model")
    network.l1.b.array[0] += 1
    save_model("out/one/model", network)
    assert call("one") == 1
    (line,) = complaints(capsys)
    assert "was not saved with model file" in line
    assert f"Delete {Path('out/one')} to train it again." in line
    assert "--initmodel" not in line
    assert "--resume" not in line


@pytest.mark.long
def test_a_recipe_that_was_not_trained_yet_may_be_changed(folder, monkeypatch):
    with monkeypatch.context() as patch:

        def killed(*arguments):
            raise KeyboardInterrupt

        patch.setattr(compare, "_train", killed)
        assert call("one\ntwo --lr 0.1") == 130
    assert Path("out/two/settings.json").exists()
    Path("out/two/log.txt").touch()  # killed before the first save
    assert call("one\ntwo --lr 0.2") == 0
    assert json.loads(Path("out/two/settings.json").read_text(encoding="utf-8"))["lr"] == 0.2


@pytest.mark.long
@pytest.mark.parametrize("name", ["model", "settings.json"])
@pytest.mark.parametrize("content", ["{", "[1]", "1"])
def test_damaged_files_are_told_in_words_of_this_program(folder, capsys, name, content):
    assert call("one") == 0
    damaged = Path("out/one") / name
    damaged.write_text(content, encoding="utf-8")
    assert call("one") == 1
    (line,) = complaints(capsys)
    assert str(damaged) in line
    assert f". Delete {damaged.parent} to train it again." in line


@pytest.mark.long
def test_a_recipe_without_its_targets_and_a_known_test_set_are_told(folder, capsys):
    games = Path("train.txt").read_text(encoding="utf-8").split()
    for number, game in enumerate(games):
        lines = Path(game).read_text(encoding="utf-8").splitlines()
        kept = [line for line in lines if not line.startswith("'** ")]
        Path(f"{number}.csa").write_text("\n".join(kept), encoding="utf-8")
    Path("train.txt").write_text("".join(f"{n}.csa\n" for n in range(len(games))))
    assert call("one --value_lambda 0.5", "--kifulist_test train.txt --test_positions 40") == 0
    assert "no training position has an evaluation" in capsys.readouterr().err
    table = Path("out/table.md").read_text(encoding="utf-8")
    assert "Training positions that are also in the test set: 40." in table


def test_the_figures_are_means_of_the_last_20_points_and_of_the_whole_test_set():
    progress = [ProgressPoint(1, i, loss=float(i), accuracy=i / 100) for i in range(1, 31)]
    curve = Curve(progress, [EpochPoint(1, 30, 9.0, 0.125, test_loss=2.5)])
    row = Row("policy", 3_838_923, 2268.4, curve)
    assert row.columns["train_loss"] == pytest.approx(sum(range(11, 31)) / 20)
    assert row.columns["test_accuracy"] == pytest.approx(sum(range(11, 31)) / 2000)
    markdown = format_markdown([row], "Some positions.").splitlines()
    assert markdown[2] == "| policy | 3,838,923 | 0:37:48 | 20.5000 | 0.2050 | 2.5000 | 0.1250 |"
    head, line = (text.split("\t") for text in format_tsv([row]).splitlines())
    assert len(head) == len(line)
    assert json.loads(line[head.index("seconds")]) == 2268.4


def test_a_run_shorter_than_a_log_point_has_no_such_figures():
    row = Row("policy", 1, 1.0, Curve([], [EpochPoint(1, 3, 9.0, 0.5, 2.0)]))
    table = format_markdown([row], "")
    assert "| - | - | 2.0000 | 0.5000 |" in table
    # It is printed too, and a Japanese Windows console takes no other letters.
    table.encode("cp932")


def test_networks_with_one_and_two_heads_have_comparable_columns():
    both = Curve(
        [ProgressPoint(1, 2, 5.0, 0.25, 4.5, 0.5, 0.75)],
        [EpochPoint(1, 2, 5.0, 0.3, 4.75, 4.5, 0.5, 4.25, 0.5, 0.8)],
    )
    value = Curve([ProgressPoint(1, 2, 0.5, 0.75)], [EpochPoint(1, 2, 0.5, 0.8, 0.6)])
    rows = [Row("both", 1, 1.0, both), Row("value", 1, 1.0, value, has_policy=False)]
    assert list(rows[0].columns.values())[2:] == [4.5, 0.25, 4.25, 0.3, 0.5, 0.8]
    assert list(rows[1].columns.values())[2:] == [None, None, None, None, 0.6, 0.8]
    assert "| value | 1 | 0:00:01 | - | - | - | - | 0.6000 | 0.8000 |" in format_markdown(rows, "")


@pytest.mark.parametrize("games, held_out", [(2, 1), (9, 1), (10, 2), (230, 46), (2000, 200)])
def test_without_a_number_at_most_a_fifth_of_the_games_is_held_out(games, held_out):
    positions = numpy.zeros(3 * games, POSITION)
    positions["ply"] = numpy.tile([1, 2, 3], games)
    others, test_set = hold_out(positions, None)
    assert (len(others), len(test_set)) == (3 * (games - held_out), 3 * held_out)
    assert len(game_starts(test_set)) == held_out


def test_single_positions_are_no_games_to_hold_out():
    random = numpy.random.RandomState(0)
    moves = numpy.tile(numpy.arange(1, 101), 20)
    positions = numpy.zeros(len(moves), POSITION)
    positions["ply"] = moves
    assert [len(part) for part in hold_out(positions, 2)] == [1800, 200]
    # HCPE3 has only the positions with a search.
    searched = positions[random.rand(len(moves)) < 0.25]
    others, held_out = hold_out(searched, 2)
    assert len(game_starts(others)) == 18 and len(game_starts(held_out)) == 2
    for ply in (numpy.zeros(len(moves)), random.permutation(moves)):
        positions["ply"] = ply
        with pytest.raises(CompareError, match="as kifulist_test"):
            hold_out(positions, 2)
