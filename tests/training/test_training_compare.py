"""The program compare_networks: alike, one after the other, and on from where it was."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from training_helpers import assert_same_files, complaints

from pydlshogi.network.model_file import load_network, save_model
from pydlshogi.training.compare import main
from pydlshogi.training.compare_table import Row, format_markdown, format_tsv
from pydlshogi.training.log import Curve, EpochPoint, ProgressPoint, read_log

REPOSITORY = Path(__file__).resolve().parents[2]

#: A comparison small enough for tests.
SMALL = (
    "train.txt test.txt --gpu -1 -o out --positions 40 --test_positions 10 -e 2 -b 8 -i 2 "
    "--test_batchsize 4 --threads 1"
)


def call(options, networks="policy_value_small"):
    return main([*SMALL.split(), *options.split(), "--networks", *networks.split()])


def test_networks_are_trained_alike_and_their_table_written(folder, capsys):
    assert call("", "policy_hand1x1 policy_value_small") == 0
    out = Path("out")
    table = (out / "table.md").read_text(encoding="utf-8")
    assert table in capsys.readouterr().out
    rows = [line for line in table.splitlines() if line.startswith("| policy")]
    assert [row.split(" | ")[0] for row in rows] == ["| policy_hand1x1", "| policy_value_small"]
    assert "40 training and 10 test positions, 2 epochs" in table
    lines = (out / "table.tsv").read_text(encoding="utf-8").splitlines()
    cells = [dict(zip(lines[0].split("\t"), line.split("\t"))) for line in lines[1:]]
    assert [row["parameters"] for row in cells] == ["3722187", "902008"]
    assert all(float(row["seconds"]) > 0 for row in cells)
    assert [row["whole_test_value_loss"] == "" for row in cells] == [True, False]
    assert (out / "curves.png").read_bytes().startswith(b"\x89PNG")
    for name in ("policy_hand1x1", "policy_value_small"):
        (curve,) = read_log((out / name / "log.txt").read_text(encoding="utf-8").splitlines())
        assert [point.iteration for point in curve.progress] == [2, 4, 6, 8, 10]
        assert [point.iteration for point in curve.epochs] == [5, 10]


def test_a_network_that_is_trained_is_not_trained_again(folder):
    assert call("") == 0
    files = {path: path.stat().st_mtime_ns for path in Path("out/policy_value_small").iterdir()}
    table = Path("out/table.tsv").read_bytes()
    assert call("") == 0
    assert files == {
        path: path.stat().st_mtime_ns for path in Path("out/policy_value_small").iterdir()
    }
    assert Path("out/table.tsv").read_bytes() == table


KILL = """
import os, signal, sys
from pydlshogi.training import checkpoint
from pydlshogi.training.compare import main
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


@pytest.mark.skipif(os.name == "nt", reason="no such signals on Windows")
@pytest.mark.parametrize("number, status", [("SIGKILL", -9), ("SIGTERM", 143)])
def test_interrupted_it_goes_on_and_ends_the_same(folder, number, status):
    words = [*SMALL.split(), "--networks", "policy_value_small"]
    process = subprocess.run(
        [sys.executable, "-c", KILL, str(int(getattr(signal, number))), *words],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
    )
    assert process.returncode == status, process.stderr
    assert "Traceback" not in process.stderr
    if number == "SIGTERM":
        assert "The same command goes on from here" in process.stderr
        lines = Path("out/policy_value_small/log.txt").read_text(encoding="utf-8")
        assert "interrupted after iteration" in lines
        # These are options of train_policy.
        assert "--initmodel" not in lines + process.stderr
    assert not Path("out/table.md").exists()
    assert call("") == 0
    assert call("-o whole") == 0
    assert_same_files("out/policy_value_small/model", "whole/policy_value_small/model")
    logs = [Path(folder, "policy_value_small/log.txt") for folder in ("out", "whole")]
    (one,), (other,) = (read_log(log.read_text(encoding="utf-8").splitlines()) for log in logs)
    assert one == other


def test_other_settings_are_refused_by_name(folder, capsys):
    assert call("") == 0
    for options, named in (
        ("-e 3", "epoch: 2 there, 3 now"),
        ("--positions 30", "train positions"),
    ):
        assert call(options) == 1
        (line,) = complaints(capsys)
        assert named in line
        assert "--output" in line


def test_a_network_that_cannot_begin_is_told_before_others_are_trained(folder, capsys):
    assert call("--dirac", "policy policy_value_small") == 1
    assert "policy_value_small has none. Leave it out." in complaints(capsys)[0]
    assert not list(Path().glob("out/*"))
    assert call("", "policy policy_value_small") == 0  # nothing of it is in the way


def test_a_state_that_cannot_be_used_is_told_in_words_of_this_program(folder, capsys):
    assert call("") == 0
    network = load_network("out/policy_value_small/model")
    network.l1.b.array[0] += 1
    save_model("out/policy_value_small/model", network)
    assert call("") == 1
    (line,) = complaints(capsys)
    assert "was not saved with model file" in line
    assert f"Delete {Path('out/policy_value_small')} to train it anew." in line
    assert "--initmodel" not in line
    assert "--resume" not in line


def test_settings_that_are_damaged_are_refused(folder, capsys):
    Path("out").mkdir()
    Path("out/settings.json").write_text("{", encoding="utf-8")
    assert call("") == 1
    assert "other settings" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options, named",
    [
        ("--positions 1000000", "train.txt has"),
        ("--test_positions 1000000", "test.txt has"),
        ("--gpu 99", "GPU 99"),
        ("-o train.txt", "--output"),
    ],
)
def test_what_cannot_go_on_gets_one_sentence(folder, capsys, options, named):
    assert call(options) == 1
    (line,) = complaints(capsys)
    assert line.startswith("compare_networks: error: ")
    assert named in line


def test_an_unknown_network_lists_the_known_ones(folder, capsys):
    with pytest.raises(SystemExit) as status:
        call("", "policy policy_huge")
    assert status.value.code == 2
    assert "policy_value_resnet" in capsys.readouterr().err.splitlines()[-1]


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
