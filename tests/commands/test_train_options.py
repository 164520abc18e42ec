"""The command lines of the training programs."""

import pytest

from pydlshogi.commands.model_options import apply_computation
from pydlshogi.commands.train_options import TRAIN_PROGRAMS, build_parser, options_of
from pydlshogi.commands.train_policy import main
from pydlshogi.layers.convolution import CONVOLUTIONS
from pydlshogi.layers.gpu import cudnn
from pydlshogi.layers.gpu.products import PRECISIONS, get_precision, set_precision

LISTS = ["train.txt", "test.txt"]


def test_defaults_are_those_of_the_book():
    args = vars(build_parser().parse_args(LISTS))
    expected = {
        "kifulist_train": "train.txt",
        "kifulist_test": "test.txt",
        "batchsize": 32,
        "test_batchsize": 512,
        "epoch": 10,
        "model": "model/model_policy",
        "state": "model/state_policy",
        "initmodel": "",
        "resume": "",
        "log": "",
        "lr": 0.01,
        "eval_interval": 1000,
        "gpu": None,
    }
    assert {name: args[name] for name in expected} == expected


def test_short_options():
    words = ["-b", "4", "-e", "2", "-m", "M", "-r", "R", "-i", "7", "-g", "-1"]
    args = build_parser().parse_args([*LISTS, *words])
    assert (args.batchsize, args.epoch, args.initmodel) == (4, 2, "M")
    assert (args.resume, args.eval_interval, args.gpu) == ("R", 7, -1)


def test_every_convolution_can_be_chosen():
    for name in CONVOLUTIONS:
        assert build_parser().parse_args([*LISTS, "--convolution", name]).convolution == name


def test_every_precision_can_be_chosen_and_is_set(monkeypatch):
    monkeypatch.delenv("CUPY_TF32", raising=False)
    monkeypatch.setattr(cudnn, "require", lambda device, convolution: None)
    for name in PRECISIONS:
        args = build_parser().parse_args([*LISTS, "--precision", name])
        try:
            apply_computation(args)
            assert get_precision() == ("tf32" if name == "auto" else name)
        finally:
            set_precision("auto")
    assert build_parser().parse_args(LISTS).precision == "auto"


@pytest.mark.parametrize(
    "words",
    [
        "--precision int8",
        "--batchsize 0",
        "--batchsize -3",
        "--test_batchsize 0",
        "--epoch 0",
        "--epoch 1.5",
        "--eval_interval 0",
        "--iterations 0",
        "--threads 0",
        "--lr nan",
        "--lr inf",
        "--lr -0.1",
        "--lr fast",
        "--seed -1",
        "--seed 4294967296",
        "--gpu first",
        "--gpu -2",
        "--convolution fft",
        "--unknown",
        "--resume state",
        "--dirac --initmodel model",
        "--blocks 3",
        "--channels 8 --network policy_value_small",
        "--channels 0",
        "--channels 4097",
        "--label_smoothing 0.1",
        "--average 5",
    ],
)
def test_a_value_that_cannot_be_used_gets_one_sentence(words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as caught:
        main([*LISTS, *words.split()])
    assert caught.value.code == 2
    message = capsys.readouterr().err.splitlines()[-1]
    assert message.startswith("train_policy: error: ")
    assert words.split()[0] in message
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", TRAIN_PROGRAMS)
def test_each_program_has_the_books_files_and_network(name):
    args = build_parser(TRAIN_PROGRAMS[name]).parse_args(LISTS)
    kind = name[len("train_") :]
    assert (args.network, args.model, args.state) == (
        kind,
        f"model/model_{kind}",
        f"model/state_{kind}",
    )


def test_every_program_trains_every_network():
    words = [*LISTS, "--network", "policy_value_resnet", "--blocks", "3"]
    args = build_parser(TRAIN_PROGRAMS["train_value"]).parse_args(words)
    options = options_of(args)
    assert (options.network, options.sizes) == ("policy_value_resnet", {"blocks": 3})
    assert options.settings.model == "model/model_value"


def test_old_spellings_work_and_are_hidden():
    assert build_parser().parse_args([*LISTS, "--drop-duplicates"]).drop_duplicates
    assert "--drop-duplicates" not in build_parser().format_help()
    assert "--drop_duplicates" in build_parser().format_help()


def test_a_wrong_command_line_gets_no_usage(capsys):
    with pytest.raises(SystemExit):
        main(["train.txt"])
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("train_policy: error: ")
    assert "kifulist_test" in line
