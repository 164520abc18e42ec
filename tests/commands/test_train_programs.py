"""train_value, train_policy_value and train_policy_value_resnet from end to end."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
from training_helpers import assert_same_files

from pydlshogi.model_files.model_file import load_network
from pydlshogi.network.registry import name_of
from pydlshogi.training.log import read_log

REPOSITORY = Path(__file__).resolve().parents[2]
SMALL = "train.txt test.txt --gpu -1 -b 4 --test_batchsize 8 -i 1 --seed 1"
NUMBER = r"-?[\d.]+(e-?\d+)?"

#: Of each program: options, the accuracy in its lines, and arrays of the book's model file.
PROGRAMS = {
    "train_value": ("", NUMBER, ["l1/W", "l13_v/W", "l14_v/W", "l15_v/b"]),
    "train_policy_value": ("", f"{NUMBER}, {NUMBER}", ["l13_bias/b", "l13_v/W", "l15_v/W"]),
    "train_policy_value_resnet": (
        "--blocks 2",
        f"{NUMBER}, {NUMBER}",
        ["b1/conv1/W", "b1/bn2/beta", "policy_bias/b", "value1_bn/gamma", "value3/W"],
    ),
}


@pytest.fixture(params=PROGRAMS)
def name(request):
    return request.param


def call(name, options):
    """Calls a program with its own options; returns the messages of its log."""
    main = importlib.import_module(f"pydlshogi.commands.{name}").main
    words = f"{SMALL} {PROGRAMS[name][0]} --log log {options}"
    assert main(words.split()) == 0
    lines = Path("log").read_text(encoding="utf-8").splitlines()
    return [line.split("\t")[2] for line in lines]


def test_a_program_trains_its_network_with_the_books_files_and_lines(folder, name):
    messages = call(name, "--iterations 2 --channels 16")
    _, accuracy, arrays = PROGRAMS[name]
    kind = name[len("train_") :]
    assert name_of(load_network(f"model/model_{kind}")) == kind
    with numpy.load(f"model/model_{kind}") as npz:
        assert set(arrays) <= set(npz.files)
        assert not any(key.startswith("pydlshogi/") for key in npz.files)
    assert Path(f"model/state_{kind}").exists()
    progress = rf"epoch = 1, iteration = 1, loss = {NUMBER}, accuracy = {accuracy}"
    epoch = rf"epoch = 1, iteration = 2, train loss avr = {NUMBER}, test accuracy = {accuracy}"
    for form in (progress, epoch):
        assert sum(bool(re.fullmatch(form, message)) for message in messages) == 1
    (curve,) = read_log(messages)
    assert [point.iteration for point in curve.progress] == [1, 2]


@pytest.mark.long
def test_a_program_resumes_to_the_last_bit(folder, name):
    call(name, "--channels 16 --iterations 2 --model whole --state whole.s")
    call(name, "--channels 16 --iterations 1 --model m --state s")
    call(name, "--iterations 1 --model m --state s -m m -r s")
    assert_same_files("whole", "m")


@pytest.mark.long
def test_the_number_of_blocks_is_that_of_the_model_to_start_from(folder):
    call("train_policy_value_resnet", "--channels 16 --iterations 1 --model m --state s")
    main = importlib.import_module("pydlshogi.commands.train_policy_value_resnet").main
    assert (
        main(
            [
                *SMALL.split(),
                *["-m", "m", "-r", "s", "--model", "m", "--state", "s", "--iterations", "1"],
            ]
        )
        == 0
    )
    assert load_network("m").blocks == 2


@pytest.mark.long
@pytest.mark.parametrize(
    "name, sizes",
    [
        ("policy_value_hand1x1_resnet", {"channels": 16, "blocks": 3}),
        ("policy_value_hand1x1_bn", {"channels": 8}),
        ("value", {"channels": 8}),
    ],
)
def test_a_network_of_another_size_is_trained_and_resumed_in_its_size(folder, name, sizes):
    main = importlib.import_module("pydlshogi.commands.train_policy_value").main
    options = [f"--{size}={number}" for size, number in sizes.items()]
    files = ["--network", name, "--model", "m", "--state", "s", "--iterations", "1"]
    assert main([*SMALL.split(), *files, *options]) == 0
    assert main([*SMALL.split(), *files, "-m", "m", "-r", "s"]) == 0
    network = load_network("m")
    assert {size: getattr(network, size) for size in sizes} == sizes


def test_other_blocks_than_those_of_the_model_get_one_sentence(folder, capsys):
    call("train_policy_value_resnet", "--channels 16 --iterations 1 --model m --state s")
    main = importlib.import_module("pydlshogi.commands.train_policy_value_resnet").main
    assert main([*SMALL.split(), "--blocks", "3", "-m", "m"]) == 1
    line = capsys.readouterr().err.splitlines()[-1]
    assert "model file m has 2 blocks, not 3. Give the same blocks, or none." in line


def test_the_scripts_start_from_any_folder(folder, name):
    done = subprocess.run(
        [sys.executable, REPOSITORY / f"{name}.py", "missing.txt", "test.txt"],
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "missing.txt" in done.stderr
    assert "Traceback" not in done.stderr
