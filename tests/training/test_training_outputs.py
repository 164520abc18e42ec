"""Places to write to are made, or refused before anything else happens."""

import os
import re
from pathlib import Path

import pytest

from pydlshogi.commands.train_policy import main
from pydlshogi.kifu.report import Report
from pydlshogi.outputs import OutputError, check_log, check_report, prepare_outputs
from pydlshogi.training.log_file import is_stream


def test_missing_folders_are_made(tmp_path):
    paths = {f"--{name}": str(tmp_path / name / "deep" / name) for name in ("model", "state")}
    prepare_outputs(paths, {})
    for path in paths.values():
        assert os.listdir(os.path.dirname(path)) == []


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_the_folder_that_a_link_leads_to_is_made(tmp_path):
    (tmp_path / "state").symlink_to(tmp_path / "drive" / "state")
    prepare_outputs({"--state": str(tmp_path / "state")}, {})
    assert (tmp_path / "drive").is_dir()
    assert not list((tmp_path / "drive").iterdir())


def test_an_empty_path_is_passed_over():
    prepare_outputs({"--log": ""}, {"kifulist_train": ""})


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_two_outputs_are_two_files(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "model")
    with pytest.raises(OutputError, match=r"--state .* is the same file as --model"):
        prepare_outputs({"--model": str(tmp_path / "model"), "--state": str(tmp_path / "link")}, {})


def test_an_input_is_not_overwritten(tmp_path):
    path = str(tmp_path / "train.txt")
    with pytest.raises(OutputError, match="--log .* is the same file as kifulist_train"):
        prepare_outputs({"--log": path}, {"kifulist_train": path})


def test_a_folder_is_not_a_file(tmp_path):
    with pytest.raises(OutputError, match="is a folder"):
        prepare_outputs({"--model": str(tmp_path)}, {})


@pytest.mark.parametrize("separator", {os.sep, os.altsep or os.sep})
def test_a_name_that_ends_as_a_folders_does_is_not_a_file(tmp_path, separator):
    path = str(tmp_path / "new") + separator
    with pytest.raises(OutputError, match=re.escape(f"--model {path} is a folder")):
        prepare_outputs({"--model": path}, {})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("names", [("run", "run/state"), ("run/model", "run")])
def test_the_folder_of_one_output_is_not_another_one(tmp_path, names):
    paths = [str(tmp_path / name) for name in names]
    with pytest.raises(OutputError, match="run is a folder"):
        prepare_outputs(dict(zip(("--model", "--state"), paths)), {})


def test_a_file_is_not_a_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be made or written to"):
        prepare_outputs({"--model": str(tmp_path / "file" / "model")}, {})
    assert (tmp_path / "file").read_text() == ""


@pytest.mark.skipif(os.name == "nt", reason="no named pipes in folders on Windows")
def test_a_pipe_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OutputError, match=r"--model .*pipe is a device or a pipe"):
        prepare_outputs({"--model": str(tmp_path / "pipe")}, {})
    assert (tmp_path / "pipe").is_fifo()


def test_a_read_only_file_is_not_replaced(tmp_path):
    (tmp_path / "model").write_text("mine")
    (tmp_path / "model").chmod(0o444)
    with pytest.raises(OutputError, match=r"--model .*model is read-only"):
        prepare_outputs({"--model": str(tmp_path / "model")}, {})


@pytest.mark.parametrize("length", [245, 300])  # the first is too long only while it is written
def test_a_name_that_is_too_long_is_told_with_its_option(tmp_path, length):
    with pytest.raises(OutputError, match="--state .* too long"):
        prepare_outputs({"--state": str(tmp_path / ("s" * length))}, {})


def test_a_report_replaces_only_a_report(tmp_path):
    path = tmp_path / "report.tsv"
    check_report(str(path))
    Report().write_tsv(path)
    check_report(str(path))
    path.write_text("kind regards\n")
    with pytest.raises(OutputError, match="the report .* is not a table"):
        check_report(str(path))


@pytest.mark.parametrize("content", [b"V2.2\nPI\n+\n+7776FU\n", b"PK\3\4" + bytes(1000)])
def test_a_log_is_appended_only_to_a_log(folder, capsys, content):
    (folder / "other").write_bytes(content)
    assert main(["train.txt", "test.txt", "--log", "other"]) == 1
    assert "the log other exists and is not a log" in capsys.readouterr().err
    assert (folder / "other").read_bytes() == content


@pytest.mark.skipif(not os.path.exists("/dev/null"), reason="this system has no such device")
def test_a_log_may_go_to_a_device_and_keeps_the_checks_of_the_other_outputs(folder, capsys):
    files = ["--model", "m", "--state", "s", "--report", "."]
    assert main(["train.txt", "test.txt", "--log", "/dev/null", *files]) == 1
    assert "--report . is a folder" in capsys.readouterr().err
    assert is_stream("/dev/null") and not is_stream("train.txt") and not is_stream("")


@pytest.mark.parametrize(
    "content", ["", "\n", "my notes\n2026/11/23 14:00:00\tINFO\tread kifu start\n"]
)
def test_a_log_may_continue_a_log_with_notes(tmp_path, content):
    (tmp_path / "log").write_text(content)
    check_log(str(tmp_path / "log"))
    check_log(str(tmp_path / "none"))
    check_log("")


def test_a_model_that_is_given_as_the_state_too_is_named(folder, capsys):
    Path("m").touch()
    assert main(["train.txt", "test.txt", "--model", "m", "-m", "m", "-r", "./m"]) == 1
    error = capsys.readouterr().err
    assert "--initmodel and --resume are the same file, ./m. Give --resume the state" in error


@pytest.mark.parametrize("option", ["--model", "--state", "--log", "--report"])
@pytest.mark.parametrize("name", ["train", "test"])
def test_the_cache_of_a_list_is_not_overwritten(folder, capsys, option, name):
    assert main(["train.txt", "test.txt", option, f"{name}.pickle"]) == 1
    assert f"is the same file as the cache of kifulist_{name}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "option", ["--model", "--state", "--initmodel", "--resume", "--log", "--report"]
)
def test_an_empty_name_is_no_file(folder, capsys, option):
    with pytest.raises(SystemExit):
        main(["train.txt", "test.txt", option, ""])
    error = capsys.readouterr().err
    assert f"argument {option}" in error and "the name of the file is missing" in error


@pytest.mark.parametrize("option", ["--model", "--state"])
def test_a_file_that_is_no_model_is_not_replaced(folder, capsys, option):
    Path("notes").write_text("my notes")
    assert main(["train.txt", "test.txt", option, "notes"]) == 1
    assert f"{option} notes exists and was not saved by a training" in capsys.readouterr().err
    assert Path("notes").read_text() == "my notes"


def test_what_a_killed_run_left_is_removed(tmp_path):
    (tmp_path / ".model.abcd_123.tmp").write_bytes(b"half")
    os.utime(tmp_path / ".model.abcd_123.tmp", (0, 0))
    prepare_outputs({"--model": str(tmp_path / "model")}, {})
    assert os.listdir(tmp_path) == []
