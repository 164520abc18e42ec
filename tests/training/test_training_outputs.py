"""Places to write to are made, or refused before anything else happens."""

import os

import pytest

from pydlshogi.training.outputs import OutputError, prepare_outputs


def test_missing_folders_are_made(tmp_path):
    paths = {f"--{name}": str(tmp_path / name / "deep" / name) for name in ("model", "state")}
    prepare_outputs(paths, {})
    for path in paths.values():
        assert os.listdir(os.path.dirname(path)) == []


def test_an_empty_path_is_passed_over():
    prepare_outputs({"--log": ""}, {"kifulist_train": ""})


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


def test_a_file_is_not_a_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be made or written to"):
        prepare_outputs({"--model": str(tmp_path / "file" / "model")}, {})
    assert (tmp_path / "file").read_text() == ""
