"""The program train_kifu: lists, training and curve of a folder of records, in one command."""

import os
import shutil
import sys
from pathlib import Path

import numpy
import pytest

from pydlshogi.commands import plot_log, train_policy, train_policy_value
from pydlshogi.commands.train_kifu import PRESETS, main
from pydlshogi.commands.train_options import TRAIN_PROGRAMS, build_parser

ROOT = Path(__file__).resolve().parents[2]
GAMES = sorted((ROOT / "kifu" / "test").glob("*.csa"))


@pytest.fixture(autouse=True)
def in_a_folder_with_the_shipped_games(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYDLSHOGI_CONTINUE", "")  # so that it is removed after the test
    monkeypatch.delenv("PYDLSHOGI_CONTINUE")
    (tmp_path / "kifu").symlink_to(ROOT / "kifu")


class Trainings(list):
    """The options of each training; ``status`` is how the next ones end."""

    status = 0


@pytest.fixture
def trainings(monkeypatch):
    """Notes the trainings, which only save a model and a state."""
    noted = Trainings()

    def training(name):
        def train(words):
            options = build_parser(TRAIN_PROGRAMS[name]).parse_args(words)
            noted.append(options)
            Path(options.model).touch()
            Path(options.state).touch()
            return noted.status

        return train

    def plot(words):
        log, _, picture = words
        Path(picture).touch()
        return 0

    monkeypatch.setattr(train_policy, "main", training("train_policy"))
    monkeypatch.setattr(train_policy_value, "main", training("train_policy_value"))
    monkeypatch.setattr(plot_log, "main", plot)
    return noted


@pytest.fixture
def folder(tmp_path):
    """A folder with three records; its name has a space."""
    made = tmp_path / "elsewhere" / "my games"
    made.mkdir(parents=True)
    for game in GAMES[:3]:
        shutil.copy(game, made)
    return made


def said(capsys):
    return capsys.readouterr().err


def test_the_shipped_games_are_trained_by_the_best_recipe(trainings, capsys):
    assert main([]) == 0
    (options,) = trainings
    assert (options.network, options.batchsize, options.dirac) == ("policy_hand1x1_bn", 64, True)
    assert (options.lr_schedule, options.epoch, options.resume) == ("cosine", 1, "")
    assert options.kifulist_train == os.path.join("kifu", "kifulist_train.txt")
    assert options.model == os.path.join("run", "train", "model_policy")
    assert options.log == os.path.join("run", "train", "log.txt")
    assert Path("run/train/log.png").exists()
    output = capsys.readouterr().out
    assert "python -m pydlshogi train_policy " in output
    assert str(Path("run/train/model_policy").resolve()) in output
    model = os.path.join("run", "train", "model_policy")
    play = output.splitlines()[-1]
    assert play.endswith(f" -m pydlshogi play --model {model}")
    assert sys.executable in play


def test_the_command_to_play_names_a_python_of_the_clone_by_a_short_path(
    trainings, capsys, monkeypatch
):
    python = Path.cwd() / ".venv" / "bin" / "python"
    monkeypatch.setattr(sys, "executable", str(python))
    assert main([]) == 0
    words = capsys.readouterr().out.splitlines()[-1].split()
    assert words[words.index("-m") - 1] == os.path.join(".venv", "bin", "python")


def test_the_books_recipe_is_the_default_of_the_training(trainings):
    assert main(["--recipe", "book"]) == 0
    (options,), defaults = trainings, build_parser().parse_args(["a", "b"])
    for name in ("network", "batchsize", "lr", "dirac", "momentum", "weight_decay", "lr_schedule"):
        assert getattr(options, name) == getattr(defaults, name)
    assert options.model == os.path.join("run", "book", "model_policy")


def test_the_value_recipe_trains_both_heads(trainings):
    assert main(["--recipe", "value"]) == 0
    (options,) = trainings
    assert options.network.startswith("policy_value")
    assert options.model == os.path.join("run", "value", "model_policy_value")


def test_the_recipes_do_not_share_a_folder(trainings, folder):
    for recipe in PRESETS:
        assert main(["--recipe", recipe]) == 0
        assert main([str(folder), "--recipe", recipe]) == 0
    assert len({options.model for options in trainings}) == 2 * len(PRESETS)


def test_records_of_the_user_become_lists_and_a_run_of_their_name(trainings, folder):
    assert main([str(folder)]) == 0
    (options,) = trainings
    run = Path("run", "my games")
    assert options.kifulist_train == str(run / "kifulist_train.txt")
    names = [
        (run / line).resolve()
        for part in ("train", "test")
        for line in (run / f"kifulist_{part}.txt").read_text(encoding="utf-8").splitlines()
    ]
    assert sorted(names) == sorted(path.resolve() for path in folder.iterdir())
    assert options.epoch == 10  # an epoch of two games is short


def test_position_files_are_trained_once(trainings, folder):
    (folder / "more.hcpe").touch()
    (folder / "most.hcpe").touch()
    assert main([str(folder)]) == 0
    assert trainings[0].epoch == 1


def test_a_finished_training_is_not_repeated(trainings, folder, capsys):
    for words in ([], [str(folder)]):
        assert main(words) == main(words) == 0
        assert "is finished. To start over: add --restart" in capsys.readouterr().out
    assert len(trainings) == 2


def test_a_curve_that_was_not_drawn_is_drawn_the_next_time(trainings):
    main([])
    Path("run/train/log.png").unlink()
    assert main([]) == 0
    assert Path("run/train/log.png").exists()
    assert len(trainings) == 1


def test_the_number_of_epochs_that_are_left_is_trained(trainings, folder, monkeypatch, capsys):
    trainings.status = 130
    assert main([str(folder)]) == 130
    assert not Path("run/my games/finished").exists()
    trainings.status = 0
    monkeypatch.setattr("pydlshogi.commands.train_kifu._finished_epochs", lambda *files: 4)
    assert main([str(folder)]) == 0
    first, second = trainings
    run = Path("run", "my games")
    assert (second.initmodel, second.resume) == (first.model, first.state)
    assert (first.epoch, second.epoch) == (10, 6)
    assert first.dirac and second.dirac  # a resumed run has the same recipe
    assert f"Continuing the run in the folder {run}." in capsys.readouterr().out


def test_a_run_keeps_its_lists_when_games_are_added(trainings, folder, monkeypatch):
    trainings.status = 130
    main([str(folder)])
    before = Path("run/my games/kifulist_train.txt").read_bytes()
    for game in GAMES[3:9]:
        shutil.copy(game, folder)
    monkeypatch.setattr("pydlshogi.commands.train_kifu._finished_epochs", lambda *files: 0)
    main([str(folder)])
    assert Path("run/my games/kifulist_train.txt").read_bytes() == before


@pytest.mark.parametrize("status", [0, 130])
def test_a_run_never_continues_with_other_games(trainings, folder, tmp_path, status, capsys):
    trainings.status = status
    main([str(folder)])
    other = tmp_path / "my games"
    shutil.copytree(folder, other)
    assert main([str(other)]) == 1
    assert said(capsys) == (
        f"train_kifu: error: {Path('run', 'my games')} holds another training "
        f"({folder.resolve()}, recipe best). Rename that folder, or name another one with "
        "--output.\n"
    )
    assert main([str(other), "--output", "run/other"]) == status
    assert len(trainings) == 2


def test_a_folder_named_train_does_not_continue_the_shipped_games(trainings, folder, capsys):
    assert main([]) == 0
    assert main([str(folder.rename(folder.with_name("train")))]) == 1
    error = said(capsys).replace("\\", "/")
    assert "run/train holds another training (kifu, recipe best)." in error


def test_files_of_the_user_are_not_continued(trainings, capsys):
    Path("run/train").mkdir(parents=True)
    Path("run/train/state_policy").write_bytes(b"mine")
    assert main([]) == 1
    assert "holds another training (games unknown)" in said(capsys)
    assert not trainings and Path("run/train/state_policy").read_bytes() == b"mine"


@pytest.mark.parametrize("status", [0, 130])
def test_a_run_never_continues_with_another_recipe(trainings, folder, status, monkeypatch, capsys):
    monkeypatch.setattr("pydlshogi.commands.train_kifu._finished_epochs", lambda *files: 0)
    trainings.status = status
    words = [str(folder), "--output", "run/mine"]
    main(words)
    assert main([*words, "--recipe", "value"]) == 1
    assert f"run/mine holds another training ({folder.resolve()}, recipe best)." in (
        said(capsys).replace("run\\mine", "run/mine")
    )
    (Path("run/mine") / "source.txt").write_bytes(os.fsencode(folder.resolve()))
    assert main(words) == status  # as earlier versions noted it


def test_the_current_folder_is_not_put_aside(trainings, folder, monkeypatch, capsys):
    Path("run/mine").mkdir(parents=True)
    monkeypatch.chdir("run/mine")
    for output in (".", ".."):
        assert main([str(folder), "--output", output, "--restart"]) == 1
        assert "is the current folder. Name a folder in it." in said(capsys)


def test_restart_moves_the_folder_of_this_run_only(trainings, folder, capsys):
    main([])
    main([str(folder)])
    Path("run/mine").touch()
    assert main(["--restart"]) == 0
    (kept,) = Path("run").glob("train.*")
    assert (kept / "finished").exists() and Path("run/train/finished").exists()
    assert f"The earlier run is now in the folder {kept}." in capsys.readouterr().out
    assert Path("run/mine").exists() and Path("run/my games/finished").exists()
    assert [options.resume for options in trainings] == ["", "", ""]


def test_restart_works_without_an_earlier_run(trainings):
    assert main(["--restart"]) == 0
    assert len(trainings) == 1


@pytest.mark.parametrize(
    "games, sentence",
    [
        (None, "is not a folder. Check its path."),
        (0, "Unpack archives first."),
        (1, "holds one game. Give at least two: one trains, the other tests."),
    ],
)
def test_a_folder_that_is_not_fit_gives_one_sentence(trainings, tmp_path, games, sentence, capsys):
    folder = tmp_path / "some"
    if games is not None:
        folder.mkdir()
        for game in GAMES[:games]:
            shutil.copy(game, folder)
    assert main([str(folder)]) == 1
    error = said(capsys)
    assert error.startswith("train_kifu: error: ") and error.endswith(f"{sentence}\n")
    assert error.count("\n") == 1
    assert not trainings and not Path("run").exists()


def test_without_the_shipped_games_a_folder_must_be_named(trainings, tmp_path, capsys):
    (tmp_path / "kifu").unlink()
    assert main([]) == 1
    assert said(capsys) == (
        "train_kifu: error: There are no games in kifu. Name a folder with game records.\n"
    )


def set_stage(state, stage):
    with numpy.load(state) as file:
        arrays = {key: file[key] for key in file if not key.endswith("place/stage")}
    if stage:
        arrays["pydlshogi/place/stage"] = numpy.array(stage)
    with open(state, "wb") as file:
        numpy.savez(file, **arrays)


def test_an_interrupted_training_is_continued_to_its_last_epoch(folder, monkeypatch, capsys):
    """The whole program, with a small network."""
    tiny = PRESETS["best"]._replace(
        options="--network policy --channels 2 --batchsize 64 --eval_interval 1000 --seed 1"
    )
    monkeypatch.setitem(PRESETS, "best", tiny)
    monkeypatch.setattr("pydlshogi.commands.train_kifu._MANY_GAMES", 2 * 2)
    words = [str(folder), "--output", "out"]
    assert main(words) == 0
    assert "epoch = 2" in Path("out/log.txt").read_text(encoding="utf-8")
    assert Path("out/log.png").exists() and not Path("out/model_policy.old").exists()
    # As if only the first two of three epochs had been trained.
    monkeypatch.setattr("pydlshogi.commands.train_kifu._MANY_GAMES", 3 * 2)
    Path("out/finished").unlink()
    set_stage("out/state_policy", "")
    assert main(words) == 0
    log = Path("out/log.txt").read_text(encoding="utf-8")
    assert "epoch = 3" in log and "epoch = 4" not in log
    # As if the last save had been the end.
    Path("out/finished").unlink()
    assert main(words) == 0
    assert Path("out/log.txt").read_text(encoding="utf-8") == log
    # As if a signal had ended the last validation.
    Path("out/finished").unlink()
    set_stage("out/state_policy", "validation")
    assert main(words) == 0
    added = Path("out/log.txt").read_text(encoding="utf-8").removeprefix(log)
    assert added.count("epoch = 3") == log.count("epoch = 3")
    assert Path("out/finished").exists()
