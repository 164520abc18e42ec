"""Files written whole or not at all."""

import os
import stat

import pytest

from pydlshogi import files


def test_new_content_replaces_old(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with files.write_beside(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["file"]


def test_an_error_leaves_the_old_content_and_no_rest(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), files.write_beside(path) as file:
        file.write(b"half of the new con")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


@pytest.fixture
def refusals(monkeypatch):
    """Lets a rename fail as often as the list says, as Windows does for an open file."""
    rename, left = os.replace, []

    def refusing(source, target):
        if left:
            raise left.pop()
        rename(source, target)

    monkeypatch.setattr(os, "replace", refusing)
    monkeypatch.setattr(files.time, "sleep", lambda seconds: None)
    return left


def test_a_file_that_is_open_elsewhere_for_a_moment_is_replaced(tmp_path, refusals):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    refusals += [PermissionError(13, "Access is denied")] * 3
    with files.write_beside(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["file"]


def test_a_file_that_is_open_elsewhere_for_long_is_an_error(tmp_path, refusals):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    refusals += [PermissionError(13, "Access is denied")] * 99
    with pytest.raises(PermissionError), files.write_beside(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no permission bits")
def test_permissions_follow_the_umask(tmp_path):
    umask = os.umask(0o027)
    try:
        with files.write_beside(tmp_path / "file"):
            pass
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


def test_a_missing_folder_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError), files.write_beside(tmp_path / "missing" / "file"):
        pass


def test_shipped_model_is_in_the_clone_or_beside_the_package(tmp_path, monkeypatch):
    package = tmp_path / "pydlshogi"
    (package / "model").mkdir(parents=True)
    monkeypatch.setattr(files, "__file__", str(package / "files.py"))
    in_clone = tmp_path / "model" / "model_policy"
    in_wheel = package / "model" / "model_policy"
    assert files.shipped_model() == in_clone
    in_wheel.touch()
    assert files.shipped_model() == in_wheel
    in_clone.parent.mkdir()
    in_clone.touch()
    assert files.shipped_model() == in_clone
